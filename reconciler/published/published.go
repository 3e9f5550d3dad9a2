package published

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/parallel"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
	"github.com/holdfast-dev/holdfast/reconciler/upgrade"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/semver"
)

// Store are the records that a list needs; *datastore.Store is one.
type Store interface {
	Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error)
	TagPins(ctx context.Context, repo string) (map[string]holdfast.Revision, error)
	Upgrades(ctx context.Context, repo string) ([]rollout.Upgrade, error)
}

// Repository is a repository that may publish templates.
type Repository struct {
	Name, Branch string
	Templates    map[string]string // their folders, by name
}

// Options are what a List needs. All are required.
type Options struct {
	Store        Store
	Repositories []Repository
	Releases     *releases.Reader
	Resolver     *templates.Resolver
	Upgrades     *upgrade.Keeper
	// Tracked returns what the tracked branch of a repository says, and its head;
	// nil if there is no such branch.
	Tracked func(ctx context.Context, repo string) (*catalog.Catalog, holdfast.Revision, error)
	Logger  *slog.Logger
}

// List lists the templates that repositories publish. It is safe for
// concurrent use.
type List struct {
	opts  Options
	repos map[string]Repository
}

// NewList returns a List.
func NewList(opts Options) *List {
	p := &List{opts: opts, repos: make(map[string]Repository, len(opts.Repositories))}
	for _, repo := range opts.Repositories {
		p.repos[repo.Name] = repo
	}
	return p
}

// Templates returns the templates that the repositories publish, by name, with the
// clusters whose documents name them on the tracked branches. If name selects one
// (ErrNotFound if there is no such one), all of its versions are looked at for whether
// they can be used, and of each cluster it is shown what was applied last; otherwise of
// the newest versions only, and of clusters not.
func (p *List) Templates(ctx context.Context, name string) ([]rollout.TemplateStatus, error) {
	l := &templateLister{p: p, known: releases.NewLook(p.opts.Releases, p.opts.Resolver), whole: name != ""}
	var names []string
	for _, repo := range p.opts.Repositories {
		names = slices.AppendSeq(names, maps.Keys(repo.Templates))
	}
	slices.Sort(names)
	if name != "" {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("template %q: %w", name, holdfast.ErrNotFound)
		}
		names = []string{name}
	}
	if err := l.find(ctx, names); err != nil {
		return nil, err
	}
	out := make([]rollout.TemplateStatus, 0, len(names))
	for _, name := range names {
		status, err := l.status(ctx, name)
		switch {
		case err != nil && (l.whole || ctx.Err() != nil):
			return nil, fmt.Errorf("template %q: %w", name, err)
		case err != nil: // the others are reported all the same
			repo, dir, _ := p.opts.Releases.Publisher(name)
			status = rollout.TemplateStatus{Name: name, Repo: repo, Dir: dir, Users: l.users[name], Trouble: err.Error()}
		}
		if len(l.unread) > 0 {
			unread := "clusters could not be read from " + strings.Join(l.unread, ", ")
			status.Trouble = strings.TrimPrefix(status.Trouble+"; "+unread, "; ")
		}
		out = append(out, status)
	}
	return out, nil
}

// templateLister makes one list of templates.
type templateLister struct {
	p        *List
	known    *releases.Look
	whole    bool
	users    map[string][]rollout.TemplateUse // by template
	catalogs map[string]*catalog.Catalog      // by repository
	upgrades map[string]upgradeOf             // by repository and cluster
	unread   []string                         // repositories that cannot be read now
}

// upgradeOf is what became of the pull requests that move a cluster.
type upgradeOf struct {
	open     int    // the number of the open one; zero: there is none
	trouble  string // of the open one
	declined int    // the number of the one that was closed; zero: none was
	to       string // what was declined
}

// note adds what one upgrade says of one of its clusters.
func (o upgradeOf) note(u rollout.Upgrade, to string) upgradeOf {
	switch {
	case upgrade.Live(u):
		o.open, o.trouble = max(o.open, u.PullRequest), cmp.Or(o.trouble, u.Trouble)
	case u.State == rollout.UpgradeDeclined && u.PullRequest > o.declined:
		o.declined, o.to = u.PullRequest, to
	}
	return o
}

