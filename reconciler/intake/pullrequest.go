package intake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/byname"
	"github.com/holdfast-dev/holdfast/reconciler/record"
)

const (
	// mergeRefPatience is how long a forge may take to make its own merge of a
	// pull request that we cannot merge ourselves.
	mergeRefPatience = time.Minute
	mergeRefRetry    = 5 * time.Second
)

// pullRequests updates the records with what pull requests would change.
type pullRequests struct{ shared }

// take updates the record with what a pull request is and what merging it would change,
// and asks for each cluster that it touches or did.
func (p *pullRequests) take(ctx context.Context, repo Repository, number int, known bool) error {
	ref := holdfast.PullRequestRef{Repo: repo.Name, Number: number}
	// Its own delivery and that of its merge come at once: of two that look side
	// by side one would have to ask the forge again.
	unlock := p.Looking.Lock(holdfast.Request{PullRequest: ref})
	defer unlock()
	p.origins.forget(ref) // a push that comes meanwhile has it looked at again
	rec, err := p.opts.Store.PullRequest(ctx, ref)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read pull request %s: %w", ref, err)
	}
	before := rec
	if rec.Damaged { // it is recorded as if it were seen for the first time
		known, rec.Damaged, rec.Reason, rec.Detail = false, false, "", ""
	}
	if !known || rec.Version == 0 {
		// A forge may announce a pull request before it can be read: one that is not
		// found is tried again, like any other error.
		pr, err := p.opts.Sources.Forges[repo.Name].PullRequest(ctx, ref)
		if err != nil {
			return fmt.Errorf("ask for pull request %s: %w", ref, err)
		}
		rec.PullRequest = pr
		keepLastWord(before, &rec)
		if err := p.keepComment(ctx, repo, before.State, rec); err != nil {
			return err
		}
		if rec.Approvals, err = p.Gates.Check(ctx, rec); err != nil {
			return err
		}
	}
	var made *origin
	if rec.BaseBranch != repo.Branch {
		rec.Clusters, rec.Faults, rec.Settings, rec.Runners = nil, nil, nil, nil
		rec.Assessed, rec.Result, rec.Reason = "", "", holdfast.ReasonOtherBase
		if before.Version == 0 {
			return nil // never ours
		}
		if err := p.Impacts.Forget(ctx, ref); err != nil {
			return err
		}
	} else if rec.State == holdfast.PullRequestOpen {
		if made, err = p.assess(ctx, repo, before, &rec, known); err != nil {
			return p.unreadable(ctx, repo, before, rec, err)
		}
	} else if rec.State == holdfast.PullRequestMerged && (before.State != holdfast.PullRequestMerged || before.Damaged) {
		if err := p.assessMerge(ctx, repo, before, &rec); err != nil {
			return err
		}
	}
	p.failures.end(ref)
	if rec, err = p.savePullRequest(ctx, repo, before, rec, known); err != nil {
		return err
	}
	if made != nil {
		made.version = rec.Version
		p.origins.put(*made)
	}
	assessed := rec.Assessed
	if rec.State != holdfast.PullRequestOpen {
		assessed = ""
	}
	p.Impacts.Saved(ref, assessed)
	if wait, err := p.untilMergeable(ctx, rec); err != nil {
		return err
	} else if wait > 0 {
		p.Agenda.LookAfter(agenda.Look{Repo: repo.Name, Number: number}, wait)
	}
	return nil
}

// keepLastWord keeps what the forge said of a merge before it was made: it says nothing
// of one that is made, or never will be.
func keepLastWord(before holdfast.PullRequestRecord, rec *holdfast.PullRequestRecord) {
	if rec.State != holdfast.PullRequestOpen {
		rec.Mergeable = before.Mergeable && before.Head == rec.Head
		rec.Blocked = before.Blocked
		if before.Head != rec.Head {
			rec.Blocked = ""
		}
	}
}

