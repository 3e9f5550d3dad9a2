package templates_test

import (
	"testing"

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
		if got := templates.OfTemplate(files, name); got != want {
			t.Errorf("OfTemplate(%s) = %t, want %t", name, got, want)
		}
	}
}
