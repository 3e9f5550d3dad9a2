package reconciler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/objects"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/uncached"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/replica"
)

func TestMain(m *testing.M) {
	uncached.Package()
	os.Exit(postgresserver.Main(m))
}

// crew are several replicas with one database, each with its own mirrors, that run as a
// server's do. Nobody hurries them: each hint from one to another is lost.
type crew struct {
	*fleet
	dir      string
	database postgresserver.Database
	replicas []*crewmate
}

// crewmate is one of them.
type crewmate struct {
	*reconciler.Reconciler
	store *datastore.Store
	peers *severed
	stop  func()
}

// severed are peers of a replica that can be cut off from its database, as one that is dead.
type severed struct {
	reconciler.Peers
	dead  atomic.Bool
	gate  sync.RWMutex // nothing is asked while it is locked
	looks atomic.Int32 // at pull requests, that were handed over
}

var errDead = errors.New("this replica is dead")

func (s *severed) Renew(ctx context.Context, owner string, ttl time.Duration) ([]replica.Lease, error) {
	if s.dead.Load() {
		return nil, errDead
	}
	return s.Peers.Renew(ctx, owner, ttl)
}

func (s *severed) Ask(ctx context.Context, ask replica.Ask) error {
	if s.dead.Load() {
		return errDead
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	err := s.Peers.Ask(ctx, ask)
	if err == nil && ask.Kind == replica.AskLook && ask.What != "0" {
		s.looks.Add(1)
	}
	return err
}

func (s *severed) Give(ctx context.Context, owner string, names ...string) error {
	if s.dead.Load() {
		return errDead
	}
	return s.Peers.Give(ctx, owner, names...)
}

func newCrew(t *testing.T, files map[string]string, n int, with ...func(*reconciler.Options)) *crew {
	t.Helper()
	c := &crew{dir: memory.Dir(t), database: postgresserver.New(t, "")}
	c.fleet = &fleet{t: t, clock: &clock{now: time.Now()}, locks: lock.NewMemory()}
	c.repo = gitserver.NewRepo(t, filepath.Join(c.dir, "infra.git"))
	c.repo.Commit(master, "first", files)
	c.forge = newCodeHost(c.clock)
	for i := range n {
		c.replicas = append(c.replicas, c.join(fmt.Sprint("replica-", i+1), with...))
	}
	c.store = c.open("watcher") // it stays, whoever dies
	t.Cleanup(func() { _ = c.store.Close() })
	return c
}

// open opens the database as a replica does.
func (c *crew) open(identity string) *datastore.Store {
	c.t.Helper()
	opts := storeAt(filepath.Join(c.dir, identity, "db", "holdfast.db"), nil)
	opts.Postgres = postgres.Address{URL: c.database.URL(), Password: c.database.Password}
	opts.Blobs = objects.Options{Dir: filepath.Join(c.dir, "blobs")}
	opts.Replica = datastore.Replica{Identity: func() (string, error) { return identity, nil }}
	store, err := datastore.Open(c.t.Context(), opts)
	c.must(err)
	return store
}

// join starts a replica.
func (c *crew) join(identity string, with ...func(*reconciler.Options)) *crewmate {
	c.t.Helper()
	dir := filepath.Join(c.dir, identity)
	git, err := gitsource.New(gitsource.Options{
		Dir: filepath.Join(dir, "mirrors"), Repositories: []gitsource.Repository{{Name: infra, URL: c.repo.Path, Branch: master}},
	})
	c.must(err)
	store := c.open(identity)
	mate := &crewmate{store: store, peers: &severed{Peers: store.Peers()}}
	all := reconciler.Options{
		Store: store,
		Sources: reconciler.Sources{
			Git: git, Forges: map[string]reconciler.Forge{infra: c.forge}, Commands: commandsOf,
			Repositories: []reconciler.Repository{{Name: infra, Branch: master, Clusters: []string{"clusters/**/*.yaml"}, Poll: time.Hour}},
		},
		Replica: reconciler.Replica{
			Locker: c.locks, Identity: identity, Process: fmt.Sprint(time.Now().UnixNano()), Peers: mate.peers,
			FingerprintKey: bytes.Repeat([]byte{2}, 32), TokenKey: bytes.Repeat([]byte{3}, 32),
		},
		Telemetry: reconciler.Telemetry{Logger: slog.New(slog.NewTextHandler(&testLog{t: c.t, who: identity}, &slog.HandlerOptions{Level: slog.LevelInfo}))},
		Now:       store.Now,
	}
	for _, change := range with {
		change(&all)
	}
	mate.Reconciler, err = reconciler.New(all)
	c.must(err)
	ctx, stop := context.WithCancel(context.WithoutCancel(c.t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := mate.Run(ctx); err != nil {
			c.t.Error(err)
		}
	}()
	mate.stop = sync.OnceFunc(func() { stop(); <-ended; _ = store.Close() })
	c.t.Cleanup(mate.stop)
	return mate
}

// die ends a replica that says nothing of it to others.
func (m *crewmate) die() {
	m.peers.dead.Store(true)
	m.stop()
}

// testLog writes a replica's log to that of its test.
type testLog struct {
	t   testing.TB
	who string
}

func (l *testLog) Write(line []byte) (int, error) {
	if l.t.Context().Err() == nil { // otherwise the test may be over
		l.t.Logf("%s: %s", l.who, strings.TrimSpace(string(line)))
	}
	return len(line), nil
}

// leading returns the replica that leads the repository, and the others.
func (c *crew) leading() (leads *crewmate, others []*crewmate) {
	c.t.Helper()
	c.until("one replica leads the repository", func() bool {
		leads, others = nil, nil
		for _, mate := range c.replicas {
			if mate.LeadsRepository(infra) {
				leads = mate
			} else {
				others = append(others, mate)
			}
		}
		return leads != nil
	})
	return leads, others
}

// until waits for what has to become so.
func (c *crew) until(what string, is func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("it is never so that %s", what)
		}
	}
}