// untilMergeable returns when to ask the forge again whether an open pull request
// can be merged, of which that is required: it is known a moment after a push,
// and may change without a delivery, with a check that passes. Zero is never.
func (p *pullRequests) untilMergeable(ctx context.Context, rec holdfast.PullRequestRecord) (time.Duration, error) {
	const most = 15 * time.Minute
	if rec.State != holdfast.PullRequestOpen || rec.Mergeable {
		return 0, nil
	}
	required, err := p.requiresMergeable(ctx, rec)
	now := p.opts.Now()
	switch {
	case err != nil || !required:
		return 0, err
	case rec.Blocked == "" && now.Sub(rec.UpdatedAt) < time.Minute:
		return mergeRefRetry, nil
	default:
		return min(max(time.Minute, now.Sub(rec.UpdatedAt)/4), most), nil
	}
}

// requiresMergeable reports whether the merge of a pull request is applied only if it
// could be merged: by its documents or, of some cluster, by what was last applied.
func (p *pullRequests) requiresMergeable(ctx context.Context, rec holdfast.PullRequestRecord) (bool, error) {
	var names []string
	for _, c := range rec.Clusters {
		switch {
		case c.Sample:
		case slices.Contains(c.Document.Apply.Requires, holdfast.GateMergeable):
			return true, nil
		default:
			names = append(names, c.Name)
			if c.Document.RenamedFrom != "" {
				names = append(names, c.Document.RenamedFrom)
			}
		}
	}
	for some := range slices.Chunk(names, byname.AtOnce) {
		known, err := p.opts.Store.Clusters(ctx, holdfast.ClusterFilter{Names: some})
		if err != nil {
			return false, fmt.Errorf("read the clusters of %s: %w", rec.PullRequestRef, err)
		}
		if slices.ContainsFunc(known, func(c holdfast.ClusterRecord) bool {
			return slices.Contains(c.Applied.Document.Apply.Requires, holdfast.GateMergeable)
		}) {
			return true, nil
		}
	}
	return false, nil
}

func (p *pullRequests) savePullRequest(
	ctx context.Context, repo Repository, before, rec holdfast.PullRequestRecord, known bool,
) (holdfast.PullRequestRecord, error) {
	saved := before
	if before.Version == 0 || !record.Same(before, rec) {
		var err error
		if saved, err = p.opts.Store.SavePullRequest(ctx, rec); err != nil {
			return saved, fmt.Errorf("record pull request %s: %w", rec.PullRequestRef, err)
		}
	}
	if first := p.origins.first(saved); known && !first && onlyMoved(before, saved) {
		return saved, nil
	}
	applies := make(map[string]bool) // by name: whether the merge would
	for _, c := range slices.Concat(before.Clusters, saved.Clusters) {
		applies[c.Name] = applies[c.Name] || !c.Sample
	}
	var proposed, merged []holdfast.Request
	for _, name := range slices.Sorted(maps.Keys(applies)) {
		proposed = append(proposed, holdfast.Request{Cluster: name, PullRequest: rec.PullRequestRef})
		if applies[name] {
			merged = append(merged, holdfast.Request{Cluster: name})
		}
	}
	p.Agenda.RequestAll(proposed)
	switch {
	case saved.State != holdfast.PullRequestMerged:
	case before.State != holdfast.PullRequestMerged:
		p.Agenda.Look(agenda.Look{Repo: repo.Name})
		p.Agenda.RequestAll(merged)
	case !slices.Equal(saved.Verdicts, before.Verdicts):
		p.Agenda.RequestAll(merged) // a review may be what the apply waits for
	}
	if saved.State != before.State || saved.Head != before.Head {
		p.Upgrades.Moved(saved)
		if before.State == holdfast.PullRequestOpen {
			p.Publisher.HeadLeft(ctx, before)
		}
	}
	p.Publisher.Show(saved.PullRequestRef)
	return saved, nil
}

