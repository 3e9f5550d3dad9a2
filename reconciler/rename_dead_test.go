package reconciler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// wantMayExist executes the next run, which is to be of a cluster and a kind, to be
// told what may exist, and finds that it would create that.
func (f *fleet) wantMayExist(cluster string, kind holdfast.RunKind, addresses ...string) holdfast.Run {
	f.t.Helper()
	return f.execute(func(a protocol.Assignment) protocol.Result {
		if diff := cmp.Diff(addresses, a.MayExist); diff != "" || a.Cluster != cluster || a.Kind != kind {
			f.t.Errorf("the agent of a %s of %s is told (-want +got):\n%s", a.Kind, a.Cluster, diff)
		}
		result := withEngine(a)
		result.Status, result.Applying = holdfast.RunPlanned, false
		result.Reason, result.Detail = holdfast.ReasonMayExist, "may exist already: "+strings.Join(a.MayExist, ", ")
		return result
	})
}

// heldFor fails the test if a cluster does not wait because of what may exist, with
// the addresses; and has a person apply it all the same.
func (f *fleet) heldFor(cluster string, addresses ...string) {
	f.t.Helper()
	rec := f.cluster(cluster)
	if want := "may exist already: " + strings.Join(addresses, ", "); rec.Waiting != holdfast.ReasonMayExist || rec.WaitingDetail != want || rec.Phase != holdfast.PhaseFailed {
		f.t.Fatalf("%s is %s and waits for %q (%s), want %q: %v", cluster, rec.Phase, rec.Waiting, rec.WaitingDetail, want, f.runs(cluster))
	}
	if c := f.apply(cluster); !strings.Contains(c.Reply, "of exactly the plan of") || !strings.HasSuffix(c.Reply, "may exist already: "+strings.Join(addresses, ", ")) {
		f.t.Errorf("the answer to who has it applied is %q", c.Reply)
	}
	f.execute(func(a protocol.Assignment) protocol.Result {
		if a.Kind != holdfast.RunApply || len(a.MayExist) > 0 || a.AnyMayExist {
			f.t.Errorf("the %s that a person has asked for is held again: %+v", a.Kind, a.AssignedResume)
		}
		return withEngine(a)
	})
	if rec := f.cluster(cluster); rec.Waiting != "" || rec.Phase != holdfast.PhaseActive || len(rec.Left.Addresses) > 0 {
		f.t.Errorf("applied, %s is %s, waits for %q, and has left %v", cluster, rec.Phase, rec.Waiting, rec.Left)
	}
}

// renameTo is a commit that renames a cluster, whatever else of it changes.
func renameTo(name, from, content string) map[string]string {
	return map[string]string{"clusters/prod.yaml": renamedDocument(name, from), "infra/" + name + "/main.tf": module(content)}
}

// firstDied is a fleet whose cluster's first apply has died.
func firstDied(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t, twoClusters())
	f.look()
	f.executeAll(withEngine)
	f.apply("prod")
	f.dies([]string{"a.work"}, "a.before: created")
	return f
}

// laterDied is a fleet whose cluster was applied, and died in the apply of a merge.
func laterDied(t *testing.T) *fleet {
	t.Helper()
	f := reviewed(t)
	f.merge(1, byMerge)
	f.dies([]string{"a.work"}, "a.before: created")
	return f
}

// An apply of other code settles nothing of what one that died has left: the code may
// come back. Nor does the record forget it with the runs.
func TestAnotherApplyKeepsWhatMayExist(t *testing.T) {
	t.Parallel()
	f := laterDied(t)
	f.open(2, map[string]string{"infra/prod/main.tf": module("without it")})
	f.executeAll(withEngine)
	f.merge(2, byMerge)
	f.executeAll(withEngine)
	if rec := f.cluster("prod"); rec.Waiting != "" || !slices.Equal(rec.Left.Addresses, []string{"a.before", "a.work"}) {
		t.Fatalf("applied without it, prod waits for %q, and has left %v", rec.Waiting, rec.Left)
	}
	f.open(3, map[string]string{"infra/prod/main.tf": module("with it again")})
	f.wantMayExist("prod", holdfast.RunPlan, "a.before", "a.work")
	f.post()
	f.merge(3, byMerge)
	f.wantMayExist("prod", holdfast.RunApply, "a.before", "a.work")
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonMayExist {
		t.Fatalf("with it again, prod waits for %q: %v", rec.Waiting, f.runs("prod"))
	}
	f.apply("prod")
	f.executeAll(withEngine)
	if rec := f.cluster("prod"); rec.Waiting != "" || len(rec.Left.Addresses) > 0 {
		t.Errorf("confirmed, prod waits for %q, and has left %v", rec.Waiting, rec.Left)
	}
}

