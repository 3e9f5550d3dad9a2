package agenda_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// records has open pull requests by cluster, dependents by cluster, and runs.
type records struct {
	open  map[string][]int
	kin   map[string][]string
	runs  []holdfast.Run
	fails error
}

func (r records) Runs(context.Context, holdfast.RunFilter) ([]holdfast.Run, error) {
	return r.runs, r.fails
}

func (r records) PullRequests(_ context.Context, filter holdfast.PullRequestFilter) ([]holdfast.PullRequestRecord, error) {
	if !slices.Equal(filter.States, []holdfast.PullRequestState{holdfast.PullRequestOpen}) {
		return nil, fmt.Errorf("asked for pull requests that are %v", filter.States)
	}
	var out []holdfast.PullRequestRecord
	for _, number := range r.open[filter.Cluster] {
		out = append(out, holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{PullRequestRef: pull(number)}})
	}
	return out, r.fails
}

func (r records) Dependents(_ context.Context, cluster string) ([]holdfast.Relation, error) {
	var out []holdfast.Relation
	for _, name := range r.kin[cluster] {
		out = append(out, holdfast.Relation{Name: name})
	}
	return out, r.fails
}

func pull(number int) holdfast.PullRequestRef {
	return holdfast.PullRequestRef{Repo: "acme/clusters", Number: number}
}

// shown are the pull requests that were asked to be shown again.
type shown []string

func open(r records, s *shown) *agenda.Agenda {
	return agenda.New(agenda.Options{
		Store: r, Kin: r, Logger: slog.New(slog.DiscardHandler),
		Show: func(ref holdfast.PullRequestRef) { *s = append(*s, ref.String()) },
	})
}