// onlyMoved reports whether a push to the base of an open pull request has left what
// merging it changes as it was: there is nothing to decide, and nothing new to show.
func onlyMoved(before, rec holdfast.PullRequestRecord) bool {
	if before.Version == 0 || rec.State != holdfast.PullRequestOpen || before.Base == rec.Base {
		return false
	}
	for _, r := range []*holdfast.PullRequestRecord{&before, &rec} {
		r.Base, r.Result, r.Version = "", "", 0
	}
	was, err := json.Marshal(before)
	is, err2 := json.Marshal(rec)
	return err == nil && err2 == nil && bytes.Equal(was, is)
}

// assess finds out what merging the pull request would change, and returns what that was
// made from. Before is the record as it was.
func (p *pullRequests) assess(
	ctx context.Context, repo Repository, before holdfast.PullRequestRecord, rec *holdfast.PullRequestRecord, known bool,
) (*origin, error) {
	rec.Reason, rec.Detail, rec.Faults, rec.Clusters, rec.Settings, rec.Runners, rec.Assessed = "", "", nil, nil, nil, nil, ""
	head, base, tree, err := p.mergeResult(ctx, repo, *rec, known)
	rec.Base = base
	if head != "" {
		rec.Head = head
	}
	rec.AllSamples = rec.AllSamples && rec.Head == before.Head
	switch {
	case errors.Is(err, holdfast.ErrMergeConflict):
		rec.Reason, rec.Detail, rec.Result = holdfast.ReasonNotMergeable, err.Error(), ""
		if time.Since(rec.UpdatedAt) < mergeRefPatience && !repo.Local {
			p.Agenda.LookAfter(agenda.Look{Repo: repo.Name, Number: rec.Number, Known: true}, mergeRefRetry)
		}
		return nil, p.Impacts.Forget(ctx, rec.PullRequestRef)
	case err != nil:
		return nil, err
	}
	rec.Result = tree
	from, err := p.Catalogs.Read(ctx, repo.Name, string(base))
	if err != nil {
		return nil, err
	}
	to, err := p.Catalogs.Read(ctx, repo.Name, tree, before.Result, from.ID)
	if err != nil {
		return nil, err
	}
	if err := p.compared.Compare(ctx, from, to, rec); err != nil {
		return nil, fmt.Errorf("compare pull request %s with its base: %w", rec.PullRequestRef, err)
	}
	if err := p.Impacts.Assess(ctx, repo.Name, from, to, before, rec); err != nil {
		return nil, err
	}
	if err := p.Runners.Assess(ctx, from, to, rec); err != nil {
		return nil, err
	}
	switch {
	case rec.Fork && !repo.Forks:
		rec.Reason, rec.Detail = holdfast.ReasonFork, "a plan executes the code of the pull request, and this one comes from a fork"
	case rec.Draft && !repo.Drafts:
		rec.Reason, rec.Detail = holdfast.ReasonDraft, "planned when it is ready for review"
	}
	if len(rec.Runners) > 0 {
		return nil, nil // which environments these bear on depends on more than the two trees
	}
	return p.originOf(ctx, repo, rec, from, to)
}

