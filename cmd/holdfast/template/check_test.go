package template

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEngineWords(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"the engine finds 2 of 2 examples valid":                                                                  engineWords(2, 0, nil),
		"the engine finds 0 of 1 example valid":                                                                   engineWords(1, 1, nil),
		"the engine was not asked: it, or a provider, is not at hand (x)":                                         engineWords(1, 0, map[string]int{"not at hand: x": 1}),
		"the engine finds 1 of 3 examples valid; it was not asked about 2: it, or a provider, is not at hand (a)": engineWords(3, 0, map[string]int{"not at hand: b": 1, "not at hand: a": 1}),
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}
