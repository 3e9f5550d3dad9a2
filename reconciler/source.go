package reconciler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// takeIn looks at a repository's tracked branch, or at one of its pull requests.
func (r *Reconciler) takeIn(ctx context.Context, key sourceKey) error {
	repo, ok := r.repos[key.repo]
	if !ok {
		return nil
	}
	began, delivery := time.Now(), r.traces.of(key.repo, key.number)
	var err error
	if key.number != 0 {
		err = r.takeInPullRequest(ctx, repo, key.number, key.known)
	} else if err = r.takeInBranch(ctx, repo); err != nil {
		r.noteSourceError(ctx, repo.Name, err)
	}
	if delivery != "" { // polls find nothing most of the time, and are no traces
		r.traces.since(delivery, "take in", began, map[string]string{"repo": key.repo}, err)
	}
	return err
}

// takeInBranch makes the records say what the tracked branch desires, and asks
// for each cluster of which it says something new.
func (r *Reconciler) takeInBranch(ctx context.Context, repo Repository) error {
	refs, err := r.fetch(ctx, repo.Name)
	if err != nil {
		return err
	}
	source, err := r.opts.Store.Source(ctx, repo.Name)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read source %q: %w", repo.Name, err)
	}
	head, ok := refs["refs/heads/"+repo.Branch]
	if !ok {
		// An empty repository or a deleted branch says nothing, least of all
		// that clusters are to be deleted.
		r.markReady(repo.Name)
		return r.updateSource(ctx, repo.Name, func(s *holdfast.Source) {
			s.LastError = fmt.Sprintf("branch %q does not exist", repo.Branch)
		})
	}
	retagged := r.takeRetagged(repo.Name)
	if source.Head == head && source.LastError == "" && r.isReady(repo.Name) && !retagged {
		return nil
	}
	if err := r.takeInHead(ctx, repo, source.Head, head, retagged); err != nil {
		if retagged {
			r.setRetagged(repo.Name)
		}
		return err
	}
	err = r.updateSource(ctx, repo.Name, func(s *holdfast.Source) { s.Head, s.LastError = head, "" })
	if err != nil {
		return err
	}
	r.markReady(repo.Name)
	return r.baseMoved(ctx, repo)
}

// takeInHead brings the records from what a former head of the tracked branch
// said to what the present one does.
func (r *Reconciler) takeInHead(ctx context.Context, repo Repository, former, head holdfast.Revision, retagged bool) error {
	cat, err := r.catalog(ctx, repo, string(head))
	if err != nil {
		return err
	}
	if former != "" && former != head {
		if err := r.takeInMerges(ctx, repo, head); err != nil {
			return err
		}
	}
	return r.desireAll(ctx, repo, former, head, cat, retagged)
}

// fetch brings a repository up to date and remembers its refs.
func (r *Reconciler) fetch(ctx context.Context, repo string) (holdfast.Refs, error) {
	refs, err := r.opts.Git.Fetch(ctx, repo)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", repo, err)
	}
	r.saw(repo, refs)
	return refs, nil
}

// saw remembers the refs that a repository has.
func (r *Reconciler) saw(repo string, refs holdfast.Refs) {
	r.mu.Lock()
	former, seen := r.refs[repo]
	r.refs[repo] = refs
	r.mu.Unlock()
	if seen && len(r.repos[repo].Templates) > 0 && !sameTags(former, refs) {
		r.tagsMoved()
	}
}

func sameTags(a, b holdfast.Refs) bool {
	tags := func(refs holdfast.Refs) holdfast.Refs {
		refs = maps.Clone(refs)
		maps.DeleteFunc(refs, func(ref string, _ holdfast.Revision) bool { return !strings.HasPrefix(ref, "refs/tags/") })
		return refs
	}
	return maps.Equal(tags(a), tags(b))
}

// tagsMoved has every cluster that names a template's version looked at again:
// a version may be there now, or be another one.
func (r *Reconciler) tagsMoved() {
	r.catalogs.forgetVersions()
	for name := range r.repos {
		r.setRetagged(name)
		r.sources.add(sourceKey{repo: name})
	}
}

func (r *Reconciler) setRetagged(repo string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retagged[repo] = true
}

