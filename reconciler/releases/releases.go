package releases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
)

// Pins are the commits that tags were recorded with; *datastore.Store is one.
type Pins interface {
	// PinTag records that a repository's tag is rev and returns rev; if the tag
	// was recorded before, it returns what was recorded.
	PinTag(ctx context.Context, repo, tag string, rev holdfast.Revision) (holdfast.Revision, error)
	// MovePin records that a tag is to, if it is recorded as from.
	MovePin(ctx context.Context, repo, tag string, from, to holdfast.Revision) error
	// TagPins returns the commits that a repository's tags were recorded with.
	TagPins(ctx context.Context, repo string) (map[string]holdfast.Revision, error)
	// Clusters returns those whose documents, or last applies, name a template.
	Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error)
}

// Git opens commits; *gitsource.Source is one.
type Git interface {
	Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error)
}

// Repository is a repository that may publish templates.
type Repository struct {
	Name      string
	Templates map[string]string // their folders, by name
}

// Loader reads templates; *templates.Resolver is one.
type Loader interface {
	// Load reads the template in a folder of a tree, and returns what is wrong with it.
	Load(tree holdfast.Tree, dir string) (*templates.Template, holdfast.Faults, error)
}

// Options are what a Reader needs. All are required.
type Options struct {
	Repositories []Repository
	Pins         Pins
	Git          Git
	Loader       Loader
	// Refs returns the branches and tags of a repository as they were last fetched.
	Refs func(ctx context.Context, repo string) (holdfast.Refs, error)
}

// Reader finds the released versions of templates among the watched
// repositories. It is safe for concurrent use.
type Reader struct {
	repositories []Repository
	pins         Pins
	git          Git
	loader       Loader
	fetched      func(ctx context.Context, repo string) (holdfast.Refs, error)
	opened       *openVersions
}

// NewReader returns a Reader that has opened nothing.
func NewReader(opts Options) *Reader {
	return &Reader{
		repositories: opts.Repositories, pins: opts.Pins, git: opts.Git, loader: opts.Loader, fetched: opts.Refs,
		opened: &openVersions{trees: make(map[openVersion]holdfast.Tree)},
	}
}

// Refs returns the branches and tags of a repository as they were last fetched.
func (v *Reader) Refs(ctx context.Context, repo string) (holdfast.Refs, error) {
	return v.fetched(ctx, repo)
}

// Publisher returns the repository that publishes a template, and the folder.
func (v *Reader) Publisher(name string) (repo, dir string, ok bool) {
	for _, repo := range v.repositories {
		if dir, ok := repo.Templates[name]; ok {
			return repo.Name, path.Clean(dir), true
		}
	}
	return "", "", false
}

// Version implements templates.Versions: the commit that the tag of a version
// named when it was first used, and an error if it names another one now.
func (v *Reader) Version(ctx context.Context, name, version string) (templates.TemplateVersion, error) {
	var known []string
	for _, repo := range v.repositories {
		known = slices.AppendSeq(known, maps.Keys(repo.Templates))
		dir, ok := repo.Templates[name]
		if !ok {
			continue
		}
		refs, err := v.Refs(ctx, repo.Name)
		if err != nil {
			return v.recorded(ctx, repo.Name, dir, name, version, err)
		}
		for _, tag := range templates.TagsFor(name, version) {
			if rev, ok := refs["refs/tags/"+tag]; ok {
				return v.open(ctx, repo.Name, dir, tag, name, version, rev)
			}
		}
		deleted, err := v.deleted(ctx, repo.Name, name, version)
		if err != nil {
			return templates.TemplateVersion{}, err
		}
		return templates.TemplateVersion{}, &templates.NoVersionError{
			Name: name, Version: version, Available: Available(refs, name), Deleted: deleted,
		}
	}
	slices.Sort(known)
	return templates.TemplateVersion{}, &templates.NoVersionError{Name: name, Version: version, Templates: known}
}

