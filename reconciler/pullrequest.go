package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/upgrade"
)

const (
	// mergeRefPatience is how long a forge may take to make its own merge of a
	// pull request that we cannot merge ourselves.
	mergeRefPatience = time.Minute
	mergeRefRetry    = 5 * time.Second
)

// takeInPullRequest makes the record say what a pull request is and what
// merging it would change, and asks for each cluster that it touches or did.
func (r *Reconciler) takeInPullRequest(ctx context.Context, repo Repository, number int, known bool) error {
	ref := holdfast.PullRequestRef{Repo: repo.Name, Number: number}
	// Its own delivery and that of its merge come at once: of two that look side
	// by side one would have to ask the forge again.
	unlock := r.looking.Lock(holdfast.Request{PullRequest: ref})
	defer unlock()
	rec, err := r.opts.Store.PullRequest(ctx, ref)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read pull request %s: %w", ref, err)
	}
	before := rec
	if !known || rec.Version == 0 {
		// A forge may tell of a pull request before it can be read: one that is
		// not found is asked for again, like any other trouble.
		pr, err := r.opts.Forges[repo.Name].PullRequest(ctx, ref)
		if err != nil {
			return fmt.Errorf("ask for pull request %s: %w", ref, err)
		}
		rec.PullRequest = pr
		keepLastWord(before, &rec)
		if err := r.keepComment(ctx, repo, rec); err != nil {
			return err
		}
		if rec.Approvals, err = r.gates.Check(ctx, rec); err != nil {
			return err
		}
	}
	if rec.BaseBranch != repo.Branch {
		rec.Clusters, rec.Assessed, rec.Reason = nil, "", holdfast.ReasonOtherBase
		if before.Version == 0 {
			return nil // never ours
		}
		if err := r.impacts.Forget(ctx, ref); err != nil {
			return err
		}
	} else if rec.State == holdfast.PullRequestOpen {
		if err := r.look(ctx, repo, before, &rec, known); err != nil {
			return err
		}
	} else if rec.State == holdfast.PullRequestMerged && before.State != holdfast.PullRequestMerged {
		if err := r.lookAtMerge(ctx, repo, before, &rec); err != nil {
			return err
		}
	}
	if err := r.savePullRequest(ctx, repo, before, rec); err != nil {
		return err
	}
	if rec.State == holdfast.PullRequestOpen && rec.Assessed != "" {
		r.impacts.Saved(ref, rec.Assessed)
	} else {
		r.impacts.Drop(ref)
	}
	if wait := untilMergeable(rec, r.opts.Now()); wait > 0 {
		r.agenda.LookAfter(agenda.Look{Repo: repo.Name, Number: number}, wait)
	}
	return nil
}

// keepComment has our comment written again if somebody has deleted it: a plan that
// nobody sees is not one that somebody reviews.
func (r *Reconciler) keepComment(ctx context.Context, repo Repository, rec holdfast.PullRequestRecord) error {
	if repo.Local || rec.State == holdfast.PullRequestClosed {
		return nil
	}
	id, err := r.publish.CommentID(ctx, rec.PullRequestRef)
	if id == "" || err != nil {
		return err
	}
	switch _, err := r.opts.Forges[repo.Name].Comment(ctx, rec.PullRequestRef, id); {
	case errors.Is(err, holdfast.ErrNotFound):
		return r.publish.CommentLost(ctx, rec.PullRequestRef, id)
	case err != nil:
		// What it says will be seen to with the next change.
		r.opts.Logger.DebugContext(ctx, "comment was not looked for", "pull_request", rec.PullRequestRef, "err", err)
	}
	return nil
}

// keepLastWord keeps what the forge said of a merge before it was made: of one
// that is made, or will not be, it says nothing.
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
func untilMergeable(rec holdfast.PullRequestRecord, now time.Time) time.Duration {
	const most = 15 * time.Minute
	required := slices.ContainsFunc(rec.Clusters, func(c holdfast.PullRequestCluster) bool {
		return !c.Trial && slices.Contains(c.Document.Apply.Requires, holdfast.GateMergeable)
	})
	switch {
	case rec.State != holdfast.PullRequestOpen || rec.Mergeable || !required:
		return 0
	case rec.Blocked == "" && now.Sub(rec.UpdatedAt) < time.Minute:
		return mergeRefRetry
	default:
		return min(max(time.Minute, now.Sub(rec.UpdatedAt)/4), most)
	}
}

