package record_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/record"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// records are a Store of one cluster and its runs.
type records struct {
	cluster  holdfast.ClusterRecord
	runs     []holdfast.Run
	saved    []holdfast.Transition // history of the last save
	saves    int
	trail    []holdfast.AuditEntry   // that was written alone
	recorded []holdfast.AuditEntry   // that was written with a record
	taken    string                  // a name that somebody else has recorded
	race     func(run *holdfast.Run) // what somebody else does before the next update; once
}

func (r *records) Cluster(context.Context, string) (holdfast.ClusterRecord, error) {
	if r.cluster.Name == "" {
		return r.cluster, holdfast.ErrNotFound
	}
	return r.cluster, nil
}

func (r *records) SaveCluster(_ context.Context, c holdfast.ClusterRecord, history ...holdfast.Transition) (holdfast.ClusterRecord, error) {
	c.Version++
	r.cluster, r.saved = c, history
	r.saves++
	return c, nil
}

func (r *records) CreateClusters(
	_ context.Context, records []holdfast.ClusterRecord, history ...holdfast.Transition,
) (created []holdfast.ClusterRecord, _ error) {
	for _, c := range records {
		if c.Name == r.taken {
			continue
		}
		c.Version++
		created = append(created, c)
	}
	r.saved = history
	r.saves++
	return created, nil
}

func (r *records) RecordCluster(
	ctx context.Context, c holdfast.ClusterRecord, entry holdfast.AuditEntry, history ...holdfast.Transition,
) (holdfast.ClusterRecord, error) {
	r.recorded = append(r.recorded, entry)
	return r.SaveCluster(ctx, c, history...)
}

func (r *records) Run(_ context.Context, id string) (holdfast.Run, error) {
	for _, run := range r.runs {
		if run.ID == id {
			return run, nil
		}
	}
	return holdfast.Run{}, holdfast.ErrNotFound
}

func (r *records) Runs(_ context.Context, filter holdfast.RunFilter) (out []holdfast.Run, _ error) {
	for _, run := range r.runs {
		for _, status := range append(filter.Statuses, run.Status)[:max(1, len(filter.Statuses))] {
			if run.Status == status {
				out = append(out, run)
				break
			}
		}
	}
	return out, nil
}

func (r *records) UpdateRun(_ context.Context, run holdfast.Run) (holdfast.Run, error) {
	for i, old := range r.runs {
		switch {
		case old.ID != run.ID:
			continue
		case r.race != nil:
			r.race(&r.runs[i])
			r.runs[i].Version++
			r.race = nil
			return run, holdfast.ErrConflict
		case old.Version != run.Version:
			return run, holdfast.ErrConflict
		}
		run.Version++
		r.runs[i] = run
	}
	return run, nil
}

func (r *records) Audit(_ context.Context, entry holdfast.AuditEntry) error {
	r.trail = append(r.trail, entry)
	return nil
}

// writerOf is a Writer at noon, with what it has told.
func writerOf(r *records) (w *record.Writer, ended *[]string, moved *int) {
	ended, moved = new([]string), new(int)
	return record.NewWriter(record.Options{
		Store: r, DriftSchedule: "0 * * * *",
		Ended:      func(_ context.Context, run holdfast.Run) { *ended = append(*ended, run.ID) },
		DriftMoved: func(context.Context) { *moved++ },
		Logger:     slog.New(slog.DiscardHandler), Now: func() time.Time { return noon },
	}), ended, moved
}

