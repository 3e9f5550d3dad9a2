package impact

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/parallel"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/diff"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/semver"
)

const (
	// samplesMost bounds what /holdfast plan --all plans.
	samplesMost = 1000
	// assessEvery is how often the impact of a pull request is looked at again,
	// at most, because the fleet has changed.
	assessEvery = time.Minute
	// unseenRetry is when repositories are looked at again that could not be read.
	unseenRetry = 5 * time.Minute
	// sampleFrom is among how many clusters of a group one is looked for that is
	// applied: the plan of one that is not shows everything as new.
	sampleFrom = 50
)

// assessments remembers what the impacts of pull requests were made from. It is
// safe for concurrent use.
type assessments struct {
	mu      sync.Mutex
	keys    map[holdfast.PullRequestRef]holdfast.Digest
	effects map[holdfast.PullRequestRef]map[string]effects // by template
	recent  []holdfast.PullRequestRef                      // that have effects, the one looked at last at the end
}

func newAssessments() *assessments {
	return &assessments{
		keys:    make(map[holdfast.PullRequestRef]holdfast.Digest),
		effects: make(map[holdfast.PullRequestRef]map[string]effects),
	}
}

func (a *assessments) is(ref holdfast.PullRequestRef, key holdfast.Digest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.keys[ref] == key
}

func (a *assessments) put(ref holdfast.PullRequestRef, key holdfast.Digest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys[ref] = key
}

// take forgets a pull request, and reports whether it had an impact.
func (a *assessments) take(ref holdfast.PullRequestRef) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, had := a.keys[ref]
	delete(a.keys, ref)
	delete(a.effects, ref)
	a.recent = slices.DeleteFunc(a.recent, func(other holdfast.PullRequestRef) bool { return other == ref })
	return had
}

// forget forgets the pull requests of a repository.
func (a *assessments) forget(repo string) {
	for _, ref := range a.of() {
		if ref.Repo == repo {
			a.take(ref)
		}
	}
}

// of returns the pull requests that have an impact.
func (a *assessments) of() []holdfast.PullRequestRef {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.keys))
}

// changedTemplate is a published template that a pull request changes.
type changedTemplate struct {
	name, dir string
	from, to  *templates.Template // from: on the base; nil if it is new there, or has faults
}

// snapshot is what a repository says of clusters, and where.
type snapshot struct {
	cat      *catalog.Catalog
	revision holdfast.Revision // of cat; its tree, in the pull request's own repository
}

// templateUser is a cluster that is made from a template, by its document.
type templateUser struct {
	snapshot
	doc document.Document
}

// Assess records what the pull request's changes of templates would do to the clusters
// that are made from them, and adds the samples to be planned to its clusters. Before
// is the record as it was. The recorded impact follows from rec.Assessed: if the record
// was not saved, it is made again.
func (k *Keeper) Assess(
	ctx context.Context, name string, from, to *catalog.Catalog, before holdfast.PullRequestRecord, rec *holdfast.PullRequestRecord,
) error {
	repo := k.repos[name]
	if len(repo.Templates) == 0 {
		return nil
	}
	changed, faults, err := k.changedTemplates(repo, from, to)
	if err != nil {
		return err
	}
	rec.Faults = append(rec.Faults, faults...)
	if len(changed) == 0 {
		return k.Forget(ctx, rec.PullRequestRef)
	}
	samples := slices.DeleteFunc(slices.Clone(before.Clusters), func(c holdfast.PullRequestCluster) bool { return !c.Sample })
	fleet, unseen, err := k.fleet(ctx, repo, to)
	if err != nil {
		return err
	}
	if len(unseen) > 0 { // nobody may notice when they can be read again
		k.opts.Fleet.LookAgain(rec.PullRequestRef, unseenRetry)
	}
	rec.Assessed = k.assessmentKey(rec, from, fleet, unseen)
	if rec.Assessed.Equal(before.Assessed) && k.memory.is(rec.PullRequestRef, rec.Assessed) {
		rec.Clusters = append(rec.Clusters, samples...)
		return nil
	}
	var impacts []rollout.Impact
	budget := repo.Samples
	for i, t := range changed {
		if repo.Samples > 0 && !rec.AllSamples { // one budget for all: what one leaves goes to the others
			repo.Samples = (budget + len(changed) - i - 1) / (len(changed) - i)
		}
		impact, chosen, err := k.assessTemplate(ctx, repo, t, from, to, fleet, samples, rec)
		budget -= len(chosen)
		if err != nil {
			return fmt.Errorf("assess template %s: %w", t.name, err)
		}
		impact.Unseen = unseen
		impacts, rec.Clusters = append(impacts, impact), append(rec.Clusters, chosen...)
	}
	if err := k.opts.Store.SaveImpacts(ctx, rec.PullRequestRef, impacts); err != nil {
		return fmt.Errorf("record impact of %s: %w", rec.PullRequestRef, err)
	}
	return nil
}

