package document

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// Hides reports whether rule hides the resource at address as a whole at now:
// what has changed of it, and that it is gone. A rule that has an attribute
// never does.
func Hides(rule holdfast.DriftRule, now time.Time, address string) bool {
	return rule.Attribute == "" && holds(rule, now) && matchAddress(rule.Address, address)
}

// HidesAttribute reports whether rule hides a change at path, as
// holdfast.AttributeChange has it, of the resource at address at now: because it
// hides the resource as a whole, or an attribute at path or above it. A change
// of more than the attribute is not hidden.
func HidesAttribute(rule holdfast.DriftRule, now time.Time, address, path string) bool {
	return holds(rule, now) && matchAddress(rule.Address, address) &&
		(rule.Attribute == "" || matchPath(rule.Attribute, path))
}

// holds reports whether rule has not expired.
func holds(rule holdfast.DriftRule, now time.Time) bool {
	return rule.Expires.IsZero() || now.Before(rule.Expires)
}

// maxRule bounds the address and the attribute of a rule, in bytes: a match takes
// as many steps as the rule's length times the other's.
const maxRule = 250

// matchAddress matches all of address with a glob: * is anything but a dot, **
// anything, all else itself.
func matchAddress(glob, address string) bool {
	literal := strings.IndexByte(glob, '*')
	if literal < 0 {
		return glob == address
	}
	if len(glob) > maxRule || !strings.HasPrefix(address, glob[:literal]) {
		return false
	}
	glob, address = glob[literal:], address[literal:]
	// Whether glob[:i] matches what was seen of address.
	var now, next [maxRule + 1]bool
	now[0] = true
	for at := 0; ; at++ {
		for i := range len(glob) {
			if now[i] && glob[i] == '*' {
				now[i+starLen(glob[i:])] = true // it may stand for nothing
			}
		}
		if at == len(address) {
			return now[len(glob)]
		}
		c, alive := address[at], false
		clear(next[:])
		for i := range len(glob) {
			switch {
			case !now[i]:
			case glob[i] != '*' && glob[i] == c:
				next[i+1], alive = true, true
			case glob[i] == '*' && (c != '.' || starLen(glob[i:]) == 2):
				next[i], alive = true, true
			}
		}
		if !alive {
			return false
		}
		now = next
	}
}

// starLen is 2 at **, 1 at *.
func starLen(glob string) int {
	if len(glob) > 1 && glob[1] == '*' {
		return 2
	}
	return 1
}

// matchPath reports whether pattern matches path or what path is below of, step
// by step; * matches any step. A pattern that cannot be read matches nothing.
func matchPath(pattern, path string) bool {
	for first := true; pattern != ""; first = false {
		want, rest, ok := nextStep(pattern, first)
		if !ok || path == "" {
			return false
		}
		is, below, ok := nextStep(path, first)
		if !ok || want != is && !want.any {
			return false
		}
		pattern, path = rest, below
	}
	return true
}

// checkAddress says what is wrong with the address of a rule, "" if nothing is.
func checkAddress(glob string) (message, hint string) {
	steps := addressSteps(glob)
	switch inModule := strings.HasPrefix(glob, "module."); {
	case glob == "": // that was reported
	case len(glob) > maxRule:
		return fmt.Sprintf("is longer than %d bytes", maxRule), "write a shorter one, with * and **"
	case strings.TrimSpace(glob) != glob:
		return fmt.Sprintf("%q has spaces around it", wording.Clip(glob)), "remove them"
	case strings.Contains(glob, "**"):
	case inModule && steps < 4:
		return fmt.Sprintf("%q can match no resource", wording.Clip(glob)), fmt.Sprintf("write %s.** for all that is in the module", wording.Clip(glob))
	case steps < 2:
		return fmt.Sprintf("%q can match no resource", wording.Clip(glob)), `write type and name such as aws_instance.web, "aws_instance.*" or "**"`
	}
	return "", ""
}

// addressSteps counts the parts of an address between dots that are not in
// quotes.
func addressSteps(address string) int {
	steps, quoted := 1, false
	for i := range len(address) {
		switch {
		case address[i] == '"' && (i == 0 || address[i-1] != '\\'):
			quoted = !quoted
		case address[i] == '.' && !quoted:
			steps++
		}
	}
	return steps
}

// checkAttribute says what is wrong with the attribute of a rule, "" if nothing
// is.
func checkAttribute(pattern string) (message, hint string) {
	if len(pattern) > maxRule {
		return fmt.Sprintf("is longer than %d bytes", maxRule), "write a shorter one: all below it is hidden too"
	}
	for first, rest := true, pattern; rest != ""; first = false {
		_, below, ok := nextStep(rest, first)
		if ok {
			rest = below
			continue
		}
		hint = `write it as the report does, such as scaling_config[0].desired_size or tags["a.b"]`
		name := strings.TrimPrefix(rest, ".")
		if end := strings.IndexAny(name, ".["); end >= 0 {
			name = name[:end]
		}
		switch {
		case strings.Contains(name, "*"):
			hint = "* matches a whole step"
		case name != "" && strings.Trim(name, "0123456789") == "":
			hint = fmt.Sprintf("write an index as [%s]", wording.Clip(name))
		}
		return fmt.Sprintf("%q is not the path of an attribute", wording.Clip(pattern)), hint
	}
	return "", ""
}

// step is one step of an attribute's path: a name, or an index.
type step struct {
	name  string
	index bool // [0]
	any   bool // * or [*]
}

// nextStep cuts the first step off a path such as a.b[0]["c.d"]; first is true at
// its beginning, where no dot is before a name.
func nextStep(path string, first bool) (s step, rest string, ok bool) {
	if strings.HasPrefix(path, "[") {
		return bracketStep(path)
	}
	if !first {
		if path, ok = strings.CutPrefix(path, "."); !ok {
			return step{}, "", false
		}
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	s.name, rest = path[:end], path[end:]
	if s.name == "*" {
		return step{any: true}, rest, true
	}
	return s, rest, attributeName(s.name)
}

// bracketStep cuts off [0], ["name"] or [*].
func bracketStep(path string) (s step, rest string, ok bool) {
	if rest, ok = strings.CutPrefix(path, "[*]"); ok {
		return step{any: true}, rest, true
	}
	if quoted, err := strconv.QuotedPrefix(path[1:]); err == nil && quoted[0] == '"' {
		name, err := strconv.Unquote(quoted)
		rest, ok = strings.CutPrefix(path[1+len(quoted):], "]")
		return step{name: name}, rest, ok && err == nil
	}
	number, rest, ok := strings.Cut(path[1:], "]")
	if !ok || number == "" || strings.Trim(number, "0123456789") != "" {
		return step{}, "", false
	}
	return step{name: number, index: true}, rest, true
}

// attributeName reports whether s is a name that needs no quotes in a path.
func attributeName(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '-' && (r < '0' || r > '9')) {
			return false
		}
	}
	return s != ""
}