func (r *Reconciler) takeRetagged(repo string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	retagged := r.retagged[repo]
	delete(r.retagged, repo)
	return retagged
}

// takeInMerges learns which pull requests brought the branch to head, before
// anybody decides that nobody has reviewed it.
func (r *Reconciler) takeInMerges(ctx context.Context, repo Repository, head holdfast.Revision) error {
	prs, err := r.opts.Forges[repo.Name].PullRequestsOf(ctx, repo.Name, head)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("ask for the pull requests of %s: %w", head.Short(), err)
	}
	numbers := make(map[int]bool)
	for _, pr := range prs {
		numbers[pr.Number] = true
	}
	open, err := r.openPullRequests(ctx, repo.Name)
	if err != nil {
		return err
	}
	for _, pr := range open { // several merges may have come at once
		in, err := r.opts.Git.IsAncestor(ctx, repo.Name, pr.Head, head)
		if err == nil && in {
			numbers[pr.Number] = true
		}
	}
	for _, n := range slices.Sorted(maps.Keys(numbers)) {
		if err := r.takeInPullRequest(ctx, repo, n, false); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) openPullRequests(ctx context.Context, repo string) ([]holdfast.PullRequestRecord, error) {
	open, err := r.opts.Store.PullRequests(ctx, holdfast.PullRequestFilter{
		Repo: repo, States: []holdfast.PullRequestState{holdfast.PullRequestOpen}, Limit: 10_000,
	})
	if err != nil {
		return nil, fmt.Errorf("list open pull requests of %q: %w", repo, err)
	}
	return open, nil
}

// baseMoved asks for every open pull request: what merging it gives has changed.
func (r *Reconciler) baseMoved(ctx context.Context, repo Repository) error {
	open, err := r.openPullRequests(ctx, repo.Name)
	if err != nil {
		return err
	}
	for _, pr := range open {
		r.sources.add(sourceKey{repo: repo.Name, number: pr.Number, known: true})
	}
	return nil
}

// desireAll brings the records of the clusters that differ between two heads up
// to date; of all clusters, if this process has not seen the former head. Some
// are looked at each time: those at fault, as what mends them may be elsewhere,
// and those that are gone, but not from a tree that proved it.
func (r *Reconciler) desireAll(
	ctx context.Context, repo Repository, former, head holdfast.Revision, cat *catalog, retagged bool,
) error {
	names, err := r.namesSince(ctx, repo, former, head, cat)
	if err != nil {
		return err
	}
	if names == nil {
		if names, err = r.allNames(ctx, repo, cat); err != nil {
			return err
		}
	}
	for name, entries := range cat.names {
		if retagged && versioned(entries) {
			names[name] = true
		}
	}
	again := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		rec, err := r.ownRecord(ctx, repo, name)
		if err != nil {
			return err
		}
		if err := r.desire(ctx, repo, head, cat, name, rec); err != nil {
			return err
		}
		if rec, err = r.ownRecord(ctx, repo, name); err != nil {
			return err
		}
		gone := rec.Name != "" && len(cat.names[name]) == 0 && !rec.Desired.Removed
		if gone || len(rec.Desired.Faults) > 0 {
			again[name] = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubtful[repo.Name] = again
	return nil
}

// namesSince returns the clusters of which head may say something else than
// former; nil if that cannot be told.
func (r *Reconciler) namesSince(
	ctx context.Context, repo Repository, former, head holdfast.Revision, cat *catalog,
) (map[string]bool, error) {
	if former == "" || !r.isReady(repo.Name) {
		return nil, nil
	}
	old, err := r.catalog(ctx, repo, string(former))
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, nil // a forced push has taken the former head away
	} else if err != nil {
		return nil, err
	}
	changed, err := r.differing(ctx, old, cat)
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", former.Short(), head.Short(), err)
	}
	r.mu.Lock()
	names := maps.Clone(r.doubtful[repo.Name])
	r.mu.Unlock()
	if names == nil {
		names = make(map[string]bool)
	}
	for _, name := range changed {
		names[name] = true
	}
	for name, entries := range cat.names { // moved files, labels and policies
		if !same(old.names[name], entries) {
			names[name] = true
		}
	}
	return names, nil
}