// find collects who uses the templates with some names.
func (l *templateLister) find(ctx context.Context, names []string) error {
	l.users, l.upgrades = make(map[string][]rollout.TemplateUse), make(map[string]upgradeOf)
	l.catalogs = make(map[string]*catalog.Catalog)
	for _, repo := range l.p.opts.Repositories {
		cat, _, err := l.p.opts.Tracked(ctx, repo.Name)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			l.p.opts.Logger.WarnContext(ctx, "clusters of a repository were not read", "repo", repo.Name, "err", err)
			l.unread = append(l.unread, repo.Name)
			continue
		}
		upgrades, err := l.p.opts.Store.Upgrades(ctx, repo.Name)
		if err != nil {
			return fmt.Errorf("list upgrades of %s: %w", repo.Name, err)
		}
		for _, u := range upgrades {
			for _, c := range u.Clusters {
				key := repo.Name + " " + c.Name
				if upgrade.Live(u) && cat != nil && !namesOlder(cat, c) { // merged, and nobody has looked at it since
					continue
				}
				l.upgrades[key] = l.upgrades[key].note(u, c.To)
			}
		}
		if cat != nil {
			l.catalogs[repo.Name] = cat
			l.usersIn(cat, repo, names)
		}
	}
	return nil
}

// namesOlder reports whether a cluster's document names an older version than an
// upgrade moves it to.
func namesOlder(c *catalog.Catalog, to rollout.UpgradeCluster) bool {
	return slices.ContainsFunc(c.Named(to.Name), func(e catalog.Entry) bool {
		ref := e.Doc.Cluster.Template
		return ref != nil && semver.Newer(to.To, ref.Version)
	})
}

func (l *templateLister) usersIn(cat *catalog.Catalog, repo Repository, names []string) {
	dirs := make(map[string]string, len(repo.Templates))
	for name, dir := range repo.Templates {
		dirs[path.Clean(dir)] = name
	}
	for cluster, entries := range cat.All() {
		doc := entries[0].Doc.Cluster
		ref := doc.Template
		if ref == nil {
			continue
		}
		name, use := ref.Name, rollout.TemplateUse{Cluster: cluster, Owner: repo.Name, Version: ref.Version, Upgrades: ref.Upgrades}
		if ref.Path != "" {
			name = dirs[path.Join(path.Dir(doc.Path), ref.Path)]
		}
		if slices.Contains(names, name) {
			use.Proposed = l.upgrades[repo.Name+" "+cluster].open
			l.users[name] = append(l.users[name], use)
		}
	}
}

func (l *templateLister) status(ctx context.Context, name string) (rollout.TemplateStatus, error) {
	publisher, dir, _ := l.p.opts.Releases.Publisher(name)
	repo := l.p.repos[publisher]
	status := rollout.TemplateStatus{Name: name, Repo: repo.Name, Dir: dir, Users: l.users[name]}
	if err := l.releases(ctx, repo, &status); err != nil {
		return status, err
	}
	if err := l.prepared(ctx, repo, &status); err != nil {
		return status, err
	}
	if l.whole {
		if err := l.applied(ctx, &status); err != nil {
			return status, err
		}
	}
	usable := make([]string, 0, len(status.Versions))
	for _, v := range status.Versions {
		if v.MovedTo == "" && v.Unusable == "" {
			usable = append(usable, v.Version)
		}
	}
	behind := make(map[string]int) // by version: thousands of users have a few
	for i := range status.Users {
		u := &status.Users[i]
		if u.Version == "" {
			continue
		}
		if _, known := behind[u.Version]; !known {
			behind[u.Version] = countBehind(u.Version, usable)
		}
		u.Behind = behind[u.Version]
		if u.Upgrades != "" {
			step, err := l.known.After(ctx, name, u.Version, u.Upgrades)
			if err != nil {
				return status, err
			}
			u.Next = step.To
		}
	}
	if err := l.troubles(ctx, status.Users); err != nil {
		return status, err
	}
	slices.SortFunc(status.Users, func(a, b rollout.TemplateUse) int {
		return cmp.Or(cmp.Compare(b.Behind, a.Behind), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Owner, b.Owner))
	})
	return status, nil
}

// countBehind returns how many versions are newer than current.
func countBehind(current string, versions []string) int {
	newer := 0
	for _, v := range versions {
		if semver.Next(current, ">= 0", []string{v}) != "" {
			newer++
		}
	}
	return newer
}