// asked takes everything that is asked for, in its order.
func asked(t *testing.T, a *agenda.Agenda) []string {
	t.Helper()
	var out []string
	for {
		more, err := a.Step(t.Context(),
			func(_ context.Context, l agenda.Look) error {
				out = append(out, fmt.Sprintf("look %s#%d", l.Repo, l.Number))
				return nil
			},
			func(_ context.Context, req holdfast.Request) error {
				word := req.Cluster
				if !req.PullRequest.IsZero() {
					word += " at " + req.PullRequest.String()
				}
				out = append(out, word)
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return out
		}
	}
}

// A change of many clusters keeps nobody else waiting; one of few is decided in turn.
func TestRequestAll(t *testing.T) {
	t.Parallel()
	for many, first := range map[int]string{100: "c000", 101: "urgent"} {
		a := open(records{}, new(shown))
		var requests []holdfast.Request
		for i := range many {
			requests = append(requests, holdfast.Request{Cluster: fmt.Sprintf("c%03d", i)})
		}
		a.RequestAll(requests)
		a.RequestCluster("urgent")
		got := asked(t, a)
		if len(got) != many+1 || got[0] != first {
			t.Errorf("%d clusters: %d decisions, the first is %q, want %q", many, len(got), got[0], first)
		}
	}
}

// One request is decided once, however often it was asked for before.
func TestRequestTwice(t *testing.T) {
	t.Parallel()
	a := open(records{}, new(shown))
	a.RequestCluster("app")
	a.RequestPatiently(holdfast.Request{Cluster: "app"})
	a.Request(holdfast.Request{Cluster: "app", PullRequest: pull(1)})
	a.Look(agenda.Look{Repo: "acme/clusters"})
	a.Look(agenda.Look{Repo: "acme/clusters"})
	want := []string{"look acme/clusters#0", "app", "app at acme/clusters#1"}
	if got := asked(t, a); !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

// Decisions that wait for the host of one repository keep no other waiting, however many
// they are; what somebody else decides about comes again.
func TestHostThatHangs(t *testing.T) {
	t.Parallel()
	a := open(records{}, new(shown))
	for number := range 20 {
		a.Request(holdfast.Request{Cluster: fmt.Sprint("hangs ", number)})
	}
	ctx, stop := context.WithCancel(t.Context())
	hang, decided, worked := make(chan struct{}), make(chan string), make(chan error, 1)
	var tries atomic.Int32
	go func() {
		worked <- a.Work(ctx, nil, func(ctx context.Context, req holdfast.Request) error {
			switch {
			case req.Cluster == "taken" && tries.Add(1) == 1:
				return &queue.WaitError{}
			case strings.HasPrefix(req.Cluster, "hangs"):
				if err := queue.MayWait(ctx, "acme/bad"); err != nil {
					return fmt.Errorf("observe: %w", err)
				}
				<-hang
			default:
				decided <- req.Cluster
			}
			return nil
		})
	}()
	for _, name := range []string{"app", "taken", "db"} {
		a.RequestCluster(name)
		if got := <-decided; got != name {
			t.Errorf("decided about %q, want %q", got, name)
		}
	}
	if !a.Deciding() {
		t.Error("decisions hang, and nothing is being decided")
	}
	stop()
	close(hang)
	if err := <-worked; err != nil {
		t.Error(err)
	}
}

func TestRequestRelated(t *testing.T) {
	t.Parallel()
	r := records{kin: map[string][]string{"net": {"app", "db"}}, open: map[string][]int{"app": {7}}}
	settled := holdfast.ClusterRecord{Name: "net"}
	settled.Desired.SourceDigest, settled.Applied.SourceDigest = "sha256:1", "sha256:1"
	settled.Applied.Document.DependsOn = []string{"vpc"}
	behind := settled
	behind.Desired.SourceDigest = "sha256:2"
	failed := behind
	failed.Phase = holdfast.PhaseFailed
	gone := behind
	gone.Deletion = &holdfast.Deletion{}
	alone, applying := settled, settled
	alone.Applied.Document.DependsOn = nil
	applying.Applied.Document.DependsOn, applying.FormerParents = nil, []string{"vpc"}
	for name, test := range map[string]struct {
		before, after holdfast.ClusterRecord
		want          []string
	}{
		"nothing changed":  {settled, settled, nil},
		"settled":          {behind, settled, []string{"app", "app at acme/clusters#7", "db"}},
		"no longer":        {settled, behind, []string{"app", "db"}},
		"failed":           {behind, failed, []string{"app", "db"}},
		"gone, its parent": {behind, gone, []string{"app", "db", "vpc"}},
		"without parents":  {settled, alone, []string{"vpc"}},
		"applied with one": {settled, applying, nil},
		"no longer, too":   {applying, alone, []string{"vpc"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := open(r, new(shown))
			if err := a.RequestRelated(t.Context(), test.before, test.after); err != nil {
				t.Fatal(err)
			}
			if got := asked(t, a); !slices.Equal(got, test.want) {
				t.Errorf("asked for %q, want %q", got, test.want)
			}
		})
	}
	broken := records{fails: errors.New("no records")}
	if err := open(broken, new(shown)).RequestRelated(t.Context(), behind, settled); !errors.Is(err, broken.fails) {
		t.Errorf("dependents that could not be read: %v", err)
	}
}

// The end of a run that has begun to change something is news for every open pull
// request of the cluster, and its start for those whose merge it applies.
func TestFollowUp(t *testing.T) {
	t.Parallel()
	r := records{open: map[string][]int{"app": {7, 8}}}
	apply := holdfast.Run{Cluster: "app", Kind: holdfast.RunApply, Status: holdfast.RunRunning}
	apply.Reviews = []holdfast.Review{{PullRequest: pull(5)}, {}}
	ended := apply
	ended.Status = holdfast.RunErrored
	begun := ended
	begun.Begun = true
	plan := holdfast.Run{Cluster: "app", Kind: holdfast.RunPlan, Status: holdfast.RunPlanned}
	plan.PullRequest, plan.Begun = pull(7), true
	started := plan
	started.Status = holdfast.RunRunning
	state := holdfast.Run{Cluster: "app", Kind: holdfast.RunState, Status: holdfast.RunApplied}
	unlock := holdfast.Run{Cluster: "app", Kind: holdfast.RunUnlock, Status: holdfast.RunApplied}
	unlock.PullRequest = pull(7)
	everything := []string{"app", "app at acme/clusters#7", "app at acme/clusters#8"}
	for name, test := range map[string]struct {
		run   holdfast.Run
		fails error
		want  []string
		shown shown
	}{
		"an apply starts":             {apply, nil, []string{"app"}, shown{"acme/clusters#5"}},
		"it ends without a change":    {ended, nil, []string{"app"}, shown{"acme/clusters#5"}},
		"it ends after some":          {begun, nil, everything, shown{"acme/clusters#5"}},
		"a plan of one starts":        {started, nil, nil, shown{"acme/clusters#7"}},
		"a plan of a pull request":    {plan, nil, []string{"app at acme/clusters#7"}, nil},
		"a state that was put right":  {state, nil, everything, nil},
		"a lock that was released":    {unlock, nil, everything[1:], nil},
		"what cannot be read is left": {begun, errors.New("no records"), []string{"app"}, shown{"acme/clusters#5"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of, s := r, shown(nil)
			of.fails = test.fails
			a := open(of, &s)
			a.FollowUp(t.Context(), test.run)
			got := asked(t, a)
			if !slices.Equal(got, test.want) || !slices.Equal(s, test.shown) {
				t.Errorf("asked for %q and showed %q, want %q and %q", got, s, test.want, test.shown)
			}
		})
	}
}

// What waits for a provider is looked at again when that is held back, or no longer.
func TestFollowHold(t *testing.T) {
	t.Parallel()
	of := func(cluster, provider string, pr holdfast.PullRequestRef) holdfast.Run {
		run := holdfast.Run{Cluster: cluster}
		run.Document.Provider, run.PullRequest = provider, pr
		return run
	}
	none := holdfast.PullRequestRef{}
	r := records{runs: []holdfast.Run{of("app", "aws", none), of("db", "gcp", none), of("net", "aws", pull(7))}}
	var s shown
	a := open(r, &s)
	if err := a.FollowHold(t.Context(), "aws"); err != nil {
		t.Fatal(err)
	}
	if got := asked(t, a); !slices.Equal(got, []string{"app"}) || !slices.Equal(s, shown{"acme/clusters#7"}) {
		t.Errorf("asked for %q and showed %q", got, s)
	}
}
