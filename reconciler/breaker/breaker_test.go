package breaker_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// cloud is a set of breakers with their own clock.
type cloud struct {
	*untroubled
	records records
	now     time.Time
	n       int
}

func newCloud() *cloud {
	c := &cloud{now: noon}
	c.untroubled = newUntroubled(&c.records, func() time.Time { return c.now }, 0)
	return c
}

func (c *cloud) pass(d time.Duration) { c.now = c.now.Add(d) }

// throttles ends an attempt of each cluster that a cloud has throttled.
func (c *cloud) throttles(provider string, clusters ...string) (opened bool) {
	for _, name := range clusters {
		_, changed := c.Ended(c.run(provider, name, "Throttled"))
		opened = opened || changed
	}
	return opened
}

// run is an attempt that has ended for a cause; well if it has none.
func (c *cloud) run(provider, cluster string, cause holdfast.Reason) holdfast.Run {
	c.n++
	run := holdfast.Run{
		ID: fmt.Sprintf("run-%d", c.n), Cluster: cluster, Kind: holdfast.RunPlan, Status: holdfast.RunPlanned,
		RunSpec: holdfast.RunSpec{Document: holdfast.Cluster{Name: cluster, Provider: provider}},
	}
	if cause != "" {
		run.Status = holdfast.RunRetrying
		run.Failure = &holdfast.Failure{Step: "plan", Cause: cause, Transient: true}
	}
	return run
}

func TestBreakerOpens(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		story func(*cloud)
		open  bool
	}{
		"three clusters are throttled":    {func(c *cloud) { c.throttles("aws", "a", "b", "c") }, true},
		"two clusters are":                {func(c *cloud) { c.throttles("aws", "a", "b") }, false},
		"one cluster is, again and again": {func(c *cloud) { c.throttles("aws", "a", "a", "a", "a", "a") }, false},
		"over too long a time": {func(c *cloud) {
			c.throttles("aws", "a", "b")
			c.pass(5*time.Minute + time.Second)
			c.throttles("aws", "c")
		}, false},
		"just in time": {func(c *cloud) {
			c.throttles("aws", "a", "b")
			c.pass(5 * time.Minute)
			c.throttles("aws", "c")
		}, true},
		"for one of each cause": {func(c *cloud) {
			for cluster, cause := range map[string]string{"a": "Throttled", "b": "ServiceUnavailable", "c": "Network"} {
				c.Ended(c.run("aws", cluster, holdfast.Reason(cause)))
			}
		}, true},
		"another cloud throttles":  {func(c *cloud) { c.throttles("google", "a", "b", "c") }, false},
		"clusters without a cloud": {func(c *cloud) { c.throttles("", "a", "b", "c") }, false},
		"quotas are used up": {func(c *cloud) {
			for _, cluster := range []string{"a", "b", "c"} {
				c.Ended(c.run("aws", cluster, "Quota"))
			}
		}, false},
		"a registry is out of reach": {func(c *cloud) {
			for _, cluster := range []string{"a", "b", "c"} {
				run := c.run("aws", cluster, "Network")
				run.Failure.Step = "init"
				c.Ended(run)
			}
		}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud()
			tt.story(c)
			if got := slices.Contains(c.Held(), "aws"); got != tt.open {
				t.Errorf("held: %t", got)
			}
			if c.Admits("aws", "run-x") == tt.open || !c.Admits("digitalocean", "run-y") || !c.Admits("", "run-z") {
				t.Error("it admits other runs than it says")
			}
		})
	}
}

