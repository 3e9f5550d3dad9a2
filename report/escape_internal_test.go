package report

import (
	"strings"
	"testing"
)

// What a name or a message hides is not in comments: two that look the same
// would be different, and text could be shown in another order than it is read.
func TestHiddenCharacters(t *testing.T) {
	t.Parallel()
	for _, hidden := range []rune{
		0x061c, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x202a, 0x202e, 0x2060, 0x2064, 0x2066, 0x2069, 0xfeff,
		0x00ad, 0x034f, 0x115f, 0x180e, 0x3164, 0xe0001, 0xe0041, 0xfff9, 0xfe00, 0xfe0e, 0xfe0f, 0xe0100, 0xe01ef,
	} {
		for name, show := range map[string]func(string) string{
			"text": text, "code": code, "HTML": htmlText, "block": func(s string) string { return fenced("", s) },
		} {
			if got := show("pro" + string(hidden) + "duction"); strings.ContainsRune(got, hidden) || !strings.Contains(got, "production") {
				t.Errorf("%s keeps %U: %q", name, hidden, got)
			}
		}
	}
}

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