// allNames returns the clusters of a tree and those on record.
func (r *Reconciler) allNames(ctx context.Context, repo Repository, cat *catalog) (map[string]bool, error) {
	records, err := r.opts.Store.Clusters(ctx, holdfast.ClusterFilter{Owner: repo.Name})
	if err != nil {
		return nil, fmt.Errorf("list clusters of %q: %w", repo.Name, err)
	}
	names := make(map[string]bool, len(records))
	for _, rec := range records {
		names[rec.Name] = true
	}
	for name := range cat.names {
		names[name] = true
	}
	return names, nil
}

// ownRecord returns a cluster's record if the repository owns it, else the zero
// one.
func (r *Reconciler) ownRecord(ctx context.Context, repo Repository, name string) (holdfast.ClusterRecord, error) {
	rec, err := r.opts.Store.Cluster(ctx, name)
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && rec.Owner != repo.Name {
		return holdfast.ClusterRecord{}, nil
	} else if err != nil {
		return rec, fmt.Errorf("read cluster %q: %w", name, err)
	}
	return rec, nil
}

// desire records what the head says of one cluster and asks for it.
func (r *Reconciler) desire(
	ctx context.Context, repo Repository, head holdfast.Revision, cat *catalog, name string, rec holdfast.ClusterRecord,
) error {
	for {
		err := r.desireOnce(ctx, repo, head, cat, name, rec)
		if !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
		// A decision about it was recorded meanwhile. One conflict must not
		// have all the others done again.
		if rec, err = r.ownRecord(ctx, repo, name); err != nil {
			return err
		}
	}
}

func (r *Reconciler) desireOnce(
	ctx context.Context, repo Repository, head holdfast.Revision, cat *catalog, name string, rec holdfast.ClusterRecord,
) error {
	res, err := r.resolve(ctx, cat, name)
	if err != nil {
		return err
	}
	if res == nil {
		if rec.Name == "" || !r.provenGone(cat, rec) {
			return nil
		}
		if rec.Desired.Removed {
			r.requests.add(holdfast.Request{Cluster: name})
			return nil
		}
		rec.Desired.Removed, rec.Desired.Revision, rec.Desired.Faults = true, head, nil
		return r.saveDesired(ctx, rec)
	}
	if rec.Name == "" {
		rec, err = r.claimName(ctx, repo, res)
		if err != nil || rec.Name == "" {
			return err
		}
	}
	desired := holdfast.Desired{
		Revision: rec.Desired.Revision, SourceDigest: res.digest,
		Document: res.doc.Cluster, Faults: res.faults,
	}
	if shared := r.sharedState(ctx, cat, res, rec); len(shared) > 0 {
		desired.SourceDigest, desired.Faults = "", slices.Concat(res.faults, shared)
	}
	if !rec.Desired.SourceDigest.Equal(res.digest) || rec.Desired.Removed || rec.Desired.Revision == "" {
		desired.Revision = head
	}
	if rec.Version > 0 && sameDesired(rec.Desired, desired) {
		r.requests.add(holdfast.Request{Cluster: name})
		return nil
	}
	former := rec.Desired.Revision
	rec.Desired = desired
	if err := r.saveDesired(ctx, rec); err != nil {
		return err
	}
	if former != "" && former != desired.Revision {
		r.shows.add(showKey{repo: repo.Name, revision: former}) // it may be waiting still
	}
	return nil
}

// sameDesired compares as records do: variables that were read from YAML and
// from the store have other types.
func sameDesired(a, b holdfast.Desired) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func (r *Reconciler) saveDesired(ctx context.Context, rec holdfast.ClusterRecord) error {
	rec.UpdatedAt = r.opts.Now()
	if rec.Phase == "" {
		rec.Phase = holdfast.PhasePending
	}
	if _, err := r.opts.Store.SaveCluster(ctx, rec); err != nil {
		return fmt.Errorf("record cluster %q: %w", rec.Name, err)
	}
	r.requests.add(holdfast.Request{Cluster: rec.Name})
	return nil
}

