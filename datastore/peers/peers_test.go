package peers_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/peers"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/replica"
)

func TestMain(m *testing.M) { os.Exit(postgresserver.Main(m)) }

// open returns the peers of one replica of a new database.
func open(t *testing.T) *peers.Peers {
	t.Helper()
	keys, err := seal.NewKeyring(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	d := postgresserver.New(t, "")
	store, err := datastore.Open(t.Context(), datastore.Options{
		Path: filepath.Join(t.TempDir(), "db", "holdfast.db"), Keys: keys,
		Postgres: postgres.Address{URL: d.URL(), Password: d.Password},
		Replica:  datastore.Replica{Identity: func() (string, error) { return "one", nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	p := store.Peers()
	if p == nil {
		t.Fatal("the store has no peers")
	}
	return p
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// What replicas lead is listed by their identities, whatever these consist of; what has ended is
// not.
func TestLed(t *testing.T) {
	t.Parallel()
	p, ctx := open(t), t.Context()
	for name, owner := range map[string]string{
		"lead:fleet": "one/process", "lead:": "a/b/process", "lead:acme/clusters": "a/b/process", "ready:fleet": "one/process", "member:x": "x",
	} {
		if ours := must[bool](t)(p.Take(ctx, name, owner, time.Minute)); !ours {
			t.Fatalf("%s is held already", name)
		}
	}
	must[bool](t)(p.Take(ctx, "lead:old", "one/process", -time.Minute))
	led := must[map[string][]string](t)(p.Led(ctx))
	if len(led) != 2 || !slices.Equal(led["one"], []string{"fleet"}) || !slices.Equal(led["a/b"], []string{"", "acme/clusters"}) {
		t.Errorf("Led() = %q", led)
	}
}

// A replica that ends gives back what it leads while it still carries out a command: the one
// that leads next does not do it a second time.
func TestCommandOfAReplicaThatLeaves(t *testing.T) {
	t.Parallel()
	p, ctx := open(t), t.Context()
	for _, step := range []struct {
		owner string
		want  bool
	}{{"one/process", true}, {"two/process", false}} {
		if first := must[bool](t)(p.TakeCommand(ctx, "command-1", step.owner)); first != step.want {
			t.Errorf("%s carries it out: %t", step.owner, first)
		}
		if err := p.Give(ctx, "one/process"); err != nil {
			t.Fatal(err)
		}
	}
}

func leasesOf(t *testing.T, p *peers.Peers, owner string) (held []string) {
	t.Helper()
	for _, l := range must[[]replica.Lease](t)(p.Renew(t.Context(), owner, time.Minute)) {
		word := l.Name + " " + l.Owner
		if l.Left <= 0 {
			word += " ended"
		}
		held = append(held, word)
	}
	return held
}

// A lease has one holder until it ends, is given back, or its holder was started again.
func TestLeases(t *testing.T) {
	t.Parallel()
	p, ctx := open(t), t.Context()
	var g sync.WaitGroup
	var mu sync.Mutex
	winners := 0
	for _, owner := range []string{"a/1", "b/1", "c/1", "d/1", "e/1"} {
		g.Go(func() {
			if ours, err := p.Take(ctx, "lead:fleet", owner, time.Minute); err != nil {
				t.Error(err)
			} else if ours {
				mu.Lock()
				defer mu.Unlock()
				winners++
			}
		})
	}
	g.Wait()
	if winners != 1 {
		t.Errorf("%d replicas have taken the same lease, want one", winners)
	}
	take := must[bool](t)
	if !take(p.Take(ctx, "lead:short", "a/1", time.Millisecond)) || !take(p.Take(ctx, "member:b/1", "b/1", time.Minute)) {
		t.Fatal("a free lease was not taken")
	}
	time.Sleep(20 * time.Millisecond) // it ends meanwhile, by the database's clock
	if !take(p.Take(ctx, "lead:short", "b/1", time.Minute)) || take(p.Take(ctx, "lead:short", "b/1", time.Minute)) {
		t.Error("a lease that has ended was not taken, or one was taken twice")
	}
	if err := p.Former(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	if got := leasesOf(t, p, "b/1"); !slices.Contains(got, "lead:short b/1 ended") || !slices.Contains(got, "member:b/1 b/1 ended") {
		t.Errorf("after a new start of b, leases are %q", got)
	}
	if !take(p.Take(ctx, "ready:x", "c/1", time.Minute)) || p.Give(ctx, "d/1", "ready:x") != nil || p.Give(ctx, "c/1") != nil {
		t.Fatal("a lease was not taken, or not given back")
	}
	if got := leasesOf(t, p, "c/1"); slices.Contains(got, "ready:x c/1") {
		t.Errorf("after c has given back all, leases are %q", got)
	}
	if !take(p.TakeCommand(ctx, "command-1", "a/1")) || take(p.TakeCommand(ctx, "command-1", "b/1")) || take(p.TakeCommand(ctx, "command-1", "a/1")) {
		t.Error("a command was taken by two, or by nobody")
	}
	if err := p.Prune(ctx); err != nil {
		t.Error(err)
	}
}

// What is asked stays until its leader has taken it in; what is asked again meanwhile stays.
func TestAsks(t *testing.T) {
	t.Parallel()
	p, ctx := open(t), t.Context()
	ask := func(repo, what, note string) {
		t.Helper()
		if err := p.Ask(ctx, replica.Ask{Repo: repo, Kind: replica.AskLook, What: what, Note: note}); err != nil {
			t.Fatal(err)
		}
	}
	ask("fleet", "1", "first")
	ask("other", "1", "")
	ask("fleet", "2", "")
	asks := must[[]replica.Ask](t)(p.Asked(ctx, []string{"fleet"}, 10))
	if len(asks) != 2 || asks[0].What != "1" || asks[0].Note != "first" || asks[1].What != "2" {
		t.Fatalf("asked is %+v", asks)
	}
	ask("fleet", "1", "again")
	if err := p.Answered(ctx, asks); err != nil {
		t.Fatal(err)
	}
	asks = must[[]replica.Ask](t)(p.Asked(ctx, []string{"fleet", "nobody"}, 10))
	if len(asks) != 1 || asks[0].Note != "again" {
		t.Errorf("after it was asked again, asked is %+v", asks)
	}
	if asks = must[[]replica.Ask](t)(p.Asked(ctx, nil, 10)); len(asks) != 0 {
		t.Errorf("who leads nothing is asked for %+v", asks)
	}
}

// An agent's id is one process's, whichever replica that speaks to.
func TestAgents(t *testing.T) {
	t.Parallel()
	p, ctx := open(t), t.Context()
	claim := func(process string) protocol.ClaimRequest {
		return protocol.ClaimRequest{
			Agent: "agent", Process: process, Folder: "folder " + process, Kinds: []holdfast.RunKind{holdfast.RunPlan},
			Projects: []string{"payments"}, Executing: []holdfast.AttemptRef{{Run: "run-1"}},
		}
	}
	hear := func(process, was string, silence time.Duration) bool {
		t.Helper()
		return must[bool](t)(p.HearAgent(ctx, claim(process), was, silence))
	}
	first := hear("one", "", time.Minute)
	if again := hear("one", "", time.Minute); !first || !again || hear("two", "", time.Minute) {
		t.Error("its own process is refused, or another one is not")
	}
	signs := must[[]replica.AgentSign](t)(p.HeardAgents(ctx, "agent"))
	if len(signs) != 1 || signs[0].Claim.Process != "one" || !slices.Equal(signs[0].Claim.Projects, []string{"payments"}) ||
		len(signs[0].Claim.Executing) != 0 || signs[0].Ago > time.Minute {
		t.Errorf("heard of %+v", signs)
	}
	if !hear("two", "one", time.Minute) || !hear("three", "", -time.Minute) {
		t.Error("who takes the place of another one, or of a silent one, is refused")
	}
	if others := must[[]replica.AgentSign](t)(p.HeardAgents(ctx, "nobody")); len(others) != 0 {
		t.Errorf("heard of %+v", others)
	}
}

// What a repository had is known to all; whose a cluster is, too.
func TestRefsAndOwners(t *testing.T) {
	t.Parallel()
	p, ctx := open(t), t.Context()
	for _, digest := range []holdfast.Digest{"sha256:1", "sha256:2", "sha256:2"} {
		if err := p.SaveRefs(ctx, "fleet", digest); err != nil {
			t.Fatal(err)
		}
	}
	if refs := must[map[string]holdfast.Digest](t)(p.Refs(ctx)); len(refs) != 1 || refs["fleet"] != "sha256:2" {
		t.Errorf("refs are %v", refs)
	}
	if _, err := p.Owner(ctx, "nobody"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("the owner of no cluster: %v", err)
	}
	gone, stop := context.WithCancel(ctx)
	stop()
	if _, err := p.Owner(gone, "nobody"); errors.Is(err, holdfast.ErrNotFound) || err == nil {
		t.Errorf("without an answer of the database: %v", err)
	}
}
