package leader

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/replica"
)

const (
	// leaseTime is how long a replica that has died leads, and tickEvery how often one that
	// lives says so: two of them may get lost.
	leaseTime = 9 * time.Second
	tickEvery = 2 * time.Second
	// margin is how long before the end of its lease a replica no longer counts itself as
	// leader: longer than any query that the database still answers.
	margin = 1500 * time.Millisecond
	// patience is how long what is free is left to replicas that lead less.
	patience = 2 * time.Second
	// keptFor is how long what was given away and came back stays.
	keptFor = 10 * time.Minute
)

// Fleet is what belongs to no repository: the schedule of drift checks, silent attempts, old
// records. It is led as a repository is.
const Fleet = ""

// The names of leases; datastore/peers has them, too.
const (
	leads   = "lead:"
	ready   = "ready:"
	members = "member:"
)

// Leases are by the database's clock; *peers.Peers has them.
type Leases interface {
	// Renew extends to ttl those leases of an owner that have not ended, and returns all,
	// also some that have ended.
	Renew(ctx context.Context, owner string, ttl time.Duration) ([]replica.Lease, error)
	// Take makes owner the holder of a lease if nobody is.
	Take(ctx context.Context, name, owner string, ttl time.Duration) (bool, error)
	// Give gives leases back; without names, all of an owner.
	Give(ctx context.Context, owner string, names ...string) error
	// Former ends the leases of earlier processes of a replica.
	Former(ctx context.Context, identity string) error
}

// Options are what a Keeper needs. All are required but Leases.
type Options struct {
	Leases       Leases // nil: the server is alone
	Identity     string // of the replica: stays when it is started again
	Process      string // another one whenever it is started
	Repositories []string
	Hooks        Hooks
	Logger       *slog.Logger
}

// Hooks are notified of what has changed. None of them may wait for long.
type Hooks struct {
	Gaining func(repo string)         // this replica is about to lead it: what it remembers of it is old
	Gained  func(repo string)         // it leads it
	Died    func()                    // another replica has ended without having handed over what it was asked for
	Given   func(ctx context.Context) // others may take something now
}

// Keeper knows which replica leads what. It is safe for concurrent use.
type Keeper struct {
	opts  Options
	owner string           // in leases
	all   []string         // what can be led
	nudge *queue.Broadcast // something may be free

	mu    sync.Mutex
	held  map[string]bool // what this replica leads, until validity ends
	until time.Time       // by the monotonic clock
	table table
	taken map[string]bool // what was taken in here, and is to be on record
	over  bool

	// Of the one goroutine that ticks.
	free map[string]time.Time // since when something is free
	kept map[string]time.Time // what came back after it was given away, and when
	dead map[string]bool      // members whose death was reported
	seen map[string]bool      // members that lived
}

// New returns a Keeper that leads nothing yet, or everything if it is alone.
func New(opts Options) *Keeper {
	k := &Keeper{
		opts: opts, owner: opts.Identity + "/" + opts.Process, nudge: queue.NewBroadcast(),
		all:  append(slices.Sorted(slices.Values(opts.Repositories)), Fleet),
		held: make(map[string]bool), taken: make(map[string]bool), table: newTable(nil),
		free: make(map[string]time.Time), kept: make(map[string]time.Time), dead: make(map[string]bool), seen: make(map[string]bool),
	}
	return k
}

// Alone reports whether there cannot be other replicas.
func (k *Keeper) Alone() bool { return k.opts.Leases == nil }

// Others reports whether other replicas lived a moment ago.
func (k *Keeper) Others() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.table.living) > 1 || len(k.table.living) == 1 && k.table.living[k.owner] == 0
}

// Owner names this process in leases.
func (k *Keeper) Owner() string { return k.owner }

