package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
)

// A pull request that changes a published template gets told what that would do
// to the fleet: its impact. The root modules of all clusters that are made from
// the template are rendered with it, and grouped by how they change; a sample of
// each group is planned, as a trial. Its merge applies none of them: clusters move
// when their own documents name another version.

const (
	// trialsMost bounds what /holdfast plan --all plans.
	trialsMost = 1000
	// assessEvery is how often the impact of a pull request is looked at again,
	// at most, because the fleet has changed.
	assessEvery = time.Minute
	// sampleFrom is among how many clusters of a group one is looked for that is
	// applied: the plan of one that is not shows everything as new.
	sampleFrom = 50
)

// assessment is what an impact was made from, and what of it is not on record.
type assessment struct {
	key    holdfast.Digest
	faults holdfast.Faults
}

// changedTemplate is a published template that a pull request changes.
type changedTemplate struct {
	name, dir string
	from, to  *templates.Template // from: on the base; nil if it is new there, or at fault
}

// templateUser is a cluster that is made from a template, by its document.
type templateUser struct {
	cat      *catalog
	revision holdfast.Revision // of cat; its tree, in the pull request's own repository
	doc      templates.Document
}

// assess records what the pull request's changes of templates would do to the
// clusters that are made from them, and adds the samples to be planned to its
// clusters. Former are the clusters that it had before.
func (r *Reconciler) assess(
	ctx context.Context, repo Repository, from, to *catalog, former []holdfast.PullRequestCluster, rec *holdfast.PullRequestRecord,
) error {
	if len(repo.Templates) == 0 {
		return nil
	}
	changed, faults, err := r.changedTemplates(repo, from, to)
	if err != nil {
		return err
	}
	rec.Faults = append(rec.Faults, faults...)
	trials := slices.DeleteFunc(slices.Clone(former), func(c holdfast.PullRequestCluster) bool { return !c.Trial })
	if len(changed) == 0 {
		if r.assessed.take(rec.PullRequestRef) || len(trials) > 0 {
			return r.opts.Store.SaveImpacts(ctx, rec.PullRequestRef, nil)
		}
		return nil
	}
	fleet, err := r.fleet(ctx, repo, to)
	if err != nil {
		return err
	}
	key := r.assessmentKey(rec, from, to, fleet)
	if r.assessed.is(rec.PullRequestRef, key) {
		rec.Clusters = append(rec.Clusters, trials...)
		return nil
	}
	var impacts []holdfast.Impact
	for _, t := range changed {
		impact, chosen, err := r.assessTemplate(ctx, repo, t, to, fleet, trials, rec)
		if err != nil {
			return fmt.Errorf("assess template %s: %w", t.name, err)
		}
		impacts, rec.Clusters = append(impacts, impact), append(rec.Clusters, chosen...)
	}
	if err := r.opts.Store.SaveImpacts(ctx, rec.PullRequestRef, impacts); err != nil {
		return fmt.Errorf("record impact of %s: %w", rec.PullRequestRef, err)
	}
	r.assessed.put(rec.PullRequestRef, key)
	return nil
}

// changedTemplates returns the published templates that differ between two
// trees, and what is wrong with those that do.
func (r *Reconciler) changedTemplates(repo Repository, from, to *catalog) ([]changedTemplate, holdfast.Faults, error) {
	var out []changedTemplate
	var faults holdfast.Faults
	for _, name := range slices.Sorted(maps.Keys(repo.Templates)) {
		t := changedTemplate{name: name, dir: path.Clean(repo.Templates[name])}
		before, was, err := r.resolver.Load(from.tree, t.dir)
		if err != nil {
			return nil, nil, fmt.Errorf("read template %s: %w", name, err)
		}
		after, is, err := r.resolver.Load(to.tree, t.dir)
		if err != nil {
			return nil, nil, fmt.Errorf("read template %s: %w", name, err)
		}
		switch {
		case len(is) > 0:
			if !slices.Equal(was, is) { // else as wrong as it was
				faults = append(faults, is...)
			}
		case len(was) == 0 && before.Digest().Equal(after.Digest()):
		default:
			if t.to = after; len(was) == 0 {
				t.from = before
			}
			out = append(out, t)
		}
	}
	return out, faults, nil
}

// fleet returns the catalogs of all repositories' tracked branches, and for the
// pull request's own repository that of its merge result.
func (r *Reconciler) fleet(ctx context.Context, repo Repository, to *catalog) (map[holdfast.Revision]*catalog, error) {
	fleet := map[holdfast.Revision]*catalog{holdfast.Revision(to.id): to}
	for _, other := range r.opts.Repositories {
		if other.Name == repo.Name {
			continue
		}
		source, err := r.opts.Store.Source(ctx, other.Name)
		if errors.Is(err, holdfast.ErrNotFound) || err == nil && source.Head == "" {
			continue // not seen yet: it asks for this again when it is
		} else if err != nil {
			return nil, fmt.Errorf("read source %q: %w", other.Name, err)
		}
		cat, err := r.catalog(ctx, r.repos[other.Name], string(source.Head))
		if err != nil {
			return nil, err
		}
		fleet[source.Head] = cat
	}
	return fleet, nil
}