// troubles fills in why clusters are not upgraded as their documents would have
// it.
func (l *templateLister) troubles(ctx context.Context, users []rollout.TemplateUse) error {
	return parallel.Each(ctx, len(users), func(i int) error {
		u := &users[i]
		of := l.upgrades[u.Owner+" "+u.Cluster]
		switch {
		case of.trouble != "":
			u.Trouble = of.trouble
		case u.Next == "" || of.open != 0:
		case of.to == u.Next:
			u.Trouble = fmt.Sprintf("pull request %d was closed without a merge: holdfast template upgrade %s asks for it again", of.declined, u.Cluster)
		case l.whole:
			faults, err := l.p.opts.Upgrades.WouldRefuse(ctx, l.catalogs[u.Owner], u.Cluster, u.Next)
			if len(faults) > 0 {
				u.Trouble = fmt.Sprintf("%s would refuse it: %s", u.Next, faults[0].Error())
			}
			return err
		}
		return nil
	})
}

// releases fills in the versions, newest first, and what is wrong with them.
func (l *templateLister) releases(ctx context.Context, repo Repository, status *rollout.TemplateStatus) error {
	all, err := l.known.Of(ctx, status.Name)
	if err != nil {
		return err
	}
	refs, err := l.p.opts.Releases.Refs(ctx, repo.Name)
	if err != nil {
		return err
	}
	pins, err := l.p.opts.Store.TagPins(ctx, repo.Name)
	if err != nil {
		return fmt.Errorf("read tags of %s: %w", repo.Name, err)
	}
	clusters := make(map[string]int)
	for _, u := range status.Users {
		clusters[u.Version]++
	}
	for _, version := range semver.Sort(all) {
		release := rollout.TemplateRelease{Version: version, Clusters: clusters[version]}
		release.Tag, release.Revision = releases.TagOf(refs, status.Name, version)
		was, ok := pins[templates.TagsFor(status.Name, version)[0]] // of a version that was used, whichever tag it had
		if !ok {
			was, ok = pins[release.Tag]
		}
		if ok && release.Tag != "" {
			if was, err = l.p.opts.Releases.Mend(ctx, repo.Name, release.Tag, status.Name, version, was, release.Revision); err != nil {
				return err
			}
		}
		if ok && was != release.Revision {
			release.Revision, release.MovedTo = was, release.Revision
		} else if l.whole || len(status.Versions) == 0 {
			if _, release.Unusable, err = l.known.Template(ctx, status.Name, version); err != nil {
				return err
			}
		}
		status.Versions = append(status.Versions, release)
	}
	status.Trouble = troubleOf(status)
	return nil
}

// troubleOf says what keeps people from using a template's versions: those that
// clusters name, and the newest.
func troubleOf(status *rollout.TemplateStatus) string {
	var out []string
	for i, v := range status.Versions {
		switch {
		case v.MovedTo != "" && (i == 0 || v.Clusters > 0):
			out = append(out, (&templates.MovedTagError{Tag: v.Tag, Was: v.Revision, Now: v.MovedTo}).Error())
		case v.Unusable != "" && (i == 0 || v.Clusters > 0):
			out = append(out, v.Version+": "+v.Unusable)
		}
	}
	return strings.Join(out, "; ")
}

// prepared fills in the version that the tracked branch prepares.
func (l *templateLister) prepared(ctx context.Context, repo Repository, status *rollout.TemplateStatus) error {
	cat, _, err := l.p.opts.Tracked(ctx, repo.Name)
	if err != nil || cat == nil {
		return err
	}
	t, faults, err := l.p.opts.Resolver.Load(cat.Tree, status.Dir)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		fault := fmt.Sprintf("on branch %s: %s", repo.Branch, faults[0].Error())
		status.Trouble = strings.TrimPrefix(status.Trouble+"; "+fault, "; ")
		return nil
	}
	version := t.Blueprint().Version
	released := slices.ContainsFunc(status.Versions, func(v rollout.TemplateRelease) bool { return v.Version == version })
	if !released {
		status.Prepared = version
	}
	return nil
}

// applied fills in the versions that were last applied.
func (l *templateLister) applied(ctx context.Context, status *rollout.TemplateStatus) error {
	const many = 500
	for users := range slices.Chunk(status.Users, many) {
		names := make([]string, len(users))
		for i, u := range users {
			names[i] = u.Cluster
		}
		records, err := l.p.opts.Store.Clusters(ctx, holdfast.ClusterFilter{Names: names})
		if err != nil {
			return fmt.Errorf("read clusters: %w", err)
		}
		by := make(map[string]string, len(records))
		for _, rec := range records {
			if ref := rec.Applied.Document.Template; ref != nil && ref.Name == status.Name {
				by[rec.Owner+" "+rec.Name] = ref.Version
			}
		}
		for i := range users {
			users[i].Applied = by[users[i].Owner+" "+users[i].Cluster]
		}
	}
	return nil
}
