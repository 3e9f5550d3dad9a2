package releases

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/semver"
)

// Look looks at the versions of templates, each once. It is made for one
// look and not safe for concurrent use.
type Look struct {
	reader   *Reader
	resolver *templates.Resolver
	versions map[string][]string            // by template
	unusable map[string]string              // by template and version: why; empty: it can be used
	loaded   map[string]*templates.Template // of those that can be used
	next     map[[3]string]Step             // by template, version and constraint
}

// Step is to which version a cluster may go.
type Step struct {
	To   string   // empty: to none
	Held []string // which newer ones cannot be used, in sentences
}

// NewLook returns a Look that has seen nothing.
func NewLook(reader *Reader, resolver *templates.Resolver) *Look {
	return &Look{
		reader: reader, resolver: resolver, versions: make(map[string][]string), unusable: make(map[string]string),
		loaded: make(map[string]*templates.Template), next: make(map[[3]string]Step),
	}
}

// Of returns the versions of a template that have a tag.
func (l *Look) Of(ctx context.Context, name string) ([]string, error) {
	if known, ok := l.versions[name]; ok {
		return known, nil
	}
	var out []string
	if repo, _, ok := l.reader.Publisher(name); ok {
		refs, err := l.reader.Refs(ctx, repo)
		if err != nil {
			return nil, err
		}
		out = Available(refs, name)
	}
	l.versions[name] = out
	return out, nil
}

// Template returns a version of a template, or why it cannot be used. To look at
// a version does not record its tag: one that was never used may still be mended.
func (l *Look) Template(ctx context.Context, name, version string) (*templates.Template, string, error) {
	key := name + "@" + version
	if why, ok := l.unusable[key]; ok {
		return l.loaded[key], why, nil
	}
	t, why, err := l.load(ctx, name, version)
	if err != nil {
		return nil, "", fmt.Errorf("look at template %s: %w", key, err)
	}
	l.unusable[key] = why
	if why == "" {
		l.loaded[key] = t
	}
	return l.loaded[key], why, nil
}

func (l *Look) load(ctx context.Context, name, version string) (*templates.Template, string, error) {
	tag, tree, dir, why, err := l.Open(ctx, name, version)
	if err != nil || why != "" {
		return nil, why, err
	}
	return load(l.resolver, tree, dir, tag, name, version)
}

// Open opens the tree of a version, or says why that cannot be used.
func (l *Look) Open(ctx context.Context, name, version string) (tag string, tree holdfast.Tree, dir, why string, err error) {
	repo, dir, ok := l.reader.Publisher(name)
	if !ok {
		return "", nil, "", "no repository publishes it", nil
	}
	refs, err := l.reader.Refs(ctx, repo)
	if err != nil {
		return "", nil, "", "", err
	}
	tag, rev := TagOf(refs, name, version)
	if rev == "" {
		return "", nil, "", "it has no tag", nil
	}
	pins, err := l.reader.pins.TagPins(ctx, repo)
	if err != nil {
		return "", nil, "", "", fmt.Errorf("read tags of %s: %w", repo, err)
	}
	pinned, ok := pins[tag]
	if ok {
		if pinned, err = l.reader.Mend(ctx, repo, tag, name, version, pinned, rev); err != nil {
			return "", nil, "", "", err
		}
	}
	if ok && pinned != rev {
		return "", nil, "", (&templates.MovedTagError{Tag: tag, Was: pinned, Now: rev}).Error(), nil
	}
	tree, err = l.reader.git.Tree(ctx, repo, string(rev))
	return tag, tree, dir, "", err
}

// After returns the newest version that a cluster may go to and that can be used,
// empty if there is none, and in sentences which newer ones cannot be used.
func (l *Look) After(ctx context.Context, name, current, constraint string) (Step, error) {
	key := [3]string{name, current, constraint}
	if step, ok := l.next[key]; ok {
		return step, nil
	}
	all, err := l.Of(ctx, name)
	if err != nil {
		return Step{}, err
	}
	var step Step
	for left := slices.Clone(all); ; {
		step.To = semver.Next(current, constraint, left)
		if step.To == "" {
			break
		}
		_, why, err := l.Template(ctx, name, step.To)
		if err != nil {
			return Step{}, err
		}
		if why == "" {
			break
		}
		step.Held = append(step.Held, fmt.Sprintf("%s is not proposed: %s", step.To, why))
		left = slices.DeleteFunc(left, func(version string) bool { return version == step.To })
	}
	l.next[key] = step
	return step, nil
}
