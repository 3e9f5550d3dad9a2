package history_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// blobs are artefacts that cannot be opened, or not be read to their end.
type blobs struct{ opening, reading error }

func (b *blobs) Artefact(context.Context, string, string) (io.ReadCloser, error) {
	if b.opening != nil {
		return nil, b.opening
	}
	text := io.Reader(strings.NewReader(`{"changes":[]}`))
	if b.reading != nil {
		text = io.MultiReader(io.LimitReader(text, 5), iotest.ErrReader(b.reading))
	}
	return io.NopCloser(text), nil
}

// What cannot be read counts as not kept after ten minutes, and no longer when it can.
func TestPatientGivesUp(t *testing.T) {
	t.Parallel()
	damaged := errors.New("content is damaged")
	for name, broken := range map[string]blobs{"opened": {opening: damaged}, "read to its end": {reading: damaged}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
			store := broken
			patient := history.NewPatient(&store, slog.New(slog.DiscardHandler), func() time.Time { return now })
			read := func(run string) error {
				_, err := history.Plan(t.Context(), patient, run)
				return err
			}
			for _, tt := range []struct {
				after time.Duration
				run   string
				gone  bool
			}{{0, "run-1", false}, {10 * time.Minute, "run-1", false}, {time.Second, "run-1", true}, {0, "run-2", false}} {
				now = now.Add(tt.after)
				if err := read(tt.run); !errors.Is(err, damaged) || errors.Is(err, holdfast.ErrNotFound) != tt.gone {
					t.Errorf("the plan of %s: %v, want it to count as not kept: %v", tt.run, err, tt.gone)
				}
			}
			store = blobs{}
			if err := read("run-1"); err != nil {
				t.Fatal(err)
			}
			store = broken
			if err := read("run-1"); !errors.Is(err, damaged) || errors.Is(err, holdfast.ErrNotFound) {
				t.Errorf("after it could be read: %v", err)
			}
		})
	}
}

// Who hangs up, and what was never kept, says nothing of the store.
func TestPatientCountsFailuresOfTheStore(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	store := blobs{opening: holdfast.ErrNotFound}
	patient := history.NewPatient(&store, slog.New(slog.DiscardHandler), func() time.Time { return now })
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	_, kept := patient.Artefact(t.Context(), "run-1", "plan")
	store.opening = context.Canceled
	_, canceled := patient.Artefact(gone, "run-1", "plan")
	now = now.Add(time.Hour)
	store.opening = errors.New("out of reach")
	_, err := patient.Artefact(t.Context(), "run-1", "plan")
	if !errors.Is(kept, holdfast.ErrNotFound) || !errors.Is(canceled, context.Canceled) || !errors.Is(err, store.opening) || errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("not kept: %v; canceled: %v; out of reach for the first time: %v", kept, canceled, err)
	}
}

// A store that is unavailable for an hour has lost nothing.
func TestPatientWaitsForAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for name, store := range map[string]blobs{"opened": {opening: holdfast.ErrUnavailable}, "read to its end": {reading: holdfast.ErrUnavailable}} {
		patient := history.NewPatient(&store, slog.New(slog.DiscardHandler), func() time.Time { return now })
		for range 3 {
			if _, err := history.Plan(t.Context(), patient, "run-1"); !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrNotFound) {
				t.Errorf("%s: %v, want an ErrUnavailable alone", name, err)
			}
			now = now.Add(30 * time.Minute)
		}
	}
}
