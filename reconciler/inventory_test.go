package reconciler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// found ends an attempt that has found addresses in the state after changes.
func (f *fleet) found(a protocol.Assignment, result protocol.Result, changes map[string]holdfast.ChangeAction, addresses ...string) {
	f.t.Helper()
	f.leaves(a, changes, addresses...)
	f.finish(a, result)
}

// leaves is what such an attempt leaves behind.
func (f *fleet) leaves(a protocol.Assignment, changes map[string]holdfast.ChangeAction, addresses ...string) {
	f.t.Helper()
	plan := holdfast.Plan{Counts: holdfast.Counts{Create: 1}}
	for address, action := range changes {
		plan.Changes = append(plan.Changes, holdfast.ResourceChange{Address: address, Action: action})
	}
	resources := []holdfast.Resource{}
	for _, address := range addresses {
		kind, _, _ := strings.Cut(address, ".")
		address, id, given := strings.Cut(address, "=")
		if !given {
			id = "id-" + address
		}
		resources = append(resources, holdfast.Resource{Address: address, Type: kind, ID: id})
	}
	for name, v := range map[string]any{protocol.ArtefactPlan: plan, protocol.ArtefactResources: resources} {
		data, err := json.Marshal(v)
		f.must(err)
		f.must(f.store.PutArtefact(f.t.Context(), a.AttemptRef, name, bytes.NewReader(data)))
	}
}

// endsQuietly ends an attempt and works off nothing of what follows.
func (f *fleet) endsQuietly(a protocol.Assignment, result protocol.Result) {
	f.t.Helper()
	result.Fence = a.Fence
	f.must(f.r.Dispatcher().Finish(f.t.Context(), a.AttemptRef, f.left(a, result)))
}

// inventory is what is known of prod's resources: the run that changed each.
func (f *fleet) inventory() map[string]string {
	f.t.Helper()
	resources, err := f.store.Resources(f.t.Context(), holdfast.ResourceFilter{Cluster: "prod"})
	f.must(err)
	out := map[string]string{}
	for _, r := range resources {
		out[r.Address] = r.Run
		if (r.Run == "") != r.ChangedAt.IsZero() || r.ID != "id-"+r.Address {
			f.t.Errorf("%+v", r)
		}
	}
	return out
}

// change merges a reviewed change of prod and returns its apply.
func (f *fleet) applyOf(number int, text string) protocol.Assignment {
	f.t.Helper()
	f.open(number, map[string]string{"infra/prod/main.tf": module(text)})
	f.executeAll(good)
	f.merge(number, byMerge)
	a := f.claim()
	if a.Kind != holdfast.RunApply {
		f.t.Fatalf("claimed a %q", a.Kind)
	}
	return a
}

type actions = map[string]holdfast.ChangeAction

func TestInventory(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	f.look()
	adopted := f.claim()
	f.found(adopted, protocol.Result{Status: holdfast.RunNoChanges}, nil, "old.a", "old.b", "old.c")
	want := map[string]string{"old.a": "", "old.b": "", "old.c": ""}
	if diff := cmp.Diff(want, f.inventory()); diff != "" {
		t.Fatalf("after the adoption (-want +got):\n%s", diff)
	}

	first := f.applyOf(1, "two")
	f.found(first, good(first), actions{
		"old.a": "update", "new.d": "create", "old.c": "delete", "old.b": "move", `new.e["x: y"]`: "replace",
	}, "old.a", "old.b", "new.d", `new.e["x: y"]`)
	want = map[string]string{"old.a": first.Run, "old.b": "", "new.d": first.Run, `new.e["x: y"]`: first.Run}
	if diff := cmp.Diff(want, f.inventory()); diff != "" {
		t.Fatalf("after an apply (-want +got):\n%s", diff)
	}

	second := f.applyOf(2, "three")
	result := failing(second)
	result.Failure.Completed = []string{"new.d: updated", `new.e["x: y"]: destroyed`, `new.f["x: y"]: created`}
	f.found(second, result, actions{"old.a": "update", "new.d": "update", `new.f["x: y"]`: "create"},
		"old.a", "old.b", "new.d", `new.f["x: y"]`)
	want = map[string]string{"old.a": first.Run, "old.b": "", "new.d": second.Run, `new.f["x: y"]`: second.Run}
	if diff := cmp.Diff(want, f.inventory()); diff != "" {
		t.Fatalf("after a failed apply (-want +got):\n%s", diff)
	}
}

