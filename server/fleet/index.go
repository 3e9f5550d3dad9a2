package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast"
)

// Source has the clusters and says which have changed; *datastore.Store is one.
type Source interface {
	// ClusterSummaries returns a line for each cluster that matches, by name.
	ClusterSummaries(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterSummary, error)
	// LastChange returns the number of the newest change.
	LastChange(ctx context.Context) (int64, error)
	// Changes returns what has changed after a number, oldest first; holdfast.ErrExpired if
	// that is no longer known.
	Changes(ctx context.Context, after int64, limit int) ([]holdfast.Change, error)
}

const (
	// changesAtOnce is how many changes are read at once.
	changesAtOnce = 500
	// changedMost is how many clusters are read by name; of more, all are read.
	changedMost = 2000
)

// Index is the list of all clusters. It is safe for concurrent use; the zero value with a
// Source is ready. Nobody waits for somebody else's query except those who need what it
// reads.
type Index struct {
	Source Source

	now  atomic.Pointer[snapshot] // nil: nothing was read
	mu   sync.Mutex               // guards what follows
	busy chan struct{}            // closed when the read that is in flight has ended; nil: there is none
}

// snapshot is the fleet after a change. It is never changed.
type snapshot struct {
	seen  int64
	lines []holdfast.ClusterSummary // by name, without clusters that are gone
}

// Lines returns all clusters that exist, by name. Nobody may change them.
func (x *Index) Lines(ctx context.Context) ([]holdfast.ClusterSummary, error) {
	// Before reading: what changes meanwhile is read again the next time.
	last, err := x.Source.LastChange(ctx)
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	if s := x.now.Load(); s != nil && s.seen == last {
		return s.lines, nil
	}
	for {
		busy, first := x.begin()
		if first {
			s, err := x.read(ctx, busy, last)
			if err != nil {
				return nil, fmt.Errorf("fleet: %w", err)
			}
			return s.lines, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fmt.Errorf("fleet: %w", ctx.Err())
		}
		if s := x.now.Load(); s != nil && s.seen >= last {
			return s.lines, nil
		}
	}
}

// begin returns the read that is in flight; first reports that it is the caller's.
func (x *Index) begin() (busy chan struct{}, first bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.busy != nil {
		return x.busy, false
	}
	x.busy = make(chan struct{})
	return x.busy, true
}

// read makes the snapshot of a change, and ends the read for those who wait for it.
func (x *Index) read(ctx context.Context, busy chan struct{}, last int64) (*snapshot, error) {
	defer func() {
		x.mu.Lock()
		x.busy = nil
		x.mu.Unlock()
		close(busy)
	}()
	was := x.now.Load()
	lines, err := x.lines(ctx, was)
	if err != nil {
		return nil, err
	}
	s := &snapshot{seen: last, lines: lines}
	x.now.Store(s)
	return s, nil
}

// lines are those of a snapshot, with what has changed since.
func (x *Index) lines(ctx context.Context, was *snapshot) ([]holdfast.ClusterSummary, error) {
	names, all, err := x.changed(ctx, was)
	switch {
	case err != nil:
		return nil, err
	case all:
		return x.Source.ClusterSummaries(ctx, holdfast.ClusterFilter{})
	case len(names) == 0:
		return was.lines, nil
	}
	return x.replaced(ctx, was.lines, names)
}

// changed returns the names of the clusters that have changed; all if these are not known,
// or too many.
func (x *Index) changed(ctx context.Context, was *snapshot) (names []string, all bool, err error) {
	if was == nil {
		return nil, true, nil
	}
	for after := was.seen; ; {
		changes, err := x.Source.Changes(ctx, after, changesAtOnce)
		switch {
		case errors.Is(err, holdfast.ErrExpired):
			return nil, true, nil
		case err != nil:
			return nil, false, err
		}
		for _, change := range changes {
			after = change.Seq
			if change.Kind == holdfast.ChangeCluster {
				names = append(names, change.Name)
			}
		}
		if len(names) > changedMost {
			return nil, true, nil
		}
		if len(changes) < changesAtOnce {
			return names, false, nil
		}
	}
}

// replaced is a list with other lines for clusters that have changed.
func (x *Index) replaced(ctx context.Context, was []holdfast.ClusterSummary, names []string) ([]holdfast.ClusterSummary, error) {
	lines, err := x.Source.ClusterSummaries(ctx, holdfast.ClusterFilter{Names: names})
	if err != nil {
		return nil, err
	}
	gone := make(map[string]bool, len(names))
	for _, name := range names {
		gone[name] = true
	}
	next := make([]holdfast.ClusterSummary, 0, len(was)+len(lines))
	for _, line := range was {
		if !gone[line.Name] {
			next = append(next, line)
		}
	}
	for _, line := range lines {
		if line.Phase != holdfast.PhaseDeleted {
			next = append(next, line)
		}
	}
	slices.SortFunc(next, func(a, b holdfast.ClusterSummary) int { return strings.Compare(a.Name, b.Name) })
	return next, nil
}
