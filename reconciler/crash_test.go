package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

var errCrashed = errors.New("the server has crashed")

// mortal is a store for a server that dies at one of its writes.
type mortal struct {
	reconciler.Store
	mu     sync.Mutex
	left   int // writes until then; negative: it lives forever
	writes int
	dead   bool
	last   string // the write that it died at
	outbox bool   // only writes to the outbox count
}

func (s *mortal) write(name string, do func() error) error {
	s.mu.Lock()
	if s.dead {
		s.mu.Unlock()
		return errCrashed
	}
	if s.outbox && name != "Want" && name != "Posted" && name != "PostFailed" && name != "PostDeferred" && name != "PostDropped" {
		s.mu.Unlock()
		return do()
	}
	s.writes++
	if s.left == 0 {
		s.dead, s.last = true, name
		s.mu.Unlock()
		return errCrashed
	}
	s.left--
	s.mu.Unlock()
	return do()
}

func (s *mortal) CreateRun(ctx context.Context, run holdfast.Run, trail ...holdfast.AuditEntry) error {
	return s.write("CreateRun "+string(run.Kind), func() error { return s.Store.CreateRun(ctx, run, trail...) })
}

func (s *mortal) CreateRunAfter(ctx context.Context, run holdfast.Run, newest string, trail ...holdfast.AuditEntry) error {
	return s.write("CreateRun "+string(run.Kind), func() error { return s.Store.CreateRunAfter(ctx, run, newest, trail...) })
}

func (s *mortal) UpdateRun(ctx context.Context, run holdfast.Run) (out holdfast.Run, err error) {
	err = s.write("UpdateRun", func() error { out, err = s.Store.UpdateRun(ctx, run); return err })
	return out, err
}

func (s *mortal) ClaimRun(ctx context.Context, id string, agent protocol.AgentRef, now time.Time, limit int) (out holdfast.Run, err error) {
	err = s.write("ClaimRun", func() error { out, err = s.Store.ClaimRun(ctx, id, agent, now, limit); return err })
	return out, err
}

func (s *mortal) EndAttempt(ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource) (out holdfast.Run, err error) {
	err = s.write("EndAttempt", func() error { out, err = s.Store.EndAttempt(ctx, ref, run, resources); return err })
	return out, err
}

func (s *mortal) EndUnlocked(ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource) (out holdfast.Run, err error) {
	err = s.write("EndUnlocked", func() error { out, err = s.Store.EndUnlocked(ctx, ref, run, resources); return err })
	return out, err
}

func (s *mortal) EndSilent(
	ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource, heard time.Time,
) (out holdfast.Run, err error) {
	err = s.write("EndSilent", func() error { out, err = s.Store.EndSilent(ctx, ref, run, resources, heard); return err })
	return out, err
}

func (s *mortal) ReleaseStateLock(ctx context.Context, location string) (released bool, err error) {
	err = s.write("ReleaseStateLock", func() error { released, err = s.Store.ReleaseStateLock(ctx, location); return err })
	return released, err
}

func (s *mortal) SaveCluster(ctx context.Context, c holdfast.ClusterRecord, history ...holdfast.Transition) (out holdfast.ClusterRecord, err error) {
	err = s.write("SaveCluster", func() error { out, err = s.Store.SaveCluster(ctx, c, history...); return err })
	return out, err
}

func (s *mortal) CreateClusters(
	ctx context.Context, records []holdfast.ClusterRecord, history ...holdfast.Transition,
) (out []holdfast.ClusterRecord, err error) {
	err = s.write("CreateClusters", func() error { out, err = s.Store.CreateClusters(ctx, records, history...); return err })
	return out, err
}

func (s *mortal) RecordCluster(
	ctx context.Context, c holdfast.ClusterRecord, entry holdfast.AuditEntry, history ...holdfast.Transition,
) (out holdfast.ClusterRecord, err error) {
	err = s.write("RecordCluster", func() error { out, err = s.Store.RecordCluster(ctx, c, entry, history...); return err })
	return out, err
}

func (s *mortal) SavePullRequest(ctx context.Context, pr holdfast.PullRequestRecord) (out holdfast.PullRequestRecord, err error) {
	err = s.write("SavePullRequest", func() error { out, err = s.Store.SavePullRequest(ctx, pr); return err })
	return out, err
}

