package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

const (
	// agentSilence is how long an agent counts as living without a sign of life. It
	// claims, or says that it is there, several times within it; a claim that waits
	// counts for as long as it does.
	agentSilence = 30 * time.Second
	// agentKept is how long one that is silent is shown.
	agentKept = 24 * time.Hour
	// formerKept is how many former processes of an agent are remembered.
	formerKept = 16
)

// agents are the agents that have given a sign of life since this replica started.
// Methods are safe for concurrent use.
type agents struct {
	now      func() time.Time
	demanded []string // see Limits.Isolation
	began    time.Time

	mu sync.Mutex
	by map[string]*member
}

// member is an agent: the process that has its id now.
type member struct {
	claim   protocol.ClaimRequest // its last one; without kinds: only heartbeats were heard
	since   time.Time
	seenAt  time.Time
	seen    time.Time // the same with the monotonic clock
	waiting int       // claims that wait now
	signs   uint64    // of life, counted
	beaten  bool      // only heartbeats of its runs were heard: its claim says nothing
	shared  time.Time // when other replicas were notified; with the monotonic clock
	refused error     // why it gets no runs; nil: it gets them
	former  []string  // processes whose place it has taken, in the same folder; the last ones
}

func newAgents(now func() time.Time, demanded []string) *agents {
	return &agents{now: now, demanded: demanded, began: time.Now(), by: make(map[string]*member)}
}

// refusal is why an agent gets no runs; nil if it gets them. One for which no mode works
// starts no engine.
func (a *agents) refusal(req protocol.ClaimRequest) error {
	if len(a.demanded) == 0 || req.Isolation == protocol.IsolationUnavailable || slices.Contains(a.demanded, req.Isolation) {
		return nil
	}
	return &protocol.AgentIsolationError{Isolation: req.Isolation, Demanded: a.demanded}
}

func (m *member) living() bool { return m.waiting > 0 || time.Since(m.seen) <= agentSilence }

func (m *member) sign(now time.Time) {
	m.seen, m.seenAt = time.Now(), now
	m.signs++
}

// heard records a claim or a sign of life of an agent. It is an
// *protocol.AgentTakenError if another living process has the id. A process that shows
// the folder of the one before has replaced it; one that shows none replaces nobody.
func (a *agents) heard(req protocol.ClaimRequest) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	m, err := a.placeOf(req)
	if err != nil {
		return err
	}
	a.by[req.Agent] = m
	m.claim, m.beaten = req, false
	m.claim.Executing, m.refused = nil, a.refusal(req)
	m.sign(a.now())
	return nil
}

// placeOf is the member that a claim is of, a new one if its process takes the place of
// another.
func (a *agents) placeOf(req protocol.ClaimRequest) (*member, error) {
	now, m := a.now(), a.by[req.Agent]
	switch {
	case m == nil:
		return &member{since: now}, nil
	case m.claim.Process == req.Process && m.claim.Folder == req.Folder:
		return m, nil
	case m.living() && slices.Contains(m.former, req.Process):
		return nil, &protocol.AgentTakenError{Agent: req.Agent, Host: m.claim.Host, Same: true}
	case req.Process != "" && req.Folder != "" && req.Folder == m.claim.Folder:
		return &member{since: now, former: m.replacedBy(req.Process)}, nil
	case m.living():
		return nil, &protocol.AgentTakenError{Agent: req.Agent, Host: m.claim.Host}
	default:
		return &member{since: now}, nil
	}
}

// replacedBy returns the processes that are former ones once process has taken the
// place of m.
func (m *member) replacedBy(process string) []string {
	former := slices.DeleteFunc(append(slices.Clone(m.former), m.claim.Process), func(p string) bool {
		return p == "" || p == process
	})
	return former[max(0, len(former)-formerKept):]
}

// Replaced reports whether the agent's process that a run was handed to was replaced by
// another one in its folder.
func (a *agents) Replaced(run holdfast.Run) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.by[run.Agent]
	return m != nil && run.AgentProcess != "" && m.claim.Process != "" && m.claim.Process != run.AgentProcess &&
		m.claim.Folder != "" && m.claim.Folder == run.AgentFolder
}

// waits says that a claim of the agent waits, until done is called.
func (a *agents) waits(id string) (done func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.by[id]
	if m == nil {
		return func() {}
	}
	m.waiting++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		m.waiting--
		m.sign(a.now())
	}
}

// beats records a heartbeat of a run. One of a process that no longer has its id says
// nothing of the one that has; one that names no process is of the one that claimed the
// run.
func (a *agents) beats(run holdfast.Run, process string) {
	if run.AgentFolder == "" {
		return // it was launched for this attempt alone
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	process = cmp.Or(process, run.AgentProcess)
	now, m := a.now(), a.by[run.Agent]
	if m == nil {
		m = &member{since: now, beaten: true, claim: protocol.ClaimRequest{Agent: run.Agent, Process: process, Folder: run.AgentFolder}}
		a.by[run.Agent] = m
	}
	if process == m.claim.Process {
		m.sign(now)
	}
}

// takes reports whether a living agent of a runner executes runs of a kind, of clusters of a
// project; of every project, if that is empty. Isolated: one that isolates engines.
func (a *agents) takes(runner string, kind holdfast.RunKind, project string, isolated bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.by {
		if m.refused == nil && m.wants(runner, kind, project) && (!isolated || isolates(m.claim.Isolation)) {
			return true
		}
	}
	return false
}

// refusedFor is why a living agent for such runs gets none; nil if there is no such
// agent.
func (a *agents) refusedFor(runner string, kind holdfast.RunKind, project string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(a.by)) {
		if m := a.by[id]; m.refused != nil && m.wants(runner, kind, project) {
			return m.refused
		}
	}
	return nil
}

