package templates_test

import (
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
)

func TestOfTemplate(t *testing.T) {
	t.Parallel()
	files := tree(map[string]string{
		"blue/template.yaml": "", "blue/examples/basic.yaml": "", "blue/tests/deep/basic.yaml": "", "blue/other/basic.yaml": "",
		"examples/fleet/clusters/a.yaml": "", "a.yaml": "", "examples/b.yaml": "",
	})
	for name, want := range map[string]bool{
		"blue/examples/basic.yaml":       true,
		"blue/tests/deep/basic.yaml":     true,
		"blue/other/basic.yaml":          false,
		"blue/examples":                  false,
		"examples/fleet/clusters/a.yaml": false,
		"examples/b.yaml":                false,
		"a.yaml":                         false,
	} {
		if got, err := templates.OfTemplate(files, name); got != want || err != nil {
			t.Errorf("OfTemplate(%s) = %t, %v, want %t", name, got, err, want)
		}
	}
	if _, err := templates.OfTemplate(&troubledTree{memTree: files, at: 1}, "blue/examples/basic.yaml"); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("OfTemplate of a tree that fails = %v", err)
	}
}
