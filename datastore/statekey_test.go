package datastore_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/protocol"
)

// The two locations that the same state has before and after credentials change.
const (
	oneStore  = "s3:bucket=b,key=k"
	anyOfThem = oneStore + holdfast.StoreOfEnvironment
)

// TestTwoLocationsOfOneState: while a run is executed, or its state could not be saved,
// nothing else is handed out that has the same state under its other location; neither if
// a former version has stored the row.
func TestTwoLocationsOfOneState(t *testing.T) {
	t.Parallel()
	for name, at := range map[string][2]string{
		"known to be of several stores by now": {oneStore, anyOfThem},
		"of one store by now":                  {anyOfThem, oneStore},
	} {
		for _, former := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ctx, path := t.Context(), filepath.Join(memory.Dir(t), "holdfast.db")
				store := openAt(t, datastore.Options{Path: path})
				asFormer := func(statement string) {
					if former {
						execute(t, path, statement+` = '`+at[0]+`'`)
					}
				}
				apply, plan := newRun(1), newRun(2)
				apply.Kind, apply.StateLocation, plan.StateLocation = holdfast.RunApply, at[0], at[1]
				apply = claim(t, store, apply)
				asFormer(`UPDATE runs SET state_location`)
				create(t, store, plan)
				refused := func(when string) {
					t.Helper()
					filter := holdfast.ClaimFilter{Now: noon.Add(time.Hour), Limit: 9}
					if got := must[[]string](t)(store.Claimable(ctx, filter)); len(got) != 0 {
						t.Errorf("%s, Claimable() = %v", when, got)
					}
					if _, err := store.ClaimRun(ctx, plan.ID, protocol.AgentRef{ID: "agent"}, noon, 0); !errors.Is(err, holdfast.ErrConflict) {
						t.Errorf("%s, ClaimRun() = %v, want ErrConflict", when, err)
					}
				}
				refused("while an apply runs")

				apply.Failure = &holdfast.Failure{Cause: holdfast.CauseStateUnsaved}
				apply = end(t, store, apply, holdfast.RunErrored)
				asFormer(`UPDATE unsaved_states SET location`)
				refused("while its state is not saved")

				// Its agent sends the state late: that is not another one.
				putArtefact(t, store, apply.Ref(), protocol.ArtefactErrored, stateJSON(3, "lin", "x"))
				u := standing(t, store, 1)
				if err := store.WaiveUnsaved(ctx, u, holdfast.NewAuditEntry(noon, "", "state.waive", "c001", "")); err != nil {
					t.Fatal(err)
				}
				standing(t, store, 0)
				if _, err := store.ClaimRun(ctx, plan.ID, protocol.AgentRef{ID: "agent"}, noon, 0); err != nil {
					t.Errorf("afterwards, ClaimRun() = %v", err)
				}
			})
		}
	}
}

// TestAnApplyOfTheSameStateWaits: an agent that executes plans only gets none of a state
// for which an apply waits under its other location.
func TestAnApplyOfTheSameStateWaits(t *testing.T) {
	t.Parallel()
	store := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db")})
	apply, plan := newRun(1), newRun(2)
	apply.Kind, apply.StateLocation, plan.StateLocation = holdfast.RunApply, oneStore, anyOfThem
	create(t, store, apply, plan)
	filter := holdfast.ClaimFilter{Now: noon, Limit: 9, Kinds: []holdfast.RunKind{holdfast.RunPlan}}
	if got := must[[]string](t)(store.Claimable(t.Context(), filter)); len(got) != 0 {
		t.Errorf("Claimable() = %v", got)
	}
}