// Leads reports whether this replica leads a repository now.
func (k *Keeper) Leads(repo string) bool {
	if k.Alone() {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held[repo] && time.Now().Before(k.until)
}

// Led are the repositories that this replica leads now, Fleet among them.
func (k *Keeper) Led() []string {
	return slices.DeleteFunc(slices.Clone(k.all), func(repo string) bool { return !k.Leads(repo) })
}

// Place is the repository, or Fleet, whose leader is responsible for a repository: for
// one that is not configured here that is the leader of the fleet.
func (k *Keeper) Place(repo string) string {
	if slices.Contains(k.all, repo) {
		return repo
	}
	return Fleet
}

// Took records that this replica has taken in a repository that it leads.
func (k *Keeper) Took(repo string) {
	if k.Alone() {
		return
	}
	k.mu.Lock()
	k.taken[repo] = true
	k.mu.Unlock()
	k.nudge.Send()
}

// Taken reports whether the leader of a repository had read it a moment ago.
func (k *Keeper) Taken(repo string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	owner, led := k.table.owner[repo]
	return led && k.table.ready[repo] == owner
}

// Nudge asks for a look at the leases at once: something may be free.
func (k *Keeper) Nudge() { k.nudge.Send() }

// Run takes and keeps leases until ctx is done.
func (k *Keeper) Run(ctx context.Context) error {
	if k.Alone() {
		<-ctx.Done()
		return nil
	}
	var trouble queue.Trouble
	for formerEnded := false; ; {
		nudged := k.nudge.Wait()
		err := error(nil)
		if !formerEnded {
			err = k.opts.Leases.Former(ctx, k.opts.Identity)
			formerEnded = err == nil
		}
		if err == nil {
			err = k.Tick(ctx)
		}
		if err == nil {
			trouble.Over()
		} else if ctx.Err() == nil && trouble.Says(err, time.Now()) {
			k.opts.Logger.WarnContext(ctx, "leases of repositories are not renewed", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-nudged:
		case <-time.After(tickEvery):
		}
	}
}

// Leave gives everything back: another replica leads it at once. It leads nothing afterwards.
func (k *Keeper) Leave(ctx context.Context) {
	if k.Alone() {
		return
	}
	k.mu.Lock()
	k.over, k.held = true, make(map[string]bool)
	k.mu.Unlock()
	if err := k.opts.Leases.Give(ctx, k.owner); err != nil {
		k.opts.Logger.WarnContext(ctx, "leases were not given back: other replicas wait until they end", "err", err)
		return
	}
	k.opts.Hooks.Given(ctx)
}

// Tick renews the leases, takes what is free, and gives away what others lead less of. It is
// for Run, and for tests.
func (k *Keeper) Tick(ctx context.Context) error {
	if k.isOver() {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, leaseTime-margin)
	defer done()
	began := time.Now()
	leases, err := k.opts.Leases.Renew(ctx, k.owner, leaseTime)
	if err != nil {
		return err
	}
	now := newTable(leases)
	k.confirm(now, began)
	maps.DeleteFunc(k.kept, func(repo string, _ time.Time) bool { // somebody else has it in its configuration
		owner, led := now.owner[repo]
		return led && owner != k.owner
	})
	if now.living[k.owner] == 0 {
		if _, err := k.opts.Leases.Take(ctx, members+k.owner, k.owner, leaseTime); err != nil {
			return err
		}
		now.living[k.owner] = leaseTime
	}
	k.tellDeaths(now)
	if err := k.takeFree(ctx, now, began); err != nil {
		return err
	}
	if err := k.recordTaken(ctx); err != nil {
		return err
	}
	return k.balance(ctx, now)
}

func (k *Keeper) isOver() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.over
}

// confirm follows what the database says. What another replica holds, or nobody, is no
// longer led here.
func (k *Keeper) confirm(now table, began time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.table = now
	for repo := range k.held {
		if now.owner[repo] != k.owner {
			delete(k.held, repo)
			k.opts.Logger.Warn("this replica no longer leads a repository", "repo", name(repo))
		}
	}
	if len(k.held) > 0 || k.until.Before(began.Add(leaseTime-margin)) {
		k.until = began.Add(leaseTime - margin)
	}
}

// tellDeaths reports once each replica that has ended without giving its lease back.
func (k *Keeper) tellDeaths(now table) {
	died := false
	for owner := range now.living {
		k.seen[owner] = true
		delete(k.dead, owner)
	}
	for owner := range now.ended {
		if k.seen[owner] && !k.dead[owner] {
			k.dead[owner], died = true, true
			k.opts.Logger.Warn("another replica has died", "replica", owner)
		}
	}
	if died {
		k.opts.Hooks.Died()
	}
}

// takeFree takes what nobody leads: at once what this replica would lead if all led as
// much, and the rest when nobody else has taken it.
func (k *Keeper) takeFree(ctx context.Context, now table, at time.Time) error {
	mine := k.count()
	share := (len(k.all) + len(now.living) - 1) / len(now.living)
	for _, repo := range k.all {
		if _, led := now.owner[repo]; led {
			delete(k.free, repo)
			continue
		}
		since, known := k.free[repo]
		if !known {
			since, k.free[repo] = at, at
		}
		if mine >= share && at.Sub(since) < patience {
			continue
		}
		began := time.Now()
		ours, err := k.opts.Leases.Take(ctx, leads+repo, k.owner, leaseTime)
		if err != nil {
			return err
		}
		delete(k.free, repo)
		if ours {
			k.gain(repo, now, began)
			mine++
		}
	}
	return nil
}

// gain makes this replica the leader of what it has the lease for.
func (k *Keeper) gain(repo string, now table, began time.Time) {
	k.opts.Hooks.Gaining(repo)
	k.mu.Lock()
	delete(k.taken, repo)
	k.held[repo], now.owner[repo] = true, k.owner
	if len(k.held) == 1 { // otherwise the others end earlier
		k.until = began.Add(leaseTime - margin)
	}
	over := k.over
	if over {
		delete(k.held, repo)
	}
	k.mu.Unlock()
	if over {
		return
	}
	k.opts.Logger.Info("this replica leads a repository", "repo", name(repo))
	k.opts.Hooks.Gained(repo)
}

func name(repo string) string {
	if repo == Fleet {
		return "(the fleet's schedule)"
	}
	return repo
}

func (k *Keeper) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.held)
}