func TestCancel(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		run    holdfast.Run
		race   func(run *holdfast.Run)
		status holdfast.RunStatus
		cancel holdfast.Reason
		ended  bool
	}{
		"one that waits ends":      {run: holdfast.Run{Status: holdfast.RunQueued}, status: holdfast.RunCanceled, ended: true},
		"one that is retried ends": {run: holdfast.Run{Status: holdfast.RunRetrying}, status: holdfast.RunCanceled, ended: true},
		"one that is executed is asked to": {
			run: holdfast.Run{Status: holdfast.RunRunning}, status: holdfast.RunRunning, cancel: holdfast.ReasonCanceled,
		},
		"one that steps back would come again": {
			run:    holdfast.Run{Status: holdfast.RunRunning, RunProgress: holdfast.RunProgress{Cancel: holdfast.ReasonPreempted}},
			status: holdfast.RunRunning, cancel: holdfast.ReasonCanceled,
		},
		"the first reason stays": {
			run:    holdfast.Run{Status: holdfast.RunRunning, RunProgress: holdfast.RunProgress{Cancel: holdfast.ReasonSuperseded}},
			status: holdfast.RunRunning, cancel: holdfast.ReasonSuperseded,
		},
		"one that is over stays as it is": {run: holdfast.Run{Status: holdfast.RunApplied}, status: holdfast.RunApplied},
		"one that is claimed meanwhile is asked to": {
			run: holdfast.Run{Status: holdfast.RunQueued}, race: func(run *holdfast.Run) { run.Status = holdfast.RunRunning },
			status: holdfast.RunRunning, cancel: holdfast.ReasonCanceled,
		},
		"one that ends meanwhile stays as it ended": {
			run: holdfast.Run{Status: holdfast.RunRunning}, race: func(run *holdfast.Run) { run.Status = holdfast.RunPlanned },
			status: holdfast.RunPlanned,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.run.ID = "run-1"
			store := &records{runs: []holdfast.Run{tt.run}, race: tt.race}
			w, ended, _ := writerOf(store)
			if err := w.Cancel(t.Context(), "run-1", holdfast.ReasonCanceled); err != nil {
				t.Fatal(err)
			}
			got := store.runs[0]
			if got.Status != tt.status || got.Cancel != tt.cancel || (len(*ended) == 1) != tt.ended {
				t.Errorf("it is %s, to end for %q, told %v: want %s, %q, told %t", got.Status, got.Cancel, *ended, tt.status, tt.cancel, tt.ended)
			}
			if tt.ended && (got.Reason != holdfast.ReasonCanceled || !got.FinishedAt.Equal(noon)) {
				t.Errorf("it ended for %q at %s", got.Reason, got.FinishedAt)
			}
		})
	}
	w, _, _ := writerOf(&records{})
	if err := w.Cancel(t.Context(), "run-1", holdfast.ReasonCanceled); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Cancel() of a run that does not exist = %v", err)
	}
}

// TestCancelPending: what puts a state right stays, and so does what has begun.
func TestCancelPending(t *testing.T) {
	t.Parallel()
	store := &records{runs: []holdfast.Run{
		{ID: "queued", Kind: holdfast.RunPlan, Status: holdfast.RunQueued},
		{ID: "push", Kind: holdfast.RunState, Status: holdfast.RunQueued},
		{ID: "running", Kind: holdfast.RunApply, Status: holdfast.RunRunning},
		{ID: "unlock", Kind: holdfast.RunUnlock, Status: holdfast.RunQueued},
	}}
	w, ended, _ := writerOf(store)
	if err := w.CancelPending(t.Context(), "prod", holdfast.ReasonCanceled); err != nil {
		t.Fatal(err)
	}
	if len(*ended) != 1 || (*ended)[0] != "queued" || store.runs[1].Status != holdfast.RunQueued || store.runs[2].Cancel != "" ||
		store.runs[3].Status != holdfast.RunQueued {
		t.Errorf("ended are %v; the runs are %+v", *ended, store.runs)
	}
}

