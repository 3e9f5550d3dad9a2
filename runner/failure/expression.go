package failure

import (
	"regexp"
	"sync"
)

// Expression is a regular expression that is compiled when it is first used. Those of
// this package are many and large: every command, agent and server would pay for them at
// its start, and only an agent whose engine has failed needs them.
type Expression struct{ compiled func() *regexp.Regexp }

func lazily(text string) *Expression {
	return &Expression{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
}

// MatchString reports whether the text contains a match.
func (e *Expression) MatchString(text string) bool { return e.compiled().MatchString(text) }

// FindStringSubmatch returns the first match and its groups; nil if there is none.
func (e *Expression) FindStringSubmatch(text string) []string {
	return e.compiled().FindStringSubmatch(text)
}

// ReplaceAllString returns the text with every match replaced.
func (e *Expression) ReplaceAllString(text, by string) string {
	return e.compiled().ReplaceAllString(text, by)
}