// claimAt hands the next run to an agent that speaks to a replica.
func (c *crew) claimAt(mate *crewmate, executing ...holdfast.AttemptRef) protocol.Assignment {
	c.t.Helper()
	for range 20 {
		a, err := mate.Dispatcher().Claim(c.t.Context(), protocol.ClaimRequest{
			Agent: "agent", Process: "one", Folder: "here", Executing: executing, Wait: 10 * time.Second,
		})
		if err == nil {
			return a
		}
		if !errors.Is(err, holdfast.ErrNotFound) {
			c.t.Fatal(err)
		}
	}
	c.t.Fatal("no run was handed out")
	return protocol.Assignment{}
}

// finishAt ends an attempt at a replica.
func (c *crew) finishAt(mate *crewmate, a protocol.Assignment, result protocol.Result) {
	c.t.Helper()
	result.Fence = a.Fence
	c.must(mate.Dispatcher().Finish(c.t.Context(), a.AttemptRef, c.left(a, result)))
}

// executeAt has a run executed by an agent that speaks to one replica when it claims and to
// another one when it ends.
func (c *crew) executeAt(claims, ends *crewmate, kind holdfast.RunKind, result holdfast.RunStatus) holdfast.Run {
	c.t.Helper()
	a := c.claimAt(claims)
	if a.Kind != kind {
		c.t.Fatalf("run %s of %s is handed out, want %s", a.Kind, a.Cluster, kind)
	}
	outcome := protocol.Result{Status: result, InputDigest: "sha256:in-" + a.SourceDigest, Applying: a.Kind.Writes()}
	c.finishAt(ends, a, outcome)
	run, err := c.store.Run(c.t.Context(), a.Run)
	c.must(err)
	return run
}

// A pull request is planned, merged and applied while each step is made at another replica, no
// hint arrives, and the one that leads dies in the middle: all of it is done once.
func TestCrewLosesItsLeader(t *testing.T) {
	t.Parallel()
	c := newCrew(t, twoClusters(), 3)
	first, others := c.leading()
	for range 2 {
		c.executeAt(others[0], others[1], holdfast.RunPlan, holdfast.RunNoChanges)
	}
	c.until("both are adopted", func() bool { return c.adopted("prod") && c.adopted("preprod") })

	c.openUnnoticed(1, map[string]string{"infra/prod/main.tf": module("two")})
	others[0].Enqueue(holdfast.SourceRequest{Repo: infra, PullRequest: 1})
	c.executeAt(others[1], others[0], holdfast.RunPlan, holdfast.RunPlanned)
	c.until("the plan is shown", func() bool { return strings.Contains(c.forge.comment(1), "1 to create") })
	c.until("the plan is green", func() bool {
		return c.forge.status(c.forge.get(1).Head, holdfast.ContextPlan) == holdfast.StatusSuccess
	})

	first.die()
	c.mergeUnnoticed(1, byMerge)
	began := time.Now()
	others[0].Enqueue(holdfast.SourceRequest{Repo: infra, PullRequest: 1})
	others[1].Enqueue(holdfast.SourceRequest{Repo: infra})
	c.executeAt(others[1], others[0], holdfast.RunApply, holdfast.RunApplied)
	t.Logf("handed out %s after the leader has died", time.Since(began).Round(100*time.Millisecond))
	merged := c.forge.get(1).MergeCommit
	c.until("the apply is shown", func() bool { return c.forge.status(merged, holdfast.ContextApply) == holdfast.StatusSuccess })
	want := []string{"plan no_changes", "plan planned", "apply applied"}
	got := c.kinds("prod")
	if !slices.Equal(got, want) {
		t.Errorf("the runs of prod are %q, want %q", got, want)
	}
}