// wants reports whether the agent lives, belongs to a runner, and claims runs of a kind, of
// clusters of a project.
func (m *member) wants(runner string, kind holdfast.RunKind, project string) bool {
	kinds, projects := m.claim.Kinds, m.claim.Projects
	return m.living() && (m.claim.Runner == "" || m.claim.Runner == runner) && (len(kinds) == 0 || slices.Contains(kinds, kind.AgentKind())) && (len(projects) == 0 || slices.Contains(projects, project))
}

// known reports whether this replica has listened for long enough to say that
// there is no agent.
func (a *agents) known() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Since(a.began) > agentSilence
}

// age makes all that was heard older by ago.
func (a *agents) age(ago time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began = a.began.Add(-ago)
	for _, m := range a.by {
		m.seen, m.seenAt = m.seen.Add(-ago), m.seenAt.Add(-ago)
	}
}

// Heard returns the agents that were heard of, by id, without their runs: it asks
// nobody. Those that have been silent for a day are left out.
func (a *agents) Heard() []protocol.AgentStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []protocol.AgentStatus
	for id, m := range a.by {
		if !m.living() && time.Since(m.seen) > agentKept {
			delete(a.by, id)
			continue
		}
		c := m.claim
		status := protocol.AgentStatus{
			ID: id, Runner: c.Runner, Living: m.living(), Kinds: slices.Clone(c.Kinds), Projects: slices.Clone(c.Projects),
			Isolation: c.Isolation, Platform: c.Platform, Host: c.Host, Version: c.Version, Slots: c.Slots,
			Since: m.since, SeenAt: m.seenAt,
		}
		if m.refused != nil {
			status.Refused = m.refused.Error()
		}
		out = append(out, status)
	}
	slices.SortFunc(out, func(x, y protocol.AgentStatus) int { return strings.Compare(x.ID, y.ID) })
	return out
}

// Signs counts the signs of life of an agent. While the number stays the same it gave
// no sign of life; zero: nothing at all.
func (a *agents) Signs(agent string) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m := a.by[agent]; m != nil {
		return m.signs
	}
	return 0
}

// unheard is how long an agent has been silent; zero if it never gave a sign of life.
func (a *agents) unheard(agent string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m := a.by[agent]; m != nil && m.waiting == 0 {
		return time.Since(m.seen)
	}
	return 0
}

// Present records that an agent is there and wants no run now, since all its slots are
// taken. It is a *protocol.AgentTakenError if another living process has its id.
func (d *Dispatcher) Present(ctx context.Context, req protocol.ClaimRequest) error {
	if err := (roll{d}).hear(ctx, req); err != nil {
		return err
	}
	_, err := d.reap(ctx, req)
	return err
}

// Agents is Heard with the runs that the records say they execute; an agent that
// was not heard of and has runs is among them.
func (d *Dispatcher) Agents(ctx context.Context) ([]protocol.AgentStatus, error) {
	running, err := d.running(ctx)
	if err != nil {
		return nil, err
	}
	list := d.Heard()
	for _, run := range running {
		i := slices.IndexFunc(list, func(a protocol.AgentStatus) bool { return a.ID == run.Agent })
		if i < 0 {
			// One that was launched for the run is known by its heartbeats alone.
			run = d.LastSign(run)
			living := run.AgentFolder == "" && d.opts.Now().Sub(run.HeartbeatAt) <= agentSilence
			list = append(list, protocol.AgentStatus{ID: run.Agent, Living: living, Kinds: []holdfast.RunKind{}, SeenAt: run.HeartbeatAt})
			i = len(list) - 1
		}
		list[i].Runs = append(list[i].Runs, run.ID)
		if run.Reason == holdfast.ReasonAgentSilent && d.unheard(run.Agent) > d.opts.Limits.Lease {
			list[i].Living = false // as its run says: leases may be shorter than agentSilence
		}
	}
	slices.SortFunc(list, func(x, y protocol.AgentStatus) int { return strings.Compare(x.ID, y.ID) })
	for i := range list {
		slices.Sort(list[i].Runs)
		if list[i].Kinds == nil {
			list[i].Kinds = []holdfast.RunKind{} // "kinds": null surprises clients
		}
	}
	return list, nil
}

func (d *Dispatcher) running(ctx context.Context) ([]holdfast.Run, error) {
	running, err := d.opts.Store.Runs(ctx, holdfast.RunFilter{
		Statuses: []holdfast.RunStatus{holdfast.RunRunning}, Limit: 10_000,
	})
	if err != nil {
		return nil, fmt.Errorf("list running runs: %w", err)
	}
	return running, nil
}