// assessmentKey is of all that an impact depends on.
func (r *Reconciler) assessmentKey(
	rec *holdfast.PullRequestRecord, from, to *catalog, fleet map[holdfast.Revision]*catalog,
) holdfast.Digest {
	digest := holdfast.NewDigester("assessment")
	digest.Add(from.id, to.id, fmt.Sprint(rec.AllTrials))
	for _, revision := range slices.Sorted(maps.Keys(fleet)) {
		digest.Add(fleet[revision].repo, fleet[revision].id)
	}
	for _, ref := range slices.Sorted(maps.Keys(r.lastRefs(rec.Repo))) {
		digest.Add(ref)
	}
	return digest.Digest()
}

// assessTemplate says what the change of one template would do, and which
// clusters are planned to show it.
func (r *Reconciler) assessTemplate(
	ctx context.Context, repo Repository, t changedTemplate, to *catalog, fleet map[holdfast.Revision]*catalog,
	former []holdfast.PullRequestCluster, rec *holdfast.PullRequestRecord,
) (holdfast.Impact, []holdfast.PullRequestCluster, error) {
	impact := holdfast.Impact{Template: t.name, Dir: t.dir}
	if err := r.assessVersion(ctx, repo, t, &impact); err != nil {
		return impact, nil, err
	}
	users := usersOf(t, repo.Name, to, fleet)
	proposed := r.resolver.Using(proposedTemplate{versions{r}, t.name, repo.Name, to.tree, t.dir})
	a := assessor{r: r, t: t, proposed: proposed, impact: &impact, groups: make(map[holdfast.Digest]*group)}
	err := sideBySide(ctx, len(users), func(i int) error { return a.add(ctx, users[i]) })
	if err != nil {
		return impact, nil, err
	}
	groups := a.sorted()
	for _, g := range groups {
		impact.Groups = append(impact.Groups, g.ImpactGroup)
	}
	trials, err := r.trials(ctx, repo, groups, former, rec.AllTrials)
	return impact, trials, err
}

// assessVersion says which version the change prepares, from which it goes on,
// and what is different then.
func (r *Reconciler) assessVersion(ctx context.Context, repo Repository, t changedTemplate, impact *holdfast.Impact) error {
	released := available(r.lastRefs(repo.Name), t.name)
	blueprint := t.to.Blueprint()
	if !slices.Contains(released, blueprint.Version) {
		impact.Version = blueprint.Version
	}
	impact.Released = templates.Newest(released, impact.Version)
	former := t.from
	if impact.Released != "" {
		v, err := versions{r}.Version(ctx, t.name, impact.Released)
		if err == nil {
			last, faults, err := r.resolver.Load(v.Tree, v.Dir)
			if err != nil {
				return fmt.Errorf("read version %s: %w", impact.Released, err)
			}
			if len(faults) == 0 {
				former = last
			}
		} else if !errors.Is(err, holdfast.ErrNotFound) { // such as a tag that was moved
			return fmt.Errorf("read version %s: %w", impact.Released, err)
		}
	}
	if former == nil {
		return nil
	}
	impact.Changes = templates.Diff(former.Blueprint(), blueprint)
	breaks := slices.IndexFunc(impact.Changes, func(c holdfast.TemplateChange) bool { return c.Breaking })
	if breaks >= 0 && impact.Version != "" && impact.Released != "" && !templates.MayBreak(impact.Released, impact.Version) {
		impact.Fault = fmt.Sprintf("%s %s after %s must not break documents, and this does: %s %s. Name a new major version, or keep what was valid valid",
			t.name, impact.Version, impact.Released, impact.Changes[breaks].About, impact.Changes[breaks].What)
	}
	return nil
}

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
	t        changedTemplate
	proposed *templates.Resolver

	mu     sync.Mutex
	impact *holdfast.Impact
	groups map[holdfast.Digest]*group
}

// group are clusters whose root modules change in the same way.
type group struct {
	holdfast.ImpactGroup
	members map[string]holdfast.PullRequestCluster
}

// add renders one cluster as it is and as it would be.
func (a *assessor) add(ctx context.Context, user templateUser) error {
	c := user.doc.Cluster
	at := holdfast.ImpactCluster{Name: c.Name, Repo: user.cat.repo, Reach: a.reach(c), Version: c.Template.Version}
	before, faults, err := a.r.resolver.Resolve(ctx, user.cat.tree, user.doc)
	if err != nil {
		return err
	}
	if at.Reach == holdfast.ReachMerge {
		before, faults, err = a.onBase(ctx, user, before, faults)
		if err != nil {
			return err
		}
	}
	after, refused, err := a.proposed.Resolve(ctx, user.cat.tree, a.t.forDocument(user.doc))
	if err != nil {
		return err
	}
	coming := at.Reach == holdfast.ReachRelease // valid only from the release on
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case len(faults) > 0 && !coming:
	case len(refused) > 0:
		a.impact.Refused = append(a.impact.Refused, holdfast.ImpactRefusal{ImpactCluster: at, Faults: refused})
	case before == nil:
		a.put("", nil, at, user, after)
	default:
		change := templates.Compare(before, after)
		if change.Key == "" {
			a.impact.Same++
		} else {
			a.put(change.Key, change.Words, at, user, after)
		}
	}
	return nil
}