func (c *crew) adopted(name string) bool {
	rec, err := c.store.Cluster(c.t.Context(), name)
	return err == nil && rec.Applied.Run != "" && rec.Waiting == ""
}

// kinds are the runs of a cluster, oldest first, without their reasons.
func (c *crew) kinds(cluster string) []string {
	c.t.Helper()
	all, err := c.store.Runs(c.t.Context(), holdfast.RunFilter{Cluster: cluster})
	c.must(err)
	var out []string
	for _, run := range slices.Backward(all) {
		out = append(out, fmt.Sprintf("%s %s", run.Kind, run.Status))
	}
	return out
}

// A command that came to a replica which does not lead is carried out by the one that does,
// once, and answered where it was given; so is one in a comment.
func TestCrewCarriesOutCommands(t *testing.T) {
	t.Parallel()
	c := newCrew(t, twoClusters(), 2)
	_, others := c.leading()
	for range 2 {
		c.executeAt(others[0], others[0], holdfast.RunPlan, holdfast.RunNoChanges)
	}
	c.until("both are adopted", func() bool { return c.adopted("prod") && c.adopted("preprod") })
	done, err := others[0].Command(t.Context(), holdfast.Command{
		Verb: holdfast.VerbApply, Clusters: []string{"prod"}, Author: "alice", Trusted: true, Text: "/holdfast apply prod",
	})
	c.must(err)
	if done.Status != holdfast.CommandDone || !slices.Equal(done.UpToDate, []string{"prod"}) {
		t.Errorf("a command is %s: %s, up to date is %q", done.Status, done.Reply, done.UpToDate)
	}
	c.openUnnoticed(1, map[string]string{"infra/prod/main.tf": module("two")})
	others[0].Enqueue(holdfast.SourceRequest{Repo: infra, PullRequest: 1})
	c.executeAt(others[0], others[0], holdfast.RunPlan, holdfast.RunPlanned)
	c.until("the plan is shown", func() bool { return strings.Contains(c.forge.comment(1), "1 to create") })
	comment := c.forge.says(1, "alice", "/holdfast plan")
	for _, command := range commandsOf(comment) {
		_, err := others[0].store.StoreCommand(t.Context(), command)
		c.must(err)
	}
	others[0].CommandStored()
	c.executeAt(others[0], others[0], holdfast.RunPlan, holdfast.RunPlanned)
	c.until("it is answered", func() bool {
		received, err := c.store.Commands(t.Context(), holdfast.CommandReceived)
		return err == nil && len(received) == 0
	})
	if got, want := c.kinds("prod"), []string{"plan no_changes", "plan planned", "plan planned"}; !slices.Equal(got, want) {
		t.Errorf("the runs of prod are %q, want %q", got, want)
	}
}

// An agent speaks to any replica: all know it, no second process gets its id anywhere, and no
// run is said to wait for an agent that speaks to another replica.
func TestCrewKnowsItsAgents(t *testing.T) {
	t.Parallel()
	c := newCrew(t, twoClusters(), 2)
	leads, others := c.leading()
	a := c.claimAt(others[0])
	for _, mate := range []*crewmate{leads, others[0]} {
		other := protocol.ClaimRequest{Agent: "agent", Process: "two", Folder: "there"}
		var taken *protocol.AgentTakenError
		if _, err := mate.Dispatcher().Claim(t.Context(), other); !errors.As(err, &taken) {
			t.Errorf("a second process gets the id of an agent: %v", err)
		}
	}
	agents, err := leads.Dispatcher().Agents(t.Context())
	c.must(err)
	if len(agents) != 1 || !agents[0].Living || !slices.Equal(agents[0].Runs, []string{a.Run}) {
		t.Errorf("the other replica knows of agents %+v", agents)
	}
	reply, err := leads.Dispatcher().Heartbeat(t.Context(), a.AttemptRef, protocol.Heartbeat{Step: "plan", Process: "one"})
	if err != nil || reply.Cancel != "" {
		t.Errorf("a heartbeat at another replica: %+v, %v", reply, err)
	}
	c.finishAt(leads, a, protocol.Result{Status: holdfast.RunNoChanges})
	c.must(others[0].Dispatcher().Present(t.Context(), protocol.ClaimRequest{Agent: "agent", Process: "one", Folder: "here"}))
}

