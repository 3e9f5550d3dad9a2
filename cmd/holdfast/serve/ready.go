package serve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// waitsFor is what keeps the server from being ready: repositories that were not
// read yet, and agents of its own that do not live.
func (s *services) waitsFor() []string {
	var out []string
	for _, repo := range s.reconciler.Ready() {
		out = append(out, "repository "+repo+" was not read yet"+s.whyUnread(repo))
	}
	heard := s.reconciler.Dispatcher().Heard()
	for _, agent := range s.agents {
		id := s.agentID(agent)
		if !slices.ContainsFunc(heard, func(a holdfast.AgentStatus) bool { return a.ID == id && a.Living }) {
			out = append(out, fmt.Sprintf("agent %s, which executes %s runs, is not heard of: see %s",
				id, holdfast.KindNames(agent.kinds), s.path(agent.name, "agent.log")))
		}
	}
	return out
}

// whyUnread is what went wrong with a repository when it was looked at last, after a
// colon; empty if nothing is known.
func (s *services) whyUnread(repo string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	source, err := s.store.RepositoryState(ctx, repo)
	if err != nil || source.LastError == "" {
		return ""
	}
	return ": " + source.LastError
}

// lacks is what is wrong although the server is ready: it must be reachable for
// agents elsewhere to come.
func (s *services) lacks() []string {
	out := lacking(s.reconciler.Dispatcher().Heard())
	if problem := s.store.DiskProblem(); problem != "" {
		out = append(out, problem+": nothing can be stored")
	}
	for _, repo := range s.git.DiskFull() {
		out = append(out, "the server's disk is full: repository "+repo+" cannot be fetched")
	}
	for _, repo := range s.reconciler.PassedBy() {
		out = append(out, "repository "+repo+" was not read yet"+cmp.Or(s.whyUnread(repo), ": its host has not answered")+"; its clusters wait, others do not")
	}
	return out
}

func lacking(heard []holdfast.AgentStatus) []string {
	var out []string
	var kinds []holdfast.RunKind
	for _, kind := range holdfast.AgentKinds() {
		takes := func(a holdfast.AgentStatus) bool {
			return a.Living && (len(a.Kinds) == 0 || slices.Contains(a.Kinds, kind))
		}
		if !slices.ContainsFunc(heard, takes) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) > 0 {
		out = append(out, "no living agent executes "+holdfast.KindNames(kinds)+" runs")
	}
	for _, a := range heard {
		if a.Living && a.Isolation == "" && len(a.Kinds) > 0 {
			out = append(out, fmt.Sprintf("agent %s refuses all runs: it cannot isolate engines, its log says why", a.ID))
		}
	}
	return out
}
