package diff_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/templates/diff"
)

const keepAChangelog = `# Changelog

All of it. See 1.5.0 below.

## [Unreleased]

- not yet

## [1.10.0] - 2026-03-01

### Added

- ten

## 1.5.0

- five
` + "```" + `
## 1.4.9
` + "```" + `

## v1.4.3

## kubernetes 1.4.2 (2026-01-01)

- two

## [kubernetes/v1.4.1](https://example.com)

one

[1.4.2]: https://example.com
`

func TestNotes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, after, upTo, want string }{
		"some":            {keepAChangelog, "1.4.2", "1.5.0", "## 1.5.0\n\n- five\n```\n## 1.4.9\n```\n\n## 1.4.3"},
		"newest first":    {keepAChangelog, "1.4.3", "1.10.0", "## 1.10.0\n\n### Added\n\n- ten\n\n## 1.5.0\n\n- five\n```\n## 1.4.9\n```"},
		"after a name":    {keepAChangelog, "1.4.1", "1.4.2", "## 1.4.2\n\n- two"},
		"as a link":       {keepAChangelog, "1.4.0", "1.4.1", "## 1.4.1\n\none\n\n[1.4.2]: https://example.com"},
		"none":            {keepAChangelog, "1.10.0", "1.11.0", ""},
		"downwards":       {keepAChangelog, "1.10.0", "1.4.1", ""},
		"no version":      {keepAChangelog, "", "latest", ""},
		"big headings":    {"\ufeff# v2.0.0\r\n\r\nnew\r\n\r\n## Details\r\n\r\nmore\r\n\r\n# v1.0.0\r\n\r\nold\r\n", "1.0.0", "2.0.0", "## 2.0.0\n\nnew\n\n## Details\n\nmore"},
		"an end":          {"## 1.1.0\n\na\n\n# Appendix\n\nb\n", "1.0.0", "1.1.0", "## 1.1.0\n\na"},
		"in any order":    {"## 1.1.0\na\n## 1.2.0\nb\n", "1.0.0", "1.2.0", "## 1.2.0\n\nb\n\n## 1.1.0\n\na"},
		"pre-release":     {"## 1.1.0-rc.1\na\n## 1.1.0\nb\n", "1.0.0", "1.1.0-rc.1", "## 1.1.0-rc.1\n\na"},
		"no such heading": {"## 1.1.0.4\na\n## 1.1\nb\n##1.1.0\nc\n####### 1.1.0\nd\n", "1.0.0", "1.1.0", ""},
		"nothing":         {"", "1.0.0", "1.1.0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, diff.Notes([]byte(tc.text), tc.after, tc.upTo)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
	long := diff.Notes([]byte("## 1.1.0\n"+strings.Repeat("é word\n", 10_000)), "1.0.0", "1.1.0")
	if len(long) > 20_010 || !strings.HasSuffix(long, "é word\n…") {
		t.Errorf("long notes have %d bytes and end in %q", len(long), long[len(long)-20:])
	}
}

func FuzzNotes(f *testing.F) {
	f.Add([]byte(keepAChangelog), "1.4.0", "1.10.0")
	f.Fuzz(func(t *testing.T, text []byte, after, upTo string) {
		if got := diff.Notes(text, after, upTo); len(got) > 20_010 {
			t.Errorf("%d bytes of notes", len(got))
		}
	})
}
