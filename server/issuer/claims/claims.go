package claims

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Phases of runs, as subjects have them: what a plan may do, and what an apply may.
const (
	PhasePlan  = "plan"
	PhaseApply = "apply"
)

// PhaseOf is the phase of runs of a kind. Drift checks plan; applies, destroys and what puts a
// state right apply.
func PhaseOf(kind holdfast.RunKind) string {
	if kind.Writes() {
		return PhaseApply
	}
	return PhasePlan
}

// MaxGoogleSubject is how many bytes Google accepts as google.subject.
const MaxGoogleSubject = 127

// Subject is who runs of a project and environment are in a phase, as "sub" says it:
// holdfast:PROJECT:ENVIRONMENT:PHASE. It does not change as long as they have these names,
// and no two of them have the same.
func Subject(project, environment, phase string) string {
	return strings.Join([]string{"holdfast", escape(project), escape(environment), phase}, ":")
}

// escape writes whatever separates the parts of a subject, or is a wildcard of those who
// match it, as percent and two digits. Names of projects and environments have none of it.
func escape(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// Origin is where a run comes from.
type Origin struct {
	Repository string // as its code host calls it
	Ref        string // refs/heads/BRANCH or refs/pull/NUMBER
	Runner     string // what its agent is an agent of
}

// Claims are the content of a token, besides what the issuer says of itself and the time.
type Claims struct {
	Issuer    string `json:"iss"`
	Subject   string `json:"sub"`
	Audience  string `json:"aud"`
	IssuedAt  int64  `json:"iat"`
	NotBefore int64  `json:"nbf"`
	Expires   int64  `json:"exp"`
	ID        string `json:"jti"`

	Project     string `json:"project"`
	Environment string `json:"environment"`
	Cluster     string `json:"cluster"`
	Phase       string `json:"phase"`
	Kind        string `json:"kind"`
	Repository  string `json:"repository"`
	Ref         string `json:"ref"`
	Revision    string `json:"revision"`
	Runner      string `json:"runner"`
	Run         string `json:"run"`
	Attempt     int    `json:"attempt"`

	// Tags are AWS's session tags.
	Tags *Tags `json:"https://aws.amazon.com/tags,omitempty"`
}

// Tags are what AWS makes tags of a session of.
type Tags struct {
	Principal  map[string][]string `json:"principal_tags"`
	Transitive []string            `json:"transitive_tag_keys,omitempty"`
}

// Of returns what a token says of the current attempt at a run.
func Of(run holdfast.Run, origin Origin) Claims {
	phase := PhaseOf(run.Kind)
	return Claims{
		Subject: Subject(run.Document.Project, run.Document.Environment, phase),
		Project: run.Document.Project, Environment: run.Document.Environment, Cluster: run.Cluster,
		Phase: phase, Kind: string(run.Kind),
		Repository: origin.Repository, Ref: origin.Ref, Revision: string(run.Revision), Runner: origin.Runner,
		Run: run.ID, Attempt: run.Attempt,
	}
}

// PhaseRunner is the phase of the server itself, when it starts what executes runs.
const PhaseRunner = "runner"

// RunnerSubject is who the server is that starts the runs of a runner:
// holdfast:runner:NAME. No run has it, as those of runs have four parts.
func RunnerSubject(runner string) string {
	return strings.Join([]string{"holdfast", PhaseRunner, escape(runner)}, ":")
}

// OfRunner returns what a token says of the server that starts the runs of a runner, whose
// document comes from a repository. It has every claim that tokens of runs have, as mappings
// of Google refuse a token that lacks one.
func OfRunner(origin Origin) Claims {
	return Claims{
		Subject: RunnerSubject(origin.Runner), Phase: PhaseRunner, Kind: PhaseRunner,
		Repository: origin.Repository, Ref: origin.Ref, Runner: origin.Runner,
	}
}

// For addresses a token to one audience, for a while.
func (c Claims) For(issuer, audience, id string, now time.Time, lifetime time.Duration) Claims {
	c.Issuer, c.Audience, c.ID = issuer, audience, id
	// Clocks of those who check it may be a little behind.
	c.IssuedAt, c.NotBefore, c.Expires = now.Unix(), now.Add(-leeway).Unix(), now.Add(lifetime).Unix()
	return c
}

const leeway = 30 * time.Second

// Tagged adds the tags of a session: project, environment, cluster and phase.
func (c Claims) Tagged() Claims {
	c.Tags = &Tags{Principal: make(map[string][]string)}
	for _, tag := range []struct{ key, value string }{
		{"project", c.Project}, {"environment", c.Environment}, {"cluster", c.Cluster}, {"phase", c.Phase},
	} {
		c.Tags.Principal["holdfast:"+tag.key] = []string{cmp.Or(tag.value, "none")}
	}
	return c
}