// Forget removes what is known of a pull request's effects.
func (k *Keeper) Forget(ctx context.Context, ref holdfast.PullRequestRef) error {
	k.memory.take(ref)
	if err := k.opts.Store.SaveImpacts(ctx, ref, nil); err != nil {
		return fmt.Errorf("forget impact of %s: %w", ref, err)
	}
	return nil
}

// changedTemplates returns the published templates that differ between two
// trees, and what is wrong with those that do.
func (k *Keeper) changedTemplates(repo Repository, from, to *catalog.Catalog) ([]changedTemplate, holdfast.Faults, error) {
	var out []changedTemplate
	var faults holdfast.Faults
	for _, name := range slices.Sorted(maps.Keys(repo.Templates)) {
		t := changedTemplate{name: name, dir: path.Clean(repo.Templates[name])}
		before, was, err := k.opts.Resolver.Load(from.Tree, t.dir)
		if err != nil {
			return nil, nil, fmt.Errorf("read template %s: %w", name, err)
		}
		after, is, err := k.opts.Resolver.Load(to.Tree, t.dir)
		if err != nil {
			return nil, nil, fmt.Errorf("read template %s: %w", name, err)
		}
		touched, err := k.touched(from.Tree, to.Tree, t.dir)
		if err != nil {
			return nil, nil, fmt.Errorf("compare template %s: %w", name, err)
		}
		switch {
		case !touched && slices.Equal(was, is): // also if it is as wrong as it was
		case len(is) > 0:
			faults = append(faults, is...)
		case after.Name != name:
			faults = append(faults, holdfast.Fault{
				File: after.File, Line: after.NameLine,
				Message: fmt.Sprintf("it is published as %q, but its metadata.name is %q: no cluster can refer to it", name, after.Name),
				Hint:    "set metadata.name to its name under repositories[].templates in holdfast.yaml",
			})
		default:
			if t.to = after; len(was) == 0 {
				t.from = before
			}
			out = append(out, t)
		}
	}
	return out, faults, nil
}

// touched reports whether two trees differ in what the template in a folder is made of.
func (k *Keeper) touched(from, to holdfast.Tree, dir string) (bool, error) {
	was, err := k.opts.Resolver.TemplateSources(from, dir)
	if err != nil {
		return false, err
	}
	is, err := k.opts.Resolver.TemplateSources(to, dir)
	return was != is, err
}

// fleet returns what all repositories' tracked branches say, by their names, and
// for the pull request's own one what its merge result does. Unseen are those that
// cannot be read now: what is there is not known, and the others are.
func (k *Keeper) fleet(
	ctx context.Context, repo Repository, to *catalog.Catalog,
) (fleet map[string]snapshot, unseen []string, err error) {
	fleet = map[string]snapshot{repo.Name: {to, holdfast.Revision(to.ID)}}
	for _, other := range k.opts.Repositories {
		if other.Name == repo.Name || !other.Clusters {
			continue
		}
		source, err := k.opts.Store.RepositoryState(ctx, other.Name)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return nil, nil, fmt.Errorf("read source %q: %w", other.Name, err)
		}
		if source.Head == "" && source.LastError == holdfast.NoBranch(other.Branch) {
			continue // it is empty
		}
		if source.Head == "" { // not seen yet: it asks for this again when it is
			unseen = append(unseen, other.Name)
			continue
		}
		cat, err := k.opts.Catalogs.Read(ctx, other.Name, string(source.Head))
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			k.opts.Logger.WarnContext(ctx, "clusters of a repository were not read", "repo", other.Name, "err", err)
			unseen = append(unseen, other.Name)
			continue
		}
		fleet[other.Name] = snapshot{cat, source.Head}
	}
	slices.Sort(unseen)
	return fleet, unseen, nil
}

