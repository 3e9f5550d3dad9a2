package decode

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"
	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/semver"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// Name returns a required name.
func (o *Object) Name(key string) string {
	s := o.Required(key)
	if s != "" && !ValidName(s) {
		o.reader.Add(o.Get(key), fmt.Sprintf("%s is %q", o.Label(key), wording.Clip(s)), NameHint)
	}
	return s
}

// A name is part of lock keys, file names, labels and command lines.
var namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// ValidName reports whether s can be the name of a cluster, a project, an
// environment, a template or a provider.
func ValidName(name string) bool { return namePattern.MatchString(name) }

// NameHint says what a name may be made of.
const NameHint = "use a-z, 0-9 and - inside, at most 63 characters"

// ExactVersion returns a required exact version such as 1.4.2, "" if it is something
// else.
func (o *Object) ExactVersion(key string) string {
	const hint = "write an exact version such as 1.4.2"
	n := o.Get(key)
	switch {
	case n == nil:
		o.Missing(key)
	case n.Kind != yaml.ScalarNode:
		o.reader.Add(n, fmt.Sprintf("%s must be a version, not %s", o.Label(key), Describe(n)), hint)
	case !semver.IsExact(n.Value):
		better := hint
		if v := strings.TrimPrefix(n.Value, "v"); semver.IsExact(v) {
			better = "write " + v
		} else if strings.ContainsAny(n.Value, "<>=~^* ,") {
			better = hint + "; constraints go into upgrades"
		}
		o.reader.Add(n, fmt.Sprintf("%s %q is not an exact version", o.Label(key), wording.Clip(n.Value)), better)
	default:
		return n.Value
	}
	return ""
}

// Constraint reports the text of a key that is not a version constraint. An empty one
// allows all.
func (o *Object) Constraint(key, text string) {
	if text == "" {
		return
	}
	if len(text) > 200 {
		o.reader.Add(o.Get(key), o.Label(key)+" is longer than 200 characters", "")
		return
	}
	if _, err := version.NewConstraint(text); err != nil {
		o.reader.Add(o.Get(key), fmt.Sprintf("%s %q is not a version constraint", o.Label(key), wording.Clip(text)),
			`write one such as "~> 1.10" or ">= 1.9, < 2.0"`)
	}
}

// identifierPattern is what engines accept as a name.
var identifierPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// IsIdentifier reports whether s can be the name of a variable, an output, a module
// or an argument in the code of a root module.
func IsIdentifier(s string) bool { return identifierPattern.MatchString(s) }

// SortFaults puts faults into the order of their files, lines and columns.
func SortFaults(faults holdfast.Faults) {
	slices.SortStableFunc(faults, func(a, b holdfast.Fault) int {
		switch {
		case a.File != b.File:
			return strings.Compare(a.File, b.File)
		case a.Line != b.Line:
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
}