// open opens the version that a tag releases. Two tags can release one: the
// commit is recorded under the more particular one, own, whichever it was, so
// that neither adding that later nor deleting it makes the version another one.
// A commit whose template cannot be used is not recorded: no cluster was planned with it.
func (v *Reader) open(
	ctx context.Context, repo, dir, tag, name, version string, rev holdfast.Revision,
) (templates.TemplateVersion, error) {
	tree, why, err := v.usable(ctx, repo, dir, tag, name, version, rev)
	if err != nil {
		return templates.TemplateVersion{}, err
	}
	for _, recorded := range slices.Compact([]string{tag, templates.TagsFor(name, version)[0]}) {
		pinned, err := v.pin(ctx, repo, recorded, rev, why == "")
		if err != nil {
			return templates.TemplateVersion{}, err
		}
		if pinned, err = v.Mend(ctx, repo, recorded, name, version, pinned, rev); err != nil {
			return templates.TemplateVersion{}, err
		}
		if pinned != rev {
			return templates.TemplateVersion{}, &templates.MovedTagError{Tag: tag, Was: pinned, Now: rev}
		}
	}
	return templates.TemplateVersion{Repo: repo, Tag: tag, Revision: rev, Tree: tree, Dir: dir}, nil
}

// pin returns the commit that a tag was recorded with, otherwise rev, which it records
// then if that can be used.
func (v *Reader) pin(ctx context.Context, repo, tag string, rev holdfast.Revision, usable bool) (holdfast.Revision, error) {
	if usable {
		pinned, err := v.pins.PinTag(ctx, repo, tag, rev)
		if err != nil {
			return "", fmt.Errorf("record tag %s of %s: %w", tag, repo, err)
		}
		return pinned, nil
	}
	pins, err := v.pins.TagPins(ctx, repo)
	if err != nil {
		return "", fmt.Errorf("read recorded tags of %s: %w", repo, err)
	}
	if pinned, ok := pins[tag]; ok {
		return pinned, nil
	}
	return rev, nil
}

// Mend records the commit that a tag names now, if no document on a tracked branch and
// no apply uses the version that it releases, and returns what counts then: a pull
// request, even one of ours, is not enough. A commit whose template cannot be used
// counts, and is not recorded.
func (v *Reader) Mend(
	ctx context.Context, repo, tag, name, version string, was, now holdfast.Revision,
) (holdfast.Revision, error) {
	if was == now {
		return now, nil
	}
	records, err := v.pins.Clusters(ctx, holdfast.ClusterFilter{Template: name})
	if err != nil {
		return was, fmt.Errorf("read clusters of template %s: %w", name, err)
	}
	for _, rec := range records {
		ref := rec.Desired.Document.Template
		if ref != nil && ref.Version == version || strings.HasPrefix(rec.Applied.Template, name+"@"+version+" ") {
			return was, nil
		}
	}
	_, dir, _ := v.Publisher(name)
	if _, why, err := v.usable(ctx, repo, dir, tag, name, version, now); err != nil || why != "" {
		return now, err
	}
	return now, v.pins.MovePin(ctx, repo, tag, was, now)
}

// usable opens the commit that a tag names, and says why the template in it cannot be
// used; empty if it can.
func (v *Reader) usable(
	ctx context.Context, repo, dir, tag, name, version string, rev holdfast.Revision,
) (tree holdfast.Tree, why string, err error) {
	if tree, err = v.tree(ctx, repo, rev); err != nil {
		return nil, "", fmt.Errorf("open tag %s of %s: %w", tag, repo, err)
	}
	_, why, err = load(v.loader, tree, dir, tag, name, version)
	return tree, why, err
}

// load reads the template of a version, or says why it cannot be used.
func load(loader Loader, tree holdfast.Tree, dir, tag, name, version string) (t *templates.Template, why string, err error) {
	t, faults, err := loader.Load(tree, dir)
	switch {
	case err != nil:
		return nil, "", err
	case len(faults) > 0:
		return nil, fmt.Sprintf("%s at tag %s has faults: %s", path.Join(dir, "template.yaml"), tag, faults[0].Error()), nil
	case t.Name != name:
		return nil, fmt.Sprintf("template.yaml at tag %s calls itself %q", tag, t.Name), nil
	case t.Version != "" && t.Version != version:
		return nil, fmt.Sprintf("template.yaml at tag %s calls itself version %s", tag, t.Version), nil
	}
	return t, "", nil
}

