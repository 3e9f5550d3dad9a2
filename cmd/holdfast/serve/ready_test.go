package serve

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Kinds that no living agent executes are told, and so is an agent that can execute
// nothing, or gets nothing.
func TestLackingAgents(t *testing.T) {
	t.Parallel()
	plans := protocol.AgentStatus{ID: "a", Living: true, Kinds: []holdfast.RunKind{"plan", "drift"}, Isolation: "slots"}
	gone := protocol.AgentStatus{ID: "b", Kinds: []holdfast.RunKind{"apply", "destroy"}, Isolation: "slots"}
	bare := protocol.AgentStatus{ID: "c", Living: true, Kinds: []holdfast.RunKind{"apply"}, Isolation: "unavailable"}
	weak := protocol.AgentStatus{ID: "e", Living: true, Kinds: []holdfast.RunKind{"apply", "destroy"}, Isolation: "none", Refused: "isolation none is weaker"}
	for name, test := range map[string]struct {
		heard []protocol.AgentStatus
		want  []string
	}{
		"none":  {nil, []string{"no living agent executes plan, apply, drift, destroy runs"}},
		"some":  {[]protocol.AgentStatus{plans, gone}, []string{"no living agent executes apply, destroy runs"}},
		"bare":  {[]protocol.AgentStatus{plans, bare}, []string{"no living agent executes destroy runs", "an agent for apply runs refuses them all: it cannot isolate engines, its log says why"}},
		"weak":  {[]protocol.AgentStatus{plans, weak}, []string{"no living agent executes apply, destroy runs", "an agent for apply, destroy runs gets none: isolation none is weaker"}},
		"heard": {[]protocol.AgentStatus{{ID: "d", Living: true}}, nil}, // by its heartbeats only: its kinds are not known yet
	} {
		if diff := cmp.Diff(test.want, lacking(test.heard)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Who asks whether the server is ready learns which runs nobody executes, and neither the
// names of agents nor where they are.
func TestSilentAgents(t *testing.T) {
	t.Parallel()
	local := map[string][]holdfast.RunKind{"main-plan": {"plan", "drift"}, "main-apply": {"apply", "destroy"}}
	for name, test := range map[string]struct {
		heard []protocol.AgentStatus
		want  []string
	}{
		"both live": {[]protocol.AgentStatus{{ID: "main-plan", Living: true}, {ID: "main-apply", Living: true}}, nil},
		"one died":  {[]protocol.AgentStatus{{ID: "main-plan", Living: true}, {ID: "main-apply"}}, []string{"the server's own agent for apply, destroy runs is not responding: see the server's log"}},
		"none yet": {[]protocol.AgentStatus{{ID: "elsewhere", Living: true}}, []string{
			"the server's own agent for apply, destroy runs is not responding: see the server's log",
			"the server's own agent for plan, drift runs is not responding: see the server's log",
		}},
	} {
		if diff := cmp.Diff(test.want, silent(local, test.heard)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Who asks whether the server is ready learns which repositories have moved on without it.
func TestRepositoriesThatCanNoLongerBeRead(t *testing.T) {
	t.Parallel()
	whys := map[string]string{"gone": ": branch \"main\" does not exist", "never": ": its host is away"}
	repos := []config.Repository{{Name: "fine"}, {Name: "gone"}, {Name: "never"}}
	got := behind(repos, []string{"never"}, func(repo string) string { return whys[repo] })
	want := []string{"repository gone could not be read when it was last looked at: branch \"main\" does not exist; its clusters stay as they are"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Who asks whether the server is ready learns how far a repository is that it waits for.
func TestRepositoryThatIsBeingRead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ progress, why, want string }{
		{"", "", "repository shop was not read yet"},
		{"4,200 of 10,000 clusters recorded", "", "repository shop was not read yet (4,200 of 10,000 clusters recorded)"},
		{"", ": its host is away", "repository shop was not read yet: its host is away"},
		{"1 of 2 clusters read", ": its host is away", "repository shop was not read yet (1 of 2 clusters read): its host is away"},
	} {
		if got := unread("shop", test.progress, test.why); got != test.want {
			t.Errorf("it is said that %q, want %q", got, test.want)
		}
	}
}
