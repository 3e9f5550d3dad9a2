package reconciler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// A pull request that takes away what its own apply has to meet, meets it all the same:
// what was last applied counts as well. Once it is applied, the next one is free of it.
func TestAPullRequestDoesNotLiftItsOwnConditions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, after string
		held          holdfast.Reason
		shown         string // in the comment, before the merge
		by            string // the command that lets it continue
	}{
		"approved": {
			"apply: {requires: [approved]}", "", holdfast.ReasonNotApproved,
			"The document no longer requires it; the last applied version does", "/holdfast approve",
		},
		"one for another": {
			"apply: {requires: [approved]}", "apply: {requires: [mergeable]}", holdfast.ReasonNotApproved,
			"The document no longer requires it; the last applied version does", "/holdfast approve",
		},
		"by hand": {
			"apply: {onMerge: false}", "", holdfast.ReasonManual, "/holdfast apply", "/holdfast apply",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := twoClusters()
			files["clusters/prod.yaml"] = document("prod", tt.before)
			f := newFleet(t, files)
			f.adopt()
			f.open(1, map[string]string{"clusters/prod.yaml": document("prod", tt.after), "infra/prod/main.tf": module("two")})
			f.executeAll(good)
			if comment := f.forge.comment(1); !strings.Contains(comment, tt.shown) {
				t.Errorf("before the merge its comment does not say %q:\n%s", tt.shown, comment)
			}
			f.merge(1, byMerge)
			rec := f.cluster("prod")
			if rec.Waiting != tt.held || !strings.Contains(rec.WaitingDetail, "the last applied version does") {
				t.Fatalf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
			if done := f.command(1, "alice", tt.by); done.Status != holdfast.CommandDone {
				t.Fatalf("%s is %s: %s", tt.by, done.Status, done.Reply)
			}
			f.executeAll(good)
			f.open(2, map[string]string{"infra/prod/main.tf": module("three")})
			f.executeAll(good)
			if comment := f.forge.comment(2); strings.Contains(comment, "the last applied version") {
				t.Errorf("the next comment says:\n%s", comment)
			}
			f.merge(2, byMerge)
			f.executeAll(good)
			if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
				t.Errorf("the next one waits for %q: %v", rec.Waiting, f.runs("prod"))
			}
		})
	}
}

// What was merged with a condition, and is not applied yet, keeps it: neither a later pull request
// nor a push takes it away.
func TestAMergeThatWaitsKeepsItsConditions(t *testing.T) {
	t.Parallel()
	for name, lift := range map[string]func(f *fleet){
		"a pull request": func(f *fleet) {
			f.open(2, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("three")})
			f.executeAll(good)
			if comment := f.forge.comment(2); !strings.Contains(comment, "or a merge that is not applied yet") {
				t.Errorf("before the merge its comment does not say it:\n%s", comment)
			}
			f.merge(2, byMerge)
		},
		"a push": func(f *fleet) {
			f.repo.Commit(master, "push", map[string]string{"clusters/prod.yaml": document("prod")})
			f.look()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.open(1, map[string]string{"clusters/prod.yaml": document("prod", "apply: {requires: [approved]}"), "infra/prod/main.tf": module("two")})
			f.executeAll(good)
			f.merge(1, byMerge)
			if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonNotApproved {
				t.Fatalf("it waits for %q: %v", rec.Waiting, f.runs("prod"))
			}
			lift(f)
			f.executeAll(good)
			if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonNotApproved || !strings.Contains(rec.WaitingDetail, "a merge that is not applied yet") {
				t.Fatalf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
			f.command(1, "alice", "/holdfast approve")
			if name == "a pull request" {
				f.command(2, "alice", "/holdfast approve")
			}
			f.executeAll(good)
			if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
				t.Errorf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
			}
		})
	}
}