// What a replica was told that died before it could hand it over is found by the one that leads,
// which polls once an hour and was told of nothing.
func TestCrewFindsWhatADeadReplicaWasTold(t *testing.T) {
	t.Parallel()
	c := newCrew(t, twoClusters(), 2)
	leads, others := c.leading()
	for range 2 {
		c.executeAt(leads, leads, holdfast.RunPlan, holdfast.RunNoChanges)
	}
	c.until("both are adopted", func() bool { return c.adopted("prod") && c.adopted("preprod") })
	c.until("it knows of the other one", leads.HasPeers)
	c.openUnnoticed(1, map[string]string{"infra/prod/main.tf": module("two")})
	others[0].peers.dead.Store(true)
	others[0].Enqueue(holdfast.SourceRequest{Repo: infra, PullRequest: 1})
	others[0].die()
	c.executeAt(leads, leads, holdfast.RunPlan, holdfast.RunPlanned)
	c.until("the plan is shown", func() bool { return strings.Contains(c.forge.comment(1), "1 to create") })
}

// A replica that ends in good order is succeeded at once.
func TestCrewHandsOver(t *testing.T) {
	t.Parallel()
	c := newCrew(t, twoClusters(), 2)
	leads, others := c.leading()
	c.until("it knows of the other one", leads.HasPeers)
	leads.Leave(t.Context())
	began := time.Now()
	c.until("the other one leads", func() bool { return others[0].LeadsRepository(infra) })
	t.Logf("handed over after %s", time.Since(began).Round(100*time.Millisecond))
	leads.stop()
	c.until("it has taken the repository in", func() bool { return len(others[0].Ready()) == 0 })
}

// What a replica was told that ends in good order before it could hand it over is not lost with
// it: it still does.
func TestCrewHandsOverWhatItWasTold(t *testing.T) {
	t.Parallel()
	c := newCrew(t, twoClusters(), 2)
	_, others := c.leading()
	told := others[0]
	c.until("it knows of the other one", told.HasPeers)
	told.peers.gate.Lock()
	const many = 20
	for number := 1; number <= many; number++ {
		told.Enqueue(holdfast.SourceRequest{Repo: infra, PullRequest: number})
	}
	told.Leave(t.Context())
	time.AfterFunc(100*time.Millisecond, told.peers.gate.Unlock)
	told.WorkOff(t.Context(), time.Now())
	told.stop()
	if asked := told.peers.looks.Load(); asked != many {
		t.Errorf("%d of %d looks were handed over", asked, many)
	}
}

// A claim that waits at one replica gets the run that another one queues meanwhile.
func TestCrewWakesClaims(t *testing.T) {
	t.Parallel()
	c := newCrew(t, twoClusters(), 2)
	_, others := c.leading()
	for range 2 {
		c.executeAt(others[0], others[0], holdfast.RunPlan, holdfast.RunNoChanges)
	}
	c.until("both are adopted", func() bool { return c.adopted("prod") && c.adopted("preprod") })
	const wait, enough = 30 * time.Second, 15 * time.Second
	for number := 1; ; number++ {
		began, claimed := time.Now(), make(chan error, 1)
		go func() {
			_, err := others[0].Dispatcher().Claim(t.Context(), protocol.ClaimRequest{Agent: "agent", Process: "one", Folder: "here", Wait: wait})
			claimed <- err
		}()
		time.Sleep(time.Second) // it has looked, and waits
		c.openUnnoticed(number, map[string]string{"infra/prod/main.tf": module(fmt.Sprint("change ", number))})
		others[0].Enqueue(holdfast.SourceRequest{Repo: infra, PullRequest: number})
		c.until("a run is queued", func() bool {
			run, err := c.store.Runs(t.Context(), holdfast.RunFilter{PullRequest: &holdfast.PullRequestRef{Repo: infra, Number: number}})
			return err == nil && len(run) > 0
		})
		late := time.Since(began) > enough
		switch err := <-claimed; {
		case err == nil:
			return
		case !late:
			t.Fatalf("a claim that waits gets nothing: %v", err)
		}
		// This machine is too busy for that to say something.
	}
}
