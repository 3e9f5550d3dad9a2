package template

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEngineWords(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"the engine finds 2 of 2 examples valid":                                                  engineWords(2, 0, nil),
		"the engine finds 0 of 1 example valid":                                                   engineWords(1, 1, nil),
		"engine check skipped: engine or provider not available (x)":                              engineWords(1, 0, map[string]int{"not available: x": 1}),
		"the engine finds 1 of 3 examples valid; skipped 2: engine or provider not available (a)": engineWords(3, 0, map[string]int{"not available: b": 1, "not available: a": 1}),
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}
