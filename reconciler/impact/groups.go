package impact

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/byname"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/semver"
)

// usersOf returns the clusters that are made from a template: by its name, and in its
// own repository by its folder. Documents with faults of their own, claimed twice, or
// under a name that belongs to another repository, do not count.
func (k *Keeper) usersOf(
	ctx context.Context, t changedTemplate, own string, fleet map[string]snapshot,
) ([]templateUser, error) {
	var out []templateUser
	for _, repo := range slices.Sorted(maps.Keys(fleet)) {
		users := make(map[string]templateUser)
		for name, entries := range fleet[repo].cat.All() {
			if len(entries) != 1 || len(entries[0].File.FaultsOf(name)) > 0 {
				continue
			}
			cluster := entries[0].Doc.Cluster
			ref := cluster.Template
			byPath := repo == own && ref != nil && ref.Path != "" && path.Join(path.Dir(cluster.Path), ref.Path) == t.dir
			if byPath || ref != nil && ref.Name == t.name {
				users[name] = templateUser{snapshot: fleet[repo], doc: entries[0].Doc}
			}
		}
		if err := k.dropForeign(ctx, repo, users); err != nil {
			return nil, err
		}
		out = slices.AppendSeq(out, maps.Values(users))
	}
	slices.SortFunc(out, func(a, b templateUser) int {
		return cmp.Or(cmp.Compare(a.doc.Cluster.Name, b.doc.Cluster.Name), cmp.Compare(a.cat.Repo, b.cat.Repo))
	})
	return slices.CompactFunc(out, func(a, b templateUser) bool { return a.doc.Cluster.Name == b.doc.Cluster.Name }), nil
}

// dropForeign removes the documents of a repository whose names belong to another one.
// No record of its own is read: there may be thousands.
func (k *Keeper) dropForeign(ctx context.Context, repo string, users map[string]templateUser) error {
	if len(users) == 0 {
		return nil
	}
	owned, err := k.opts.Store.ClusterNames(ctx, holdfast.ClusterFilter{Owner: repo})
	if err != nil {
		return fmt.Errorf("list clusters of %q: %w", repo, err)
	}
	ours := make(map[string]bool, len(owned))
	for _, name := range owned {
		ours[name] = true
	}
	var others []string
	for name := range users {
		if !ours[name] {
			others = append(others, name)
		}
	}
	for some := range slices.Chunk(others, byname.AtOnce) {
		records, err := byname.Records(ctx, k.opts.Store, some)
		if err != nil {
			return err
		}
		for name, rec := range records {
			if elsewhere, err := k.opts.Fleet.OwnedElsewhere(ctx, repo, rec); err != nil {
				return err
			} else if elsewhere {
				delete(users, name)
			}
		}
	}
	return nil
}

// assessor collects what a template's change does to one cluster after another,
// some side by side.
type assessor struct {
	k        *Keeper
	from, to *catalog.Catalog // of the pull request's repository
	version  string           // that is being prepared; empty: not known
	named    string           // that template.yaml names, released or not
	proposed *templates.Resolver
	based    bool    // the base has the template, without faults
	former   effects // what was found out before, of the same template

	mu      sync.Mutex
	impact  *rollout.Impact
	groups  map[holdfast.Digest]*group
	known   effects                             // what is found out, to be remembered
	reaches map[holdfast.Digest]templates.Reach // by how root modules change
	words   map[holdfast.Digest][]string        // likewise
}

// group are clusters whose root modules change in the same way, with the same
// values where that reaches.
type group struct {
	rollout.ImpactGroup
	members map[string]member
}

type member struct {
	user   templateUser
	digest holdfast.Digest // of the root module that it would have
	coming bool            // its document names the version that is prepared
}