// TestMoment: a new run is later than all that its order is compared with.
func TestMoment(t *testing.T) {
	t.Parallel()
	later := noon.Add(time.Hour)
	for name, tt := range map[string]struct {
		store records
		want  time.Time
	}{
		"the first run": {want: noon},
		"after an older run": {
			store: records{runs: []holdfast.Run{{ID: "a", CreatedAt: noon.Add(-time.Hour)}}}, want: noon,
		},
		"in the millisecond of the newest run": {
			store: records{runs: []holdfast.Run{{ID: "a", CreatedAt: noon}}}, want: noon.Add(time.Millisecond),
		},
		"the clock was set back": {
			store: records{runs: []holdfast.Run{{ID: "a", CreatedAt: later.Add(time.Microsecond)}}}, want: later.Add(time.Millisecond),
		},
		"what was applied is of another name, and newer": {
			store: records{
				cluster: holdfast.ClusterRecord{Name: "prod", Applied: holdfast.Applied{Run: "b"}},
				runs:    []holdfast.Run{{ID: "a", CreatedAt: noon.Add(-time.Hour)}, {ID: "b", CreatedAt: later}},
			},
			want: later.Add(time.Millisecond),
		},
		"what was applied is no longer kept": {
			store: records{cluster: holdfast.ClusterRecord{Name: "prod", Applied: holdfast.Applied{Run: "gone"}}}, want: noon,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, _ := writerOf(&tt.store)
			if got, err := w.Moment(t.Context(), "prod"); err != nil || !got.Equal(tt.want) {
				t.Errorf("Moment() = %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

// TestSave: what follows from a record is stored with it, and nothing if nothing has
// changed.
func TestSave(t *testing.T) {
	t.Parallel()
	store := &records{}
	w, _, moved := writerOf(store)
	rec := holdfast.ClusterRecord{Name: "prod", Desired: holdfast.Desired{Document: holdfast.Cluster{Name: "prod", Variables: map[string]any{"n": 3}}}}
	first, err := w.Save(t.Context(), holdfast.ClusterRecord{}, rec, nil)
	if err != nil || store.saves != 1 || first.Phase == "" || len(first.Conditions) == 0 || !first.UpdatedAt.Equal(noon) {
		t.Fatalf("Save() = %+v, %v", first, err)
	}
	if len(store.saved) == 0 || store.saved[0].To != string(first.Phase) {
		t.Errorf("its history has %+v", store.saved)
	}
	again := first
	again.Desired.Document.Variables = map[string]any{"n": float64(3)} // as it is read from the store
	if got, err := w.Save(t.Context(), first, again, nil); err != nil || store.saves != 1 || got.Version != first.Version {
		t.Errorf("a record that has not changed is stored: version %d after %d, %v", got.Version, first.Version, err)
	}
	again.Desired.Document.Variables["n"] = 4
	if _, err := w.Save(t.Context(), first, again, nil); err != nil || store.saves != 2 {
		t.Errorf("a record that has changed was stored %d times, %v", store.saves, err)
	}
	if *moved != 0 {
		t.Errorf("a drift check of a cluster that was never applied was announced %d times", *moved)
	}
}

// TestRecord: what somebody did is on record with its outcome, in one write, and alone if
// nothing came of it.
func TestRecord(t *testing.T) {
	t.Parallel()
	store := &records{}
	w, _, _ := writerOf(store)
	entry := w.Entry("ana", "cluster.applied", "prod", "run-1")
	first, err := w.Record(t.Context(), holdfast.ClusterRecord{}, holdfast.ClusterRecord{Name: "prod"}, nil, entry)
	if err != nil || store.saves != 1 || len(store.recorded) != 1 || store.recorded[0] != entry || len(store.trail) != 0 {
		t.Errorf("Record() = %v: %d writes with %+v, and alone %+v", err, store.saves, store.recorded, store.trail)
	}
	if _, err := w.Record(t.Context(), first, first, nil, entry); err != nil || store.saves != 1 || len(store.trail) != 1 || store.trail[0] != entry {
		t.Errorf("Record() without a change = %v: %d writes, and alone %+v", err, store.saves, store.trail)
	}
}

// TestAudit: what nobody did, Holdfast did.
func TestAudit(t *testing.T) {
	t.Parallel()
	store := &records{}
	w, _, _ := writerOf(store)
	w.Audit(t.Context(), "ana", "run.cancel", "run-1", "prod")
	w.Audit(t.Context(), "", "run.queue", "run-2", "")
	if len(store.trail) != 2 || store.trail[0].Actor != "ana" || !store.trail[0].At.Equal(noon) || store.trail[1].Actor == "" {
		t.Errorf("the trail is %+v", store.trail)
	}
}

// TestCreate: of records that are created together each is what saving it alone would have
// made of it, and nothing is told of one that somebody else has recorded meanwhile.
func TestCreate(t *testing.T) {
	t.Parallel()
	var news, want []holdfast.ClusterRecord
	var history []holdfast.Transition
	for _, name := range []string{"a", "b", "c"} {
		rec := holdfast.ClusterRecord{Name: name, Owner: "infra", Desired: holdfast.Desired{Revision: "abc", SourceDigest: holdfast.Digest(name)}}
		alone := &records{}
		w, _, _ := writerOf(alone)
		saved, err := w.Save(t.Context(), holdfast.ClusterRecord{Name: name, Owner: "infra"}, rec, nil)
		if err != nil {
			t.Fatal(err)
		}
		news, history = append(news, rec), append(history, alone.saved...)
		if name != "b" {
			want = append(want, saved)
		}
	}
	store := &records{taken: "b"}
	w, _, _ := writerOf(store)
	created, err := w.Create(t.Context(), news)
	if err != nil || store.saves != 1 {
		t.Fatalf("%d writes, %v", store.saves, err)
	}
	// An empty digest equals no other.
	same := cmp.Comparer(func(a, b holdfast.Digest) bool { return a == b })
	if diff := cmp.Diff(want, created, same); diff != "" {
		t.Errorf("created (-alone +together):\n%s", diff)
	}
	if diff := cmp.Diff(history, store.saved); diff != "" || len(history) != 3 {
		t.Errorf("the history (-alone +together):\n%s", diff)
	}
	if news[0].Phase != "" {
		t.Error("the records that were given are changed")
	}
}