func (r *Reconciler) savePullRequest(ctx context.Context, repo Repository, before, rec holdfast.PullRequestRecord) error {
	saved, err := r.opts.Store.SavePullRequest(ctx, rec)
	if err != nil {
		return fmt.Errorf("record pull request %s: %w", rec.PullRequestRef, err)
	}
	applies := make(map[string]bool) // by name: whether the merge would
	for _, c := range slices.Concat(before.Clusters, saved.Clusters) {
		applies[c.Name] = applies[c.Name] || !c.Trial
	}
	var proposed, merged []holdfast.Request
	for _, name := range slices.Sorted(maps.Keys(applies)) {
		proposed = append(proposed, holdfast.Request{Cluster: name, PullRequest: rec.PullRequestRef})
		if applies[name] {
			merged = append(merged, holdfast.Request{Cluster: name})
		}
	}
	r.agenda.RequestAll(proposed)
	switch {
	case saved.State != holdfast.PullRequestMerged:
	case before.State != holdfast.PullRequestMerged:
		r.agenda.Look(agenda.Look{Repo: repo.Name})
		r.agenda.RequestAll(merged)
	case !slices.Equal(saved.Verdicts, before.Verdicts):
		r.agenda.RequestAll(merged) // a review may be what the apply waits for
	}
	if strings.HasPrefix(saved.Branch, upgrade.Branches) && (saved.State != before.State || saved.Head != before.Head) {
		r.upgrades.Ask(repo.Name)
	}
	r.publish.Show(saved.PullRequestRef)
	return nil
}

// look finds out what merging the pull request would change. Before is the record
// as it was.
func (r *Reconciler) look(
	ctx context.Context, repo Repository, before holdfast.PullRequestRecord, rec *holdfast.PullRequestRecord, known bool,
) error {
	rec.Reason, rec.Detail, rec.Faults, rec.Clusters, rec.Assessed = "", "", nil, nil, ""
	head, base, tree, err := r.mergeResult(ctx, repo, *rec, known)
	rec.Base = base
	if head != "" {
		rec.Head = head
	}
	rec.AllTrials = rec.AllTrials && rec.Head == before.Head
	switch {
	case errors.Is(err, holdfast.ErrMergeConflict):
		rec.Reason, rec.Detail, rec.Result = holdfast.ReasonNotMergeable, err.Error(), ""
		if time.Since(rec.UpdatedAt) < mergeRefPatience && !repo.Local {
			r.agenda.LookAfter(agenda.Look{Repo: repo.Name, Number: rec.Number, Known: true}, mergeRefRetry)
		}
		return r.impacts.Forget(ctx, rec.PullRequestRef)
	case err != nil:
		return err
	}
	rec.Result = tree
	from, err := r.catalogs.Read(ctx, repo.Name, string(base))
	if err != nil {
		return err
	}
	to, err := r.catalogs.Read(ctx, repo.Name, tree, before.Result, from.ID)
	if err != nil {
		return err
	}
	if err := r.compare(ctx, from, to, rec); err != nil {
		return fmt.Errorf("compare pull request %s with its base: %w", rec.PullRequestRef, err)
	}
	if err := r.impacts.Assess(ctx, repo.Name, from, to, before, rec); err != nil {
		return err
	}
	switch {
	case rec.Fork && !repo.Forks:
		rec.Reason, rec.Detail = holdfast.ReasonFork, "a plan executes the code of the pull request, and this one comes from a fork"
	case rec.Draft && !repo.Drafts:
		rec.Reason, rec.Detail = holdfast.ReasonDraft, "planned when it is ready for review"
	}
	return nil
}

