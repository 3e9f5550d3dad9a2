package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
)

// takeIn looks at a repository's tracked branch, or at one of its pull requests.
func (r *Reconciler) takeIn(ctx context.Context, look agenda.Look) error {
	repo, ok := r.repos[look.Repo]
	if !ok {
		return nil
	}
	began, delivery := time.Now(), r.traces.Of(look.Repo, look.Number)
	var err error
	if look.Number != 0 {
		err = r.takeInPullRequest(ctx, repo, look.Number, look.Known)
	} else if err = r.takeInBranch(ctx, repo); err != nil {
		r.noteSourceError(ctx, repo.Name, err)
	} else {
		err = r.judgeGroups(ctx, repo)
	}
	if delivery != "" { // polls find nothing most of the time, and are not traced
		r.traces.Since(delivery, "take in", began, map[string]string{"repo": look.Repo}, err)
	}
	return err
}

// takeInBranch makes the records say what the tracked branch desires, and asks
// for each cluster of which it says something new.
func (r *Reconciler) takeInBranch(ctx context.Context, repo Repository) error {
	source, head, err := r.tracked(ctx, repo)
	if err != nil {
		return err
	}
	if head == "" {
		// An empty repository or a deleted branch says nothing, least of all
		// that clusters are to be deleted.
		r.markReady(repo.Name)
		return r.updateSource(ctx, repo.Name, func(s *holdfast.Source) {
			s.LastError = fmt.Sprintf("branch %q does not exist", repo.Branch)
		})
	}
	retagged, relook := r.takeRetagged(repo.Name), r.takeFlag(r.relook, repo.Name)
	if source.Head == head && source.LastError == "" && r.isReady(repo.Name) && retagged == nil && !relook {
		return nil
	}
	first, overtaken := !r.isReady(repo.Name), r.takeFlag(r.overtaken, repo.Name)
	asked, err := r.takeInHead(ctx, repo, source.Head, head, retagged, overtaken)
	if err != nil {
		if overtaken {
			r.setFlag(r.overtaken, repo.Name)
		}
		if retagged != nil {
			r.setRetagged(repo.Name, retagged)
		}
		r.setRelook(repo.Name)
		return err
	}
	other := source.Head
	err = r.updateSource(ctx, repo.Name, func(s *holdfast.Source) {
		other, s.Head, s.LastError = s.Head, head, ""
	})
	if err != nil {
		return err
	}
	if other != source.Head && other != head {
		// Of each cluster the one or the other has written last.
		r.setFlag(r.overtaken, repo.Name)
		r.setRelook(repo.Name)
		r.agenda.Look(agenda.Look{Repo: repo.Name})
		return nil
	}
	r.markReady(repo.Name)
	r.impacts.Again(repo.Name)
	// Only now: what one push says of several clusters is judged together.
	var news, others []holdfast.Request
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if req := (holdfast.Request{Cluster: name}); asked[name] || !first {
			news = append(news, req)
		} else {
			others = append(others, req)
		}
	}
	r.agenda.RequestAll(news)
	for _, req := range others {
		r.agenda.RequestPatiently(req)
	}
	r.upgrades.Ask(repo.Name)
	return r.baseMoved(ctx, repo)
}

// tracked fetches the head of the tracked branch, empty if there is none, and
// reads which one was taken in last. If the head does not go on from that, another
// replica may have seen a newer one since this one asked.
func (r *Reconciler) tracked(ctx context.Context, repo Repository) (holdfast.Source, holdfast.Revision, error) {
	for again := false; ; again = true {
		refs, err := r.fetch(ctx, repo.Name)
		if err != nil {
			return holdfast.Source{}, "", err
		}
		source, err := r.opts.Store.Source(ctx, repo.Name)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return source, "", fmt.Errorf("read source %q: %w", repo.Name, err)
		}
		head := refs["refs/heads/"+repo.Branch]
		if again || head == "" || !r.rewritten(ctx, repo, source.Head, head) {
			return source, head, nil
		}
	}
}

