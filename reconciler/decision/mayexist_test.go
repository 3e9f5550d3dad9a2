package decision_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// artefacts are plans, by what they create, and states, by what they hold: of runs.
type artefacts struct{ creates, holds map[string][]string }

func (a artefacts) evidence() decision.Evidence {
	of := func(lists map[string][]string) func(string) ([]string, bool) {
		return func(run string) ([]string, bool) { list, ok := lists[run]; return list, ok }
	}
	return decision.Evidence{Creates: of(a.creates), Holds: of(a.holds)}
}

// TestMayExist: what dead applies were creating counts, until an apply of the same source
// has found it in the state or a person was told of it.
func TestMayExist(t *testing.T) {
	t.Parallel()
	leaves := func(unrecorded, completed []string) func(*holdfast.Run) {
		return func(run *holdfast.Run) {
			run.Begun = true
			run.Failure = &holdfast.Failure{Transient: true, Unrecorded: unrecorded, Completed: completed}
		}
	}
	by := func(actor string) func(*holdfast.Run) {
		return func(run *holdfast.Run) { run.Actor, run.Shown = actor, "run-45" }
	}
	blind := func(run *holdfast.Run) { run.Actor = "alice" }
	inherits := holdfast.ClusterRecord{Life: "run-1", Left: holdfast.Leftover{Addresses: []string{"a.old"}}}
	recorded := holdfast.ClusterRecord{Left: holdfast.Leftover{Addresses: []string{"a.old"}, Run: "run-4", Source: newDigest}}
	told := ran("run-45", plan, holdfast.RunPlanned, forReason(holdfast.ReasonMayExist))
	many := make([]string, holdfast.MaxCompleted)
	for i := range many {
		many[i] = fmt.Sprintf("a.b[%d]: updated", i)
	}
	made := []string{"a.b: created", "a.c: updated"}
	because := func(cause holdfast.Reason) func(*holdfast.Run) {
		return func(run *holdfast.Run) { run.Reason, run.Failure.Cause = cause, cause }
	}
	lossy := func(run *holdfast.Run) { run.Failure.ProgressLost = true }
	engine := forReason(holdfast.ReasonEngineKilled)
	all := []string{"a.b", "a.c", `a.d["x: y"]`, "a.g", "a.old"}
	kept := artefacts{
		creates: map[string][]string{"run-45": append(all, "a.z"), "review": {"a.x", "a.y"}, "other": {"a.z"}, "destroy": {}},
		holds:   map[string][]string{"run-3": all, "run-5": all, "run-6": all, "some": {"a.g"}},
	}
	reviewed := func(runs ...string) func(*holdfast.Run) {
		return func(run *holdfast.Run) {
			for _, id := range runs {
				run.Reviews = append(run.Reviews, holdfast.Review{Run: id})
			}
		}
	}
	byName := func(actor, shown string) func(*holdfast.Run) {
		return func(run *holdfast.Run) { run.Actor, run.Shown = actor, shown }
	}
	first := ran("run-2", apply, holdfast.RunInterrupted, leaves([]string{"a.b"}, []string{"a.c: created", `a.d["x: y"]: created`, "a.e: updated"}))
	throttled := ran("run-3", apply, holdfast.RunErrored, resumed, leaves(nil, []string{"a.f: created"}))
	second := ran("run-4", apply, holdfast.RunInterrupted, resumed, leaves([]string{"a.g", "a.b"}, nil))
	for name, c := range map[string]struct {
		rec  holdfast.ClusterRecord
		runs []holdfast.Run
		want []string
		all  bool
	}{
		"nothing ran":                              {},
		"one died":                                 {runs: []holdfast.Run{first}, want: []string{"a.b", "a.c", `a.d["x: y"]`}},
		"one died, and another":                    {runs: []holdfast.Run{second, throttled, first}, want: []string{"a.b", "a.c", `a.d["x: y"]`, "a.g"}},
		"an engine that ends has saved":            {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunErrored, leaves(nil, []string{"a.f: created"}))}},
		"a person has asked since":                 {runs: []holdfast.Run{ran("run-5", apply, holdfast.RunInterrupted, leaves([]string{"a.h"}, nil), by("alice")), told, second, first}, want: []string{"a.h"}},
		"a person has asked who was shown others":  {runs: []holdfast.Run{ran("run-5", apply, holdfast.RunApplied, hasBegun, ofOld, by("alice")), ran("run-45", plan, holdfast.RunPlanned), first}, want: []string{"a.b", "a.c", `a.d["x: y"]`}},
		"a person has asked who was shown nothing": {runs: []holdfast.Run{ran("run-5", apply, holdfast.RunInterrupted, leaves([]string{"a.h"}, nil), blind), first}, want: []string{"a.b", "a.c", `a.d["x: y"]`, "a.h"}},
		"under a former name":                      {rec: inherits, want: []string{"a.old"}},
		"under a former name, and since":           {rec: inherits, runs: []holdfast.Run{second, throttled}, want: []string{"a.b", "a.g", "a.old"}},
		"under a former name, of which all may":    {rec: holdfast.ClusterRecord{Left: holdfast.Leftover{Any: true}}, runs: []holdfast.Run{throttled}, all: true},
		"one ended well under the new name":        {rec: inherits, runs: []holdfast.Run{ran("run-3", apply, holdfast.RunApplied, hasBegun)}, want: []string{"a.old"}},
		"in a former life":                         {rec: holdfast.ClusterRecord{Life: "run-2"}, runs: []holdfast.Run{first}},
		"a merge has asked since":                  {runs: []holdfast.Run{ran("run-5", apply, holdfast.RunInterrupted, leaves([]string{"a.h"}, nil)), second}, want: []string{"a.b", "a.g", "a.h"}},
		"others have applied nothing since": {runs: []holdfast.Run{
			ran("run-7", apply, holdfast.RunErrored), ran("run-6", plan, holdfast.RunPlanned), ran("run-5", apply, holdfast.RunPlanned), first,
		}, want: []string{"a.b", "a.c", `a.d["x: y"]`}},
		"one ended well":                                    {runs: []holdfast.Run{second, ran("run-3", apply, holdfast.RunApplied, resumed, hasBegun), first}, want: []string{"a.b", "a.g"}},
		"a plan has found everything":                       {runs: []holdfast.Run{ran("run-5", plan, holdfast.RunNoChanges), second}},
		"an apply has found everything":                     {runs: []holdfast.Run{ran("run-5", apply, holdfast.RunNoChanges), second}},
		"one of another source ended well":                  {runs: []holdfast.Run{ran("run-6", plan, holdfast.RunNoChanges, ofOld), ran("run-5", apply, holdfast.RunApplied, hasBegun, ofOld), second}, want: []string{"a.b", "a.g"}},
		"of two sources, one ended well":                    {runs: []holdfast.Run{ran("run-6", apply, holdfast.RunApplied, hasBegun), ran("run-5", apply, holdfast.RunInterrupted, ofOld, leaves([]string{"a.h"}, nil)), second}, want: []string{"a.b", "a.g", "a.h"}},
		"it is not known yet how it ends":                   {rec: recorded, runs: []holdfast.Run{ran("run-6", plan, holdfast.RunNoChanges), ran("run-5", apply, holdfast.RunRunning, hasBegun, by("alice")), told}, want: []string{"a.old"}},
		"on record":                                         {rec: recorded, runs: []holdfast.Run{ran("run-5", apply, holdfast.RunApplied, hasBegun, ofOld), second}, want: []string{"a.old"}},
		"on record, and settled":                            {rec: recorded, runs: []holdfast.Run{ran("run-5", apply, holdfast.RunApplied, hasBegun), second}},
		"it had not begun":                                  {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunInterrupted, passingCause)}},
		"nobody knows what it did":                          {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunInterrupted, hasBegun, passingCause)}, all: true},
		"nothing at all is known":                           {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunInterrupted, hasBegun)}, all: true},
		"the agent saw that nothing began":                  {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunInterrupted, hasBegun, passingCause, engine)}},
		"what it said was lost in part":                     {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunInterrupted, leaves([]string{"a.b"}, nil), lossy)}, want: []string{"a.b"}, all: true},
		"its state was not saved":                           {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunErrored, leaves(nil, made), because(holdfast.CauseStateUnsaved))}, want: []string{"a.b"}},
		"its state, in which nothing is new, was not saved": {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunErrored, leaves(nil, nil), because(holdfast.CauseStateUnsaved))}},
		"it said success, and saved nothing":                {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunErrored, leaves(nil, made), because(holdfast.CauseUntrustedPlan))}, want: []string{"a.b"}},
		"its agent made no sense":                           {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunErrored, leaves(nil, nil), because(holdfast.CauseInvalidOutcome))}, all: true},
		"one ended well that no longer has it":              {runs: []holdfast.Run{ran("some", apply, holdfast.RunApplied, hasBegun), second}, want: []string{"a.b"}},
		"one ended well, and its state was not kept":        {runs: []holdfast.Run{ran("run-9", apply, holdfast.RunApplied, hasBegun), second}, want: []string{"a.b", "a.g"}},
		"nobody knew, and one ended well":                   {runs: []holdfast.Run{ran("run-5", apply, holdfast.RunApplied, hasBegun), ran("run-4", apply, holdfast.RunInterrupted, hasBegun)}, all: true},
		"a person was told of some": {runs: []holdfast.Run{
			ran("run-7", apply, holdfast.RunApplied, hasBegun, ofOld, byName("alice", "run-6")), ran("run-6", plan, holdfast.RunPlanned, forReason(holdfast.ReasonMayExist)), second,
		}, want: []string{"a.b", "a.g"}},
		"nobody knows what it did of its plan":        {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunInterrupted, hasBegun, reviewed("review", ""))}, want: []string{"a.x", "a.y"}},
		"nobody knows what it did of the plans":       {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunInterrupted, hasBegun, reviewed("review", "other"))}, want: []string{"a.x", "a.y", "a.z"}},
		"nobody knows what it did of what was shown":  {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunInterrupted, hasBegun, reviewed("review", "other"), byName("alice", "other"))}, want: []string{"a.z"}},
		"its plan is gone":                            {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunInterrupted, hasBegun, reviewed("review", "gone"))}, all: true},
		"what it said was lost in part, not its plan": {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunInterrupted, leaves([]string{"a.b"}, nil), lossy, reviewed("review"))}, want: []string{"a.b", "a.x", "a.y"}},
		"a destroy creates nothing":                   {runs: []holdfast.Run{ran("run-3", holdfast.RunDestroy, holdfast.RunInterrupted, hasBegun, reviewed("destroy"))}},
		"the list is full":                            {runs: []holdfast.Run{ran("run-3", apply, holdfast.RunInterrupted, leaves(nil, many), engine)}, all: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decision.MayExist(c.rec, c.runs, kept.evidence())
			if diff := cmp.Diff(c.want, got.Addresses); diff != "" || got.Any != c.all {
				t.Errorf("any %t, may exist (-want +got):\n%s", got.Any, diff)
			}
		})
	}
}