// lookAtMerge fills in what a merge has changed, unless the merged head was
// looked at before the merge: a forge may still call a pull request open, or
// tell of its last head late, when its merge is on the branch already, and what
// is seen then is that it changes nothing, or a conflict.
func (r *Reconciler) lookAtMerge(
	ctx context.Context, repo Repository, before holdfast.PullRequestRecord, rec *holdfast.PullRequestRecord,
) error {
	parents, err := r.opts.Git.Parents(ctx, repo.Name, rec.MergeCommit)
	if errors.Is(err, holdfast.ErrNotFound) {
		if _, err = r.fetch(ctx, repo.Name); err == nil {
			parents, err = r.opts.Git.Parents(ctx, repo.Name, rec.MergeCommit)
		}
	}
	switch {
	case errors.Is(err, holdfast.ErrNotFound), err == nil && len(parents) == 0:
		return nil // gone again, by a forced push
	case err != nil:
		return fmt.Errorf("look for the merge of %s: %w", rec.PullRequestRef, err)
	}
	if before.Base != "" && before.Head == rec.Head {
		late, err := r.opts.Git.IsAncestor(ctx, repo.Name, rec.MergeCommit, before.Base)
		if err == nil && !late {
			return nil
		} else if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return fmt.Errorf("look for the merge of %s: %w", rec.PullRequestRef, err)
		}
	}
	from, err := r.catalogs.Read(ctx, repo.Name, string(parents[0]))
	if err != nil {
		return err
	}
	to, err := r.catalogs.Read(ctx, repo.Name, string(rec.MergeCommit), before.Result, from.ID)
	if err != nil {
		return err
	}
	rec.Reason, rec.Detail, rec.Faults, rec.Clusters = "", "", nil, nil
	if err := r.compare(ctx, from, to, rec); err != nil {
		return fmt.Errorf("compare the merge of %s with its base: %w", rec.PullRequestRef, err)
	}
	return r.recall(ctx, rec)
}

// recall adds the clusters for which the head of a pull request was planned: of
// several rebased commits, the last one alone does not tell all that they change.
func (r *Reconciler) recall(ctx context.Context, rec *holdfast.PullRequestRecord) error {
	runs, err := r.opts.Store.Runs(ctx, holdfast.RunFilter{PullRequest: &rec.PullRequestRef, Limit: 10_000})
	if err != nil {
		return fmt.Errorf("list runs of %s: %w", rec.PullRequestRef, err)
	}
	for _, run := range runs { // the newest first
		known := slices.ContainsFunc(rec.Clusters, func(c holdfast.PullRequestCluster) bool { return c.Name == run.Cluster })
		if !known && !run.Trial && run.Revision == rec.Head && run.Status.Good() {
			rec.Clusters = append(rec.Clusters, holdfast.PullRequestCluster{
				Name: run.Cluster, SourceDigest: run.SourceDigest, Document: run.Document, Deleted: run.Destroy,
			})
		}
	}
	return nil
}

// mergeResult returns the tree that merging a pull request gives. The forge's
// own merge is taken if it is that of the present base and head; a pull request
// of which only the base has moved is merged by us, without asking the forge.
func (r *Reconciler) mergeResult(
	ctx context.Context, repo Repository, pr holdfast.PullRequestRecord, known bool,
) (head, base holdfast.Revision, tree string, err error) {
	refs := r.lastRefs(repo.Name)
	if repo.Local && (!known || refs == nil) {
		if refs, err = r.fetch(ctx, repo.Name); err != nil {
			return "", "", "", err
		}
	}
	if repo.Local || known && refs != nil {
		if base, err = trackedHead(repo, refs); err != nil {
			return "", "", "", err
		}
		tree, err = r.opts.Git.Merge(ctx, repo.Name, base, pr.Head)
		if err == nil || repo.Local {
			return pr.Head, base, tree, err
		}
	}
	prRefs, err := r.opts.Git.FetchPullRequest(ctx, repo.Name, pr.Number)
	if err != nil {
		return "", base, "", fmt.Errorf("fetch pull request %s: %w", pr.PullRequestRef, err)
	}
	r.saw(repo.Name, prRefs.Refs)
	if base, err = trackedHead(repo, prRefs.Refs); err != nil {
		return "", "", "", err
	}
	if head = pr.Head; prRefs.Head != "" {
		head = prRefs.Head
	}
	if prRefs.Merge != "" {
		parents, err := r.opts.Git.Parents(ctx, repo.Name, prRefs.Merge)
		if err == nil && slices.Equal(parents, []holdfast.Revision{base, head}) {
			return head, base, string(prRefs.Merge), nil
		}
	}
	tree, err = r.opts.Git.Merge(ctx, repo.Name, base, head)
	return head, base, tree, err
}

