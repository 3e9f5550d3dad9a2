package runnerspec

import (
	"cmp"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// Rule says which runner an environment gets when it first runs, as its document
// (kind RunnerRule) says. The most specific rule wins: project and environment, then project,
// then environment, then neither.
type Rule struct {
	Name        string `json:"name"`
	Runner      string `json:"runner"`
	Project     string `json:"project,omitempty"`     // empty: any
	Environment string `json:"environment,omitempty"` // empty: any
}

// Specificity orders rules: of those that match an environment, the one with the highest
// number wins.
func (r Rule) Specificity() int {
	n := 0
	if r.Project != "" {
		n += 2
	}
	if r.Environment != "" {
		n++
	}
	return n
}

// Matches reports whether a rule is about an environment.
func (r Rule) Matches(env holdfast.EnvironmentKey) bool {
	return (r.Project == "" || r.Project == env.Project) && (r.Environment == "" || r.Environment == env.Name)
}

// RuleFor returns the most specific of the rules that match an environment; false if none
// does. Of two that are equally specific, which is a fault of the later one, the first by name.
func RuleFor(rules []Rule, env holdfast.EnvironmentKey) (rule Rule, ok bool) {
	for _, r := range slices.SortedFunc(slices.Values(rules), func(a, b Rule) int {
		return cmp.Or(b.Specificity()-a.Specificity(), cmp.Compare(a.Name, b.Name))
	}) {
		if r.Matches(env) {
			return r, true
		}
	}
	return Rule{}, false
}
