package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

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
// Source is ready.
type Index struct {
	Source Source

	mu    sync.Mutex // guards what follows
	read  bool       // lines are those of the change seen
	seen  int64
	lines []holdfast.ClusterSummary // by name, without clusters that are gone; never changed in place
}

// Lines returns all clusters that exist, by name. Nobody may change them.
func (x *Index) Lines(ctx context.Context) ([]holdfast.ClusterSummary, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	// Before reading: what changes meanwhile is read again the next time.
	last, err := x.Source.LastChange(ctx)
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	if x.read && last == x.seen {
		return x.lines, nil
	}
	changed, all, err := x.changed(ctx)
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	if all {
		err = x.readAll(ctx)
	} else {
		err = x.readSome(ctx, changed)
	}
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	x.read, x.seen = true, last
	return x.lines, nil
}

// changed returns the names of the clusters that have changed; all if these are not known,
// or too many.
func (x *Index) changed(ctx context.Context) (names []string, all bool, err error) {
	if !x.read {
		return nil, true, nil
	}
	for after := x.seen; ; {
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

func (x *Index) readAll(ctx context.Context) error {
	lines, err := x.Source.ClusterSummaries(ctx, holdfast.ClusterFilter{})
	if err == nil {
		x.lines = lines
	}
	return err
}

// readSome replaces the lines of clusters that have changed. Others may read the old list:
// it stays as it is.
func (x *Index) readSome(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	lines, err := x.Source.ClusterSummaries(ctx, holdfast.ClusterFilter{Names: names})
	if err != nil {
		return err
	}
	gone := make(map[string]bool, len(names))
	for _, name := range names {
		gone[name] = true
	}
	next := make([]holdfast.ClusterSummary, 0, len(x.lines)+len(lines))
	for _, line := range x.lines {
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
	x.lines = next
	return nil
}