func TestBreakerLetsOneThrough(t *testing.T) {
	t.Parallel()
	c := newCloud()
	if !c.throttles("aws", "a", "b", "c") {
		t.Fatal("it did not open")
	}
	if until := c.Until("aws"); !until.Equal(noon.Add(time.Minute)) {
		t.Fatalf("it is open until %s", until)
	}
	c.pass(time.Minute)
	if len(c.Held()) > 0 || !c.Until("aws").IsZero() {
		t.Fatal("it is held after its break")
	}
	if !c.Admits("aws", "first") || c.Admits("aws", "second") || !c.Admits("aws", "first") {
		t.Fatal("not the first one, and only that")
	}
	if !slices.Contains(c.Held(), "aws") || c.Until("aws").IsZero() {
		t.Fatal("it does not say that it waits for the first one")
	}
	c.Withdraw("aws", "second")
	if c.Admits("aws", "second") {
		t.Fatal("a run that was not let through was taken back")
	}
	c.Withdraw("aws", "first")
	if !c.Admits("aws", "second") {
		t.Fatal("the first one was taken back, and nobody may follow")
	}
	other := c.run("aws", "d", "InvalidConfiguration")
	other.ID, other.Status = "second", holdfast.RunErrored
	if _, changed := c.Ended(other); changed || !c.Admits("aws", "third") {
		t.Fatal("what says nothing about the cloud decides")
	}
	c.pass(time.Minute) // nothing is heard of the third one
	if !c.Admits("aws", "fourth") {
		t.Fatal("one that is lost holds all others for ever")
	}
	well := c.run("aws", "d", "")
	well.ID = "fourth"
	if until, changed := c.Ended(well); !changed || !until.IsZero() || len(c.Held()) > 0 {
		t.Fatalf("it is not closed: %s, %t", until, changed)
	}
	if !c.Admits("aws", "fifth") || !c.Admits("aws", "sixth") {
		t.Error("it is closed, and does not let all through")
	}
}

func TestBreakerTakesLongerBreaks(t *testing.T) {
	t.Parallel()
	c := newCloud()
	c.throttles("aws", "a", "b", "c")
	for _, minutes := range []int{1, 2, 4, 8, 15, 15} {
		want := time.Duration(minutes) * time.Minute
		if got := c.Until("aws").Sub(c.now); got != want {
			t.Fatalf("the break takes %s, want %s", got, want)
		}
		c.pass(want / 2)
		if c.throttles("aws", "x", "y", "z") {
			t.Fatal("what ran before opens it once more")
		}
		if _, changed := c.Ended(c.run("aws", "x", "")); changed {
			t.Fatal("what ran before closes it")
		}
		c.pass(want / 2)
		if !c.Admits("aws", "probe") {
			t.Fatal("nothing is let through")
		}
		if !c.throttles("aws", "a") {
			t.Fatal("the one that was let through was throttled, and others may go on")
		}
	}
	c.pass(15 * time.Minute)
	c.Ended(c.run("aws", "a", ""))
	c.pass(time.Minute)
	c.throttles("aws", "a", "b", "c")
	if got := c.Until("aws").Sub(c.now); got != 15*time.Minute {
		t.Errorf("soon after the last break it takes %s", got)
	}
	c.pass(15 * time.Minute)
	c.Ended(c.run("aws", "a", ""))
	c.pass(16 * time.Minute)
	c.throttles("aws", "a", "b", "c")
	if got := c.Until("aws").Sub(c.now); got != time.Minute {
		t.Errorf("long after the last break it takes %s", got)
	}
}

// TestReplicasShareBreakers: what one replica has found out, the next claim at another one
// keeps to, whether it was told or not.
func TestReplicasShareBreakers(t *testing.T) {
	t.Parallel()
	c := newCloud()
	other := newUntroubled(&c.records, func() time.Time { return c.now }, 0)
	c.throttles("aws", "a", "b")
	if until, moved := other.Ended(c.run("aws", "c", "Throttled")); !moved || !until.Equal(noon.Add(time.Minute)) {
		t.Fatalf("the third cluster suffers at another replica: open until %s, %t", until, moved)
	}
	if moved := c.Look(); !moved["aws"].Equal(noon.Add(time.Minute)) || len(c.Look()) != 0 {
		t.Errorf("the first one sees that %v", moved)
	}
	if got := c.Held(); !slices.Equal(got, []string{"aws"}) || c.Admits("aws", "run-x") {
		t.Fatalf("at the first one %v are held", got)
	}
	c.pass(time.Minute)
	if !other.Admits("aws", "first") || c.Admits("aws", "second") {
		t.Fatal("not the first one, and only that, is let through at all replicas")
	}
	c.Look()
	if got := c.Held(); !slices.Equal(got, []string{"aws"}) {
		t.Errorf("while one is let through elsewhere %v are held", got)
	}
	well := c.run("aws", "d", "")
	well.ID = "first"
	if until, moved := c.Ended(well); !moved || !until.IsZero() {
		t.Errorf("the one that was let through ends well: %s, %t", until, moved)
	}
	if moved := other.Look(); len(moved) != 1 || !moved["aws"].IsZero() || len(other.Held()) > 0 || !other.Admits("aws", "third") {
		t.Errorf("then the other one sees %v, and holds %v", moved, other.Held())
	}
}

