package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

const (
	oldState = "state: {type: s3, bucket: states, key: old, region: eu-west-1}"
	newState = "state: {type: s3, bucket: states, key: new, region: eu-west-1}"
)

// stateMoves is a fleet with an open pull request that gives prod another state,
// planned as result says.
func stateMoves(t *testing.T, spec []string, result func(holdfast.Assignment) holdfast.Result) *fleet {
	t.Helper()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", append(spec, oldState)...)
	f := newFleet(t, files)
	f.adopt()
	f.open(1, map[string]string{"clusters/prod.yaml": document("prod", append(spec, newState)...)})
	f.executeAll(result)
	return f
}

// planStatus is what holdfast/plan says of the head of a pull request.
func (f *fleet) planStatus(number int) string {
	f.t.Helper()
	told := f.forge.told(f.pullRequest(number).Head, holdfast.ContextPlan)
	if len(told) == 0 {
		f.t.Fatal("the head has no status")
	}
	return told[len(told)-1]
}

// A merge that would leave all that a cluster has behind in another state is held until
// a person confirms it, and the pull request says so before.
func TestAMergeThatMovesTheStateIsHeld(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string][]string{"by merge": nil, "by hand": {"apply: {onMerge: false}"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := stateMoves(t, spec, good)
			if status := f.planStatus(1); !strings.HasPrefix(status, "success NewState will hold prod") {
				t.Errorf("the plan's status is %s", status)
			}
			comment := f.forge.comment(1)
			for _, want := range []string{"NewState", "key=old", "key=new", "After the merge: `/holdfast apply -c prod` confirms", "**Next:** merge, then `/holdfast apply`"} {
				if !strings.Contains(comment, want) {
					t.Errorf("the comment lacks %q:\n%s", want, comment)
				}
			}
			f.merge(1, byMerge)
			f.look()
			rec := f.cluster("prod")
			if rec.Waiting != holdfast.ReasonNewState || !strings.Contains(rec.WaitingDetail, "key=old") || !strings.Contains(rec.WaitingDetail, "key=new") {
				t.Fatalf("merged, prod waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
			f.api("alice", holdfast.VerbApply, "prod")
			f.executeAll(good)
			if rec := f.cluster("prod"); rec.Waiting != "" || !strings.Contains(rec.Applied.StateLocation, "key=new") {
				t.Errorf("confirmed, prod waits for %q (%s), with its state at %s", rec.Waiting, rec.WaitingDetail, rec.Applied.StateLocation)
			}
		})
	}
}

// A state that was copied to its new place first leaves nothing behind: its plan has no
// changes.
func TestAStateThatWasCopiedIsNotHeld(t *testing.T) {
	t.Parallel()
	f := stateMoves(t, nil, func(holdfast.Assignment) holdfast.Result { return holdfast.Result{Status: holdfast.RunNoChanges} })
	if status := f.planStatus(1); strings.Contains(status, "NewState") {
		t.Errorf("the plan's status is %s", status)
	}
	f.merge(1, byMerge)
	f.executeAll(func(holdfast.Assignment) holdfast.Result { return holdfast.Result{Status: holdfast.RunNoChanges} })
	if rec := f.cluster("prod"); rec.Waiting != "" || !strings.Contains(rec.Applied.StateLocation, "key=new") {
		t.Errorf("prod waits for %q (%s), with its state at %s", rec.Waiting, rec.WaitingDetail, rec.Applied.StateLocation)
	}
}

// A push that moves the state waits for that, and not as any other.
func TestAPushThatMovesTheState(t *testing.T) {
	t.Parallel()
	f := stateMoves(t, nil, good)
	f.repo.Commit(master, "move", map[string]string{"clusters/prod.yaml": document("prod", newState)})
	f.look()
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonNewState {
		t.Errorf("prod waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
	}
}

// A rename gives a state in Holdfast's own backend another place, and leaves nothing
// behind; one that moves the state as well does.
func TestARenameAndTheState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state string
		held  bool
	}{"only renamed": {}, "with another state": {state: newState, held: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			renamed := renamedDocument("live", "prod")
			if c.state != "" {
				renamed = strings.Replace(renamed, "spec:", "spec:\n  "+c.state, 1)
			}
			f.open(1, map[string]string{"clusters/prod.yaml": renamed, "infra/live/main.tf": module("two")})
			f.executeAll(good)
			if status := f.planStatus(1); strings.Contains(status, "NewState") != c.held {
				t.Errorf("the plan's status is %s", status)
			}
			f.merge(1, byMerge)
			if rec := f.cluster("live"); rec.Waiting == holdfast.ReasonNewState != c.held {
				t.Errorf("live waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("live"))
			}
		})
	}
}
