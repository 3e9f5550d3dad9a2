package intake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
)

// This file decides which open pull requests a push to the tracked branch leaves alone. What
// the record of an open pull request was made from is kept in memory; a push that has nothing
// in common with that leaves the record true. In cases of doubt nothing is kept, and the pull
// request is looked at again.

// origin is what the record of an open pull request was made from.
type origin struct {
	ref     holdfast.PullRequestRef
	version int64             // of the record
	head    holdfast.Revision // of the pull request
	base    holdfast.Revision // the head of the tracked branch up to which the record is true
	result  string            // the tree that it was made from
	commits map[holdfast.Revision]bool
	change  *catalog.Footprint
	at      time.Time
}

// push is what a push to a tracked branch brings.
type push struct {
	former, head holdfast.Revision
	commits      map[holdfast.Revision]bool
	change       *catalog.Footprint
	open         map[int]int64 // versions of the open pull requests, by number; nil: not listed yet
}

// unaffectedBy reports whether a push leaves the record true. It does if the push and the pull
// request have no commit in common, so that they continue from where they did, and no path, so that
// merging them gives the changes of both; and if nothing is made from what both change.
func (o *origin) unaffectedBy(p *push) bool {
	for commit := range p.commits {
		if o.commits[commit] {
			return false
		}
	}
	return o.change.Apart(p.change)
}

// origins are the origins of the open pull requests, in memory: after a start each pull
// request is looked at once in any case. They are safe for concurrent use.
type origins struct {
	mu    sync.Mutex
	known map[holdfast.PullRequestRef]origin
	seen  map[holdfast.PullRequestRef]bool // open ones that this process has recorded
}

func newOrigins() *origins {
	return &origins{known: make(map[holdfast.PullRequestRef]origin), seen: make(map[holdfast.PullRequestRef]bool)}
}

// first reports whether this process records an open pull request for the first time: a
// former one may have left its work undone.
func (o *origins) first(rec holdfast.PullRequestRecord) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	seen := o.seen[rec.PullRequestRef]
	if rec.State == holdfast.PullRequestOpen {
		o.seen[rec.PullRequestRef] = true
	} else {
		delete(o.seen, rec.PullRequestRef)
	}
	return !seen
}

func (o *origins) of(ref holdfast.PullRequestRef) (origin, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, ok := o.known[ref]
	return known, ok
}

func (o *origins) put(made origin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known[made.ref] = made
}

func (o *origins) forget(ref holdfast.PullRequestRef) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.known, ref)
}

// forgetAll forgets those of a repository.
func (o *origins) forgetAll(repo string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	of := func(ref holdfast.PullRequestRef) bool { return ref.Repo == repo }
	maps.DeleteFunc(o.known, func(ref holdfast.PullRequestRef, _ origin) bool { return of(ref) })
	maps.DeleteFunc(o.seen, func(ref holdfast.PullRequestRef, _ bool) bool { return of(ref) })
}

// oldest is the one of a repository that was put first; false if there is none.
func (o *origins) oldest(repo string) (oldest origin, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for ref, known := range o.known {
		if ref.Repo == repo && (!ok || known.at.Before(oldest.at)) {
			oldest, ok = known, true
		}
	}
	return oldest, ok
}

// moved notes that a record is true up to another head of the tracked branch, unless it
// was made again meanwhile.
func (o *origins) moved(ref holdfast.PullRequestRef, version int64, base holdfast.Revision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known, ok := o.known[ref]; ok && known.version == version {
		known.base = base
		o.known[ref] = known
	}
}

// behind returns the pull requests of a repository whose records are not known to be true
// up to a head.
func (o *origins) behind(repo string, head holdfast.Revision) []holdfast.PullRequestRef {
	o.mu.Lock()
	defer o.mu.Unlock()
	var refs []holdfast.PullRequestRef
	for ref, known := range o.known {
		if ref.Repo == repo && known.base != head {
			refs = append(refs, ref)
		}
	}
	return refs
}

