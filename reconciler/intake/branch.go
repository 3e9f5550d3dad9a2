package intake

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

// branches updates the records with what tracked branches desire.
type branches struct {
	shared
	pullRequests *pullRequests
}

// take updates the records with what the tracked branch desires, and asks for each
// cluster with something new.
func (b *branches) take(ctx context.Context, repo Repository) error {
	if b.rulesAwaited(repo) {
		b.Agenda.LookAfter(agenda.Look{Repo: repo.Name}, rulesRetry)
		return nil
	}
	source, head, err := b.tracked(ctx, repo)
	if err != nil {
		return err
	}
	if err := b.judgeAgain(ctx, repo.Name); err != nil {
		return err
	}
	if head == "" {
		// An empty repository or a deleted branch says nothing, least of all
		// that clusters are to be deleted.
		b.took(repo.Name)
		return b.saveRepositoryState(ctx, repo.Name, func(s *holdfast.RepositoryState) {
			s.LastError = holdfast.NoBranch(repo.Branch)
		})
	}
	retagged, relook := b.marks.takeRetagged(repo.Name), b.marks.takeRelook(repo.Name)
	if source.Head == head && source.LastError == "" && b.marks.isReady(repo.Name) && retagged == nil && !relook {
		b.catchUp(repo, head)
		return nil
	}
	first, behind := !b.marks.isReady(repo.Name), b.marks.takeBehind(repo.Name)
	now := branchHead{revision: head, former: source.Head, adopted: source.Head == ""}
	plain := !first && !behind && !relook && retagged == nil
	asked, merged, err := b.takeHead(ctx, repo, &now, retagged, behind, plain)
	if err != nil {
		if behind {
			b.marks.setBehind(repo.Name)
		}
		if retagged != nil {
			b.marks.addRetagged(repo.Name, retagged)
		}
		b.marks.setRelook(repo.Name)
		return err
	}
	other := source.Head
	err = b.saveRepositoryState(ctx, repo.Name, func(s *holdfast.RepositoryState) {
		other, s.Head, s.LastError = s.Head, head, ""
	})
	if err != nil {
		return err
	}
	if other != source.Head && other != head {
		// Of each cluster the one or the other has written last.
		b.marks.setBehind(repo.Name)
		b.marks.setRelook(repo.Name)
		b.Agenda.Look(agenda.Look{Repo: repo.Name})
		return nil
	}
	var rest []string
	if first {
		if rest, err = b.unasked(ctx, repo, asked); err != nil {
			return err
		}
		b.marks.setResumed(repo.Name)
	}
	b.took(repo.Name)
	b.Impacts.Again(repo.Name)
	b.request(asked, rest, first) // only now: what one push says of several clusters is judged together
	b.Upgrades.Ask(repo.Name)
	if err := b.showMerged(ctx, repo, merged, first); err != nil {
		return err
	}
	return b.baseMoved(ctx, repo, asked, now.push)
}

// took notes that a repository was taken in.
func (b *branches) took(repo string) {
	b.marks.markReady(repo)
	b.opts.Leading.Took(repo)
}

// rulesRetry is when it is looked again whether the rules for runners are known.
const rulesRetry = 200 * time.Millisecond

// rulesAwaited reports whether another repository is about to say for the first time which
// runner environments get: those that run before are pinned without it. It is not waited for
// longer than for a repository that does not answer.
func (b *branches) rulesAwaited(repo Repository) bool {
	if repo.Runners || b.marks.isReady(repo.Name) || b.opts.Now().Sub(b.began) >= answerPatience {
		return false
	}
	for _, other := range b.repos {
		if other.Runners && !b.seen(other.Name) {
			return true
		}
	}
	return false
}

// unasked are the clusters of a repository on record that are not among those asked for.
func (b *branches) unasked(ctx context.Context, repo Repository, asked map[string]bool) ([]string, error) {
	names, err := b.opts.Store.ClusterNames(ctx, holdfast.ClusterFilter{Owner: repo.Name})
	if err != nil {
		return nil, fmt.Errorf("list clusters of %q: %w", repo.Name, err)
	}
	return slices.DeleteFunc(names, func(name string) bool { _, ok := asked[name]; return ok }), nil
}

// request asks for the decisions about clusters that were looked at: asked[name] is true of those
// that were recorded. The first time there may be something to do about each of them, and about
// the rest, that a former process was about to handle.
func (b *branches) request(asked map[string]bool, rest []string, first bool) {
	var news []holdfast.Request
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if asked[name] || !first {
			news = append(news, holdfast.Request{Cluster: name})
		} else {
			rest = append(rest, name)
		}
	}
	b.Agenda.RequestAll(news)
	for _, name := range rest {
		b.Agenda.RequestPatiently(holdfast.Request{Cluster: name})
	}
}