func (s *mortal) SaveRepositoryState(ctx context.Context, source holdfast.RepositoryState) error {
	return s.write("SaveRepositoryState", func() error { return s.Store.SaveRepositoryState(ctx, source) })
}

func (s *mortal) PutBundle(ctx context.Context, digest holdfast.Digest, data []byte) error {
	return s.write("PutBundle", func() error { return s.Store.PutBundle(ctx, digest, data) })
}

func (s *mortal) Want(ctx context.Context, posts ...outgoing.Post) error {
	return s.write("Want", func() error { return s.Store.Want(ctx, posts...) })
}

func (s *mortal) Posted(ctx context.Context, post outgoing.Post, at time.Time) error {
	return s.write("Posted", func() error { return s.Store.Posted(ctx, post, at) })
}

func (s *mortal) PostFailed(ctx context.Context, post outgoing.Post, notBefore time.Time) error {
	return s.write("PostFailed", func() error { return s.Store.PostFailed(ctx, post, notBefore) })
}

func (s *mortal) PostDeferred(ctx context.Context, key, cause string, notBefore time.Time) error {
	return s.write("PostDeferred", func() error { return s.Store.PostDeferred(ctx, key, cause, notBefore) })
}

func (s *mortal) PostDropped(ctx context.Context, post outgoing.Post) error {
	return s.write("PostDropped", func() error { return s.Store.PostDropped(ctx, post) })
}

func (s *mortal) SaveResources(ctx context.Context, cluster string, resources []holdfast.Resource) error {
	return s.write("SaveResources", func() error { return s.Store.SaveResources(ctx, cluster, resources) })
}

// crashing is a fleet whose server may die, and an agent that does not.
type crashing struct {
	*fleet
	store  *mortal
	before func(a protocol.Assignment) // each execution
	after  func()                      // each step
	shown  bool                        // a server that comes back looks at what it shows first, and after is called
	known  []holdfast.AttemptRef
	done   map[holdfast.AttemptRef]protocol.Result // results that nobody has taken yet
	made   map[string]bool                         // what was changed in the world
}

func (c *crashing) begin(left int) {
	c.store = &mortal{Store: c.fleet.store, left: left}
	c.restart(func(opts *reconciler.Options) { opts.Store = c.store })
}

// step lets everybody do what there is to do once. A server that has died is
// replaced.
func (c *crashing) step() (idle bool) {
	ctx := c.t.Context()
	if c.store.dead {
		c.begin(-1)
		if c.shown { // before anything is decided
			_ = c.r.Show(ctx, onePR)
			_, _ = c.r.Post(ctx)
			c.after()
		}
	}
	_ = c.r.TakeIn(ctx, infra, 0)
	_ = c.r.TakeIn(ctx, infra, 1)
	c.r.Resume(ctx)
	_ = c.r.Settle(ctx)
	for ref, result := range c.done {
		if err := c.r.Dispatcher().Finish(ctx, ref, result); err == nil || errors.Is(err, holdfast.ErrFenced) {
			delete(c.done, ref)
		}
	}
	_ = c.r.Settle(ctx)
	a, err := c.r.Dispatcher().Claim(ctx, protocol.ClaimRequest{Agent: "agent", Executing: c.known})
	if err == nil && a.Run != "" {
		c.known = append(c.known, a.AttemptRef)
		if c.before != nil {
			c.before(a)
		}
		c.execute(a)
	}
	_ = c.r.Settle(ctx)
	_, _ = c.r.Post(ctx)
	if c.after != nil {
		c.after()
	}
	c.clock.Advance(time.Minute)
	return err != nil && !c.store.dead && len(c.done) == 0
}

// execute is what an engine does: nothing, the second time.
func (c *crashing) execute(a protocol.Assignment) {
	for name, text := range map[string]string{protocol.ArtefactPlan: "{}", protocol.ArtefactResources: "[]"} {
		c.must(c.fleet.store.PutArtefact(c.t.Context(), a.AttemptRef, name, strings.NewReader(text)))
	}
	result := good(a)
	key := string(a.Kind) + string(a.SourceDigest)
	switch {
	case a.Kind == plan:
	case c.made[key]:
		result = protocol.Result{Status: holdfast.RunNoChanges}
	default:
		c.made[key] = true
	}
	result.Fence = a.Fence
	result = c.left(a, result)
	if err := c.r.Dispatcher().Finish(c.t.Context(), a.AttemptRef, result); err != nil {
		c.done[a.AttemptRef] = result
	}
}