// recordTaken records what was read here.
func (k *Keeper) recordTaken(ctx context.Context) error {
	k.mu.Lock()
	var missing []string
	for repo := range k.taken {
		if k.held[repo] && k.table.ready[repo] != k.owner {
			missing = append(missing, repo)
		}
	}
	k.mu.Unlock()
	for _, repo := range missing {
		ours, err := k.opts.Leases.Take(ctx, ready+repo, k.owner, leaseTime)
		if err != nil {
			return err
		}
		if ours {
			k.mu.Lock()
			k.table.ready[repo] = k.owner
			k.mu.Unlock()
		}
	}
	return nil
}

// balance gives something away if another replica leads at least two less.
func (k *Keeper) balance(ctx context.Context, now table) error {
	k.mu.Lock()
	held := slices.Sorted(maps.Keys(k.held))
	k.mu.Unlock()
	least := len(held)
	for owner := range now.living {
		least = min(least, now.leads(owner))
	}
	if least > len(held)-2 || len(k.free) > 0 {
		return nil
	}
	for _, repo := range held {
		if at, back := k.kept[repo]; back && time.Since(at) < keptFor {
			continue
		}
		k.kept[repo] = time.Now() // should it come back: nobody else has it in its configuration
		k.mu.Lock()
		delete(k.held, repo)
		k.mu.Unlock()
		if err := k.opts.Leases.Give(ctx, k.owner, leads+repo, ready+repo); err != nil {
			return err
		}
		k.free[repo] = time.Now()
		k.opts.Logger.InfoContext(ctx, "this replica gives a repository to one that leads less", "repo", name(repo))
		k.opts.Hooks.Given(ctx)
		return nil
	}
	return nil
}

// table is who held what a moment ago.
type table struct {
	owner  map[string]string        // of what is led
	ready  map[string]string        // who has taken it in
	living map[string]time.Duration // members, and how long their leases last
	ended  map[string]bool          // members whose leases have ended
}

func newTable(leases []replica.Lease) table {
	t := table{
		owner: make(map[string]string), ready: make(map[string]string),
		living: make(map[string]time.Duration), ended: make(map[string]bool),
	}
	for _, l := range leases {
		kind, of, _ := strings.Cut(l.Name, ":")
		switch kind += ":"; {
		case kind == members && l.Left <= 0:
			t.ended[of] = true
		case kind == members:
			t.living[of] = l.Left
		case l.Left <= 0:
		case kind == leads:
			t.owner[of] = l.Owner
		case kind == ready:
			t.ready[of] = l.Owner
		}
	}
	return t
}

// leads counts what a replica leads.
func (t table) leads(owner string) (n int) {
	for _, of := range t.owner {
		if of == owner {
			n++
		}
	}
	return n
}