// add finds out what becomes of one cluster, unless that is known.
func (a *assessor) add(ctx context.Context, user templateUser) error {
	c := user.doc.Cluster
	at := rollout.ImpactCluster{Name: c.Name, Repo: user.cat.Repo, Reach: a.reach(c), Version: c.Template.Version}
	doc := user.doc
	if c.Template.Path == "" {
		doc.Cluster.Template = &holdfast.TemplateRef{Name: c.Template.Name, Version: cmp.Or(a.named, c.Template.Version)}
	}
	document, stays := a.documentOf(user, at.Reach)
	e, known := a.former.clusters[document]
	words := func() []string { return a.former.words[e.key] }
	if !stays || !known {
		var err error
		if e, words, err = a.effect(ctx, user, doc, at.Reach); err != nil {
			return err
		}
	}
	user.doc = doc
	a.mu.Lock()
	defer a.mu.Unlock()
	if g := a.groups[e.key]; g != nil {
		e.key = g.Key // thousands of effects have the same: one text for all
	}
	if stays {
		a.known.clusters[document] = e
	}
	switch e.kind {
	case effectNone:
	case effectSame:
		a.impact.Same++
	case effectRefused:
		a.impact.Refused = append(a.impact.Refused, rollout.ImpactRefusal{ImpactCluster: at, Faults: e.refused})
	case effectChange:
		a.put(at, e, words, user)
	}
	return nil
}

// forbidden reports whether a document, which renders to root, is one that its
// repository may not define.
func (a *assessor) forbidden(user templateUser, root *templates.Root) bool {
	return root != nil && len(a.k.opts.Fleet.Forbidden(user.cat.Repo, user.doc, root.StateLocation)) > 0
}

// before renders a cluster as it is without the pull request; nil if it has faults or
// is not there.
func (a *assessor) before(ctx context.Context, user templateUser) (*templates.Root, holdfast.Faults, error) {
	if user.cat != a.to {
		return a.k.opts.Resolver.Resolve(ctx, user.cat.Tree, user.doc)
	}
	entries := a.from.Named(user.doc.Cluster.Name)
	if len(entries) != 1 {
		return nil, nil, nil
	}
	return a.k.opts.Resolver.Resolve(ctx, a.from.Tree, entries[0].Doc)
}

// reach says how a cluster would get what is proposed.
func (a *assessor) reach(c holdfast.Cluster) rollout.ImpactReach {
	switch ref := c.Template; {
	case ref.Path != "":
		return rollout.ReachMerge
	case a.version == "":
		return rollout.ReachManual
	case ref.Version == a.version:
		return rollout.ReachRelease
	case ref.Upgrades != "" && semver.Next(ref.Version, ref.Upgrades, []string{a.version}) != "":
		return rollout.ReachUpgrade
	default:
		return rollout.ReachManual
	}
}

func (a *assessor) put(at rollout.ImpactCluster, e effect, words func() []string, user templateUser) {
	g := a.groups[e.key]
	if g == nil {
		g = &group{ImpactGroup: rollout.ImpactGroup{Key: e.key, Changes: words()}, members: make(map[string]member)}
		a.groups[e.key], a.known.words[e.key] = g, g.Changes
	}
	g.Clusters = append(g.Clusters, at)
	g.members[at.Name] = member{user: user, digest: e.digest, coming: at.Reach == rollout.ReachRelease}
}

// reaches are the ways to a new version, the most direct first.
var reaches = []rollout.ImpactReach{ //nolint:gochecknoglobals // a constant list
	rollout.ReachMerge, rollout.ReachRelease, rollout.ReachUpgrade, rollout.ReachManual,
}

// sorted returns the groups: those that move first, then the largest.
func (a *assessor) sorted() []*group {
	byReach := func(x, y rollout.ImpactCluster) int {
		return cmp.Or(
			cmp.Compare(slices.Index(reaches, x.Reach), slices.Index(reaches, y.Reach)), cmp.Compare(x.Name, y.Name),
		)
	}
	groups := slices.Collect(maps.Values(a.groups))
	for _, g := range groups {
		slices.SortFunc(g.Clusters, byReach)
	}
	slices.SortFunc(groups, func(x, y *group) int {
		first, second := x.Clusters[0], y.Clusters[0]
		return cmp.Or(
			cmp.Compare(slices.Index(reaches, first.Reach), slices.Index(reaches, second.Reach)),
			cmp.Compare(len(y.Clusters), len(x.Clusters)), cmp.Compare(first.Name, second.Name),
		)
	})
	slices.SortFunc(a.impact.Refused, func(x, y rollout.ImpactRefusal) int { return byReach(x.ImpactCluster, y.ImpactCluster) })
	return groups
}

