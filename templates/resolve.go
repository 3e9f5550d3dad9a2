package templates

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/modules"
	"github.com/holdfast-dev/holdfast/templates/schema"
	"github.com/holdfast-dev/holdfast/templates/semver"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// Versions finds released templates.
type Versions interface {
	// Version returns a version of the template with that name. A *NoVersionError,
	// a *MovedTagError and an *UnreadableError become faults of the cluster; any
	// other error is trouble of ours and worth a retry.
	Version(ctx context.Context, name, version string) (TemplateVersion, error)
}

// TemplateVersion is a released template: a folder of a repository at a tag.
type TemplateVersion struct {
	Repo     string
	Tag      string
	Revision holdfast.Revision // the commit that the tag names
	Tree     holdfast.Tree     // at Revision
	Dir      string            // folder of the template.yaml
}

// NoVersionError says that a template has no such version, or that there is no
// such template. It is a holdfast.ErrNotFound.
type NoVersionError struct {
	Name      string
	Version   string
	Available []string // existing versions; none: no such template
	Templates []string // names of the existing templates, if known
	Deleted   string   // the tag that was there; empty: none is known
}

func (e *NoVersionError) Error() string {
	if len(e.Available) == 0 {
		return fmt.Sprintf("no template %s", e.Name)
	}
	return fmt.Sprintf("template %s has no version %s", e.Name, e.Version)
}

// Is makes errors.Is(err, holdfast.ErrNotFound) true.
func (e *NoVersionError) Is(target error) bool { return target == holdfast.ErrNotFound }

// MovedTagError says that the tag of a version names another commit than when
// it was first used. It is a holdfast.ErrNotFound: that version is no longer
// served until the tag is back where it was.
type MovedTagError struct {
	Tag      string
	Was, Now holdfast.Revision
}

func (e *MovedTagError) Error() string {
	return fmt.Sprintf("tag %s was moved from %s to %s", e.Tag, e.Was.Short(), e.Now.Short())
}

// Is makes errors.Is(err, holdfast.ErrNotFound) true.
func (e *MovedTagError) Is(target error) bool { return target == holdfast.ErrNotFound }

// UnreadableError says that the repository of a template cannot be read, so that
// nobody knows which versions there are.
type UnreadableError struct {
	Repo string
	Why  string // in words that do not differ from one attempt to the next
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("template repository %s cannot be read: %s", e.Repo, e.Why)
}

// TagsFor returns the tags that may release a version of a template, the more
// particular one first.
func TagsFor(name, version string) []string {
	return []string{name + "/v" + version, "v" + version}
}

// Load reads the template in a folder of a tree, with the modules that it
// composes, and returns all that is wrong with it; a Template next to faults is
// as much as could be read, or nil. An error is the tree's.
func (r *Resolver) Load(tree holdfast.Tree, dir string) (*Template, holdfast.Faults, error) {
	loaded, err := r.load(tree, dir)
	if err != nil {
		return nil, nil, fmt.Errorf("load template %s: %w", dir, err)
	}
	return loaded.template, slices.Clone(loaded.faults), nil
}

// Resolve makes the root module of a cluster whose document is in tree. What is
// wrong with the cluster, its template or its module are faults, all at once,
// and carry the cluster's name; there is no Root then. An error is trouble of
// ours, such as a repository out of reach.
func (r *Resolver) Resolve(ctx context.Context, tree holdfast.Tree, doc document.Document) (*Root, holdfast.Faults, error) {
	var root *Root
	var faults holdfast.Faults
	var err error
	switch c := doc.Cluster; {
	case c.Template != nil && c.Module == nil:
		root, faults, err = r.fromTemplate(ctx, tree, doc)
	case c.Module != nil && c.Template == nil:
		root, faults, err = r.fromModule(tree, doc)
	default:
		faults = holdfast.Faults{doc.Fault("cluster has not exactly one of template and module", "", "spec")}
	}
	if why, ok := modules.Refused(err); ok { // such as a path that is too deep: somebody wrote it
		var at *fs.PathError
		errors.As(err, &at)
		faults = holdfast.Faults{doc.Fault(fmt.Sprintf("%s %s", strings.ToValidUTF8(at.Path, "\uFFFD"), why), "", "spec")}
	} else if err != nil {
		return nil, nil, fmt.Errorf("resolve cluster %q: %w", doc.Cluster.Name, err)
	}
	if len(faults) == 0 {
		return root, nil, nil
	}
	faults = slices.Clone(faults) // a template's may be remembered
	for i := range faults {
		faults[i].Cluster = doc.Cluster.Name
	}
	decode.SortFaults(faults)
	return nil, slices.Compact(faults), nil // two ways may lead to one file
}