func (v *Reader) tree(ctx context.Context, repo string, rev holdfast.Revision) (holdfast.Tree, error) {
	return v.opened.tree(openVersion{repo, rev}, func() (holdfast.Tree, error) {
		return v.git.Tree(ctx, repo, string(rev))
	})
}

// recorded opens the version of a repository that cannot be read, by the commit
// that is recorded of its tag, if that is held here.
func (v *Reader) recorded(
	ctx context.Context, repo, dir, name, version string, cause error,
) (templates.TemplateVersion, error) {
	if ctx.Err() != nil {
		return templates.TemplateVersion{}, cause
	}
	pins, err := v.pins.TagPins(ctx, repo)
	if err != nil {
		return templates.TemplateVersion{}, fmt.Errorf("read recorded tags of %s: %w", repo, err)
	}
	for _, tag := range templates.TagsFor(name, version) {
		if rev, ok := pins[tag]; ok {
			if tree, err := v.tree(ctx, repo, rev); err == nil {
				return templates.TemplateVersion{Repo: repo, Tag: tag, Revision: rev, Tree: tree, Dir: dir}, nil
			}
		}
	}
	return templates.TemplateVersion{}, &templates.UnreadableError{Repo: repo, Why: why(cause)}
}

// deleted returns the tag of a version that was there; empty if there never was
// one.
func (v *Reader) deleted(ctx context.Context, repo, name, version string) (string, error) {
	pins, err := v.pins.TagPins(ctx, repo)
	if err != nil {
		return "", fmt.Errorf("read recorded tags of %s: %w", repo, err)
	}
	for _, tag := range slices.Backward(templates.TagsFor(name, version)) { // the more particular one may be recorded for the other
		if _, ok := pins[tag]; ok {
			return tag, nil
		}
	}
	return "", nil
}

// Available returns the versions of a template that have a tag.
func Available(refs holdfast.Refs, name string) []string {
	var out []string
	for ref := range refs {
		tag, ok := strings.CutPrefix(ref, "refs/tags/")
		if !ok {
			continue
		}
		tag = strings.TrimPrefix(tag, name+"/")
		if version, ok := strings.CutPrefix(tag, "v"); ok && !strings.Contains(tag, "/") {
			out = append(out, version)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// openVersions keeps the trees of versions that were opened: to open one for each
// cluster that names it takes longer than to make its root module. It is safe for
// concurrent use.
type openVersions struct {
	mu    sync.Mutex
	trees map[openVersion]holdfast.Tree
}

type openVersion struct {
	repo     string
	revision holdfast.Revision
}

// openVersionsKept is how many trees of versions are kept open.
const openVersionsKept = 256

func (o *openVersions) tree(of openVersion, open func() (holdfast.Tree, error)) (holdfast.Tree, error) {
	o.mu.Lock()
	tree := o.trees[of]
	o.mu.Unlock()
	if tree != nil {
		return tree, nil
	}
	tree, err := open()
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.trees) >= openVersionsKept {
		clear(o.trees) // they are opened again
	}
	o.trees[of] = tree
	return tree, nil
}

// TagOf returns the tag that releases a version, and what it names; none if there
// is none.
func TagOf(refs holdfast.Refs, name, version string) (tag string, rev holdfast.Revision) {
	for _, tag := range templates.TagsFor(name, version) {
		if rev, ok := refs["refs/tags/"+tag]; ok {
			return tag, rev
		}
	}
	return "", ""
}

// why says in stable words why a repository cannot be read: the error's own may
// differ each time, and would change comments and records.
func why(err error) string {
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return "it does not exist, or access to it was lost"
	case errors.Is(err, holdfast.ErrUnauthorized), errors.Is(err, holdfast.ErrForbidden):
		return "access to it is refused"
	default:
		return "it is out of reach"
	}
}