// TestBreakersOutliveARestart: a new process keeps to the break, and knows how long the last
// one was.
func TestBreakersOutliveARestart(t *testing.T) {
	t.Parallel()
	c := newCloud()
	c.throttles("aws", "a", "b", "c")
	c.untroubled = newUntroubled(&c.records, func() time.Time { return c.now }, 0)
	c.Look()
	if c.Admits("aws", "run-x") {
		t.Fatal("a run is let through after a restart")
	}
	c.pass(time.Minute)
	if !c.Admits("aws", "probe") || !c.throttles("aws", "a") || !c.Until("aws").Equal(c.now.Add(2*time.Minute)) {
		t.Errorf("the next break ends at %s", c.Until("aws"))
	}
}

// TestWordOfABreak: what another replica says is shown until the records are looked at.
func TestWordOfABreak(t *testing.T) {
	t.Parallel()
	c := newCloud()
	c.Adopt("aws", noon.Add(4*time.Minute))
	c.Adopt("aws", noon.Add(time.Minute)) // an older word
	c.Adopt("google", noon.Add(-time.Minute))
	if got := c.Held(); !slices.Equal(got, []string{"aws"}) || !c.Until("aws").Equal(noon.Add(4*time.Minute)) {
		t.Fatalf("held are %v", got)
	}
	c.Adopt("aws", time.Time{})
	if len(c.Held()) > 0 {
		t.Error("another has found it well, and it is held")
	}
	c.Adopt("aws", noon.Add(4*time.Minute))
	if c.Look(); len(c.Held()) > 0 {
		t.Error("it is held, and the records say nothing of it")
	}
}

// TestBreakerLetsExactlyOneThrough has many ask at once.
func TestBreakerLetsExactlyOneThrough(t *testing.T) {
	t.Parallel()
	c := newCloud()
	c.throttles("aws", "a", "b", "c")
	c.pass(time.Minute)
	var wg sync.WaitGroup
	var through atomic.Int32
	for i := range 50 {
		wg.Go(func() {
			if c.Admits("aws", fmt.Sprintf("probe-%d", i)) {
				through.Add(1)
			}
			_ = c.Held()
		})
	}
	wg.Wait()
	if got := through.Load(); got != 1 {
		t.Errorf("%d were let through", got)
	}
}

// TestReplicaFromTheFuture: the word of a replica whose clock is wrong holds a
// cloud back no longer than any other, and neither does its record.
func TestReplicaFromTheFuture(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(*cloud){
		"word": func(c *cloud) { c.Adopt("aws", noon.Add(40*24*time.Hour)) },
		"record": func(c *cloud) {
			c.pass(40 * 24 * time.Hour)
			c.throttles("aws", "a", "b", "c")
			c.now = noon
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud()
			tell(c)
			if name == "record" {
				c.Look()
			}
			if c.Admits("aws", "run-0") {
				t.Error("it is not held at all")
			}
			c.pass(time.Hour)
			c.Look()
			if !c.Admits("aws", "run-1") {
				t.Errorf("an hour later it is held until %s", c.Until("aws"))
			}
		})
	}
}

// TestBreakIsASetting: so long is the first break, and the longest follows from it.
func TestBreakIsASetting(t *testing.T) {
	t.Parallel()
	c := newCloud()
	c.untroubled = newUntroubled(&c.records, func() time.Time { return c.now }, time.Hour)
	c.throttles("aws", "a", "b", "c")
	for _, hours := range []int{1, 2, 4, 8, 15, 15} {
		want := time.Duration(hours) * time.Hour
		if got := c.Until("aws").Sub(c.now); got != want {
			t.Fatalf("the break takes %s, want %s", got, want)
		}
		c.pass(want)
		if !c.Admits("aws", "probe") || !c.throttles("aws", "a") {
			t.Fatal("the one that was let through opens it no more")
		}
	}
}