// TestInventoryIsNotPartOfARun: what goes wrong with it fails nothing, and the
// next run puts it right.
func TestInventoryIsNotPartOfARun(t *testing.T) {
	t.Parallel()
	broken := &brokenInventory{err: errors.New("out of reach")}
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	broken.Store = f.store
	f.restart(func(opts *reconciler.Options) { opts.Store = broken })
	f.adopt()
	first := f.applyOf(1, "two")
	f.found(first, good(first), actions{"a.a": "create"}, "a.a")
	if got := f.cluster("prod").Applied.Run; got != first.Run {
		t.Fatalf("applied is %q", got)
	}
	if got := f.inventory(); len(got) > 0 {
		t.Fatalf("recorded %v", got)
	}
	broken.err = nil
	check := f.claimDrift("prod")
	f.must(f.store.PutArtefact(t.Context(), check.AttemptRef, protocol.ArtefactResources, strings.NewReader("not JSON")))
	f.finish(check, protocol.Result{Status: holdfast.RunNoChanges})
	check = f.claimDrift("prod")
	f.found(check, protocol.Result{Status: holdfast.RunNoChanges}, nil, "a.a")
	if diff := cmp.Diff(map[string]string{"a.a": ""}, f.inventory()); diff != "" {
		t.Errorf("after a check (-want +got):\n%s", diff)
	}
}

// TestInventoryIsRecordedOnceItCanBeRead: nobody has to wait for the next run.
func TestInventoryIsRecordedOnceItCanBeRead(t *testing.T) {
	t.Parallel()
	broken := &brokenInventory{err: errors.New("out of reach")}
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	broken.Store = f.store
	f.restart(func(opts *reconciler.Options) { opts.Store = broken })
	f.adopt()
	first := f.applyOf(1, "two")
	f.found(first, good(first), actions{"a.a": "create"}, "a.a")
	sweep := func() {
		f.clock.Advance(6 * time.Minute)
		f.must(f.r.Sweep(t.Context(), 0))
	}
	sweep()
	if got := f.inventory(); len(got) > 0 {
		t.Fatalf("recorded %v", got)
	}
	broken.err = nil
	sweep()
	if diff := cmp.Diff(map[string]string{"a.a": first.Run}, f.inventory()); diff != "" {
		t.Errorf("once it can be read (-want +got):\n%s", diff)
	}

	// What a later run has found is not overwritten.
	broken.err = errors.New("out of reach")
	second := f.applyOf(2, "three")
	f.found(second, good(second), actions{"a.b": "create"}, "a.a", "a.b")
	broken.err = nil
	check := f.claimDrift("prod")
	f.found(check, protocol.Result{Status: holdfast.RunNoChanges}, nil, "a.b")
	sweep()
	if got := f.inventory(); len(got) != 1 {
		t.Errorf("after a check that has found one, %v", got)
	}
}

// TestInventoryWithoutThePlan: what an apply has changed is known from its plan, what
// there is now is not.
func TestInventoryWithoutThePlan(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	store := f.damageable()
	f.adopt()
	first := f.applyOf(1, "two")
	store.damage(first.Run, protocol.ArtefactPlan)
	f.leaves(first, actions{"a.a": "create"}, "a.a")
	f.endsQuietly(first, good(first))
	if got := f.inventory(); len(got) > 0 {
		t.Fatalf("at first it recorded %v, want it to be tried again", got)
	}
	f.clock.Advance(11 * time.Minute)
	f.must(f.r.Sweep(t.Context(), 0))
	if diff := cmp.Diff(map[string]string{"a.a": ""}, f.inventory()); diff != "" {
		t.Errorf("after a while (-want +got):\n%s", diff)
	}
}