// samples are the clusters to plan, to show what a template's change would do: one of
// each group as far as the budget goes, or with all every one. Clusters that the merge
// applies are planned in any case: their groups come last, as something of them is
// known. But what is made from a folder is there to try things out, more often than
// not, and does not represent those that name a version. Clusters that the pull request
// changes otherwise are planned for what their own change is.
func (k *Keeper) samples(
	ctx context.Context, repo Repository, groups []*group, former []holdfast.PullRequestCluster, rec *holdfast.PullRequestRecord,
) ([]holdfast.PullRequestCluster, error) {
	var out []holdfast.PullRequestCluster
	if repo.Samples < 0 {
		return nil, nil
	}
	own := make(map[string]bool, len(rec.Clusters))
	for _, c := range rec.Clusters {
		own[c.Name] = true
	}
	groups = slices.Clone(groups)
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(a.merged(), b.merged()) })
	for _, g := range groups {
		var names []string
		for _, c := range g.Clusters {
			if c.Reach != rollout.ReachMerge && !own[c.Name] && repo.maySample(g.members[c.Name].user.doc.Cluster) {
				names = append(names, c.Name)
			}
		}
		var err error
		switch {
		case rec.AllSamples:
			names, err = k.plannable(ctx, g, names[:min(len(names), samplesMost-len(out))])
		case len(out) >= repo.Samples:
			continue
		default:
			names, err = k.chooseSample(ctx, g, names, former)
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			out = append(out, g.sample(name))
		}
	}
	return out, nil
}

// maySample reports whether a cluster may be planned to show what a template's change
// would do. The author of the change decides which clusters it reaches, and so which of
// them can be the sample.
func (r Repository) maySample(c holdfast.Cluster) bool {
	return len(r.SampleEnvironments) == 0 || slices.ContainsFunc(r.SampleEnvironments, func(glob string) bool {
		ok, err := doublestar.Match(glob, c.Environment)
		return ok && err == nil
	})
}

// merged is 1 if the merge applies some of the group, otherwise 0.
func (g *group) merged() int {
	if g.Clusters[0].Reach == rollout.ReachMerge {
		return 1
	}
	return 0
}

func (g *group) sample(name string) holdfast.PullRequestCluster {
	m := g.members[name]
	return holdfast.PullRequestCluster{
		Name: name, SourceDigest: m.digest, Document: m.user.doc.Cluster, Sample: true,
		Repo: m.user.cat.Repo, Revision: m.user.revision,
	}
}

// chooseSample chooses the cluster that is planned for its group: the one that was, if
// it is still in it, otherwise the first that is applied. There is none if none can be
// planned.
func (k *Keeper) chooseSample(
	ctx context.Context, g *group, names []string, former []holdfast.PullRequestCluster,
) ([]string, error) {
	for _, c := range former {
		if slices.Contains(names, c.Name) {
			names = []string{c.Name}
			break
		}
	}
	names = names[:min(len(names), sampleFrom)]
	records, err := byname.Records(ctx, k.opts.Store, names)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !g.plannable(name, records[name]) })
	applied := slices.IndexFunc(names, func(name string) bool {
		return records[name].Applied.Run != "" && records[name].Deletion == nil
	})
	if len(names) == 0 {
		return nil, nil
	}
	return []string{names[max(applied, 0)]}, nil
}

// plannable returns those of a group's clusters that can be planned.
func (k *Keeper) plannable(ctx context.Context, g *group, names []string) ([]string, error) {
	var out []string
	for some := range slices.Chunk(names, byname.AtOnce) {
		records, err := byname.Records(ctx, k.opts.Store, some)
		if err != nil {
			return nil, err
		}
		for _, name := range some {
			if g.plannable(name, records[name]) {
				out = append(out, name)
			}
		}
	}
	return out, nil
}

// plannable reports whether a cluster's record allows its plan: conflicts of its
// document with others, such as a state that is another one's, are recorded only there.
// A cluster that waits for the version that is prepared has a fault until then.
func (g *group) plannable(name string, rec holdfast.ClusterRecord) bool {
	m := g.members[name]
	return m.coming || rec.Name == "" || rec.Deletion != nil || rec.Owner == m.user.cat.Repo && len(rec.Desired.Faults) == 0
}