// Check is Resolve for a cluster whose document has faults: it returns what is wrong
// beyond these with the parts that could be read.
func (r *Resolver) Check(ctx context.Context, tree holdfast.Tree, doc document.Document) (holdfast.Faults, error) {
	if c := doc.Cluster; doc.Unread("template") || (c.Template == nil) == (c.Module == nil) {
		return nil, nil
	}
	_, faults, err := r.Resolve(ctx, tree, doc)
	return faults, err
}

// source is where the template of a cluster was found.
type source struct {
	template *Template
	tree     holdfast.Tree
	label    string // kubernetes@1.4.2, or kubernetes at its folder
	revision holdfast.Revision
}

func (r *Resolver) fromTemplate(ctx context.Context, tree holdfast.Tree, doc document.Document) (*Root, holdfast.Faults, error) {
	from, faults, err := r.find(ctx, tree, doc)
	if err != nil || len(faults) > 0 {
		return nil, faults, err
	}
	c := doc.Cluster
	p, fault := choose(from, doc)
	if p == nil {
		if faults = from.template.whateverProvider(doc); !doc.Unread("provider") {
			faults = append(faults, fault)
		}
		return nil, faults, nil
	}
	if len(p.regions) > 0 && !slices.Contains(p.regions, c.Region) && !doc.Unread("region") {
		message := fmt.Sprintf("%s has no region %q for %s", from.label, wording.Clip(c.Region), p.name)
		if c.Region == "" {
			message = "spec.region is missing"
		}
		faults = append(faults, doc.Fault(message, wording.NearestOf(c.Region, p.regions), "spec", "region"))
	}
	if doc.Unread("variables") {
		return nil, faults, nil
	}
	given, broken := p.variables(c.Variables)
	if !doc.Unread("region") { // rules may ask for it
		more, err := given.decide(c, p, broken)
		if err != nil {
			return nil, nil, err
		}
		broken = append(broken, more...)
	}
	for _, v := range broken {
		faults = append(faults, violationFault(doc, p, v))
	}
	if len(faults) > 0 || doc.Faulty() {
		return nil, faults, nil
	}
	root, err := r.assemble(from, p, c, given)
	return root, nil, err
}

// find loads the cluster's template.
func (r *Resolver) find(ctx context.Context, tree holdfast.Tree, doc document.Document) (source, holdfast.Faults, error) {
	ref := doc.Cluster.Template
	if ref.Name == "" {
		return r.inRepository(tree, doc)
	}
	if r.versions == nil {
		return source{}, holdfast.Faults{doc.Fault(
			fmt.Sprintf("template %s: no template repository is known", ref.Name),
			"use template: {path: …} for a template of the same repository", "spec", "template", "name")}, nil
	}
	v, err := r.versions.Version(ctx, ref.Name, ref.Version)
	if fault, ok := noVersion(doc, err); ok {
		return source{}, holdfast.Faults{fault}, nil
	} else if err != nil {
		return source{}, nil, fmt.Errorf("find template %s@%s: %w", ref.Name, ref.Version, err)
	}
	label := ref.Name + "@" + ref.Version
	loaded, err := r.load(v.Tree, v.Dir)
	if err != nil {
		return source{}, nil, fmt.Errorf("load template %s at %s: %w", label, v.Revision, err)
	}
	// The files at fault are in another repository: tell it where the version
	// was chosen.
	var faults holdfast.Faults
	for _, f := range loaded.faults {
		faults = append(faults, doc.Fault(
			fmt.Sprintf("template %s: %s: %s", label, f.Position(), f.Message), f.Hint, "spec", "template", "version"))
	}
	if len(faults) == 0 && loaded.template.Name != ref.Name {
		faults = append(faults, doc.Fault(
			fmt.Sprintf("template %s: %s at tag %s calls itself %q", label, loaded.template.File, v.Tag, loaded.template.Name),
			"", "spec", "template", "name"))
	}
	if said := loaded.template; len(faults) == 0 && said.Version != "" && said.Version != ref.Version {
		faults = append(faults, doc.Fault(
			fmt.Sprintf("template %s: %s at tag %s says that it is version %s", label, said.File, v.Tag, said.Version),
			"release it with another tag, or make metadata.version that of the tag", "spec", "template", "version"))
	}
	return source{template: loaded.template, tree: v.Tree, label: label, revision: v.Revision}, faults, nil
}

