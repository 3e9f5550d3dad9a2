package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// candidate is a run that may be handed out, as a look at the queue has found it.
type candidate struct {
	run   string
	now   time.Time // of that look
	share share
}

// counters are where claims wait, one for all that want the same runs: each run that is
// queued or ends wakes one of them, which looks on behalf of the others.
type counters struct {
	mu sync.Mutex
	by map[string]*counter // see counterOf

	given given
}

// counter is one of these; it is there as long as somebody uses it.
type counter struct {
	*queue.Line[candidate]
	users int
}

// counterOf says which claims want the same runs.
func counterOf(req protocol.ClaimRequest) string {
	kinds, projects := slices.Clone(req.Kinds), slices.Clone(req.Projects)
	slices.Sort(kinds)
	slices.Sort(projects)
	return fmt.Sprintf("%q %q %q %t", req.Runner, kinds, projects, isolates(req.Isolation))
}

// place returns the place of a claim, behind those that want the same runs; leave has to
// be called in the end.
func (d handout) place(req protocol.ClaimRequest) (place *queue.Place[candidate], leave func()) {
	key := counterOf(req)
	d.counters.mu.Lock()
	defer d.counters.mu.Unlock()
	c := d.counters.by[key]
	if c == nil {
		of := protocol.ClaimRequest{Kinds: req.Kinds, Projects: req.Projects, Runner: req.Runner, Isolation: req.Isolation}
		c = &counter{Line: queue.NewLine(queue.LineOptions[candidate]{
			Look:  func(ctx context.Context, wanted int) (queue.Found[candidate], error) { return d.look(ctx, of, wanted) },
			Given: func(c candidate) { d.counters.given.add(c.run, 1) }, Back: func(c candidate) { d.counters.given.add(c.run, -1) },
			Pause: claimPause,
		})}
		d.counters.by[key] = c
	}
	c.users++
	return c.Place(), func() {
		d.counters.mu.Lock()
		defer d.counters.mu.Unlock()
		if c.users--; c.users == 0 {
			delete(d.counters.by, key)
		}
	}
}

// wake says that a run may be claimable.
func (c *counters) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.by {
		one.Wake()
	}
}

// given are the runs that are being claimed at this replica, with how many try. Looks pass
// over them. It is safe for concurrent use.
type given struct {
	mu sync.Mutex
	by map[string]int
}

func (g *given) add(run string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by[run] += n; g.by[run] <= 0 {
		delete(g.by, run)
	}
}

func (g *given) all() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.by)
}

// Bounds of one look.
const (
	// claimableLooked is how many claimable runs are found for a single claim, each of
	// another state: more than can be locked by others for a moment.
	claimableLooked = 16
	// claimsServed is how many claims one look serves at most. The others look again.
	claimsServed = 64
)

// look looks at the queue on behalf of that many claims. If no run that they want is queued,
// one query finds that out instead of nine, and none is to be expected without a
// notification.
func (d handout) look(ctx context.Context, of protocol.ClaimRequest, wanted int) (queue.Found[candidate], error) {
	var found queue.Found[candidate]
	some, err := d.opts.Store.AnyQueued(ctx, holdfast.ClaimFilter{Kinds: claimKinds(of), Projects: of.Projects, Runner: of.Runner})
	if err != nil {
		return found, fmt.Errorf("look at the queue: %w", err)
	}
	found.Unsure = some // a backoff, a provider's break or a lock may end without a notification
	if !some || d.draining.Load() {
		return found, nil
	}
	filter, room, some, err := d.claimFilter(ctx, of)
	if err != nil || !some {
		return found, err
	}
	most, under := min(wanted, claimsServed), d.counters.given.all()
	filter.Limit, filter.Unplanned = most+claimableLooked-1+len(under), d.forks.unplanned(of.Isolation)
	turns := &notedTurns{Turns: filter.Turns}
	filter.Turns = turns
	ids, err := d.opts.Store.Claimable(ctx, filter)
	if err != nil {
		return found, fmt.Errorf("list claimable runs: %w", err)
	}
	for i, id := range ids {
		c := candidate{run: id, now: filter.Now, share: room.share}
		fits := (under[id] > 0 || len(found.Values) < most) && (i >= len(turns.took) || room.takes(turns.took[i]))
		switch {
		case under[id] > 0: // it takes its room
		case fits:
			found.Values = append(found.Values, c)
		default:
			found.Spare = append(found.Spare, c)
		}
	}
	found.More = len(ids) >= filter.Limit
	found.Short = found.More && most < wanted && len(found.Values) == most
	return found, nil
}

// notedTurns notes the lanes that have had a turn: those of the runs that were listed.
type notedTurns struct {
	holdfast.Turns
	took []holdfast.Lane
}

func (t *notedTurns) Took(lane holdfast.Lane) {
	t.took = append(t.took, lane)
	t.Turns.Took(lane)
}

// room is how many more runs all limits allow. What is offered beyond it would be refused by
// the claim itself, one after the other.
type room struct {
	limits     Limits
	load       load
	share      share
	ofRunner   int // at once, of each runner that load counts; zero: any number
	firstTaken bool
}

// takes reports whether there is room for another run of a lane, and takes it.
func (r *room) takes(lane holdfast.Lane) bool {
	first := r.limits.First > 0 && lane.Priority == holdfast.PriorityFirst
	switch {
	case r.share.running >= r.share.mostOf(lane.Project, lane.PullRequest.Repo),
		r.limits.providerFull(r.load, lane.Provider), r.limits.projectFull(r.load, lane.Project),
		r.ofRunner > 0 && r.load.runners[lane.Runner] >= r.ofRunner,
		lane.Kind == holdfast.RunDrift && r.load.drift >= r.limits.Drift,
		first && r.firstTaken:
		return false
	}
	r.load.add(lane)
	r.share.running++
	r.firstTaken = r.firstTaken || first
	return true
}

// missOf classifies why a candidate was not claimed, by the error of its claim; queue.MissNone
// if the claim is over with it.
func missOf(err error) queue.Miss {
	var weak *notIsolatedError
	switch {
	case errors.As(err, &weak):
		return queue.MissNever
	case errors.Is(err, errTaken):
		return queue.MissTaken
	case errors.Is(err, holdfast.ErrConflict), errors.Is(err, holdfast.ErrNotFound),
		errors.Is(err, holdfast.ErrDamaged): // what is damaged is in the log, and keeps nobody else waiting
		return queue.MissHeld
	default:
		return queue.MissNone
	}
}

// errTaken: somebody else claims the run, or has claimed it.
var errTaken = fmt.Errorf("somebody else has it: %w", holdfast.ErrConflict)
