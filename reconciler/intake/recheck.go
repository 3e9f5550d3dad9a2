// Looks at other clusters that one cluster asks for, although no head has moved.

package intake

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
)

// recheckHeirs asks for another look at the documents of other repositories with a former name
// that this one has claimed just now: they must not begin as new clusters. A branch that is
// being taken in may have passed them already; what was not begun will find these names on
// record.
func (b *branches) recheckHeirs(ctx context.Context, repo string, claimed []string) {
	if len(claimed) == 0 {
		return
	}
	begun := func(repo string) bool { return b.marks.hasBegun(repo) || !b.opts.Leading.Leads(repo) }
	b.recheckOthers(ctx, repo, begun, func(cat *catalog.Catalog) (heirs []string) {
		for _, former := range claimed {
			heirs = append(heirs, cat.Renamed(former)...)
		}
		return heirs
	})
}

// recheckOthers asks for another look at the chosen ones of the clusters that the
// tracked branches of some other repositories define.
func (b *branches) recheckOthers(
	ctx context.Context, repo string, some func(repo string) bool, choose func(cat *catalog.Catalog) []string,
) {
	for name, other := range b.repos {
		head := b.mirror.last(name)["refs/heads/"+other.Branch]
		if name == repo || head == "" || !some(name) {
			continue
		}
		cat, err := b.Catalogs.Read(ctx, name, string(head))
		if err != nil { // its head may have moved: all of it is looked at again
			b.marks.setBehind(name)
			b.marks.setRelook(name)
			b.Agenda.Look(agenda.Look{Repo: name})
			continue
		}
		for _, cluster := range choose(cat) {
			b.marks.addRecheck(name, cluster)
			b.marks.setRelook(name)
			b.Agenda.Look(agenda.Look{Repo: name})
		}
	}
}

// Applied asks for another look at the clusters that were held for the document of one
// which was applied: it is another cluster's then. Rec is the record of that.
func (i *Intake) Applied(ctx context.Context, rec holdfast.ClusterRecord) error {
	// While a run is executed, a cluster whose document is missing waits for that.
	names, err := i.opts.Store.ClusterNames(ctx, holdfast.ClusterFilter{Owner: rec.Owner, Waiting: holdfast.ReasonMissing})
	if err != nil {
		return fmt.Errorf("list missing clusters of %q: %w", rec.Owner, err)
	}
	names = append(names, i.marks.recheckIn(rec.Owner)...)
	slices.Sort(names)
	held, err := i.holds.of(rec.Owner, slices.Compact(names), func(names []string) (map[string][]string, error) {
		return i.Lineage.HeldFor(ctx, rec.Owner, names)
	})
	for _, name := range held[rec.Name] {
		i.Recheck(rec.Owner, name)
	}
	return err
}

// holds are the clusters that are held for documents of others. They are read once for each
// change, and not with each apply. It is safe for concurrent use.
type holds struct {
	mu sync.Mutex
	by map[string]held // by repository
}

// held are the clusters of a repository that are held.
type held struct {
	names     []string            // of those that were looked at
	documents map[string][]string // the clusters, by the document; nil: not known
	changes   int
}

func newHolds() *holds { return &holds{by: make(map[string]held)} }

// of returns, by the name of the document, which of some clusters are held. It calls read if
// the clusters differ from the last time, or their records have changed.
func (h *holds) of(repo string, names []string, read func(names []string) (map[string][]string, error)) (map[string][]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	h.mu.Lock()
	is := h.by[repo]
	h.mu.Unlock()
	if is.documents != nil && slices.Equal(is.names, names) {
		return is.documents, nil
	}
	documents, err := read(names)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by[repo].changes == is.changes { // otherwise it was read too early
		h.by[repo] = held{names, documents, is.changes}
	}
	return documents, nil
}

// changed has the clusters of a repository read again.
func (h *holds) changed(repo string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.by[repo] = held{changes: h.by[repo].changes + 1}
}

// Freed asks for another look at the documents and the open pull requests of other
// repositories that define a cluster of a name which is free now: they were refused. Rec
// was the record of the cluster that had it.
func (i *Intake) Freed(ctx context.Context, rec holdfast.ClusterRecord) error {
	return i.branches.freed(ctx, rec)
}

func (b *branches) freed(ctx context.Context, rec holdfast.ClusterRecord) error {
	// Also where a branch is being taken in, which may have passed the document already.
	all := func(string) bool { return true }
	b.recheckOthers(ctx, rec.Owner, all, func(cat *catalog.Catalog) []string {
		if len(cat.Named(rec.Name)) == 0 {
			return nil
		}
		return []string{rec.Name}
	})
	open, err := b.opts.Store.PullRequests(ctx, holdfast.PullRequestFilter{
		States: []holdfast.PullRequestState{holdfast.PullRequestOpen}, Cluster: rec.Name, Limit: 10_000,
	})
	if err != nil {
		return fmt.Errorf("list pull requests of %q: %w", rec.Name, err)
	}
	for _, pr := range open {
		if pr.Repo != rec.Owner {
			b.Agenda.Look(agenda.Look{Repo: pr.Repo, Number: pr.Number, Known: true})
		}
	}
	return nil
}
