package markdown_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/report/markdown"
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
			"text": markdown.Text, "code": markdown.Code, "HTML": markdown.HTML, "block": func(s string) string { return markdown.Fenced("", s) },
		} {
			if got := show("pro" + string(hidden) + "duction"); strings.ContainsRune(got, hidden) || !strings.Contains(got, "production") {
				t.Errorf("%s keeps %U: %q", name, hidden, got)
			}
		}
	}
}

func TestShortHint(t *testing.T) {
	t.Parallel()
	for hint, want := range map[string]string{
		"it is kept: `holdfast state push` does it now, `x*y` too": "it is kept: `holdfast state push` does it now, `x*y` too",
		"a *bold* @name in `a_b`":                                  "a \\*bold\\* @\u200bname in `a_b`",
		"one ` alone":                                              "one \\` alone",
		"`a` " + strings.Repeat("b", 60):                           "\\`a\\` " + strings.Repeat("b", 53) + "…",
		"`" + strings.Repeat("b", 70) + "`":                        "\\`" + strings.Repeat("b", 57) + "…",
		"- `` <b>":                                                 "\\- ` ` &lt;b&gt;",
	} {
		if got := markdown.ShortHint(hint, 60); got != want {
			t.Errorf("ShortHint(%q) = %q, want %q", hint, got, want)
		}
	}
}