// copied is a separate fleet in the same state, whose Git is shared. The store of f
// must be closed.
func (f *fleet) copied() *fleet {
	f.t.Helper()
	dir := memory.Dir(f.t)
	f.must(os.CopyFS(dir, os.DirFS(filepath.Join(filepath.Dir(f.repo.Path), "db"))))
	out := &fleet{t: f.t, repo: f.repo, clock: &clock{now: f.clock.Now()}, locks: lock.NewMemory(), opts: f.opts}
	var err error
	out.store, err = datastore.Open(f.t.Context(), storeAt(filepath.Join(dir, "holdfast.db"), out.clock.Now))
	f.must(err)
	f.t.Cleanup(func() { _ = out.store.Close() })
	out.forge = newCodeHost(out.clock)
	out.forge.prs, out.forge.comments = maps.Clone(f.forge.prs), slices.Clone(f.forge.comments)
	out.forge.statuses = maps.Clone(f.forge.statuses)
	out.restart(func(opts *reconciler.Options) {
		opts.Store, opts.Replica.Locker, opts.Now = out.store, out.locks, out.clock.Now
		opts.Sources.Forges = map[string]reconciler.Forge{infra: out.forge}
	})
	return out
}

func crashAt(f *fleet, kind holdfast.RunKind, phase holdfast.Phase, left int) (writes int) {
	t := f.t
	t.Helper()
	c := &crashing{fleet: f, done: map[holdfast.AttemptRef]protocol.Result{}, made: map[string]bool{}}
	c.begin(left)
	first := c.store
	c.shown = true
	c.after = func() { // whoever follows a final status finds what it says
		commit := c.forge.get(1).MergeCommit
		rec, err := c.fleet.store.Cluster(t.Context(), "prod")
		c.must(err)
		if c.forge.status(commit, holdfast.ContextApply) == holdfast.StatusSuccess && (rec.Phase != phase || rec.Deletion != nil && phase == holdfast.PhaseActive) {
			t.Errorf("after a crash at write %d, %s, the status is final, and the record says %s", left, first.last, rec.Phase)
		}
	}
	for steps, idle := 0, 0; idle < 3; steps++ {
		if idle++; !c.step() {
			idle = 0
		}
		if steps > 60 {
			t.Fatalf("it never comes to rest after a crash at %s: %v", first.last, c.runs("prod"))
		}
	}
	where := fmt.Sprintf("after a crash at write %d, %s,", left, first.last)
	rec := c.cluster("prod")
	if rec.Phase != phase || rec.Waiting != "" {
		t.Errorf("%s it is %s and waits for %q: %v", where, rec.Phase, rec.Waiting, c.runs("prod"))
	}
	applied, unended := 0, 0
	runs, err := c.fleet.store.Runs(t.Context(), holdfast.RunFilter{Cluster: "prod"})
	c.must(err)
	for _, run := range runs {
		if run.Kind == kind && run.Status == holdfast.RunApplied {
			applied++
		}
		if !run.Status.Done() {
			unended++
		}
	}
	if applied != 1 || unended > 0 {
		t.Errorf("%s %d runs were applied, %d have not ended: %v", where, applied, unended, c.runs("prod"))
	}
	if got := c.forge.status(c.forge.get(1).MergeCommit, holdfast.ContextApply); got != holdfast.StatusSuccess {
		t.Errorf("%s the status of the merge is %q: %v", where, got, c.runs("prod"))
	}
	phases := 0
	history, err := c.fleet.store.Transitions(t.Context(), "prod", 100)
	c.must(err)
	for _, h := range history {
		if h.What == "phase" && h.To == string(phase) && h.At.After(noon) {
			phases++
		}
	}
	if phases < 1 {
		t.Errorf("%s its history does not lead to %s: %+v", where, phase, history)
	}
	return first.writes
}