func trackedHead(repo Repository, refs holdfast.Refs) (holdfast.Revision, error) {
	head := refs["refs/heads/"+repo.Branch]
	if head == "" {
		return "", fmt.Errorf("branch %q of %s: %w", repo.Branch, repo.Name, holdfast.ErrNotFound)
	}
	return head, nil
}

func (r *Reconciler) lastRefs(repo string) holdfast.Refs {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refs[repo]
}

// compare fills in the clusters that differ between two trees, and what is
// wrong with the files that the pull request brings.
func (r *Reconciler) compare(ctx context.Context, from, to *catalog.Catalog, rec *holdfast.PullRequestRecord) error {
	differ, err := r.catalogs.Diff(ctx, from, to)
	if err != nil {
		return err
	}
	for _, path := range differ.Files {
		if f := to.File(path); f != nil {
			rec.Faults = append(rec.Faults, f.Faults...)
		}
	}
	for _, name := range differ.Names {
		res, err := r.catalogs.Resolve(ctx, to, name)
		if err != nil {
			return err
		}
		known, err := r.opts.Store.Cluster(ctx, name)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return fmt.Errorf("read cluster %q: %w", name, err)
		}
		c := holdfast.PullRequestCluster{Name: name, Deleted: res == nil}
		if res == nil {
			heirs, err := r.lineage.Heirs(ctx, to, name)
			if err != nil {
				return err
			}
			if len(heirs) > 0 || known.Name != "" && known.Owner != to.Repo {
				continue // it continues under another name, or in another repository
			}
			c.Document = from.Named(name)[0].Doc.Cluster
			why, err := r.lineage.Unproven(ctx, to, c.Document, known)
			if err != nil {
				return err
			}
			if why != "" {
				c.Deleted = false
				rec.Faults = append(rec.Faults, holdfast.Fault{
					File: c.Document.Path, Cluster: name, Message: fmt.Sprintf("cluster %q is gone, and not removed: %s", name, why),
					Hint: "mend the file; to remove a cluster, delete its document, and the file if nothing else is in it",
				})
			}
		} else {
			others, err := r.lineage.Faults(ctx, to, res, known, r.doubtfulIn(to.Repo))
			if err != nil {
				return err
			}
			faults := slices.Concat(res.Faults, ownedElsewhere(to.Repo, known, res), others)
			c.Document = res.Doc.Cluster
			if len(faults) == 0 {
				c.SourceDigest = res.Digest
			}
			rec.Faults = append(rec.Faults, faults...)
		}
		rec.Clusters = append(rec.Clusters, c)
	}
	if err := r.comparePolicies(ctx, to, differ, rec); err != nil {
		return err
	}
	slices.SortStableFunc(rec.Faults, byPosition)
	rec.Faults = slices.CompactFunc(rec.Faults, func(a, b holdfast.Fault) bool { return a == b })
	return nil
}

// comparePolicies adds what is wrong with documents that a pull request changes
// without a change of what they come to, such as in what they depend on.
func (r *Reconciler) comparePolicies(
	ctx context.Context, to *catalog.Catalog, differ catalog.Difference, rec *holdfast.PullRequestRecord,
) error {
	for _, name := range differ.Documents {
		if len(to.Named(name)) == 0 || slices.Contains(differ.Names, name) {
			continue
		}
		res, err := r.catalogs.Resolve(ctx, to, name)
		if err != nil {
			return err
		}
		known, err := r.opts.Store.Cluster(ctx, name)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return fmt.Errorf("read cluster %q: %w", name, err)
		}
		faults, err := r.lineage.Faults(ctx, to, res, known, r.doubtfulIn(to.Repo))
		if err != nil {
			return err
		}
		rec.Faults = append(rec.Faults, faults...)
	}
	return nil
}

// byPosition also tells apart what stands at one position, so that the same
// faults come to stand side by side.
func byPosition(a, b holdfast.Fault) int {
	return cmp.Or(
		cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
		cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Message, b.Message),
	)
}