// takeInHead brings the records from what a former head of the tracked branch
// said to what the present one does, and returns the clusters to decide about,
// and of which of them there is news.
func (r *Reconciler) takeInHead(
	ctx context.Context, repo Repository, former, head holdfast.Revision, retagged catalog.TagSet, all bool,
) (map[string]bool, error) {
	cat, err := r.catalogs.Read(ctx, repo.Name, string(head), string(former))
	if err != nil {
		return nil, err
	}
	if former != "" && former != head {
		if err := r.takeInMerges(ctx, repo, head); err != nil {
			return nil, err
		}
	}
	if all {
		former = ""
	}
	return r.desireAll(ctx, repo, former, head, cat, retagged)
}

// fetch brings a repository up to date and remembers its refs.
func (r *Reconciler) fetch(ctx context.Context, repo string) (holdfast.Refs, error) {
	refs, err := r.opts.Git.Fetch(ctx, repo)
	if err != nil {
		if ctx.Err() == nil {
			r.outages.begin(repo, err, r.opts.Now())
			r.took.Send() // nobody waits for it any longer
		}
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
	back := r.outages.end(repo)
	if moved := catalog.MovedTags(former, refs); len(r.repos[repo].Templates) > 0 && (back || seen && len(moved) > 0) {
		r.tagsMoved(moved)
	}
}

// tagsMoved has every cluster that names a template's version which one of the
// tags may release looked at again: it may be there now, or be another one.
func (r *Reconciler) tagsMoved(tags catalog.TagSet) {
	r.catalogs.ForgetVersions(tags)
	for name := range r.repos {
		r.setRetagged(name, tags)
		r.agenda.Look(agenda.Look{Repo: name})
	}
	r.impacts.Again("")
}

func (r *Reconciler) setRelook(repo string) { r.setFlag(r.relook, repo) }

func (r *Reconciler) setFlag(flags map[string]bool, repo string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	flags[repo] = true
}

// takeFlag returns what was set for a repository in flags, and clears it.
func (r *Reconciler) takeFlag(flags map[string]bool, repo string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	set := flags[repo]
	delete(flags, repo)
	return set
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
		r.agenda.Look(agenda.Look{Repo: repo.Name, Number: pr.Number, Known: true})
	}
	return nil
}

func (r *Reconciler) noteSourceError(ctx context.Context, repo string, cause error) {
	err := r.updateSource(ctx, repo, func(s *holdfast.Source) { s.LastError = cause.Error() })
	if err != nil {
		r.opts.Logger.WarnContext(ctx, "source error was not recorded", "repo", repo, "err", err)
	}
}

// doubtfulIn are the clusters of a repository to look at again with each head.
func (r *Reconciler) doubtfulIn(repo string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.doubtful[repo]))
}

func (r *Reconciler) isReady(repo string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready[repo]
}

func (r *Reconciler) markReady(repo string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ready[repo] {
		r.ready[repo] = true
		r.took.Send()
	}
}

// setRetagged notes that a repository is to be looked at again for tags that have
// moved.
func (r *Reconciler) setRetagged(repo string, tags catalog.TagSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.retagged[repo] == nil {
		r.retagged[repo] = make(catalog.TagSet)
	}
	maps.Copy(r.retagged[repo], tags)
}

// takeRetagged returns the tags that a repository is to be looked at again for,
// and forgets them; nil if there are none.
func (r *Reconciler) takeRetagged(repo string) catalog.TagSet {
	r.mu.Lock()
	defer r.mu.Unlock()
	tags := r.retagged[repo]
	delete(r.retagged, repo)
	return tags
}

// knownRefs returns what the last fetch saw, or fetches if there was none.
func (r *Reconciler) knownRefs(ctx context.Context, repo string) (holdfast.Refs, error) {
	if refs := r.lastRefs(repo); refs != nil {
		return refs, nil
	}
	if fresh, err := r.outages.of(repo, r.opts.Now()); fresh {
		return nil, err
	}
	return r.fetch(ctx, repo)
}

// trackedCatalog returns what the tracked branch says, and its head; nil if there
// is no such branch.
func (r *Reconciler) trackedCatalog(ctx context.Context, name string) (*catalog.Catalog, holdfast.Revision, error) {
	repo := r.repos[name]
	refs, err := r.releases.Refs(ctx, name)
	if err != nil {
		return nil, "", err
	}
	head := refs["refs/heads/"+repo.Branch]
	if head == "" {
		return nil, "", nil
	}
	cat, err := r.catalogs.Read(ctx, name, string(head))
	return cat, head, err
}
