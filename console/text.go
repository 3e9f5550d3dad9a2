package console

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-dev/holdfast/internal/unseen"
)

// Other people's texts become HTML here and nowhere else: each piece is escaped before
// anything is put around it.

// longText is how many characters of a text are shown where it is one of many.
const longText = 2000

// isHidden reports whether a character would be invisible, or change how others are read.
func isHidden(r rune) bool {
	return unseen.Is(r) || unicode.IsControl(r) && r != '\n' && r != '\t' || r == unicode.ReplacementChar
}

// escaped writes a text as HTML, with escapes in place of characters that are not seen.
func escaped(b *strings.Builder, s string) {
	from := 0
	for i, r := range s {
		if !isHidden(r) {
			continue
		}
		b.WriteString(template.HTMLEscapeString(s[from:i]))
		fmt.Fprintf(b, `<span class="esc">\u%04x</span>`, r)
		from = i + max(1, len(string(r)))
		if r == unicode.ReplacementChar && !strings.HasPrefix(s[i:], string(r)) {
			from = i + 1 // one byte that is not UTF-8
		}
	}
	b.WriteString(template.HTMLEscapeString(s[from:]))
}

// text shows somebody's text, apart from the direction of writing around it.
func text(s any) template.HTML {
	var b strings.Builder
	b.WriteString("<bdi>")
	escaped(&b, clip(fmt.Sprint(s), longText))
	b.WriteString("</bdi>")
	return template.HTML(b.String()) //nolint:gosec // built from escaped pieces
}

// whole shows somebody's text, however long: what is to be sent is seen in full.
func whole(s string) template.HTML {
	var b strings.Builder
	b.WriteString("<bdi>")
	escaped(&b, s)
	b.WriteString("</bdi>")
	return template.HTML(b.String()) //nolint:gosec // built from escaped pieces
}

// address is text that may be broken after dots, slashes and brackets.
func address(s any) template.HTML {
	var b strings.Builder
	b.WriteString("<bdi>")
	rest := clip(fmt.Sprint(s), longText)
	for {
		i := strings.IndexAny(rest, "./]@_")
		if i < 0 {
			break
		}
		escaped(&b, rest[:i+1])
		b.WriteString("<wbr>")
		rest = rest[i+1:]
	}
	escaped(&b, rest)
	b.WriteString("</bdi>")
	return template.HTML(b.String()) //nolint:gosec // built from escaped pieces
}

// plain is a text for an attribute, such as a title.
func plain(s any) string {
	var b strings.Builder
	for _, r := range clip(fmt.Sprint(s), longText) {
		if isHidden(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// clip cuts a text and says how much is left out.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && s[cut]&0xc0 == 0x80 { // not in the middle of a character
		cut--
	}
	return s[:cut] + " … (" + count(len(s)-cut) + " more bytes)"
}

// count writes a number with commas.
func count(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Plural is a number with its noun.
func Plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return count(n) + " " + noun
}

// ago shows how long something is past, or when it will be; the exact time on hover.
func ago(now, at time.Time) template.HTML {
	if at.IsZero() {
		return ""
	}
	words := span(now.Sub(at)) + " ago"
	switch d := now.Sub(at); {
	case d < 0 && d > -time.Second, d >= 0 && d < time.Second:
		words = "now"
	case d < 0:
		words = "in " + span(-d)
	}
	return stamp(at, words)
}

// since shows for how long something is so.
func since(now, at time.Time) template.HTML {
	if at.IsZero() {
		return ""
	}
	return stamp(at, span(max(0, now.Sub(at))))
}

func stamp(at time.Time, words string) template.HTML {
	at = at.UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, //nolint:gosec // times and our own words
		at.Format(time.RFC3339), at.Format("2006-01-02 15:04:05 UTC"), words))
}

// span is a duration in a word.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d d", int(d.Hours()/24))
	}
}

// Took is how long something lasted, in two units.
func Took(d time.Duration) string {
	d = max(0, d).Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d m %02d s", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%d h %02d m", int(d.Hours()), int(d.Minutes())%60)
	}
}

// size is a number of bytes in a word.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	default:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
}

// short is the beginning of a commit.
func short(revision any) string {
	s := fmt.Sprint(revision)
	return s[:min(len(s), 7)]
}

// initials of a name, for its badge.
func initials(name string) string {
	var out []rune
	word := true
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			word = true
		case word && len(out) < 2:
			out, word = append(out, unicode.ToUpper(r)), false
		}
	}
	return string(out)
}

// icon draws one of the sprite. Words next to it say the same.
func (l *look) icon(name string, classes ...string) template.HTML {
	class := "icon"
	if len(classes) > 0 {
		class += " " + strings.Join(classes, " ")
	}
	return template.HTML(fmt.Sprintf(`<svg class="%s" aria-hidden="true"><use href="%s#%s"/></svg>`, //nolint:gosec // escaped pieces
		template.HTMLEscapeString(class), l.assets.byName["sprite.svg"].address, template.HTMLEscapeString(name)))
}

// funcs are what templates call.
func (l *look) funcs() template.FuncMap {
	return template.FuncMap{
		"text": text, "whole": whole, "address": address, "plain": plain, "count": count, "plural": Plural, "ago": ago, "since": since, "took": Took,
		"size": size, "short": short, "initials": initials, "icon": l.icon, "log": logLine, "bar": bar, "int64": func(n int) int64 { return int64(n) },
		"asset": func(name string) (string, error) {
			one, ok := l.assets.byName[name]
			if !ok {
				return "", fmt.Errorf("there is no asset %q", name)
			}
			return one.address, nil
		},
		"dict": dict,
	}
}

// dict passes several values to a template.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict: %d values: want pairs", len(pairs))
	}
	out := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: key %v is not a text", pairs[i])
		}
		out[key] = pairs[i+1]
	}
	return out, nil
}
