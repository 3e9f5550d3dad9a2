package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// hasState is hasCluster for whoever changes a cluster, or sees values of its state or
// what is to become of it. One that moves to another project is of both until it is
// applied there.
func (r *scopedRecords) hasState(ctx context.Context, record holdfast.ClusterRecord) (bool, error) {
	owns, err := r.ownsState(ctx, record)
	return owns && r.projects.hasCluster(record), err
}

// ownsState judges by what was applied, and by the applies that have begun since: each may
// have written the state.
func (r *scopedRecords) ownsState(ctx context.Context, record holdfast.ClusterRecord) (bool, error) {
	if record.Applied.Run != "" && !r.projects.has(record.Applied.Document.Project) {
		return false, nil
	}
	last := max(record.Applied.Run, record.Life)
	filter := holdfast.RunFilter{Cluster: record.Name, Kinds: []holdfast.RunKind{holdfast.RunApply, holdfast.RunDestroy}, Limit: 10}
	read := func() ([]holdfast.Run, error) { return r.Records.Runs(ctx, filter) }
	on := func(run holdfast.Run) { filter.After = holdfast.RunMark{CreatedAt: run.CreatedAt, ID: run.ID} }
	decides := func(run holdfast.Run) (bool, error) {
		return run.ID <= last || run.Begun && !r.projects.has(run.Document.Project), nil
	}
	found, err := readOn(1, filter.Limit, read, on, decides)
	return err == nil && (len(found) == 0 || found[0].ID <= last), err
}

// ownsStateOf is ownsState by name. There may be no record of it.
func (r *scopedRecords) ownsStateOf(ctx context.Context, name string) (bool, error) {
	record, err := r.Records.Cluster(ctx, name)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return false, fmt.Errorf("read cluster %q: %w", name, err)
	}
	record.Name = name
	return r.ownsState(ctx, record)
}

// partOf is what the projects see of a cluster that is of others, too: what their own
// document says, and nothing of the state; ErrNotFound if it has none of theirs.
func (p scope) partOf(r holdfast.ClusterRecord) (holdfast.ClusterRecord, error) {
	part := holdfast.ClusterRecord{
		Name: r.Name, Owner: r.Owner, OwnSuspension: r.OwnSuspension, Waiting: r.Waiting, WaitingFor: r.WaitingFor,
		Phase: r.Phase, Life: r.Life, Deletion: r.Deletion, UpdatedAt: r.UpdatedAt, Version: r.Version,
	}
	switch a := r.Applied; {
	case p.hasCluster(r):
		part.Desired = r.Desired
	case a.Run != "" && p.has(a.Document.Project):
		part.Applied = holdfast.Applied{Run: a.Run, Revision: a.Revision, SourceDigest: a.SourceDigest, Document: a.Document, At: a.At}
	default:
		return holdfast.ClusterRecord{}, holdfast.ErrNotFound
	}
	return part, nil
}

// continues returns a cluster of another project whose state and conditions the one with
// that record takes over, given the names that documents say it had before; empty if there
// is none. One that has been applied continues nobody: its document may name forever what
// it was called before.
func (r *scopedRecords) continues(ctx context.Context, record holdfast.ClusterRecord, former ...string) (string, error) {
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
		old, err := r.Records.Cluster(ctx, name)
		switch {
		case errors.Is(err, holdfast.ErrNotFound):
			continue
		case err != nil:
			return "", fmt.Errorf("read cluster %q: %w", name, err)
		case old.Deletion != nil && (old.Deletion.To == "" || old.Deletion.To != record.Name):
			continue // what it was is no longer there, or with another one
		}
		if has, err := r.hasState(ctx, old); err != nil || !has {
			return name, err
		}
		if old.Applied.Run == "" { // it has not taken over itself
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
	outside, err := r.continues(ctx, record, from, record.Desired.Document.RenamedFrom)
	return outside == "", err
}

// seesPullRequest needs all of its clusters, and their states: one comment shows the plans
// of all.
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
		names = append(names, c.Name)
	}
	for some := range slices.Chunk(names, clustersAtOnce) {
		known, err := r.Records.Clusters(ctx, holdfast.ClusterFilter{Names: some})
		if err != nil {
			return false, fmt.Errorf("read the clusters of %s: %w", record.PullRequestRef, err)
		}
		for _, c := range known {
			if has, err := r.hasState(ctx, c); c.Deletion == nil && !has || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// clustersAtOnce is how many records of clusters are read, and kept in memory, at once.
const clustersAtOnce = 100
