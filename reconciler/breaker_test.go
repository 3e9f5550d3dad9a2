package reconciler_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// cloud is a set of breakers with a clock of their own.
type cloud struct {
	*reconciler.Breakers
	now time.Time
	n   int
}

func newCloud() *cloud {
	c := &cloud{now: noon}
	c.Breakers = reconciler.NewBreakers(func() time.Time { return c.now })
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
func (c *cloud) run(provider, cluster, cause string) holdfast.Run {
	c.n++
	run := holdfast.Run{
		ID: fmt.Sprintf("run-%d", c.n), Cluster: cluster, Kind: plan, Status: holdfast.RunPlanned,
		Document: holdfast.Cluster{Name: cluster, Provider: provider},
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
				c.Ended(c.run("aws", cluster, cause))
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

func TestBreakerIsToldByOthers(t *testing.T) {
	t.Parallel()
	c := newCloud()
	c.Told("aws", noon.Add(4*time.Minute))
	c.Told("aws", noon.Add(time.Minute)) // an older word
	c.Told("google", noon.Add(-time.Minute))
	if got := c.Held(); !slices.Equal(got, []string{"aws"}) {
		t.Fatalf("held are %v", got)
	}
	c.pass(4 * time.Minute)
	if !c.Admits("aws", "first") || !c.throttles("aws", "a") || !c.Until("aws").Equal(c.now.Add(8*time.Minute)) {
		t.Errorf("the next break ends at %s", c.Until("aws"))
	}
	c.Told("aws", time.Time{})
	if len(c.Held()) > 0 {
		t.Error("another has found it well, and it is held")
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

// of gives a cluster a provider.
func of(provider string) func(*reconciler.Options) {
	return func(opts *reconciler.Options) { opts.MaxProvider = map[string]int{provider: 1} }
}

// clouds are clusters of a template, on the clouds that they are called after.
func clouds(names ...string) map[string]string {
	files := webTemplate("one")
	files["templates/web/template.yaml"] = `apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: web}
spec:
  providers:
    aws:
      modules:
        - {name: site, source: ./modules/site}
    google:
      modules:
        - {name: site, source: ./modules/site}
`
	for _, name := range names {
		provider, _, _ := strings.Cut(name, "-")
		files["clusters/"+name+".yaml"] = strings.Replace(
			templated(name, "{path: ../templates/web}"), "provider: any", "provider: "+provider, 1)
	}
	return files
}

func ends(cause string) func(holdfast.Assignment) holdfast.Result {
	return func(holdfast.Assignment) holdfast.Result {
		return holdfast.Result{Status: holdfast.RunErrored, Reason: "EngineError", Failure: &holdfast.Failure{
			Step: "plan", Summary: "Rate exceeded", Cause: cause, Transient: true,
		}}
	}
}

// gauge counts what is measured of providers.
type gauge struct {
	reconciler.Metrics
	mu   sync.Mutex
	held []string
}

func (g *gauge) ProviderHeld(provider string, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	word := "on"
	if until.IsZero() {
		word = "off"
	}
	g.held = append(g.held, provider+" "+word)
}

func (g *gauge) RunEnded(holdfast.RunKind, holdfast.RunStatus, string) {}
func (g *gauge) RunClaimed(holdfast.RunKind, time.Duration)            {}
func (g *gauge) Step(string, time.Duration)                            {}
func (g *gauge) LockRefused()                                          {}
func (g *gauge) Depth(string, int)                                     {}
func (g *gauge) Decided(decision.Action, string)                       {}
func (g *gauge) Posted(holdfast.PostKind, bool)                        {}

// TestCloudThatThrottles slows down the runs of that cloud, says so, and leaves
// the others alone.
func TestCloudThatThrottles(t *testing.T) {
	t.Parallel()
	g := &gauge{}
	f := newFleet(t, clouds("aws-1", "aws-2", "aws-3", "aws-4", "aws-5", "google-1"), func(opts *reconciler.Options) { opts.Metrics = g })
	f.look()
	for range 3 {
		if run := f.execute(ends("Throttled")); !strings.HasPrefix(run.Cluster, "aws") || run.Status != holdfast.RunRetrying {
			t.Fatalf("%s is %s", run.Cluster, run.Status)
		}
	}
	f.repo.Commit(master, "one more", clouds("aws-6")) // which comes in the break
	f.look()
	for _, name := range []string{"aws-4", "aws-5", "aws-6"} {
		rec := f.cluster(name)
		if rec.Waiting != decision.ReasonProviderThrottled || !strings.Contains(rec.WaitingDetail, "until 12:01") {
			t.Errorf("%s waits for %q: %s", name, rec.Waiting, rec.WaitingDetail)
		}
		if got := f.newest(name).Status; got != holdfast.RunQueued {
			t.Errorf("the run of %s is %s", name, got)
		}
	}
	if run := f.execute(planned); run.Cluster != "google-1" {
		t.Fatalf("%s is claimed, and not the other cloud's", run.Cluster)
	}
	if a := f.claim(); a.Run != "" {
		t.Fatalf("%s is claimed in the break", a.Cluster)
	}
	f.clock.Advance(time.Minute + time.Second) // retries have come due, too: all obey
	probe := f.claim()
	if probe.Run == "" {
		t.Fatal("nothing is let through")
	}
	if a := f.claim(probe.AttemptRef); a.Run != "" {
		t.Fatalf("%s is let through beside %s", a.Cluster, probe.Cluster)
	}
	f.finish(probe, ends("ServiceUnavailable")(probe))
	if a := f.claim(); a.Run != "" {
		t.Fatalf("%s is claimed in the second break", a.Cluster)
	}
	f.clock.Advance(2*time.Minute + time.Second)
	if run := f.execute(planned); run.Status != holdfast.RunPlanned {
		t.Fatalf("%s is %s", run.Cluster, run.Status)
	}
	first := f.claim()
	if second := f.claim(first.AttemptRef); first.Run == "" || second.Run == "" {
		t.Error("the cloud is well, and its runs do not go on")
	}
	if want := []string{"aws on", "aws on", "aws off"}; !slices.Equal(g.held, want) {
		t.Errorf("measured %v, want %v", g.held, want)
	}
	f.settle()
	if got := f.cluster("aws-5").Waiting; got == decision.ReasonProviderThrottled {
		t.Error("it waits for a cloud that is well")
	}
}

// TestPlanThatWaitsForItsCloud says so in the pull request's comment.
func TestPlanThatWaitsForItsCloud(t *testing.T) {
	t.Parallel()
	f := newFleet(t, clouds("aws-1", "aws-2", "aws-3", "aws-4"))
	f.adopt()
	f.open(1, map[string]string{"templates/web/modules/site/main.tf": module("two")})
	f.clock.Advance(time.Minute)
	for range 3 {
		f.execute(ends("Throttled"))
	}
	f.clock.Advance(11 * time.Second)
	f.lookAt(1)
	f.post()
	if body := f.forge.ours()[0].Body; !strings.Contains(body, "until 12:0") {
		t.Errorf("the comment does not say until when:\n%s", body)
	}
}

func TestCapOfAProvider(t *testing.T) {
	t.Parallel()
	f := newFleet(t, clouds("aws-1", "aws-2", "google-1"), of("aws"))
	f.look()
	first := f.claim()
	second := f.claim(first.AttemptRef)
	if first.Cluster != "aws-1" || second.Cluster != "google-1" {
		t.Fatalf("claimed %q, then %q", first.Cluster, second.Cluster)
	}
	if third := f.claim(first.AttemptRef, second.AttemptRef); third.Run != "" {
		t.Fatalf("%s is claimed over the cap", third.Cluster)
	}
	f.finish(first, planned(first))
	if third := f.claim(second.AttemptRef); third.Cluster != "aws-2" {
		t.Errorf("then %q is claimed", third.Cluster)
	}
}

// TestCapHoldsWhenManyClaim lets many agents of two replicas claim at once.
func TestCapHoldsWhenManyClaim(t *testing.T) {
	t.Parallel()
	names := []string{"aws-1", "aws-2", "aws-3", "aws-4", "aws-5", "aws-6"}
	f := newFleet(t, clouds(names...), func(opts *reconciler.Options) {
		opts.MaxProvider, opts.MaxRuns = map[string]int{"aws": 2}, 6
	})
	f.look()
	one := f.r
	f.restart()
	var wg sync.WaitGroup
	var claimed atomic.Int32
	for i := range 12 {
		r := []*reconciler.Reconciler{one, f.r}[i%2]
		wg.Go(func() {
			for range 4 {
				a, err := r.Claim(t.Context(), holdfast.ClaimRequest{Agent: fmt.Sprintf("agent-%d", i), Executing: []holdfast.AttemptRef{}})
				if err == nil && a.Run != "" {
					claimed.Add(1)
					return
				}
			}
		})
	}
	wg.Wait()
	for a := f.claim(); a.Run != ""; { // those who were in one another's way
		claimed.Add(1)
		a = f.claim(a.AttemptRef)
	}
	if got := claimed.Load(); got != 2 {
		t.Errorf("%d runs were claimed", got)
	}
}

// TestCappedPlanSaysSo in the pull request's comment.
func TestCappedPlanSaysSo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, clouds("aws-1", "aws-2"), of("aws"))
	f.adopt()
	f.open(1, map[string]string{"templates/web/modules/site/main.tf": module("two")})
	f.claim()
	f.clock.Advance(11 * time.Second)
	f.lookAt(1)
	f.post()
	if body := f.forge.ours()[0].Body; !strings.Contains(body, "1 of 1 runs of aws") {
		t.Errorf("the comment does not say why it waits:\n%s", body)
	}
}

func TestOtherReplicasHearOfABreak(t *testing.T) {
	t.Parallel()
	f := newFleet(t, clouds("aws-1", "google-1"))
	f.look()
	f.r.Woken(fmt.Sprintf("provider:aws:%d", f.clock.Now().Add(time.Minute).UnixNano()))
	for _, nonsense := range []string{"provider:", "provider::", "provider:aws", "provider:aws:x", "provider:google:x"} {
		f.r.Woken(nonsense)
	}
	if run := f.execute(planned); run.Cluster != "google-1" {
		t.Fatalf("%s is claimed", run.Cluster)
	}
	if a := f.claim(); a.Run != "" {
		t.Fatalf("%s is claimed in the break", a.Cluster)
	}
	f.r.Woken("provider:aws:0")
	if run := f.execute(planned); run.Cluster != "aws-1" {
		t.Errorf("%s is claimed", run.Cluster)
	}
}
