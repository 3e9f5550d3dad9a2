package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

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
			return templates.TemplateVersion{}, err
		}
		for _, tag := range templates.TagsFor(name, version) {
			if rev, ok := refs["refs/tags/"+tag]; ok {
				return v.open(ctx, repo.Name, dir, tag, templates.TagsFor(name, version)[0], rev)
			}
		}
		return templates.TemplateVersion{}, &templates.NoVersionError{
			Name: name, Version: version, Available: available(refs, name),
		}
	}
	slices.Sort(known)
	return templates.TemplateVersion{}, &templates.NoVersionError{Name: name, Version: version, Templates: known}
}

// open opens the version that a tag releases. Two tags can release one: the
// commit is recorded under the more particular one, own, whichever it was, so
// that neither adding that later nor deleting it makes the version another one.
func (v versions) open(ctx context.Context, repo, dir, tag, own string, rev holdfast.Revision) (templates.TemplateVersion, error) {
	for _, name := range slices.Compact([]string{tag, own}) {
		pinned, err := v.r.opts.Store.PinTag(ctx, repo, name, rev)
		if err != nil {
			return templates.TemplateVersion{}, fmt.Errorf("record tag %s of %s: %w", name, repo, err)
		}
		if pinned != rev {
			return templates.TemplateVersion{}, &templates.MovedTagError{Tag: tag, Was: pinned, Now: rev}
		}
	}
	tree, err := v.r.opened.tree(openVersion{repo, rev}, func() (holdfast.Tree, error) {
		return v.r.opts.Git.Tree(ctx, repo, string(rev))
	})
	if err != nil {
		return templates.TemplateVersion{}, fmt.Errorf("open tag %s of %s: %w", tag, repo, err)
	}
	return templates.TemplateVersion{Repo: repo, Tag: tag, Revision: rev, Tree: tree, Dir: dir}, nil
}

// refs returns what the last fetch saw, or fetches if there was none.
func (v versions) refs(ctx context.Context, repo string) (holdfast.Refs, error) {
	if refs := v.r.lastRefs(repo); refs != nil {
		return refs, nil
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

// tagSet are names of tags.
type tagSet map[string]bool

// movedTags are the tags that are not the same in both.
func movedTags(a, b holdfast.Refs) tagSet {
	moved := make(tagSet)
	differ := func(from, to holdfast.Refs) {
		for ref, rev := range from {
			if tag, ok := strings.CutPrefix(ref, "refs/tags/"); ok && to[ref] != rev {
				moved[tag] = true
			}
		}
	}
	differ(a, b)
	differ(b, a)
	return moved
}

// release reports whether documents name a version of a template that one of the
// tags may release.
func (t tagSet) release(entries []entry) bool {
	return slices.ContainsFunc(entries, func(e entry) bool {
		ref := e.doc.Cluster.Template
		return ref != nil && ref.Version != "" &&
			slices.ContainsFunc(templates.TagsFor(ref.Name, ref.Version), func(tag string) bool { return t[tag] })
	})
}

// setRetagged notes that a repository is to be looked at again for tags that have
// moved.
func (r *Reconciler) setRetagged(repo string, tags tagSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.retagged[repo] == nil {
		r.retagged[repo] = make(tagSet)
	}
	maps.Copy(r.retagged[repo], tags)
}

// takeRetagged returns the tags that a repository is to be looked at again for,
// and forgets them; nil if there are none.
func (r *Reconciler) takeRetagged(repo string) tagSet {
	r.mu.Lock()
	defer r.mu.Unlock()
	tags := r.retagged[repo]
	delete(r.retagged, repo)
	return tags
}
