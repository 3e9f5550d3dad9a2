package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/plandoctest"
	"github.com/holdfast-dev/holdfast/protocol"
)

// artefacts is a Store of which only artefacts are asked for.
type artefacts struct {
	Store
	files map[string][]byte
}

func (a artefacts) Artefact(_ context.Context, _, name string) (io.ReadCloser, error) {
	data, ok := a.files[name]
	if !ok {
		return nil, holdfast.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (a artefacts) PutArtefact(_ context.Context, _ holdfast.AttemptRef, name string, data io.Reader) error {
	all, err := io.ReadAll(data)
	a.files[name] = all
	return err
}

// TestTakePlan: what an attempt has planned is what its document says, whatever
// else it has left or said.
func TestTakePlan(t *testing.T) {
	t.Parallel()
	document, info, digest, err := plandoctest.Artefacts(holdfast.Plan{Counts: holdfast.Counts{Delete: 3}})
	if err != nil {
		t.Fatal(err)
	}
	other, _, otherDigest, err := plandoctest.Artefacts(holdfast.Plan{Counts: holdfast.Counts{Update: 1}})
	if err != nil {
		t.Fatal(err)
	}
	empty, _, emptyDigest, err := plandoctest.Artefacts(holdfast.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		document, info []byte
		result         protocol.Result
		want           holdfast.RunStatus
		deletes        int
		why            string
	}{
		"planned":                {document, info, protocol.Result{Status: holdfast.RunPlanned, PlanDigest: digest}, holdfast.RunPlanned, 3, ""},
		"applied":                {document, info, protocol.Result{Status: holdfast.RunApplied, PlanDigest: digest}, holdfast.RunApplied, 3, ""},
		"failed after it":        {document, info, protocol.Result{Status: holdfast.RunErrored, PlanDigest: digest}, holdfast.RunErrored, 3, ""},
		"failed before it":       {nil, nil, protocol.Result{Status: holdfast.RunErrored}, holdfast.RunErrored, 0, ""},
		"nothing to do":          {empty, info, protocol.Result{Status: holdfast.RunNoChanges, PlanDigest: emptyDigest}, holdfast.RunNoChanges, 0, ""},
		"another document":       {other, info, protocol.Result{Status: holdfast.RunPlanned, PlanDigest: digest}, holdfast.RunErrored, 0, "the result is of"},
		"another digest":         {document, info, protocol.Result{Status: holdfast.RunPlanned, PlanDigest: otherDigest}, holdfast.RunErrored, 0, "the result is of"},
		"no digest":              {document, info, protocol.Result{Status: holdfast.RunPlanned}, holdfast.RunErrored, 0, "the result is of"},
		"no document":            {nil, info, protocol.Result{Status: holdfast.RunPlanned, PlanDigest: digest}, holdfast.RunErrored, 0, "left no plan document"},
		"no information":         {document, nil, protocol.Result{Status: holdfast.RunPlanned, PlanDigest: digest}, holdfast.RunErrored, 0, "cannot be read"},
		"not a document":         {[]byte("{}"), info, protocol.Result{Status: holdfast.RunPlanned, PlanDigest: digest}, holdfast.RunErrored, 0, "version 0"},
		"information of nothing": {document, []byte(`{"drift":[{}]}`), protocol.Result{Status: holdfast.RunPlanned, PlanDigest: digest}, holdfast.RunErrored, 0, "drift"},
		"said to be nothing":     {document, info, protocol.Result{Status: holdfast.RunNoChanges, PlanDigest: digest}, holdfast.RunErrored, 0, "without changes"},
		"applied nothing":        {empty, info, protocol.Result{Status: holdfast.RunApplied, PlanDigest: emptyDigest}, holdfast.RunErrored, 0, "no changes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// What a former version's agent, or somebody with the attempt's token, has
			// left under the name of what people are shown.
			store := artefacts{files: map[string][]byte{protocol.ArtefactPlan: []byte(`{"counts":{"update":1}}`)}}
			if test.document != nil {
				store.files[protocol.ArtefactDocument] = test.document
			}
			if test.info != nil {
				store.files[protocol.ArtefactInfo] = test.info
			}
			d := newResults(store, slog.New(slog.DiscardHandler), time.Now)
			test.result.Matched, test.result.Applying = "run-1", test.want == holdfast.RunApplied
			plan, result, err := d.recordPlan(t.Context(), holdfast.Run{}, holdfast.AttemptRef{Run: "run-2", Attempt: 1}, test.result)
			if err != nil {
				t.Fatal(err)
			}
			if result.Status != test.want || plan.Counts.Delete != test.deletes {
				t.Fatalf("it ended %s with %+v: %+v", result.Status, plan.Counts, result.Failure)
			}
			if test.why != "" && (result.Failure == nil || !strings.Contains(result.Failure.Summary, test.why) || result.Matched != "") {
				t.Errorf("failure %+v, matched %q", result.Failure, result.Matched)
			}
			if test.why == "" && test.result.PlanDigest != "" {
				var kept holdfast.Plan
				if err := json.Unmarshal(store.files[protocol.ArtefactPlan], &kept); err != nil || kept.Digest != test.result.PlanDigest || kept.Counts != plan.Counts {
					t.Errorf("people are shown %+v (%v)", kept, err)
				}
			}
		})
	}
}

// faultyDisk is a Store whose artefacts cannot be read.
type faultyDisk struct {
	artefacts
	broken map[string]bool // by name: opened, and then not read
	err    error
}

func (f faultyDisk) Artefact(ctx context.Context, run, name string) (io.ReadCloser, error) {
	if f.broken[name] {
		return io.NopCloser(iotest.ErrReader(f.err)), nil
	}
	return f.artefacts.Artefact(ctx, run, name)
}

// TestTakePlanFromAStoreThatIsAway: however long it is unavailable, the plan is not called
// unreadable.
func TestTakePlanFromAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	document, info, digest, err := plandoctest.Artefacts(holdfast.Plan{Counts: holdfast.Counts{Delete: 3}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	store := faultyDisk{
		artefacts: artefacts{files: map[string][]byte{protocol.ArtefactDocument: document, protocol.ArtefactInfo: info}},
		broken:    map[string]bool{protocol.ArtefactDocument: true}, err: holdfast.ErrUnavailable,
	}
	d := newResults(store, slog.New(slog.DiscardHandler), func() time.Time { return now })
	take := func() (protocol.Result, error) {
		_, result, err := d.recordPlan(t.Context(), holdfast.Run{}, holdfast.AttemptRef{Run: "run-2", Attempt: 1},
			protocol.Result{Status: holdfast.RunPlanned, PlanDigest: digest})
		return result, err
	}
	for range 3 {
		if result, err := take(); !errors.Is(err, holdfast.ErrUnavailable) {
			t.Fatalf("it ended %s (%+v), %v", result.Status, result.Failure, err)
		}
		now = now.Add(2 * readPatience)
	}
	store.broken[protocol.ArtefactDocument] = false
	if result, err := take(); err != nil || result.Status != holdfast.RunPlanned {
		t.Errorf("once it can be read: %s, %v", result.Status, err)
	}
}

// TestTakePlanFromAFaultyDisk: a disk of ours that cannot be read says nothing of the
// plan that an attempt has left. Its agent sends the result again, unless it lasts.
func TestTakePlanFromAFaultyDisk(t *testing.T) {
	t.Parallel()
	document, info, digest, err := plandoctest.Artefacts(holdfast.Plan{Counts: holdfast.Counts{Delete: 3}})
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range []string{protocol.ArtefactDocument, protocol.ArtefactInfo} {
		t.Run(broken, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			store := faultyDisk{
				artefacts: artefacts{files: map[string][]byte{protocol.ArtefactDocument: document, protocol.ArtefactInfo: info}},
				broken:    map[string]bool{broken: true}, err: syscall.EIO,
			}
			d := newResults(store, slog.New(slog.DiscardHandler), func() time.Time { return now })
			ref := holdfast.AttemptRef{Run: "run-2", Attempt: 1}
			take := func() (protocol.Result, error) {
				_, result, err := d.recordPlan(t.Context(), holdfast.Run{}, ref, protocol.Result{Status: holdfast.RunPlanned, PlanDigest: digest})
				return result, err
			}
			for range 3 {
				if result, err := take(); !errors.Is(err, syscall.EIO) {
					t.Fatalf("it ended %s (%+v), %v", result.Status, result.Failure, err)
				}
				now = now.Add(2 * time.Minute)
			}
			store.broken[broken] = false
			if result, err := take(); err != nil || result.Status != holdfast.RunPlanned {
				t.Fatalf("once it can be read: %s, %v", result.Status, err)
			}
			store.broken[broken] = true
			if _, err := take(); err == nil {
				t.Error("the patience was not that of this fault")
			}
			now = now.Add(2 * readPatience)
			if result, err := take(); err != nil || result.Reason != holdfast.CauseUnreadablePlan {
				t.Errorf("what stays unreadable: %s, %v", result.Reason, err)
			}
		})
	}
}
