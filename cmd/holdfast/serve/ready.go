package serve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Everybody may read what follows, code in a run too: it names neither agents nor paths.

// waitsFor is what keeps the server from being ready: repositories that were not
// read yet, and agents of its own that do not live.
func (s *services) waitsFor() []string {
	var out []string
	for _, repo := range s.reconciler.Ready() {
		out = append(out, "repository "+repo+" was not read yet"+s.whyUnread(repo))
	}
	kinds := make(map[string][]holdfast.RunKind)
	for _, agent := range s.agents {
		kinds[s.agentID(agent)] = agent.kinds
	}
	return append(out, silent(kinds, s.reconciler.Dispatcher().Heard())...)
}

// silent are the agents of this machine that do not respond, given their kinds by ID.
func silent(local map[string][]holdfast.RunKind, heard []holdfast.AgentStatus) []string {
	var out []string
	for id, kinds := range local {
		if !slices.ContainsFunc(heard, func(a holdfast.AgentStatus) bool { return a.ID == id && a.Living }) {
			out = append(out, fmt.Sprintf("the server's own agent for %s runs is not responding: see the server's log", holdfast.KindNames(kinds)))
		}
	}
	slices.Sort(out)
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
			out = append(out, fmt.Sprintf("an agent for %s runs refuses them all: it cannot isolate engines, its log says why", holdfast.KindNames(a.Kinds)))
		}
	}
	return out
}
