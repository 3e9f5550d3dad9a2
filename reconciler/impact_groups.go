package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
)

// usersOf returns the clusters that are made from a template: by its name, and
// in its own repository by its folder. Documents that are at fault by themselves,
// or claimed twice, are none.
func usersOf(t changedTemplate, own string, to *catalog, fleet map[holdfast.Revision]*catalog) []templateUser {
	var out []templateUser
	for revision, cat := range fleet {
		for name, entries := range cat.names.all() {
			if len(entries) != 1 || len(entries[0].file.faultsOf(name)) > 0 {
				continue
			}
			cluster := entries[0].doc.Cluster
			ref := cluster.Template
			beside := cat == to && cat.repo == own && ref != nil && ref.Path != "" && path.Join(path.Dir(cluster.Path), ref.Path) == t.dir
			if beside || ref != nil && ref.Name == t.name {
				out = append(out, templateUser{cat: cat, revision: revision, doc: entries[0].doc})
			}
		}
	}
	slices.SortFunc(out, func(a, b templateUser) int { return cmp.Compare(a.doc.Cluster.Name, b.doc.Cluster.Name) })
	return out
}

// proposedTemplate are the released templates, with one as a pull request has
// it, whatever its version.
type proposedTemplate struct {
	versions
	name, repo string
	tree       holdfast.Tree
	dir        string
}

// Version implements templates.Versions.
func (p proposedTemplate) Version(ctx context.Context, name, version string) (templates.TemplateVersion, error) {
	if name != p.name {
		return p.versions.Version(ctx, name, version)
	}
	return templates.TemplateVersion{Repo: p.repo, Tree: p.tree, Dir: p.dir}, nil
}

// assessor collects what a template's change does to one cluster after another,
// some side by side.
type assessor struct {
	r        *Reconciler
	from, to *catalog // of the pull request's repository
	version  string   // that is being prepared; empty: not known
	proposed *templates.Resolver

	mu     sync.Mutex
	impact *holdfast.Impact
	groups map[holdfast.Digest]*group
}

// group are clusters whose root modules change in the same way.
type group struct {
	holdfast.ImpactGroup
	members map[string]member
}

type member struct {
	user   templateUser
	digest holdfast.Digest // of the root module that it would have
}

// add renders one cluster as it is and as it would be.
func (a *assessor) add(ctx context.Context, user templateUser) error {
	c := user.doc.Cluster
	at := holdfast.ImpactCluster{Name: c.Name, Repo: user.cat.repo, Reach: a.reach(c), Version: c.Template.Version}
	before, faults, err := a.before(ctx, user)
	if err != nil {
		return err
	}
	doc := user.doc
	if c.Template.Path == "" {
		doc.Cluster.Template = &holdfast.TemplateRef{Name: c.Template.Name, Version: cmp.Or(a.version, c.Template.Version)}
	}
	after, refused, err := a.proposed.Resolve(ctx, user.cat.tree, doc)
	user.doc = doc
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch coming := at.Reach == holdfast.ReachRelease; {
	case len(faults) > 0 && !coming:
	case len(refused) > 0 && at.Reach == holdfast.ReachMerge: // a fault of the pull request itself
	case len(refused) > 0:
		a.impact.Refused = append(a.impact.Refused, holdfast.ImpactRefusal{ImpactCluster: at, Faults: refused})
	case before == nil && !coming: // new with this pull request
	case before == nil:
		a.put(at, holdfast.NewDigester("new root").Digest(), []string{"the root module is new"}, user, after)
	default:
		change := templates.Compare(before, after)
		if change.Key == "" {
			a.impact.Same++
			return nil
		}
		words := []string(nil)
		if a.groups[change.Key] == nil {
			words = change.Words()
		}
		a.put(at, change.Key, words, user, after)
	}
	return nil
}

// before renders a cluster as it is without the pull request; nil if it is at
// fault or not there.
func (a *assessor) before(ctx context.Context, user templateUser) (*templates.Root, holdfast.Faults, error) {
	if user.cat != a.to {
		return a.r.resolver.Resolve(ctx, user.cat.tree, user.doc)
	}
	entries := a.from.names.get(user.doc.Cluster.Name)
	if len(entries) != 1 {
		return nil, nil, nil
	}
	return a.r.resolver.Resolve(ctx, a.from.tree, entries[0].doc)
}