// tracked fetches the head of the tracked branch, empty if there is none, and
// reads which one was taken in last. If the head does not continue from that, another
// replica may have seen a newer one since this one asked.
func (b *branches) tracked(ctx context.Context, repo Repository) (holdfast.RepositoryState, holdfast.Revision, error) {
	for again := false; ; again = true {
		refs, err := b.mirror.fetch(ctx, repo.Name)
		if err != nil {
			return holdfast.RepositoryState{}, "", err
		}
		source, err := b.opts.Store.RepositoryState(ctx, repo.Name)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return source, "", fmt.Errorf("read source %q: %w", repo.Name, err)
		}
		head := refs["refs/heads/"+repo.Branch]
		if again || head == "" || !b.rewritten(ctx, repo, source.Head, head) {
			return source, head, nil
		}
	}
}

// takeHead brings the records from what a former head of the tracked branch said to
// what the current one does, and returns the clusters to decide about, and of which of
// them there is news, and the pull requests that were merged for it. Plain: nothing but
// the head is new.
func (b *branches) takeHead(
	ctx context.Context, repo Repository, now *branchHead, retagged catalog.TagSet, all, plain bool,
) (asked map[string]bool, merged []int, err error) {
	former := now.former
	if now.cat, err = b.Catalogs.Read(ctx, repo.Name, string(now.revision), string(former)); err != nil {
		return nil, nil, err
	}
	if err := b.Runners.Take(ctx, now.revision, now.cat); err != nil { // before runs are queued that go by them
		return nil, nil, err
	}
	if plain {
		if now.push, err = b.pullRequests.pushOf(ctx, repo, former, now.revision, now.cat); err != nil {
			return nil, nil, err
		}
	}
	if former != "" && former != now.revision {
		if merged, err = b.takeMerges(ctx, repo, now); err != nil {
			return nil, nil, err
		}
		now.rewritten = b.rewritten(ctx, repo, former, now.revision)
		if err := b.markLeft(ctx, repo, *now); err != nil {
			return nil, nil, err
		}
	}
	if all {
		former, now.rewritten = "", false
	}
	asked, err = b.desireAll(ctx, repo, former, *now, retagged)
	return asked, merged, err
}

// showMerged shows the pull requests that were merged for a head which was taken in:
// nothing else would ever report a cluster that came with one and went with the next.
// After a start, the last ones may have been missed.
func (b *branches) showMerged(ctx context.Context, repo Repository, merged []int, first bool) error {
	for _, number := range merged {
		b.Publisher.Show(holdfast.PullRequestRef{Repo: repo.Name, Number: number})
	}
	if !first {
		return nil
	}
	last, err := b.opts.Store.PullRequests(ctx, holdfast.PullRequestFilter{
		Repo: repo.Name, States: []holdfast.PullRequestState{holdfast.PullRequestMerged}, ByMerge: true, Limit: 20,
	})
	if err != nil {
		return fmt.Errorf("list merged pull requests of %q: %w", repo.Name, err)
	}
	for _, pr := range last {
		b.Publisher.Show(pr.PullRequestRef)
	}
	return nil
}

// takeMerges records, and returns, which pull requests brought the branch to its head,
// before it is decided that nobody has reviewed it.
func (b *branches) takeMerges(ctx context.Context, repo Repository, now *branchHead) ([]int, error) {
	head := now.revision
	prs, err := b.opts.Sources.Forges[repo.Name].PullRequestsOf(ctx, repo.Name, head)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return nil, fmt.Errorf("ask for the pull requests of %s: %w", head.Short(), err)
	}
	numbers := make(map[int]bool)
	for _, pr := range prs {
		numbers[pr.Number] = true
	}
	// Several merges may have come at once.
	open, err := b.openFor(ctx, repo, now.push, func(o origin) bool { return !now.push.commits[o.head] })
	if err != nil {
		return nil, err
	}
	for _, pr := range open {
		in, err := b.opts.Sources.Git.IsAncestor(ctx, repo.Name, pr.Head, head)
		if err == nil && in {
			numbers[pr.Number] = true
		}
	}
	merged := slices.Sorted(maps.Keys(numbers))
	for _, n := range merged {
		if err := b.pullRequests.take(ctx, repo, n, false); err != nil {
			return nil, err
		}
	}
	if len(merged) > 0 && now.push != nil {
		now.push.open = nil // it has fewer of them now
	}
	return merged, nil
}

// baseMoved asks for every open pull request, except for those that a push has nothing to do
// with: what merging it gives has changed. What it would change of a cluster that was
// asked for is decided about in any case.
func (b *branches) baseMoved(ctx context.Context, repo Repository, asked map[string]bool, moved *push) error {
	open, err := b.openFor(ctx, repo, moved, b.unaffected(repo, asked, moved))
	if err != nil {
		return err
	}
	for _, pr := range open {
		for _, c := range pr.Clusters {
			if _, ok := asked[c.Name]; ok {
				b.Agenda.Request(holdfast.Request{Cluster: c.Name, PullRequest: pr.PullRequestRef})
			}
		}
		b.Agenda.Look(agenda.Look{Repo: repo.Name, Number: pr.Number, Known: true})
	}
	if moved != nil { // those that were opened since they were listed
		b.catchUp(repo, moved.head)
	}
	return nil
}