// originOf returns what a record that is to be saved was made from; nil if that is too
// complex to compare with a push. From and to are the trees that it compares.
func (p *pullRequests) originOf(
	ctx context.Context, repo Repository, rec *holdfast.PullRequestRecord, from, to *catalog.Catalog,
) (*origin, error) {
	if repo.Publishes || rec.Assessed != "" || len(rec.Faults) > 0 {
		return nil, nil
	}
	for _, c := range rec.Clusters {
		if c.Removed || c.Sample || c.SourceDigest == "" {
			return nil, nil
		}
	}
	if rec.Result != to.ID { // the forge's own merge, which may have followed renames
		tree, err := p.opts.Sources.Git.Merge(ctx, repo.Name, rec.Base, rec.Head)
		if err != nil || tree != to.ID {
			return nil, ctx.Err()
		}
	}
	commits, start, err := p.opts.Sources.Git.Ahead(ctx, repo.Name, rec.Base, rec.Head)
	if err != nil || start == "" || len(commits) == 0 || len(commits) > commitsMost {
		return nil, ctx.Err()
	}
	// What the base also has may still differ from what the base becomes.
	own, err := p.Catalogs.Changed(ctx, repo.Name, start, rec.Head)
	if err != nil {
		return nil, err
	}
	change, err := p.Catalogs.Footprint(ctx, from, to, own...)
	if err != nil || change == nil {
		return nil, err
	}
	return &origin{
		ref: rec.PullRequestRef, head: rec.Head, base: rec.Base, result: rec.Result, commits: setOf(commits), change: change, at: p.opts.Now(),
	}, nil
}

// commitsMost bounds the commits of a push, or of a pull request, that are compared.
const commitsMost = 1000

// pushOf returns what a push brings that moves the tracked branch from one head to
// another; nil if it may affect everything.
func (p *pullRequests) pushOf(ctx context.Context, repo Repository, former, head holdfast.Revision, cat *catalog.Catalog) (*push, error) {
	if repo.Publishes || former == "" || former == head {
		return nil, nil
	}
	commits, start, err := p.opts.Sources.Git.Ahead(ctx, repo.Name, former, head)
	if err != nil || start != former || len(commits) > commitsMost {
		return nil, ctx.Err() // a forced push, among others
	}
	from, err := p.Catalogs.Read(ctx, repo.Name, string(former))
	if err != nil {
		return nil, ctx.Err()
	}
	change, err := p.Catalogs.Footprint(ctx, from, cat)
	if err != nil || change == nil {
		return nil, err
	}
	return &push{former: former, head: head, commits: setOf(commits), change: change}, nil
}

func setOf(commits []holdfast.Revision) map[holdfast.Revision]bool {
	set := make(map[holdfast.Revision]bool, len(commits))
	for _, commit := range commits {
		set[commit] = true
	}
	return set
}

const (
	// trustedFor is how long a record is left alone: what it says of clusters that other
	// repositories define, too, may be another thing by then. A push has at most
	// lookedAgain looked at for that.
	trustedFor  = time.Hour
	lookedAgain = 3
)

// unaffected reports whether a push leaves a record true, by its origin.
func (b *branches) unaffected(repo Repository, asked map[string]bool, moved *push) func(origin) bool {
	now, again := b.opts.Now(), 0
	return func(o origin) bool {
		for name := range asked {
			if o.change.Concerns(name) {
				return false
			}
		}
		if o.base != moved.head && !o.unaffectedBy(moved) {
			return false
		}
		if now.Sub(o.at) > trustedFor && again < lookedAgain {
			again++
			return false
		}
		b.origins.moved(o.ref, o.version, moved.head)
		return true
	}
}

// openFor returns the open pull requests of a repository, except for those of which it is
// known what their records were made from, up to a push, and left is true of that. With
// no push these are all.
func (b *branches) openFor(
	ctx context.Context, repo Repository, moved *push, left func(origin) bool,
) ([]holdfast.PullRequestRecord, error) {
	if moved == nil || b.forgotten(ctx, repo) {
		return b.openPullRequests(ctx, repo.Name)
	}
	if moved.open == nil {
		var err error
		if moved.open, err = b.opts.Store.OpenPullRequests(ctx, repo.Name); err != nil {
			return nil, err
		}
	}
	var open []holdfast.PullRequestRecord
	for _, number := range slices.Sorted(maps.Keys(moved.open)) {
		ref := holdfast.PullRequestRef{Repo: repo.Name, Number: number}
		o, ok := b.origins.of(ref)
		if ok && o.version == moved.open[number] && (o.base == moved.former || o.base == moved.head) && left(o) {
			continue
		}
		pr, err := b.opts.Store.PullRequest(ctx, ref)
		if errors.Is(err, holdfast.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("read pull request %s: %w", ref, err)
		}
		open = append(open, pr)
	}
	return open, nil
}

// forgotten reports whether a mirror had to be made again since the records were made:
// the merged trees that they name are gone then.
func (b *branches) forgotten(ctx context.Context, repo Repository) bool {
	oldest, ok := b.origins.oldest(repo.Name)
	return ok && !b.Catalogs.Has(ctx, repo.Name, oldest.result)
}

// catchUp asks for the pull requests whose records may be untrue at a head that was taken
// in by another replica, or in part.
func (b *branches) catchUp(repo Repository, head holdfast.Revision) {
	for _, ref := range b.origins.behind(repo.Name, head) {
		b.Agenda.Look(agenda.Look{Repo: repo.Name, Number: ref.Number, Known: true})
	}
}
