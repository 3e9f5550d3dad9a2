package report

import "testing"

// TestLookalikes: letters that pass for ASCII ones are shown as escapes, unless their
// word is one of their own script.
func TestLookalikes(t *testing.T) {
	t.Parallel()

	for s, want := range map[string]string{
		"p\u0430yments":                        `p\u0430yments`,
		"\u0441\u043e\u0441\u043e":             `\u0441\u043e\u0441\u043e`,
		"\u043c\u043e\u0441\u043a\u0432\u0430": "\u043c\u043e\u0441\u043a\u0432\u0430",
		"prod\u2010eu":                         `prod\u2010eu`,
		"https:\u2215\u2215example.com":        `https:\u2215\u2215example.com`,
		"\uff50rod":                            `\uff50rod`,
		"\U0001d429rod":                        `\U0001d429rod`,
		"caf\u00e9 \u00fcber":                  "caf\u00e9 \u00fcber",
		"\u043c\u043e\u0441\u043a\u0432\u0430 p\u0430yments": "\u043c\u043e\u0441\u043a\u0432\u0430 " + `p\u0430yments`,
		"one \u2013 two, isn\u2019t it":                      "one \u2013 two, isn\u2019t it",
		"\u6771\u4eac":                                       "\u6771\u4eac",
	} {
		if got := visible(s); got != want {
			t.Errorf("visible(%+q) = %+q, want %+q", s, got, want)
		}
	}
}