// What a dead apply may have created is not created again under another name, however
// the cluster has got that.
func TestARenameKeepsWhatMayExist(t *testing.T) {
	t.Parallel()
	left := []string{"a.before", "a.work"}
	died := map[string]func(*testing.T) *fleet{"first apply": firstDied, "later apply": laterDied}
	renamed := map[string]func(f *fleet) string{
		"pushed": func(f *fleet) string {
			f.repo.Commit(master, "rename", renameTo("live", "prod", "two"))
			f.look()
			return "live"
		},
		"pushed twice": func(f *fleet) string {
			f.repo.Commit(master, "rename", renameTo("live", "prod", "two"))
			f.look()
			f.repo.Commit(master, "and again", renameTo("best", "live", "two"))
			f.look()
			return "best"
		},
		"and back": func(f *fleet) string {
			f.repo.Commit(master, "rename", renameTo("live", "prod", "two"))
			f.look()
			f.repo.Commit(master, "and back", renameTo("prod", "live", "three"))
			f.look()
			return "prod"
		},
	}
	for when, die := range died {
		for how, rename := range renamed {
			t.Run(when+", "+how, func(t *testing.T) {
				t.Parallel()
				f := die(t)
				name := rename(f)
				if got := f.cluster(name).Left.Addresses; !slices.Equal(got, left) {
					t.Errorf("%s continues with %v", name, got)
				}
				f.wantMayExist(name, holdfast.RunPlan, left...)
				f.heldFor(name, left...)
			})
		}
		t.Run(when+", merged with a change", func(t *testing.T) {
			t.Parallel()
			f := die(t)
			f.open(2, renameTo("live", "prod", "three"))
			for f.newest("live").PullRequest.Number != 2 || !f.newest("live").Status.Done() {
				f.execute(func(a protocol.Assignment) protocol.Result {
					result := withEngine(a)
					if a.Cluster == "live" && !slices.Equal(a.MayExist, left) {
						t.Errorf("the plan of the pull request is told %v", a.MayExist)
					}
					if a.Cluster == "live" {
						result.Reason, result.Detail = holdfast.ReasonMayExist, "may exist already: "+strings.Join(a.MayExist, ", ")
					}
					return result
				})
			}
			f.post()
			if comment := f.forge.comment(2); !strings.Contains(comment, "MayExist") || !strings.Contains(comment, "a.work") {
				t.Errorf("the comment does not say what holds the cluster:\n%s", comment)
			}
			f.merge(2, byMerge)
			f.wantMayExist("live", holdfast.RunApply, left...)
			f.heldFor("live", left...)
		})
	}
}

// An apply that still runs when the cluster is renamed is waited for, and dies then.
func TestARenameWhileAnApplyDies(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	a := f.claim()
	f.repo.Commit(master, "rename", renameTo("live", "prod", "two"))
	f.look()
	result := transient(a)
	result.Status, result.Reason = holdfast.RunInterrupted, holdfast.ReasonAgentKilled
	result.Failure.Unrecorded = []string{"a.work"}
	f.finish(a, result)
	f.clock.Advance(time.Minute)
	f.look()
	f.wantMayExist("live", holdfast.RunPlan, "a.work")
	f.heldFor("live", "a.work")
}

// A name that was used before is not held by what an apply of its former life has left,
// once that was put right under another name.
func TestAReturnToANameThatIsPutRight(t *testing.T) {
	t.Parallel()
	f := firstDied(t)
	f.repo.Commit(master, "rename", renameTo("live", "prod", "two"))
	f.look()
	f.wantMayExist("live", holdfast.RunPlan, "a.before", "a.work")
	f.heldFor("live", "a.before", "a.work")
	f.repo.Commit(master, "and back", renameTo("prod", "live", "three"))
	f.look()
	f.execute(func(a protocol.Assignment) protocol.Result {
		if a.Cluster != "prod" || len(a.MayExist) > 0 || a.AnyMayExist {
			t.Errorf("%s is told that %v may exist", a.Cluster, a.MayExist)
		}
		return withEngine(a)
	})
}

// A state in a backend of the cluster's own stays where it is, and so does what is
// known of what may exist.
func TestARenameKeepsAForeignState(t *testing.T) {
	t.Parallel()
	const state = "state: {type: s3, bucket: states, key: prod, region: eu-west-1}"
	f := reviewed(t, state)
	f.merge(1, byMerge)
	f.dies([]string{"a.work"})
	f.repo.Commit(master, "rename", map[string]string{
		"clusters/prod.yaml": strings.Replace(renamedDocument("live", "prod"), "spec:", "spec:\n  "+state, 1), "infra/live/main.tf": module("two"),
	})
	f.look()
	if rec := f.cluster("live"); rec.Applied.Run == "" || !strings.Contains(rec.Applied.StateLocation, "states") {
		t.Fatalf("live continues from %+v: %v", rec.Applied, rec.Desired.Faults)
	}
	f.wantMayExist("live", holdfast.RunPlan, "a.work")
	f.heldFor("live", "a.work")
}

// Before the first run of its new name, a state in a backend of the cluster's own is
// still its, and not that of a document which names it as well.
func TestARenamedClusterKeepsItsStateToItself(t *testing.T) {
	t.Parallel()
	const state = "state: {type: s3, bucket: states, key: prod, region: eu-west-1}"
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", state)
	f := newFleet(t, files)
	f.adopt()
	renamed := strings.Replace(renamedDocument("live", "prod"), "spec:", "spec:\n  "+state, 1)
	f.repo.Commit(master, "rename", map[string]string{"clusters/prod.yaml": strings.Replace(renamed, "infra/live", "infra/prod", 1)})
	f.look()
	if rec := f.cluster("live"); rec.Applied.Run == "" || len(f.runs("live")) > 0 {
		t.Fatalf("live has the runs %v", f.runs("live"))
	}
	f.repo.Commit(master, "copy", map[string]string{
		"clusters/prod.yaml": document("copy", state), "infra/copy/main.tf": module("one"),
	})
	f.look()
	if faults := f.cluster("copy").Desired.Faults.Error(); !strings.Contains(faults, `is also that of "live"`) {
		t.Errorf("the faults of the copy are %q", faults)
	}
}
