package leader_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/peers"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
	"github.com/holdfast-dev/holdfast/reconciler/leader"
)

func TestMain(m *testing.M) { os.Exit(postgresserver.Main(m)) }

// replica is a Keeper with what it was told.
type replica struct {
	*leader.Keeper
	gained, died, given int
}

// crew are the replicas of one database.
type crew struct {
	t       *testing.T
	leases  *peers.Peers
	repos   []string
	started int
	all     []*replica
}

func newCrew(t *testing.T, repos ...string) *crew {
	t.Helper()
	keys, err := seal.NewKeyring(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	d := postgresserver.New(t, "")
	store, err := datastore.Open(t.Context(), datastore.Options{
		Path: filepath.Join(t.TempDir(), "db", "holdfast.db"), Keys: keys,
		Postgres: postgres.Address{URL: d.URL(), Password: d.Password},
		Replica:  datastore.Replica{Identity: func() (string, error) { return "store", nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return &crew{t: t, leases: store.Peers(), repos: repos}
}

func (c *crew) start(identity string) *replica {
	c.t.Helper()
	c.started++
	r := new(replica)
	r.Keeper = leader.New(leader.Options{
		Leases: c.leases, Identity: identity, Process: fmt.Sprint(c.started), Repositories: c.repos, Logger: slog.New(slog.DiscardHandler),
		Hooks: leader.Hooks{
			Gaining: func(repo string) {
				if r.Leads(repo) {
					c.t.Errorf("%s leads %q before it has forgotten what it knew", identity, repo)
				}
			},
			Gained: func(repo string) {
				r.gained++
				if !r.Leads(repo) {
					c.t.Errorf("%s is told that it leads %q and does not", identity, repo)
				}
			},
			Died: func() { r.died++ }, Given: func(context.Context) { r.given++ },
		},
	})
	if err := c.leases.Former(c.t.Context(), identity); err != nil {
		c.t.Fatal(err)
	}
	c.all = append(c.all, r)
	return r
}

// until ticks those that live until that is so, and holds that nothing is led by two.
func (c *crew) until(what string, is func() bool, living ...*replica) {
	c.t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for !is() {
		for _, r := range living {
			if err := r.Tick(c.t.Context()); err != nil {
				c.t.Fatal(err)
			}
		}
		c.oneLeads()
		if time.Now().After(deadline) {
			c.t.Fatalf("it is never so that %s", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (c *crew) oneLeads() {
	c.t.Helper()
	for _, repo := range append(slices.Clone(c.repos), leader.Fleet) {
		led := 0
		for _, r := range c.all {
			if r.Leads(repo) {
				led++
			}
		}
		if led > 1 {
			c.t.Fatalf("%q is led by %d replicas", repo, led)
		}
	}
}

func (c *crew) lead(r *replica, n int) func() bool { return func() bool { return len(r.Led()) == n } }

// One replica leads a repository; all lead about as much; who dies, leaves or is started again
// is succeeded, and only who has died is missed.
func TestOneLeads(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "a", "b", "c", "d")
	one := c.start("one")
	c.until("the first one leads everything", c.lead(one, 5), one)
	if one.Others() || one.Place("a") != "a" || one.Place("elsewhere") != leader.Fleet {
		t.Error("it is not alone, or does not know its repositories")
	}
	two := c.start("two")
	c.until("both lead about as much", func() bool { return len(one.Led()) == 3 && len(two.Led()) == 2 }, one, two)
	if !one.Others() || one.given != 2 {
		t.Errorf("there are others %t, and it has given away %d", one.Others(), one.given)
	}

	took := two.Led()[0]
	two.Took(took)
	c.until("one knows that two has taken in what it leads", func() bool { return one.Taken(took) }, one, two)
	if one.Taken(one.Led()[0]) {
		t.Error("what was not taken in is taken to be")
	}

	began := time.Now()
	c.until("one has taken over what two led, which is dead", c.lead(one, 5), one)
	t.Logf("taken over after %s", time.Since(began).Round(100*time.Millisecond))
	if one.died != 1 || len(two.Led()) != 0 {
		t.Errorf("it was told of %d deaths, and the dead one leads %q", one.died, two.Led())
	}
	if one.Taken(took) {
		t.Error("what the dead one had taken in is taken to be by its successor")
	}

	three := c.start("three")
	c.until("the third one leads", c.lead(three, 2), one, three)
	c.all = slices.DeleteFunc(c.all, func(r *replica) bool { return r == three }) // its process is dead
	again := c.start("three")
	c.until("a new process leads what the former one did", func() bool { return len(again.Led()) == 2 && len(one.Led()) == 3 }, one, again)
	if one.died != 2 {
		t.Errorf("it was told of %d deaths, want 2", one.died)
	}

	again.Leave(t.Context())
	if len(again.Led()) != 0 || again.given != 1 {
		t.Errorf("who has left leads %q, and has told others %d times", again.Led(), again.given)
	}
	began = time.Now()
	c.until("one leads what was given back", c.lead(one, 5), one, again)
	t.Logf("handed over after %s", time.Since(began).Round(100*time.Millisecond))
	if one.died != 2 {
		t.Error("who has left in good order is taken for dead")
	}
}

// A server that is alone leads everything, and asks nobody.
func TestAlone(t *testing.T) {
	t.Parallel()
	k := leader.New(leader.Options{Identity: "one", Repositories: []string{"a"}, Logger: slog.New(slog.DiscardHandler)})
	k.Took("a")
	k.Leave(t.Context())
	if !k.Alone() || k.Others() || !k.Leads("a") || !k.Leads("whatever") || !slices.Equal(k.Led(), []string{"a", leader.Fleet}) {
		t.Errorf("alone %t, others %t, leads %q", k.Alone(), k.Others(), k.Led())
	}
}
