package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/reconciler/catalog"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
)

// versions finds released templates among the watched repositories.
type versions struct{ r *Reconciler }

// Version implements templates.Versions: the commit that the tag of a version
// named when it was first used, and an error if it names another one now.
func (v versions) Version(ctx context.Context, name, version string) (templates.TemplateVersion, error) {
	var known []string
	for _, repo := range v.r.opts.Repositories {
		known = slices.AppendSeq(known, maps.Keys(repo.Templates))
		dir, ok := repo.Templates[name]
		if !ok {
			continue
		}
		refs, err := v.refs(ctx, repo.Name)
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
			Name: name, Version: version, Available: available(refs, name), Deleted: deleted,
		}
	}
	slices.Sort(known)
	return templates.TemplateVersion{}, &templates.NoVersionError{Name: name, Version: version, Templates: known}
}

// open opens the version that a tag releases. Two tags can release one: the
// commit is recorded under the more particular one, own, whichever it was, so
// that neither adding that later nor deleting it makes the version another one.
func (v versions) open(
	ctx context.Context, repo, dir, tag, name, version string, rev holdfast.Revision,
) (templates.TemplateVersion, error) {
	for _, recorded := range slices.Compact([]string{tag, templates.TagsFor(name, version)[0]}) {
		pinned, err := v.r.opts.Store.PinTag(ctx, repo, recorded, rev)
		if err != nil {
			return templates.TemplateVersion{}, fmt.Errorf("record tag %s of %s: %w", recorded, repo, err)
		}
		if pinned, err = v.mend(ctx, repo, recorded, name, version, pinned, rev); err != nil {
			return templates.TemplateVersion{}, err
		}
		if pinned != rev {
			return templates.TemplateVersion{}, &templates.MovedTagError{Tag: tag, Was: pinned, Now: rev}
		}
	}
	tree, err := v.tree(ctx, repo, rev)
	if err != nil {
		return templates.TemplateVersion{}, fmt.Errorf("open tag %s of %s: %w", tag, repo, err)
	}
	return templates.TemplateVersion{Repo: repo, Tag: tag, Revision: rev, Tree: tree, Dir: dir}, nil
}

// mend records the commit that a tag names now, if no document on a tracked branch
// and no apply uses the version that it releases, and returns what is recorded
// then: a pull request, be it one of ours, is no use.
func (v versions) mend(
	ctx context.Context, repo, tag, name, version string, was, now holdfast.Revision,
) (holdfast.Revision, error) {
	if was == now {
		return now, nil
	}
	records, err := v.r.opts.Store.Clusters(ctx, holdfast.ClusterFilter{Template: name})
	if err != nil {
		return was, fmt.Errorf("read clusters of template %s: %w", name, err)
	}
	for _, rec := range records {
		ref := rec.Desired.Document.Template
		if ref != nil && ref.Version == version || strings.HasPrefix(rec.Applied.Template, name+"@"+version+" ") {
			return was, nil
		}
	}
	return now, v.r.opts.Store.MovePin(ctx, repo, tag, was, now)
}

func (v versions) tree(ctx context.Context, repo string, rev holdfast.Revision) (holdfast.Tree, error) {
	return v.r.opened.tree(openVersion{repo, rev}, func() (holdfast.Tree, error) {
		return v.r.opts.Git.Tree(ctx, repo, string(rev))
	})
}

// recorded opens the version of a repository that cannot be read, by the commit
// that is recorded of its tag, if that is held here.
func (v versions) recorded(
	ctx context.Context, repo, dir, name, version string, cause error,
) (templates.TemplateVersion, error) {
	if ctx.Err() != nil {
		return templates.TemplateVersion{}, cause
	}
	pins, err := v.r.opts.Store.TagPins(ctx, repo)
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
func (v versions) deleted(ctx context.Context, repo, name, version string) (string, error) {
	pins, err := v.r.opts.Store.TagPins(ctx, repo)
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

// refs returns what the last fetch saw, or fetches if there was none.
func (v versions) refs(ctx context.Context, repo string) (holdfast.Refs, error) {
	if refs := v.r.lastRefs(repo); refs != nil {
		return refs, nil
	}
	if fresh, err := v.r.outages.of(repo, v.r.opts.Now()); fresh {
		return nil, err
	}
	return v.r.fetch(ctx, repo)
}

// available returns the versions of a template that have a tag.
func available(refs holdfast.Refs, name string) []string {
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
