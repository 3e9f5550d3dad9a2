package diff

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/holdfast-dev/holdfast/templates/semver"
)

// notesMost bounds what Notes returns, in bytes.
const notesMost = 20_000

const maxChangelog = 1 << 20 // bytes of a changelog that are read

// versionHeading is a heading that begins with a version, perhaps in brackets or
// after a name: "## 1.5.0", "## [1.5.0] - 2026-01-01", "# v1.5.0",
// "## kubernetes 1.5.0", "## [kubernetes/v1.5.0](https://…)".
var versionHeading = regexp.MustCompile(
	`^(#{1,6})[ \t]+\[?(?:[A-Za-z0-9._-]+[ \t/]+)?\[?v?([0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)\]?(?:[\s(,:].*)?$`)

// Notes returns the sections of a CHANGELOG.md about the versions that are newer than
// after, up to and including upTo: the newest first, each under a heading "## 1.5.0",
// at most 20,000 bytes in whole lines. It is other people's text and not escaped: the
// caller has to do that before it is shown. Empty if there is none.
func Notes(changelog []byte, after, upTo string) string {
	from, errFrom := semver.Parse(after)
	to, errTo := semver.Parse(upTo)
	if errFrom != nil || errTo != nil || len(changelog) > maxChangelog {
		return ""
	}
	sections := sectionsOf(string(changelog))
	sections = slices.DeleteFunc(sections, func(s section) bool {
		return !s.version.GreaterThan(from) || s.version.GreaterThan(to)
	})
	slices.SortStableFunc(sections, func(a, b section) int { return b.version.Compare(a.version) })
	var out strings.Builder
	for _, s := range sections {
		body := strings.Trim(strings.Join(s.lines, "\n"), "\n")
		text := "## " + s.version.Original() + "\n\n"
		if body != "" {
			text += body + "\n\n"
		}
		for line := range strings.Lines(text) {
			if out.Len()+len(line) > notesMost {
				return strings.TrimSpace(out.String()) + "\n…"
			}
			out.WriteString(line)
		}
	}
	return strings.TrimSpace(out.String())
}

// section is what a changelog says about one version.
type section struct {
	version *version.Version
	level   int // of its heading
	lines   []string
}

// sectionsOf splits a changelog. A section ends at the next heading that is not
// below its own; what is in a code block is not a heading.
func sectionsOf(text string) []section {
	var out []section
	open, fenced := false, ""
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimRight(line, " \t\r\n")
		if mark := fenceOf(line); mark != "" && (fenced == "" || strings.HasPrefix(mark, fenced)) {
			if fenced == "" {
				fenced = mark
			} else {
				fenced = ""
			}
		} else if level := headingLevel(line); fenced == "" && level > 0 {
			if m := versionHeading.FindStringSubmatch(line); m != nil {
				if v, err := semver.Parse(m[2]); err == nil {
					out, open = append(out, section{version: v, level: level}), true
					continue
				}
			}
			if open && level <= out[len(out)-1].level {
				open = false
			}
		}
		if open {
			out[len(out)-1].lines = append(out[len(out)-1].lines, line)
		}
	}
	return out
}

// fenceOf is what begins or ends a code block, such as "```"; empty if nothing
// does.
func fenceOf(line string) string {
	text := strings.TrimLeft(line, " ")
	for _, mark := range []string{"```", "~~~"} {
		if strings.HasPrefix(text, mark) {
			return text[:len(text)-len(strings.TrimLeft(text, mark[:1]))]
		}
	}
	return ""
}

func headingLevel(line string) int {
	level := len(line) - len(strings.TrimLeft(line, "#"))
	if level > 6 || level < len(line) && line[level] != ' ' && line[level] != '\t' {
		return 0
	}
	return level
}