// A pull request that takes away a condition and does nothing else is applied by nobody,
// and meets none: the next one still has to, as has one that a plan without changes
// makes part of what is applied.
func TestAConditionIsNotLiftedUnseen(t *testing.T) {
	t.Parallel()
	unchanged := func(protocol.Assignment) protocol.Result { return protocol.Result{Status: holdfast.RunNoChanges} }
	lifted := map[string]string{"clusters/prod.yaml": document("prod")}
	both := map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("same")}
	for name, tt := range map[string]struct {
		before string
		lift   func(*fleet)
		held   holdfast.Reason
		by     string
	}{
		"a pull request that does nothing else": {"apply: {requires: [approved]}", func(f *fleet) {
			f.open(1, lifted)
			f.executeAll(good)
			f.merge(1, byMerge)
		}, holdfast.ReasonNotApproved, "/holdfast approve"},
		"by hand": {"apply: {onMerge: false}", func(f *fleet) {
			f.open(1, lifted)
			f.executeAll(good)
			f.merge(1, byMerge)
		}, holdfast.ReasonManual, "/holdfast apply"},
		"a push without changes": {"apply: {requires: [approved]}", func(f *fleet) {
			f.repo.Commit(master, "push", both)
			f.look()
			f.executeAll(unchanged)
		}, holdfast.ReasonNotApproved, "/holdfast approve"},
		"a merge that nobody has seen, without changes": {"apply: {requires: [approved]}", func(f *fleet) {
			f.openUnnoticed(1, both)
			f.merge(1, byMerge)
			f.executeAll(unchanged)
		}, holdfast.ReasonNotApproved, "/holdfast approve"},
		"a pull request that does nothing else, and drift is reverted by a plan": {"apply: {requires: [approved]}", func(f *fleet) {
			liftedAndReverted(f, lifted, good)
		}, holdfast.ReasonNotApproved, "/holdfast approve"},
		"by hand, and drift is reverted by a plan": {"apply: {onMerge: false}", func(f *fleet) {
			liftedAndReverted(f, lifted, good)
		}, holdfast.ReasonManual, "/holdfast apply"},
		"and the apply that reverts drift finds none": {"apply: {requires: [approved]}", func(f *fleet) {
			liftedAndReverted(f, lifted, unchanged)
		}, holdfast.ReasonNotApproved, "/holdfast approve"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := twoClusters()
			files["clusters/prod.yaml"] = document("prod", tt.before)
			f := newFleet(t, files)
			f.adopt()
			tt.lift(f)
			if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
				t.Fatalf("it waits for %q: %v", rec.Waiting, f.runs("prod"))
			}
			f.ticks() // what settles it settles it again
			f.open(2, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(good)
			if comment := f.forge.comment(2); tt.held != holdfast.ReasonManual && !strings.Contains(comment, "the last applied version does") {
				t.Errorf("the comment says:\n%s", comment)
			}
			f.merge(2, byMerge)
			f.executeAll(good)
			if rec := f.cluster("prod"); rec.Waiting != tt.held {
				t.Fatalf("it waits for %q: %v", rec.Waiting, f.runs("prod"))
			}
			if done := f.command(2, "alice", tt.by); done.Status != holdfast.CommandDone {
				t.Fatalf("%s is %s: %s", tt.by, done.Status, done.Reply)
			}
			f.executeAll(good)
			f.open(3, map[string]string{"infra/prod/main.tf": module("three")})
			f.executeAll(good)
			f.merge(3, byMerge)
			f.executeAll(good)
			if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
				t.Errorf("the next one waits for %q: %v", rec.Waiting, f.runs("prod"))
			}
		})
	}
}

// liftedAndReverted merges a pull request that does nothing but change settings, and then
// has the plan applied that a person has asked for.
func liftedAndReverted(f *fleet, files map[string]string, engine func(protocol.Assignment) protocol.Result) {
	f.t.Helper()
	f.open(1, files)
	f.executeAll(good)
	f.merge(1, byMerge)
	before := f.cluster("prod").Applied.Run
	f.asks(holdfast.VerbPlan, "prod")
	f.execute(planned)
	if done := f.asks(holdfast.VerbApply, "prod"); done.Status != holdfast.CommandDone {
		f.t.Fatalf("apply is %s: %s", done.Status, done.Reply)
	}
	f.execute(engine)
	if rec := f.cluster("prod"); rec.Applied.Run == before {
		f.t.Fatalf("nothing was applied: %v", f.runs("prod"))
	}
}

