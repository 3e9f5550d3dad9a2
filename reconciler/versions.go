package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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
				return v.open(ctx, repo.Name, dir, tag, rev)
			}
		}
		return templates.TemplateVersion{}, &templates.NoVersionError{
			Name: name, Version: version, Available: available(refs, name),
		}
	}
	slices.Sort(known)
	return templates.TemplateVersion{}, &templates.NoVersionError{Name: name, Version: version, Templates: known}
}

func (v versions) open(ctx context.Context, repo, dir, tag string, rev holdfast.Revision) (templates.TemplateVersion, error) {
	pinned, err := v.r.opts.Store.PinTag(ctx, repo, tag, rev)
	if err != nil {
		return templates.TemplateVersion{}, fmt.Errorf("record tag %s of %s: %w", tag, repo, err)
	}
	if pinned != rev {
		return templates.TemplateVersion{}, &templates.MovedTagError{Tag: tag, Was: pinned, Now: rev}
	}
	tree, err := v.r.opts.Git.Tree(ctx, repo, string(rev))
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