// reach says how a cluster would come to what is proposed.
func (a *assessor) reach(c holdfast.Cluster) holdfast.ImpactReach {
	switch ref := c.Template; {
	case ref.Path != "":
		return holdfast.ReachMerge
	case a.version == "":
		return holdfast.ReachManual
	case ref.Version == a.version:
		return holdfast.ReachRelease
	case ref.Upgrades != "" && templates.Next(ref.Version, ref.Upgrades, []string{a.version}) != "":
		return holdfast.ReachUpgrade
	default:
		return holdfast.ReachManual
	}
}

func (a *assessor) put(at holdfast.ImpactCluster, key holdfast.Digest, words []string, user templateUser, after *templates.Root) {
	g := a.groups[key]
	if g == nil {
		g = &group{ImpactGroup: holdfast.ImpactGroup{Key: key, Changes: words}, members: make(map[string]member)}
		a.groups[key] = g
	}
	g.Clusters = append(g.Clusters, at)
	g.members[at.Name] = member{user: user, digest: after.Digest}
}

// reaches are the ways to a new version, the most direct first.
var reaches = []holdfast.ImpactReach{ //nolint:gochecknoglobals // a constant list
	holdfast.ReachMerge, holdfast.ReachRelease, holdfast.ReachUpgrade, holdfast.ReachManual,
}

// sorted returns the groups: those that move first, then the largest.
func (a *assessor) sorted() []*group {
	byReach := func(x, y holdfast.ImpactCluster) int {
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
	slices.SortFunc(a.impact.Refused, func(x, y holdfast.ImpactRefusal) int { return byReach(x.ImpactCluster, y.ImpactCluster) })
	return groups
}

// trials are the clusters to plan, to show what a template's change would do: one
// of each group as far as the budget goes, or with all every one. Clusters that
// the merge applies are planned in any case, and stand for their group.
func (r *Reconciler) trials(
	ctx context.Context, repo Repository, groups []*group, former []holdfast.PullRequestCluster, all bool,
) ([]holdfast.PullRequestCluster, error) {
	var out []holdfast.PullRequestCluster
	if repo.Trials < 0 {
		return nil, nil
	}
	for _, g := range groups {
		if all {
			for _, c := range g.Clusters {
				if c.Reach != holdfast.ReachMerge && len(out) < trialsMost {
					out = append(out, g.trial(c.Name))
				}
			}
			continue
		}
		if g.Clusters[0].Reach == holdfast.ReachMerge || len(out) >= repo.Trials {
			continue
		}
		name, err := r.sample(ctx, g, former)
		if err != nil {
			return nil, err
		}
		out = append(out, g.trial(name))
	}
	return out, nil
}

func (g *group) trial(name string) holdfast.PullRequestCluster {
	m := g.members[name]
	return holdfast.PullRequestCluster{
		Name: name, SourceDigest: m.digest, Document: m.user.doc.Cluster, Trial: true,
		Repo: m.user.cat.repo, Revision: m.user.revision,
	}
}

// sample chooses the cluster that is planned for its group: the one that was, if
// it is still in it, else the first that is applied.
func (r *Reconciler) sample(ctx context.Context, g *group, former []holdfast.PullRequestCluster) (string, error) {
	for _, c := range former {
		if _, in := g.members[c.Name]; in {
			return c.Name, nil
		}
	}
	var names []string
	for _, c := range g.Clusters[:min(len(g.Clusters), sampleFrom)] {
		names = append(names, c.Name)
	}
	records, err := r.records(ctx, names)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if records[name].Applied.Run != "" && records[name].Ending == nil {
			return name, nil
		}
	}
	return names[0], nil
}

// fillTrial gives a run the root module that a cluster would have with a pull
// request's template.
func (r *Reconciler) fillTrial(ctx context.Context, in Input, want holdfast.PullRequestCluster, run *holdfast.Run) error {
	pr := in.PullRequest
	run.Repo, run.Trial = want.Repo, true
	cat, err := r.catalog(ctx, r.repos[want.Repo], string(want.Revision))
	if err != nil {
		return err
	}
	entries := cat.names.get(run.Cluster)
	if len(entries) != 1 || want.Document.Template == nil {
		return fmt.Errorf("find cluster in %s at %s: %w", want.Repo, want.Revision, holdfast.ErrNotFound)
	}
	tree, err := r.opts.Git.Tree(ctx, pr.Repo, pr.Result)
	if err != nil {
		return fmt.Errorf("open %s at %s: %w", pr.Repo, pr.Result, err)
	}
	name := want.Document.Template.Name
	proposed := proposedTemplate{versions{r}, name, pr.Repo, tree, path.Clean(r.repos[pr.Repo].Templates[name])}
	doc := entries[0].doc
	doc.Cluster = want.Document
	return r.fillRoot(ctx, r.resolver.Using(proposed), cat.tree, doc, run)
}