// claimName gives a cluster's name to a repository, unless it is another's.
func (r *Reconciler) claimName(ctx context.Context, repo Repository, res *resolution) (holdfast.ClusterRecord, error) {
	name := res.doc.Cluster.Name
	rec, err := r.opts.Store.Cluster(ctx, name)
	if errors.Is(err, holdfast.ErrNotFound) {
		return holdfast.ClusterRecord{Name: name, Owner: repo.Name}, nil
	} else if err != nil {
		return rec, fmt.Errorf("read cluster %q: %w", name, err)
	}
	if faults := ownedElsewhere(repo.Name, rec, res); len(faults) > 0 {
		r.opts.Logger.WarnContext(ctx, "cluster was refused", "cluster", name, "repo", repo.Name, "err", faults.Err())
		return holdfast.ClusterRecord{}, nil
	}
	rec.Owner = repo.Name
	return rec, nil
}

// ownedElsewhere is the fault of a document whose name belongs to another
// repository. Before its first apply a name that was removed there is free.
func ownedElsewhere(repo string, rec holdfast.ClusterRecord, res *resolution) holdfast.Faults {
	free := rec.Applied.Run == "" && rec.Desired.Removed
	if rec.Name == "" || rec.Owner == repo || free {
		return nil
	}
	return holdfast.Faults{res.doc.Fault(
		fmt.Sprintf("the name %q belongs to repository %q (%s)", rec.Name, rec.Owner, rec.Desired.Document.Path),
		"choose another metadata.name", "metadata", "name",
	)}
}

// provenGone reports whether a cluster's document is gone from a tree that
// parsed: a file that cannot be read, an emptied branch or a path that is not
// looked at any more prove nothing.
func (r *Reconciler) provenGone(cat *catalog, rec holdfast.ClusterRecord) bool {
	if len(cat.names) == 0 || len(cat.faults()) > 0 {
		return false
	}
	_, err := cat.tree.Hash(rec.Desired.Document.Path)
	_, read := cat.files[rec.Desired.Document.Path]
	return err != nil || read || rec.Desired.Document.Path == ""
}

func (r *Reconciler) noteSourceError(ctx context.Context, repo string, cause error) {
	err := r.updateSource(ctx, repo, func(s *holdfast.Source) { s.LastError = cause.Error() })
	if err != nil {
		r.opts.Logger.WarnContext(ctx, "source error was not recorded", "repo", repo, "err", err)
	}
}

func (r *Reconciler) isReady(repo string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready[repo]
}

func (r *Reconciler) markReady(repo string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready[repo] = true
}

// fillSource gives a run what it executes: the root module as the tracked
// branch or the pull request's merge result has it, stored once.
func (r *Reconciler) fillSource(ctx context.Context, in Input, run *holdfast.Run) error {
	repo, treeish := in.Cluster.Owner, string(in.Cluster.Desired.Revision)
	run.Revision = in.Cluster.Desired.Revision
	if pr := in.PullRequest; pr != nil {
		repo, treeish = pr.Repo, pr.Result
		run.Revision, run.Base = pr.Head, pr.Base
	}
	run.Repo = repo
	run.SourceDigest, run.Document = in.Cluster.Desired.SourceDigest, in.Cluster.Desired.Document
	if in.PullRequest != nil {
		want, _ := affected(in)
		run.SourceDigest, run.Document = want.SourceDigest, want.Document
	}
	cat, err := r.catalog(ctx, r.repos[repo], treeish)
	if err != nil {
		return err
	}
	entries := cat.names[run.Cluster]
	if len(entries) != 1 {
		return fmt.Errorf("find cluster in %s at %s: %w", repo, treeish, holdfast.ErrNotFound)
	}
	root, faults, err := r.resolver.Resolve(ctx, cat.tree, entries[0].doc)
	if err != nil {
		return fmt.Errorf("resolve: %w", err)
	}
	if len(faults) > 0 {
		return fmt.Errorf("resolve: %w", faults)
	}
	data, digest, err := root.Bundle()
	if err != nil {
		return fmt.Errorf("bundle root module: %w", err)
	}
	if err := r.opts.Store.PutBundle(ctx, digest, data); err != nil {
		return fmt.Errorf("store bundle: %w", err)
	}
	run.SourceDigest, run.Bundle, run.Dir = root.Digest, digest, root.Dir
	run.Document, run.StateLocation, run.Template = entries[0].doc.Cluster, root.StateLocation, root.Template
	return nil
}
