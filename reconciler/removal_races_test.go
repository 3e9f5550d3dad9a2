package reconciler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// onItsWay returns a fleet whose prod was removed by a pull request, with its
// destroy, which is executed.
func onItsWay(t *testing.T) (*fleet, protocol.Assignment) {
	t.Helper()
	f := built(t, twoClusters())
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	a := f.claim()
	if a.Kind != holdfast.RunDestroy {
		t.Fatalf("the merge leads to a %q", a.Kind)
	}
	return f, a
}

// The document comes back while the destroy is executed: what it was is gone,
// and nothing is built or taken for built without a plan that people see.
func TestARevertWhileTheDestroyRuns(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(protocol.Assignment) protocol.Result{
		"it ends well": withEngine,
		"it fails":     failing,
		"its agent dies": func(protocol.Assignment) protocol.Result {
			return protocol.Result{Status: holdfast.RunInterrupted, Applying: true, Failure: &holdfast.Failure{Transient: true}}
		},
		"it is stopped": func(protocol.Assignment) protocol.Result {
			return protocol.Result{Status: holdfast.RunCanceled, Reason: "Canceled", Applying: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, a := onItsWay(t)
			f.repo.Commit(master, "revert", map[string]string{"clusters/prod.yaml": document("prod")})
			f.look()
			f.finish(a, how(a))
			if order := f.writes(withEngine); len(order) > 0 {
				t.Errorf("%v were written to", order)
			}
			rec, last := f.cluster("prod"), f.newest("prod")
			if rec.Waiting == "" || rec.Phase == holdfast.PhaseActive || rec.Deletion != nil {
				t.Errorf("prod is %s, and waits for %q", rec.Phase, rec.Waiting)
			}
			if last.Kind != holdfast.RunPlan || last.Destroy || last.Status != holdfast.RunPlanned {
				t.Errorf("the newest run is a %s that is %s", last.Kind, last.Status)
			}
			if c := f.apply("prod"); c.Status != holdfast.CommandDone {
				t.Fatalf("%s: %s", c.Status, c.Reply)
			}
			if order := f.writes(withEngine); !slices.Equal(order, []string{"prod"}) {
				t.Errorf("%v were written to", order)
			}
			if rec := f.cluster("prod"); rec.Phase != holdfast.PhaseConfiguring && rec.Phase != holdfast.PhaseActive || rec.Waiting != "" {
				t.Errorf("applied, it is %s, and waits for %q", rec.Phase, rec.Waiting)
			}
		})
	}
}

// A rename of what is being destroyed takes nothing over but what is left.
func TestARenameWhileTheDestroyRuns(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(protocol.Assignment) protocol.Result{"it ends well": withEngine, "it fails": failing} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, a := onItsWay(t)
			f.repo.Commit(master, "rename", map[string]string{"clusters/live.yaml": renamedDocument("live", "prod"), "infra/live/main.tf": module("one")})
			f.look()
			f.finish(a, how(a))
			f.look()
			if order := f.writes(withEngine); len(order) > 0 {
				t.Errorf("%v were written to", order)
			}
			if rec := f.cluster("live"); rec.Waiting == "" || rec.Phase == holdfast.PhaseActive {
				t.Errorf("live is %s, and waits for %q", rec.Phase, rec.Waiting)
			}
			if rec := f.cluster("prod"); rec.Phase != holdfast.PhaseDeleted {
				t.Errorf("prod is %s, and waits for %q (%s)", rec.Phase, rec.Waiting, rec.WaitingDetail)
			}
		})
	}
}

// A deletion that is merged while an apply is executed destroys what that leaves
// only after somebody has seen it.
func TestADeletionWhileAnApplyRuns(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(protocol.Assignment) protocol.Result{"it ends well": withEngine, "it fails": failing} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := built(t, twoClusters())
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.open(2, map[string]string{"clusters/prod.yaml": gitserver.Delete})
			f.executeAll(withEngine)
			f.merge(1, byMerge)
			apply := f.claim()
			f.merge(2, byMerge)
			if a := f.claim(apply.AttemptRef); a.Run != "" && a.Kind.Writes() {
				t.Fatalf("the %s of %s begins beside the apply", a.Kind, a.Cluster)
			}
			f.finish(apply, how(apply))
			f.executeAll(func(a protocol.Assignment) protocol.Result {
				result := withEngine(a)
				if a.Kind == holdfast.RunDestroy && a.Bundle != f.newestOf("prod", holdfast.RunApply).Bundle {
					t.Errorf("it destroys what was applied before")
				}
				if a.Kind == holdfast.RunDestroy { // its plan is not the one that was seen
					result.Status, result.Applying = holdfast.RunPlanned, false
				}
				return result
			})
			rec := f.cluster("prod")
			if rec.Phase != holdfast.PhaseDeleting || !slices.Contains([]holdfast.Reason{holdfast.ReasonPlanChanged, holdfast.ReasonApplyFailed, holdfast.ReasonUnreviewed}, rec.Waiting) {
				t.Errorf("prod is %s, and waits for %q", rec.Phase, rec.Waiting)
			}
			if c := f.apply("prod"); c.Status != holdfast.CommandDone {
				t.Fatalf("%s: %s", c.Status, c.Reply)
			}
			f.executeAll(withEngine)
			if rec := f.cluster("prod"); rec.Phase != holdfast.PhaseDeleted {
				t.Errorf("prod is %s, and waits for %q", rec.Phase, rec.Waiting)
			}
		})
	}
}