// assessmentKey is a digest of all that an impact depends on.
func (k *Keeper) assessmentKey(
	rec *holdfast.PullRequestRecord, from *catalog.Catalog, fleet map[string]snapshot, unseen []string,
) holdfast.Digest {
	digest := holdfast.NewDigester("assessment")
	digest.Add(from.ID, fmt.Sprint(rec.AllSamples))
	for _, name := range slices.Sorted(maps.Keys(fleet)) {
		digest.Add(name, string(fleet[name].revision), fleet[name].cat.ID)
	}
	digest.Add(append([]string{"unseen"}, unseen...)...)
	refs := k.opts.Fleet.Refs(rec.Repo)
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		if strings.HasPrefix(ref, "refs/tags/") {
			digest.Add(ref, string(refs[ref]))
		}
	}
	return digest.Digest()
}

// assessTemplate says what the change of one template would do, and which
// clusters are planned to show it.
func (k *Keeper) assessTemplate(
	ctx context.Context, repo Repository, t changedTemplate, from, to *catalog.Catalog, fleet map[string]snapshot,
	former []holdfast.PullRequestCluster, rec *holdfast.PullRequestRecord,
) (rollout.Impact, []holdfast.PullRequestCluster, error) {
	impact := rollout.Impact{Template: t.name, Dir: t.dir}
	if err := k.assessVersion(ctx, repo, t, &impact); err != nil {
		return impact, nil, err
	}
	users, err := k.usersOf(ctx, t, repo.Name, fleet)
	if err != nil {
		return impact, nil, err
	}
	proposed := k.opts.Resolver.Using(releases.Proposed{
		Released: k.opts.Releases, Name: t.name, Repo: repo.Name, Tree: to.Tree, Dir: t.dir,
	})
	blueprint := t.to.Blueprint()
	a := assessor{
		k: k, from: from, to: to, version: impact.Version, named: blueprint.Version,
		reaches: make(map[holdfast.Digest]templates.Reach), words: make(map[holdfast.Digest][]string),
		proposed: proposed, based: t.from != nil, impact: &impact, groups: make(map[holdfast.Digest]*group),
	}
	a.former = k.memory.effectsOf(rec.PullRequestRef, t.name, a.effectsDependOn(t))
	a.known = effects{of: a.former.of, clusters: make(map[documentAt]effect, len(users)), words: make(map[holdfast.Digest][]string)}
	err = parallel.Each(ctx, len(users), func(i int) error { return a.add(ctx, users[i]) })
	if err != nil {
		return impact, nil, err
	}
	k.memory.keep(rec.PullRequestRef, t.name, a.known)
	groups := a.sorted()
	for _, g := range groups {
		impact.Groups = append(impact.Groups, g.ImpactGroup)
	}
	samples, err := k.samples(ctx, repo, groups, former, rec)
	return impact, samples, err
}

// assessVersion says which version the change prepares, from which it continues,
// and what is different then.
func (k *Keeper) assessVersion(ctx context.Context, repo Repository, t changedTemplate, impact *rollout.Impact) error {
	released := releases.Available(k.opts.Fleet.Refs(repo.Name), t.name)
	blueprint := t.to.Blueprint()
	if !slices.Contains(released, blueprint.Version) {
		impact.Version = blueprint.Version
	}
	impact.Released = semver.Newest(released, impact.Version)
	former := t.from
	if impact.Released != "" {
		last, unusable, err := releases.NewLook(k.opts.Releases, k.opts.Resolver).Template(ctx, t.name, impact.Released)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return err
		}
		if err == nil && unusable == "" { // else, such as with a tag that was moved, the base is what there is
			former = last
		}
	}
	if former == nil {
		return nil
	}
	impact.Changes = diff.Templates(former.Blueprint(), blueprint)
	breaks := slices.IndexFunc(impact.Changes, func(c rollout.TemplateChange) bool { return c.Breaking })
	if breaks >= 0 && impact.Version != "" && impact.Released != "" && !semver.MayBreak(impact.Released, impact.Version) {
		kind := "major"
		if strings.HasPrefix(impact.Released, "0.") {
			kind = "minor" // as before 1.0.0
		}
		impact.Fault = fmt.Sprintf("after %s it must not break documents, but it does: %s %s. Set a new %s version, or keep valid documents valid",
			impact.Released, impact.Changes[breaks].About, impact.Changes[breaks].What, kind)
	}
	return nil
}

// Again asks for the impacts of other repositories' pull requests, as the
// fleet has changed; not at once, and not each time.
func (k *Keeper) Again(repo string) {
	for _, ref := range k.memory.of() {
		if ref.Repo != repo {
			k.opts.Fleet.LookAgain(ref, assessEvery)
		}
	}
}