// What a failed apply has begun with counts as what was last applied does: its resources
// are there. A pull request that takes the condition away does not change or destroy them
// without it.
func TestAHalfMadeClusterKeepsItsConditions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		settings string
		held     holdfast.Reason
		shown    string
		by       string
	}{
		"approved": {"apply: {requires: [approved]}", holdfast.ReasonNotApproved, "the last applied version does", "/holdfast approve"},
		"by hand":  {"apply: {onMerge: false}", holdfast.ReasonManual, "/holdfast apply", "/holdfast apply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.open(1, map[string]string{"clusters/half.yaml": document("half", tt.settings), "infra/half/main.tf": module("one")})
			f.executeAll(good)
			f.merge(1, byMerge)
			if done := f.command(1, "alice", tt.by); done.Status != holdfast.CommandDone {
				t.Fatalf("%s is %s: %s", tt.by, done.Status, done.Reply)
			}
			f.executeAll(failing)
			if rec := f.cluster("half"); rec.Phase != holdfast.PhaseFailed || rec.Applied.Run != "" {
				t.Fatalf("it is %s: %v", rec.Phase, f.runs("half"))
			}
			f.open(2, map[string]string{"clusters/half.yaml": document("half"), "infra/half/main.tf": module("two")})
			f.executeAll(good)
			if comment := f.forge.comment(2); !strings.Contains(comment, tt.shown) {
				t.Errorf("before the merge its comment does not say %q:\n%s", tt.shown, comment)
			}
			f.merge(2, byMerge)
			f.executeAll(good)
			if rec := f.cluster("half"); rec.Waiting != tt.held || rec.Applied.Run != "" {
				t.Fatalf("it waits for %q: %v", rec.Waiting, f.runs("half"))
			}
			if done := f.command(2, "alice", tt.by); done.Status != holdfast.CommandDone {
				t.Fatalf("%s is %s: %s", tt.by, done.Status, done.Reply)
			}
			f.executeAll(good)
			if rec := f.cluster("half"); rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
				t.Errorf("it waits for %q: %v", rec.Waiting, f.runs("half"))
			}
		})
	}
}

// Windows hold for the apply of a pull request that takes them away, as long as it changes
// something else. One that changes nothing else is not applied: its windows hold from its
// merge on, as nobody could change windows that never open otherwise.
func TestAPullRequestDoesNotLiftItsOwnWindows(t *testing.T) {
	t.Parallel()
	const evening = `apply: {windows: [{kind: allow, schedule: "0 20 * * *", duration: 2h}]}`
	const never = `apply: {windows: [{kind: deny, schedule: "0 0 * * *", duration: 48h}]}`
	change := func(text, settings string) map[string]string {
		return map[string]string{"clusters/prod.yaml": document("prod", settings), "infra/prod/main.tf": module(text)}
	}
	windowed := func(t *testing.T, settings string) *fleet {
		t.Helper()
		files := twoClusters()
		files["clusters/prod.yaml"] = document("prod", settings)
		f := newFleet(t, files)
		f.adopt()
		return f
	}
	merges := func(f *fleet, number int, files map[string]string) {
		f.t.Helper()
		f.open(number, files)
		f.executeAll(good)
		f.merge(number, byMerge)
	}
	t.Run("for its own apply", func(t *testing.T) {
		t.Parallel()
		f := windowed(t, evening)
		merges(f, 1, change("two", ""))
		if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonWindowClosed || !strings.Contains(rec.WaitingDetail, "the last applied version") {
			t.Fatalf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
		}
		f.clock.Advance(8 * time.Hour)
		f.r.Resume(t.Context())
		f.settle()
		f.clock.Advance(2 * time.Hour)
		if a := f.claim(); a.Kind.Writes() {
			t.Fatal("it is applied after the window has closed")
		}
		f.clock.Advance(22 * time.Hour)
		f.r.Resume(t.Context())
		f.settle()
		f.executeAll(good)
		f.clock.Advance(4 * time.Hour)
		merges(f, 2, change("three", ""))
		f.executeAll(good)
		if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
			t.Errorf("the next one waits for %q: %v", rec.Waiting, f.runs("prod"))
		}
	})
	t.Run("for the next one", func(t *testing.T) {
		t.Parallel()
		f := windowed(t, never)
		merges(f, 1, map[string]string{"clusters/prod.yaml": document("prod")})
		merges(f, 2, change("two", ""))
		f.executeAll(good)
		if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
			t.Errorf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
		}
	})
	t.Run("for a destroy", func(t *testing.T) {
		t.Parallel()
		f := windowed(t, evening)
		merges(f, 1, map[string]string{"clusters/prod.yaml": gitserver.Delete})
		if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonWindowClosed {
			t.Errorf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
		}
	})
}