// inRepository loads a template of the cluster's own repository and revision.
func (r *Resolver) inRepository(tree holdfast.Tree, doc document.Document) (source, holdfast.Faults, error) {
	ref := doc.Cluster.Template
	dir, ok := modules.Within(path.Dir(doc.Cluster.Path), ref.Path)
	if !ok {
		return source{}, holdfast.Faults{doc.Fault(
			fmt.Sprintf("spec.template.path %q leaves the repository", wording.Clip(ref.Path)),
			"the path starts from the folder of the cluster's file", "spec", "template", "path")}, nil
	}
	loaded, err := r.load(tree, dir)
	if err != nil {
		return source{}, nil, fmt.Errorf("load template %s: %w", dir, err)
	}
	if loaded.template == nil && len(loaded.faults) == 1 && loaded.faults[0].Line == 0 {
		return source{}, holdfast.Faults{doc.Fault(
			fmt.Sprintf("spec.template.path %q: %s: %s", wording.Clip(ref.Path), loaded.faults[0].File, loaded.faults[0].Message),
			"the path starts from the folder of the cluster's file", "spec", "template", "path")}, nil
	}
	if len(loaded.faults) > 0 {
		return source{}, loaded.faults, nil
	}
	return source{template: loaded.template, tree: tree, label: loaded.template.Name + " at " + dir}, nil, nil
}

// noVersion returns the fault of a document whose version cannot be had, and
// reports whether err says so.
func noVersion(doc document.Document, err error) (holdfast.Fault, bool) {
	ref := doc.Cluster.Template
	var (
		moved      *MovedTagError
		unreadable *UnreadableError
		missing    *NoVersionError
	)
	switch {
	case errors.As(err, &moved):
		return doc.Fault(moved.Error(), "a release does not change: put the tag back, or release another version",
			"spec", "template", "version"), true
	case errors.As(err, &unreadable):
		return doc.Fault(unreadable.Error(), "the document needs no change: the repository is read again automatically",
			"spec", "template", "name"), true
	case !errors.As(err, &missing):
		return holdfast.Fault{}, false
	case missing.Deleted != "":
		return doc.Fault(fmt.Sprintf("template %s has no version %s: its tag %s was deleted", ref.Name, ref.Version, missing.Deleted),
			"put the tag back, or choose another version", "spec", "template", "version"), true
	case len(missing.Available) == 0:
		return doc.Fault(fmt.Sprintf("there is no template %s", ref.Name), wording.DidYouMean(ref.Name, missing.Templates), "spec", "template", "name"), true
	}
	message := fmt.Sprintf("template %s has no version %s", ref.Name, ref.Version)
	if near := semver.Nearest(ref.Version, missing.Available); near != "" {
		message += fmt.Sprintf(" (nearest: %s)", near)
	}
	return doc.Fault(message, "", "spec", "template", "version"), true
}

// choose returns the provider of a cluster; one that is the only one goes
// without saying.
func choose(from source, doc document.Document) (*provider, holdfast.Fault) {
	names := from.template.Providers()
	name := doc.Cluster.Provider
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	if p := from.template.providers[name]; p != nil {
		return p, holdfast.Fault{}
	}
	if name == "" {
		return nil, doc.Fault("spec.provider is missing", wording.OneOf(names), "spec", "provider")
	}
	return nil, doc.Fault(fmt.Sprintf("template %s has no provider %q", from.label, wording.Clip(name)),
		wording.DidYouMean(name, names), "spec", "provider")
}

func violationFault(doc document.Document, p *provider, v schema.Violation) holdfast.Fault {
	message := v.Message
	if len(v.Path) > 0 {
		_, own := doc.Cluster.Variables[v.Path[0]]
		if _, def := p.defaults[v.Path[0]]; def && !own {
			message += fmt.Sprintf(" (from the template's defaults for %s)", p.name)
		}
	}
	keys := append([]string{"spec", "variables"}, v.Path...)
	return doc.FaultAt(message, v.Hint, v.Key || len(v.Path) == 0, keys)
}