// assessMerge fills in what a merge has changed. What was seen of the merged head
// before the merge is kept, and what the merge has brought beyond it is added: a
// change that was made while merging. Nothing was seen of a conflict, which was
// resolved in the merge, or of a head that nobody looked at in time: a forge may still
// call a pull request open, or tell of its last head late, when its merge is on the
// branch already, and what is seen then is that it changes nothing.
func (p *pullRequests) assessMerge(
	ctx context.Context, repo Repository, before holdfast.PullRequestRecord, rec *holdfast.PullRequestRecord,
) error {
	parents, err := p.opts.Sources.Git.Parents(ctx, repo.Name, rec.MergeCommit)
	if errors.Is(err, holdfast.ErrNotFound) {
		if _, err = p.mirror.fetch(ctx, repo.Name); err == nil {
			parents, err = p.opts.Sources.Git.Parents(ctx, repo.Name, rec.MergeCommit)
		}
	}
	switch {
	case errors.Is(err, holdfast.ErrNotFound), err == nil && len(parents) == 0:
		return nil // gone again, by a forced push
	case err != nil:
		return fmt.Errorf("look for the merge of %s: %w", rec.PullRequestRef, err)
	}
	seen, err := p.seenBefore(ctx, repo, before, *rec)
	if err != nil {
		return err
	}
	from, err := p.Catalogs.Read(ctx, repo.Name, string(parents[0]))
	if err != nil {
		return err
	}
	to, err := p.Catalogs.Read(ctx, repo.Name, string(rec.MergeCommit), before.Result, from.ID)
	if err != nil {
		return err
	}
	merged := *rec
	merged.Reason, merged.Detail, merged.Faults, merged.Clusters = "", "", nil, nil
	if err := p.compared.Compare(ctx, from, to, &merged); err != nil {
		return fmt.Errorf("compare the merge of %s with its base: %w", rec.PullRequestRef, err)
	}
	if seen {
		addMerged(rec, merged)
		return nil
	}
	*rec = merged
	return p.recall(ctx, rec)
}

// seenBefore reports whether the record says what merging the merged head changes, as
// it was before the merge.
func (p *pullRequests) seenBefore(ctx context.Context, repo Repository, before, rec holdfast.PullRequestRecord) (bool, error) {
	if before.Base == "" || before.Result == "" || before.Head != rec.Head {
		return false, nil
	}
	late, err := p.opts.Sources.Git.IsAncestor(ctx, repo.Name, rec.MergeCommit, before.Base)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return false, fmt.Errorf("look for the merge of %s: %w", rec.PullRequestRef, err)
	}
	return err == nil && !late, nil
}

// addMerged adds what a merge has changed to what its pull request was seen to change.
func addMerged(rec *holdfast.PullRequestRecord, merged holdfast.PullRequestRecord) {
	rec.Clusters, rec.Faults = slices.Clone(rec.Clusters), slices.Clone(rec.Faults)
	for _, c := range merged.Clusters {
		c.Added = true
		at := slices.IndexFunc(rec.Clusters, func(other holdfast.PullRequestCluster) bool { return other.Name == c.Name })
		switch {
		case at < 0:
			rec.Clusters = append(rec.Clusters, c)
		case rec.Clusters[at].Sample || rec.Clusters[at].Removed != c.Removed:
			rec.Clusters[at] = c
		}
	}
	for _, fault := range merged.Faults {
		if !slices.Contains(rec.Faults, fault) {
			rec.Faults = append(rec.Faults, fault)
		}
	}
}

// recall adds the clusters for which the head of a pull request was planned: of
// several rebased commits, the last one alone does not tell all that they change.
func (p *pullRequests) recall(ctx context.Context, rec *holdfast.PullRequestRecord) error {
	runs, err := p.opts.Store.Runs(ctx, holdfast.RunFilter{
		PullRequest: &rec.PullRequestRef, Kinds: []holdfast.RunKind{holdfast.RunPlan}, Limit: 10_000,
	})
	if err != nil {
		return fmt.Errorf("list runs of %s: %w", rec.PullRequestRef, err)
	}
	for _, run := range runs { // the newest first
		known := slices.ContainsFunc(rec.Clusters, func(c holdfast.PullRequestCluster) bool { return c.Name == run.Cluster })
		if !known && !run.Sample && run.Revision == rec.Head && run.Status.Good() {
			rec.Clusters = append(rec.Clusters, holdfast.PullRequestCluster{
				Name: run.Cluster, SourceDigest: run.SourceDigest, Document: run.Document, Removed: run.Destroy,
			})
		}
	}
	return nil
}
