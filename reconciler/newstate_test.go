package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

const (
	oldState = "state: {type: s3, bucket: states, key: old, region: eu-west-1}"
	newState = "state: {type: s3, bucket: states, key: new, region: eu-west-1}"
)

// stateMoves is a fleet with an open pull request that gives prod another state.
func stateMoves(t *testing.T, spec []string) *fleet {
	t.Helper()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", append(spec, oldState)...)
	f := newFleet(t, files)
	f.adopt()
	f.open(1, map[string]string{"clusters/prod.yaml": document("prod", append(spec, newState)...)})
	if a := f.claim(); a.Run != "" {
		t.Errorf("a %s of %s is handed out with the state at %s", a.Kind, a.Cluster, a.StateLocation)
	}
	f.post()
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

// A pull request that would move the state is not planned, and says so; nor is its merge
// applied, whoever asks for it, before the state is migrated. Then it is, with what was applied
// before: nothing waits, and the next plan is made at the new place.
func TestAMergeThatMovesTheStateIsHeld(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string][]string{"by merge": nil, "by hand": {"apply: {onMerge: false}"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := stateMoves(t, spec)
			if status := f.planStatus(1); !strings.HasPrefix(status, "success StateWouldMove will hold prod") {
				t.Errorf("the plan's status is %s", status)
			}
			for _, want := range []string{"StateWouldMove", "key=old", "key=new", "holdfast state migrate"} {
				if comment := f.forge.comment(1); !strings.Contains(comment, want) {
					t.Errorf("the comment lacks %q:\n%s", want, comment)
				}
			}
			if c := f.command(1, "alice", "/holdfast plan"); c.Status != holdfast.CommandRefused {
				t.Errorf("a plan that alice asks for is %s: %s", c.Status, c.Reply)
			}
			f.merge(1, byMerge)
			f.look()
			rec := f.cluster("prod")
			if rec.Waiting != holdfast.ReasonStateWouldMove || !strings.Contains(rec.WaitingDetail, "key=old") || !strings.Contains(rec.WaitingDetail, "key=new") {
				t.Fatalf("merged, prod waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
			if c := f.api("alice", holdfast.VerbApply, "prod"); c.Status != holdfast.CommandRefused {
				t.Errorf("an apply that alice asks for is %s: %s", c.Status, c.Reply)
			}
			f.migrated("prod", "key=old", "key=new")
			f.executeAll(func(protocol.Assignment) protocol.Result {
				return protocol.Result{Status: holdfast.RunNoChanges, InputDigest: "sha256:in"}
			})
			rec = f.cluster("prod")
			if rec.Waiting != "" || !strings.Contains(rec.Applied.StateLocation, "key=new") || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
				t.Errorf("migrated, prod waits for %q (%s), with its state at %s: %v", rec.Waiting, rec.WaitingDetail, rec.Applied.StateLocation, f.runs("prod"))
			}
		})
	}
}

// without ends every run without changes, having found addresses in its state.
func (f *fleet) without(addresses ...string) {
	f.t.Helper()
	for a := f.claim(); a.Run != ""; a = f.claim() {
		f.found(a, protocol.Result{Status: holdfast.RunNoChanges}, nil, addresses...)
	}
	f.post()
}

// A cluster on record whose state an earlier version has called otherwise has the same
// state: nothing is held, and the record takes the new name.
func TestAStateOnRecordUnderAnotherName(t *testing.T) {
	t.Parallel()
	const before = "pg:infra/prod"
	code := map[string]string{
		"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one"),
		"infra/prod/backend.tf": "terraform {\n  backend \"pg\" {\n    schema_name = \"one\"\n  }\n}\n",
	}
	f := newFleet(t, code)
	f.look()
	f.without("a.a")
	now := f.cluster("prod").Applied.StateLocation
	rec := f.cluster("prod")
	rec.Applied.StateLocation, rec.Desired.StateLocation = before, before
	_, err := f.store.SaveCluster(t.Context(), rec)
	f.must(err)

	f.restart(func(*reconciler.Options) {})
	f.look()
	if got := f.cluster("prod").Applied.StateLocation; got != now || got == before {
		t.Errorf("after the start, the record says %s, not %s", got, now)
	}
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	if status := f.planStatus(1); strings.Contains(status, "StateWouldMove") {
		t.Errorf("the plan's status is %s", status)
	}
	f.merge(1, byMerge)
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != "" {
		t.Errorf("prod waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
	}

	f.open(2, map[string]string{"infra/prod/backend.tf": strings.Replace(code["infra/prod/backend.tf"], "one", "two", 1)})
	f.executeAll(good)
	f.merge(2, byMerge)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonStateWouldMove {
		t.Errorf("with another schema, prod waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
	}
}

// What is gone since an earlier version has recorded its state under another name is not
// destroyed under another cluster of the same code.
func TestAStateOnRecordUnderAnotherNameIsAnothersToo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ backend, before string }{
		"after the folder":    {`backend "pg" {}`, "pg:infra/prod"},
		"without an argument": {`backend "http" { address = "http://h.invalid/x?id=1" }`, "http:address=http://h.invalid/x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, map[string]string{
				"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one"),
				"infra/prod/backend.tf": "terraform {\n" + c.backend + "\n}\n",
			})
			f.look()
			f.without("a.a")
			rec := f.cluster("prod")
			rec.Applied.StateLocation, rec.Desired.StateLocation = c.before, c.before
			_, err := f.store.SaveCluster(t.Context(), rec)
			f.must(err)

			live := strings.Replace(document("live", "deletion: {protected: true}"), "infra/live", "infra/prod", 1)
			f.repo.Commit(master, "another name", map[string]string{"clusters/prod.yaml": gitserver.Delete, "clusters/live.yaml": live})
			f.restart(func(*reconciler.Options) {})
			f.look()
			if rec := f.cluster("prod"); rec.Desired.Removed || !strings.Contains(rec.Desired.Missing, `is also that of "live"`) {
				t.Errorf("prod is removed %t, missing %q", rec.Desired.Removed, rec.Desired.Missing)
			}
		})
	}
}

// A push that moves the state waits for that, and not as any other.
func TestAPushThatMovesTheState(t *testing.T) {
	t.Parallel()
	f := stateMoves(t, nil)
	f.repo.Commit(master, "move", map[string]string{"clusters/prod.yaml": document("prod", newState)})
	f.look()
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonStateWouldMove {
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
			if status := f.planStatus(1); strings.Contains(status, "StateWouldMove") != c.held {
				t.Errorf("the plan's status is %s", status)
			}
			f.merge(1, byMerge)
			if rec := f.cluster("live"); rec.Waiting == holdfast.ReasonStateWouldMove != c.held {
				t.Errorf("live waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("live"))
			}
		})
	}
}
