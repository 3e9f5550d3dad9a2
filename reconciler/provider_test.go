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
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// of gives a cluster a provider.
func of(provider string) func(*reconciler.Options) {
	return func(opts *reconciler.Options) { opts.Limits.Provider = map[string]int{provider: 1} }
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

func ends(cause holdfast.Reason) func(protocol.Assignment) protocol.Result {
	return func(protocol.Assignment) protocol.Result {
		return protocol.Result{Status: holdfast.RunErrored, Reason: "EngineFailed", Failure: &holdfast.Failure{
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

func (g *gauge) RunEnded(holdfast.RunKind, holdfast.RunStatus, holdfast.Reason) {}
func (g *gauge) RunClaimed(holdfast.RunKind, time.Duration)                     {}
func (g *gauge) Step(string, time.Duration)                                     {}
func (g *gauge) LockRefused()                                                   {}
func (g *gauge) Depth(string, int)                                              {}
func (g *gauge) Decided(decision.Action, holdfast.Reason)                       {}
func (g *gauge) Posted(outgoing.PostKind, bool)                                 {}

// TestCloudThatThrottles slows down the runs of that cloud, says so, and leaves
// the others alone.
func TestCloudThatThrottles(t *testing.T) {
	t.Parallel()
	g := &gauge{}
	f := newFleet(t, clouds("aws-1", "aws-2", "aws-3", "aws-4", "aws-5", "google-1"), func(opts *reconciler.Options) { opts.Telemetry.Metrics = g })
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
		if rec.Waiting != holdfast.ReasonProviderThrottled || !strings.Contains(rec.WaitingDetail, "until 12:01") {
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
	if got := f.cluster("aws-5").Waiting; got == holdfast.ReasonProviderThrottled {
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
		opts.Limits.Provider, opts.Limits.Runs = map[string]int{"aws": 2}, 6
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
				a, err := r.Dispatcher().Claim(t.Context(), protocol.ClaimRequest{Agent: fmt.Sprintf("agent-%d", i), Executing: []holdfast.AttemptRef{}})
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

// TestReplicasKeepToABreakOnRecord: another replica has found out that a provider needs a
// break, and that it is over. The next claim here goes by that, told or not.
func TestReplicasKeepToABreakOnRecord(t *testing.T) {
	t.Parallel()
	f := newFleet(t, clouds("aws-1", "google-1"))
	f.look()
	records := func(until time.Time) {
		f.must(f.store.ChangeBreaker(t.Context(), "aws", func(b *holdfast.Breaker) bool {
			b.Until, b.Pause = until, time.Minute
			return true
		}))
	}
	ends := f.clock.Now().Add(time.Minute)
	records(ends)
	for _, nonsense := range []string{"provider:", "provider::", "provider:aws", "provider:aws:x", "provider:google:x"} {
		f.r.Woken(nonsense)
	}
	if run := f.execute(planned); run.Cluster != "google-1" {
		t.Fatalf("%s is claimed", run.Cluster)
	}
	if a := f.claim(); a.Run != "" {
		t.Fatalf("%s is claimed in the break", a.Cluster)
	}
	if until := f.r.Dispatcher().HeldUntil("aws"); !until.Equal(ends) {
		t.Errorf("it is shown as held until %s", until)
	}
	records(time.Time{})
	if run := f.execute(planned); run.Cluster != "aws-1" {
		t.Errorf("%s is claimed", run.Cluster)
	}
}