func (f *fleet) newestOf(cluster string, kind holdfast.RunKind) holdfast.Run {
	f.t.Helper()
	all, err := f.store.Runs(f.t.Context(), holdfast.RunFilter{Cluster: cluster, Kinds: []holdfast.RunKind{kind}, Limit: 1})
	f.must(err)
	if len(all) == 0 {
		f.t.Fatalf("%s has no %s", cluster, kind)
	}
	return all[0]
}

// Two pull requests that remove the same cluster, and one from a fork.
func TestTwoDeletionsOfOne(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.open(2, map[string]string{"clusters/prod.yaml": gitserver.Delete, "README.md": "bye"})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	f.merge(2, byMerge)
	if order := f.writes(withEngine); !slices.Equal(order, []string{"prod"}) {
		t.Errorf("destroyed were %v", order)
	}
	f.post()
	for _, n := range []int{1, 2} {
		if got := f.forge.status(f.forge.get(n).MergeCommit, holdfast.ContextApply); got != holdfast.StatusSuccess {
			t.Errorf("the status of merge %d is %q:\n%s", n, got, f.comment(n))
		}
	}
}

func TestADeletionFromAFork(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete}, func(pr *holdfast.PullRequest) { pr.Fork = true })
	if a := f.claim(); a.Run != "" {
		t.Errorf("the %s of a fork begins", a.Kind)
	}
	f.merge(1, byMerge)
	if order := f.writes(withEngine); len(order) > 0 {
		t.Errorf("destroyed were %v", order)
	}
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonUnreviewed {
		t.Errorf("prod waits for %q", rec.Waiting)
	}
	f.post()
	if body := f.comment(1); !strings.Contains(body, "Unreviewed") {
		t.Errorf("the comment says:\n%s", body)
	}
}

// A branch that is forced back and forth across a reviewed deletion.
func TestADeletionThatIsForcedAwayAndBack(t *testing.T) {
	t.Parallel()
	f, a := onItsWay(t)
	f.finish(a, withEngine(a))
	merged := f.repo.Rev(master)
	f.repo.Commit(master, "again", map[string]string{"clusters/prod.yaml": document("prod")})
	f.look()
	f.executeAll(withEngine)
	f.apply("prod")
	f.executeAll(withEngine)
	if rec := f.cluster("prod"); rec.Applied.Run == "" {
		t.Fatalf("prod waits for %q", rec.Waiting)
	}
	f.repo.Branch(master, merged)
	f.look()
	if order := f.writes(withEngine); len(order) > 0 {
		t.Errorf("destroyed were %v", order)
	}
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonMissing {
		t.Errorf("prod is %s, and waits for %q", rec.Phase, rec.Waiting)
	}
}

// Two replicas that have each queued the destroy: the one that goes is the last.
func TestADestroyThatWasQueuedTwice(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	twin := f.newest("prod")
	twin.ID, twin.CreatedAt, twin.Version = holdfast.NewID("run", f.clock.Now()), f.clock.Now(), 0
	f.must(f.store.CreateRun(t.Context(), twin))
	if order := f.writes(withEngine); !slices.Equal(order, []string{"prod"}) {
		f.settle()
		order = append(order, f.writes(withEngine)...)
		if !slices.Equal(order, []string{"prod"}) {
			t.Errorf("destroyed were %v", order)
		}
	}
	if rec := f.cluster("prod"); rec.Phase != holdfast.PhaseDeleted {
		t.Errorf("prod is %s, and waits for %q: %v", rec.Phase, rec.Waiting, f.runs("prod"))
	}
}