// TestInventoryOfOthers: a plan of a pull request, and one with changes, say
// nothing about the state as it is to be.
func TestInventoryOfOthers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	a := f.claim()
	f.found(a, protocol.Result{Status: holdfast.RunNoChanges}, nil, "a.a")
	f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("three")})
	f.look()
	a = f.claim()
	f.found(a, planned(a), nil, "a.a")
	if got := f.inventory(); len(got) > 0 {
		t.Errorf("recorded %v", got)
	}
}

func (f *fleet) claimDrift(cluster string) protocol.Assignment {
	f.t.Helper()
	f.queueDrift(cluster)
	a := f.claim()
	if a.Kind != holdfast.RunDrift {
		f.t.Fatalf("claimed a %q", a.Kind)
	}
	return a
}

// brokenInventory cannot read what runs have found.
type brokenInventory struct {
	reconciler.Store
	err error
}

func (s *brokenInventory) Artefact(ctx context.Context, run, name string) (io.ReadCloser, error) {
	if s.err != nil && name == protocol.ArtefactResources {
		return nil, s.err
	}
	return s.Store.Artefact(ctx, run, name)
}

// killedAtEnd is the store of a server that is killed when an attempt has ended.
type killedAtEnd struct{ reconciler.Store }

func (killedAtEnd) SaveResources(context.Context, string, []holdfast.Resource) error {
	return errCrashed
}

// TestInventoryIsRecordedWithTheEnd: a server that is killed as soon as a run has ended
// shows no older resources after its start.
func TestInventoryIsRecordedWithTheEnd(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	f.restart(func(opts *reconciler.Options) { opts.Store = killedAtEnd{f.store} })
	f.adopt()
	first := f.applyOf(1, "two")
	f.found(first, good(first), actions{"a.a": "create"}, "a.a")
	if diff := cmp.Diff(map[string]string{"a.a": first.Run}, f.inventory()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMovedResourceKeepsItsRun: a resource under another address is the one that
// our apply made.
func TestMovedResourceKeepsItsRun(t *testing.T) {
	t.Parallel()
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	f.adopt()
	first := f.applyOf(1, "two")
	f.found(first, good(first), actions{"a.one": "create", "a.two": "create", "a.three": "create"}, "a.one", "a.two", "a.three")
	f.clock.Advance(time.Hour)
	second := f.applyOf(2, "three")
	f.moved(second, map[string]string{"b.one": "a.one", "a.two": "a.three", "a.three": "a.two"}, "b.one", "a.two", "a.three")
	for address, run := range f.inventory() {
		if run != first.Run {
			t.Errorf("%s was last changed by %q, want %q", address, run, first.Run)
		}
	}
}

// moved ends an apply that did nothing but give resources other addresses.
func (f *fleet) moved(a protocol.Assignment, from map[string]string, addresses ...string) {
	f.t.Helper()
	plan := holdfast.Plan{Counts: holdfast.Counts{Move: len(from)}}
	for to, was := range from {
		plan.Changes = append(plan.Changes, holdfast.ResourceChange{Address: to, PreviousAddress: was, Action: holdfast.ActionMove})
	}
	resources := []holdfast.Resource{}
	for _, address := range addresses {
		resources = append(resources, holdfast.Resource{Address: address, Type: "x", ID: "id-" + address})
	}
	for name, v := range map[string]any{protocol.ArtefactPlan: plan, protocol.ArtefactResources: resources} {
		data, err := json.Marshal(v)
		f.must(err)
		f.must(f.store.PutArtefact(f.t.Context(), a.AttemptRef, name, strings.NewReader(string(data))))
	}
	f.finish(a, good(a))
}
