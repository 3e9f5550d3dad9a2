package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// hasState is hasCluster for who changes a cluster, or sees what is to become of it. One
// that moves to another project is of both until it is applied there.
func (p scope) hasState(r holdfast.ClusterRecord) bool {
	return p.hasCluster(r) && (r.Applied.Run == "" || p.has(r.Applied.Document.Project))
}

// continues returns a cluster of another project whose state and conditions the one with
// that record takes over, given the names that documents say it had before; empty if there
// is none. One that has been applied continues nobody: its document may name for ever what
// it was called before.
func (p scope) continues(ctx context.Context, records ClusterRecords, record holdfast.ClusterRecord, former ...string) (string, error) {
	if record.Applied.Run != "" {
		return "", nil
	}
	looked := make(map[string]bool)
	for len(former) > 0 {
		name := former[0]
		former = former[1:]
		if name == "" || looked[name] {
			continue
		}
		looked[name] = true
		old, err := records.Cluster(ctx, name)
		switch {
		case errors.Is(err, holdfast.ErrNotFound):
			continue
		case err != nil:
			return "", fmt.Errorf("read cluster %q: %w", name, err)
		case old.Deletion != nil:
			continue
		case !p.hasState(old):
			return name, nil
		case old.Applied.Run == "": // it has not taken over itself
			former = append(former, old.Desired.Document.RenamedFrom)
		}
	}
	return "", nil
}

// seesRenamed reports whether what a cluster continues, if it does, is of the projects.
func (r *scopedRecords) seesRenamed(ctx context.Context, name, from string) (bool, error) {
	record, err := r.Records.Cluster(ctx, name)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return false, fmt.Errorf("read cluster %q: %w", name, err)
	}
	outside, err := r.projects.continues(ctx, r.Records, record, from, record.Desired.Document.RenamedFrom)
	return outside == "", err
}

// seesPullRequest needs all of its clusters: one comment shows the plans of all. While it is
// open these are plans of states that are still of the projects that they were of.
func (r *scopedRecords) seesPullRequest(ctx context.Context, record holdfast.PullRequestRecord) (bool, error) {
	outside := func(c holdfast.PullRequestCluster) bool { return !r.projects.has(c.Document.Project) }
	if len(record.Clusters) == 0 || slices.ContainsFunc(record.Clusters, outside) {
		return false, nil
	}
	var names []string
	for _, c := range record.Clusters {
		if c.Document.RenamedFrom != "" {
			if sees, err := r.seesRenamed(ctx, c.Name, c.Document.RenamedFrom); err != nil || !sees {
				return false, err
			}
		}
		if record.State == holdfast.PullRequestOpen && !c.Sample {
			names = append(names, c.Name)
		}
	}
	for some := range slices.Chunk(names, clustersAtOnce) {
		known, err := r.Records.Clusters(ctx, holdfast.ClusterFilter{Names: some})
		if err != nil {
			return false, fmt.Errorf("read the clusters of %s: %w", record.PullRequestRef, err)
		}
		if slices.ContainsFunc(known, func(c holdfast.ClusterRecord) bool { return c.Deletion == nil && !r.projects.hasState(c) }) {
			return false, nil
		}
	}
	return true, nil
}

// clustersAtOnce is how many records of clusters are read, and kept in memory, at once.
const clustersAtOnce = 100
