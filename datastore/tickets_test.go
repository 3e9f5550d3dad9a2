package datastore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// testTickets: a ticket is good for one process, and ends with its attempt; an attempt ends as
// one that nobody has begun only if nobody has shown its ticket.
func testTickets(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	now := time.Now().UTC().Truncate(time.Millisecond)
	claim := func(run holdfast.Run) holdfast.Run {
		t.Helper()
		create(t, store, run)
		ref := holdfast.AttemptRef{Run: run.ID, Attempt: 1}
		claimed, err := store.ClaimRun(ctx, run.ID, protocol.AgentRef{ID: protocol.LaunchAgent("east", ref)}, now, 0)
		if err != nil {
			t.Fatal(err)
		}
		return claimed
	}
	first, second := claim(newRun(1)), claim(newRun(2))
	fences := map[string]int64{first.ID: first.Fence, second.ID: second.Fence}
	exchange := func(id, ticket, process string) error {
		_, err := store.ExchangeTicket(ctx, holdfast.AttemptRef{Run: id, Attempt: 1, Fence: fences[id]}, ticket, process, "pod-1", now)
		return err
	}
	if list, err := store.LaunchedAttempts(ctx, "east"); err != nil || len(list) != 2 || !list[0].CreatedAt.IsZero() {
		t.Fatalf("LaunchedAttempts() = %+v, %v", list, err)
	}
	for _, one := range []holdfast.Run{first, second, first} { // a second time changes nothing
		if err := store.PutTicket(ctx, one.Ref(), "east", "ticket of "+one.ID, now); err != nil {
			t.Fatal(err)
		}
	}
	for name, step := range map[string]struct {
		err  error
		want error
	}{
		"another ticket": {exchange(first.ID, "ticket of "+second.ID, "p"), holdfast.ErrUnauthorized},
		"no such run":    {exchange("run-9999", "ticket of run-9999", "p"), holdfast.ErrUnauthorized},
		"an old attempt": {store.PutTicket(ctx, holdfast.AttemptRef{Run: first.ID, Attempt: 1, Fence: first.Fence + 9}, "east", "x", now), holdfast.ErrFenced},
	} {
		if !errors.Is(step.err, step.want) {
			t.Errorf("%s: %v, want %v", name, step.err, step.want)
		}
	}
	if err := exchange(first.ID, "ticket of "+first.ID, "process-1"); err != nil {
		t.Fatal(err)
	}
	if err := exchange(first.ID, "ticket of "+first.ID, "process-1"); err != nil {
		t.Errorf("the same process asks again: %v", err)
	}
	if err := exchange(first.ID, "ticket of "+first.ID, "process-2"); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("another process: %v, want ErrConflict", err)
	}
	list, err := store.LaunchedAttempts(ctx, "east")
	if err != nil || len(list) != 2 || list[0].AttemptRef != first.Ref() || !list[0].ExchangedAt.Equal(now) || list[0].Host != "pod-1" || !list[1].ExchangedAt.IsZero() {
		t.Fatalf("LaunchedAttempts() = %+v, %v", list, err)
	}
	if other, err := store.LaunchedAttempts(ctx, "west"); err != nil || len(other) > 0 {
		t.Errorf("those of another runner: %+v, %v", other, err)
	}
	standing := newRun(3)
	create(t, store, standing)
	if _, err := store.ClaimRun(ctx, standing.ID, protocol.AgentRef{ID: "east/" + standing.ID, Process: "p", Folder: "f"}, now, 0); err != nil {
		t.Fatal(err)
	}
	if list, err := store.LaunchedAttempts(ctx, "east"); err != nil || len(list) != 2 {
		t.Errorf("with that of a standing agent: %+v, %v", list, err)
	}
	ended := first
	ended.Status = holdfast.RunErrored
	if _, err := store.EndUnexchanged(ctx, first.Ref(), ended, nil); !errors.Is(err, holdfast.ErrLocked) {
		t.Errorf("EndUnexchanged() of one that was: %v, want ErrLocked", err)
	}
	ended = second
	ended.Status = holdfast.RunErrored
	if _, err := store.EndUnexchanged(ctx, second.Ref(), ended, nil); err != nil {
		t.Errorf("EndUnexchanged(): %v", err)
	}
	if err := exchange(second.ID, "ticket of "+second.ID, "late"); !errors.Is(err, holdfast.ErrFenced) {
		t.Errorf("a ticket of an attempt that is over: %v, want ErrFenced", err)
	}
}
