package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// soldRuns are waitingRuns that are handed out once, of the provider that their names begin
// with.
type soldRuns struct {
	waitingRuns
	running []string
}

func providerOf(run string) string { provider, _, _ := strings.Cut(run, "-"); return provider }

// CountClusters says that there are no others than those of p.
func (s *soldRuns) CountClusters(context.Context, holdfast.ClusterFilter) (int, error) { return 1, nil }

func (s *soldRuns) Served(context.Context, time.Time) (running, lately []holdfast.Lane, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	for _, run := range s.running {
		running = append(running, holdfast.Lane{Provider: providerOf(run), Project: "p", Kind: holdfast.RunPlan})
	}
	return running, nil, nil
}

func (s *soldRuns) Claimable(_ context.Context, filter holdfast.ClaimFilter) (ids []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	for _, id := range s.ids {
		if provider := providerOf(id); len(ids) < filter.Limit && !slices.Contains(filter.Providers, provider) {
			ids = append(ids, id)
			filter.Turns.Took(holdfast.Lane{Provider: provider, Project: "p", Kind: holdfast.RunPlan})
		}
	}
	return ids, nil
}

func (s *soldRuns) Run(ctx context.Context, id string) (holdfast.Run, error) {
	run, err := s.waitingRuns.Run(ctx, id)
	run.PullRequest, run.Document.Provider, run.Document.Project = holdfast.PullRequestRef{}, providerOf(id), "p"
	run.StateLocation = id
	return run, err
}

func (s *soldRuns) ClaimRun(ctx context.Context, id string, agent protocol.AgentRef, now time.Time, most int) (holdfast.Run, error) {
	s.mu.Lock()
	i := slices.Index(s.ids, id)
	if i < 0 || len(s.running) >= most {
		s.mu.Unlock()
		return holdfast.Run{}, holdfast.ErrConflict
	}
	s.ids, s.running = slices.Delete(s.ids, i, i+1), append(s.running, id)
	s.mu.Unlock()
	return s.waitingRuns.ClaimRun(ctx, id, agent, now, most)
}

func (s *soldRuns) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = nil
}

// asks is what has been asked of the store, and sets the count back.
func (s *soldRuns) asks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.asked + s.looks + len(s.read)
	s.asked, s.looks, s.read = 0, 0, nil
	return n
}

// crowd are claims that wait at a dispatcher.
type crowd struct {
	*Dispatcher
	store *soldRuns
	got   chan string
	wg    sync.WaitGroup
}

// newCrowd has so many agents wait for runs.
func newCrowd(t *testing.T, agents int, limits Limits) *crowd {
	t.Helper()
	c := &crowd{store: &soldRuns{}, got: make(chan string, agents)}
	all := everything{woken: func(topic string) { c.Woken(topic) }}
	limits.Drift, limits.Lease = 10, time.Minute
	var err error
	if c.Dispatcher, err = New(Options{Store: c.store, Locker: &countedLocks{held: make(map[string]bool)}, Fleet: all, TokenKey: make([]byte, 32), Limits: limits}); err != nil {
		t.Fatal(err)
	}
	for i := range agents {
		c.wg.Go(func() {
			a, err := c.Claim(t.Context(), protocol.ClaimRequest{Agent: fmt.Sprint("agent-", i), Wait: 20 * time.Second})
			if err == nil {
				c.got <- a.Run
			}
		})
	}
	synctest.Wait()
	c.store.asks()
	return c
}

// countedLocks exclude.
type countedLocks struct {
	mu   sync.Mutex
	held map[string]bool
}

func (l *countedLocks) Acquire(_ context.Context, key, _ string, _ time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[key] {
		return holdfast.ErrLocked
	}
	l.held[key] = true
	return nil
}

func (l *countedLocks) Renew(context.Context, string, string, time.Duration) error { return nil }

func (l *countedLocks) Release(_ context.Context, key, _ string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, key)
	return nil
}

// TestClaimsDoNotGrowWithTheCrowd: what a claim asks the store depends neither on how many
// agents wait nor on how many runs are queued.
func TestClaimsDoNotGrowWithTheCrowd(t *testing.T) {
	t.Parallel()
	asks := func(agents, runs int) (one, all int) {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, agents, Limits{Runs: 1000})
			c.store.queue("aws-first")
			c.Queued(t.Context())
			synctest.Wait()
			if one = c.store.asks(); len(c.got) != 1 {
				t.Fatalf("%d runs are claimed, want 1", len(c.got))
			}
			for i := range runs {
				c.store.queue(fmt.Sprint("aws-", i))
			}
			c.Queued(t.Context())
			synctest.Wait()
			if all = c.store.asks(); len(c.got) != 1+min(runs, agents-1) {
				t.Errorf("%d runs are claimed, of %d by %d agents", len(c.got), 1+runs, agents)
			}
			c.wg.Wait()
		})
		return one, all
	}
	few, _ := asks(2, 1)
	if many, _ := asks(200, 1); many != few {
		t.Errorf("a claim asks %d times next to 200 agents that wait, and %d next to 2", many, few)
	}
	_, short := asks(100, 99)
	if _, long := asks(100, 5000); long != short {
		t.Errorf("99 claims ask %d times of 5,000 runs, and %d times of 99", long, short)
	}
	if short > 2*99 {
		t.Errorf("99 claims ask %d times", short)
	}
}

// TestCrowdKeepsToLimits: of a crowd that is woken at once as many get runs as the limits
// allow, no more, and what is beyond a limit does not cost a try each.
func TestCrowdKeepsToLimits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limits    Limits
		aws, gcp  int // claimed
		asksAtAll int
	}{
		"of the fleet":  {Limits{Runs: 7, Project: 7}, 4, 3, 100},
		"of a provider": {Limits{Runs: 1000, Provider: map[string]int{"aws": 3}}, 3, 20, 150},
		"of a project":  {Limits{Runs: 1000, Project: 5}, 3, 2, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t, 100, test.limits)
				for i := range 20 {
					c.store.queue(fmt.Sprint("aws-", i), fmt.Sprint("gcp-", i))
				}
				c.Queued(t.Context())
				time.Sleep(time.Millisecond) // claims that one limit bounds come one after the other
				synctest.Wait()
				count := map[string]int{}
				for range len(c.got) {
					count[providerOf(<-c.got)]++
				}
				if count["aws"] != test.aws || count["gcp"] != test.gcp {
					t.Errorf("claimed %v, want %d of aws and %d of gcp", count, test.aws, test.gcp)
				}
				if asks := c.store.asks(); asks > test.asksAtAll {
					t.Errorf("that asked the store %d times", asks)
				}
				c.store.end()
				c.Queued(t.Context())
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if len(c.got) == 0 {
					t.Error("nothing is claimed after the runs have ended")
				}
				c.wg.Wait()
			})
		})
	}
}