// TestMayExistOnRecord: what is on record is what all runs come to, however few of them
// are still read.
func TestMayExistOnRecord(t *testing.T) {
	t.Parallel()
	var rec holdfast.ClusterRecord
	var runs []holdfast.Run
	kept := artefacts{creates: map[string][]string{"run-30": {"a.b"}}}
	end := func(run holdfast.Run) {
		runs = append([]holdfast.Run{run}, runs...)
		rec.Left = decision.MayExist(rec, runs, kept.evidence())
		runs = runs[:min(len(runs), 3)]
	}
	fails := func(from int) {
		for i := range 9 {
			end(ran(fmt.Sprintf("run-%02d", from+i), apply, holdfast.RunErrored, hasBegun, ofOld))
		}
	}
	end(ran("run-00", apply, holdfast.RunInterrupted, func(run *holdfast.Run) {
		run.Begun, run.Failure = true, &holdfast.Failure{Unrecorded: []string{"a.b"}}
	}))
	fails(10)
	if diff := cmp.Diff([]string{"a.b"}, rec.Left.Addresses); diff != "" {
		t.Errorf("after many that failed (-want +got):\n%s", diff)
	}
	end(ran("run-30", plan, holdfast.RunPlanned, forReason(holdfast.ReasonMayExist)))
	end(ran("run-31", apply, holdfast.RunApplied, hasBegun, ofOld, func(run *holdfast.Run) { run.Actor, run.Shown = "alice", "run-30" }))
	fails(40)
	if left := rec.Left; len(left.Addresses) > 0 || left.Any {
		t.Errorf("after someone was told of it, %+v is left", left)
	}
}
