package serve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Everybody may read what follows, code in a run too: it names neither agents nor paths.

// waitsFor is what keeps the server from being ready: repositories that were not read
// yet, and its own agents that are dead.
func (s *services) waitsFor() []string {
	var out []string
	for _, repo := range s.reconciler.Ready() {
		out = append(out, unread(repo, s.reconciler.Progress(repo), s.whyUnread(repo)))
	}
	kinds := make(map[string][]holdfast.RunKind)
	for _, agent := range s.agents {
		kinds[s.agentID(agent)] = agent.kinds
	}
	return append(out, silent(kinds, s.reconciler.Dispatcher().Heard())...)
}

// unread says that a repository was not read yet: how far it is, if that is known, and why
// it was not when it was looked at last, after a colon.
func unread(repo, progress, why string) string {
	if progress != "" {
		progress = " (" + progress + ")"
	}
	return "repository " + repo + " was not read yet" + progress + why
}

// silent are the agents of this machine that do not respond, given their kinds by ID.
func silent(local map[string][]holdfast.RunKind, heard []protocol.AgentStatus) []string {
	var out []string
	for id, kinds := range local {
		if !slices.ContainsFunc(heard, func(a protocol.AgentStatus) bool { return a.ID == id && a.Living }) {
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
	if problem := s.store.BlobProblem(); problem != "" {
		out = append(out, problem+": plans, states and bundles can be neither stored nor read, and runs wait")
	}
	if problem := s.redis.problem(); problem != "" {
		out = append(out, problem)
	}
	if words := deadReplicas(s.store); words != "" {
		out = append(out, words)
	}
	for _, repo := range s.git.DiskFull() {
		out = append(out, "the server's disk is full: repository "+repo+" cannot be fetched")
	}
	out = append(out, s.reconciler.RunnerFaults()...)
	out = append(out, silentChannels(s.notifier.Problems())...)
	passedBy := s.reconciler.PassedBy()
	for _, repo := range passedBy {
		out = append(out, "repository "+repo+" was not read yet"+cmp.Or(s.whyUnread(repo), ": its host has not answered")+"; its clusters wait, others do not")
	}
	return append(out, behind(s.cfg.Repositories, slices.Concat(passedBy, s.reconciler.Ready()), s.whyUnread)...)
}

// behind are the repositories that were read before, and could not be when they were looked
// at last. Why is what went wrong with one, after a colon.
func behind(repos []config.Repository, unread []string, why func(repo string) string) []string {
	var out []string
	for _, repo := range repos {
		if slices.Contains(unread, repo.Name) {
			continue
		}
		if words := why(repo.Name); words != "" {
			out = append(out, "repository "+repo.Name+" could not be read when it was last looked at"+words+"; its clusters stay as they are")
		}
	}
	return out
}

func lacking(heard []protocol.AgentStatus) []string {
	var out []string
	var kinds []holdfast.RunKind
	for _, kind := range holdfast.AgentKinds() {
		takes := func(a protocol.AgentStatus) bool {
			return a.Living && a.Refused == "" && (len(a.Kinds) == 0 || slices.Contains(a.Kinds, kind))
		}
		if !slices.ContainsFunc(heard, takes) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) > 0 {
		out = append(out, "no living agent executes "+holdfast.KindNames(kinds)+" runs")
	}
	for _, a := range heard {
		switch {
		case !a.Living:
		case a.Refused != "":
			out = append(out, fmt.Sprintf("an agent for %s runs gets none: %s", holdfast.KindNames(a.Kinds), a.Refused))
		case a.Isolation == protocol.IsolationUnavailable:
			out = append(out, fmt.Sprintf("an agent for %s runs refuses them all: it cannot isolate engines, its log says why", holdfast.KindNames(a.Kinds)))
		}
	}
	return out
}
