package policies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/policy"
	"github.com/holdfast-dev/holdfast/policy/library"
	"github.com/holdfast-dev/holdfast/policy/waiver"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/templates"
)

// Scope is for whose clusters policies are.
type Scope struct {
	Projects, Environments []string // globs; none: all
}

// Has reports whether a cluster is in the scope.
func (s Scope) Has(c holdfast.Cluster) bool {
	return matches(s.Projects, c.Project) && matches(s.Environments, c.Environment)
}

func matches(globs []string, value string) bool {
	return len(globs) == 0 || slices.ContainsFunc(globs, func(glob string) bool {
		ok, err := path.Match(glob, value)
		return ok && err == nil
	})
}

// Set is a folder with policies.
type Set struct {
	Name    string // its versions are the tags NAME/vVERSION and vVERSION
	Repo    string
	Branch  string // the tracked one
	Dir     string
	Version string // empty: the head of Branch
	Scope   Scope
}

// Pins are the commits that tags were recorded with at their first use.
type Pins interface {
	// PinTag records the commit of a tag, and returns the one that was recorded first.
	PinTag(ctx context.Context, repo, tag string, rev holdfast.Revision) (holdfast.Revision, error)
}

// Git opens commits.
type Git interface {
	Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error)
}

// Options are what is bound, and how it is read.
type Options struct {
	Sets    []Set
	Shipped *Scope // for whose clusters the shipped policies are; nil: for none
	Pins    Pins
	Git     Git
	// Refs returns the branches and tags of a repository as they were last fetched.
	Refs func(ctx context.Context, repo string) (holdfast.Refs, error)
}

// Reader says which policies clusters have. It is safe for concurrent use.
type Reader struct {
	opts Options
	ours []protocol.PolicySource // the shipped ones, if somebody has them

	mu      sync.Mutex                 // guards what follows
	opened  map[string]opened          // of the sets, by where they are read
	digests map[string]holdfast.Digest // of what is evaluated together, by where all of it is
}

// opened is what the folder of a set has.
type opened struct {
	sources []protocol.PolicySource
	waivers []waiver.Waiver
}

// NewReader returns a Reader that has read nothing.
func NewReader(opts Options) *Reader {
	r := &Reader{opts: opts, opened: map[string]opened{}, digests: map[string]holdfast.Digest{}}
	if opts.Shipped != nil {
		r.ours = library.Sources()
	}
	return r
}

// Required are the conditions of an apply that a cluster has because of its policies.
func (r *Reader) Required(c holdfast.Cluster) []string {
	if of := []holdfast.Cluster{c}; len(r.of(of)) == 0 && !r.shipped(of) {
		return nil
	}
	return []string{holdfast.GatePolicy}
}

// Policy returns one of the policies of a cluster; false if it has none of that id.
func (r *Reader) Policy(ctx context.Context, id string, documents ...holdfast.Cluster) (holdfast.Policy, bool, error) {
	assigned, err := r.For(ctx, documents...)
	if err != nil || assigned == nil {
		return holdfast.Policy{}, false, err
	}
	for _, p := range policy.Compile(assigned.Sources, assigned.Settings).Policies() {
		if p.ID == id {
			return p, true, nil
		}
	}
	return holdfast.Policy{}, false, nil
}

func (r *Reader) shipped(documents []holdfast.Cluster) bool {
	return r.opts.Shipped != nil && slices.ContainsFunc(documents, r.opts.Shipped.Has)
}

// of are the sets of a cluster: those of each of its documents.
func (r *Reader) of(documents []holdfast.Cluster) (sets []Set) {
	for _, set := range r.opts.Sets {
		if slices.ContainsFunc(documents, set.Scope.Has) {
			sets = append(sets, set)
		}
	}
	return sets
}

// Digest identifies the policies of a cluster; empty if it has none. Decisions ask for it: of
// what was digested before no file is looked at.
func (r *Reader) Digest(ctx context.Context, documents ...holdfast.Cluster) (holdfast.Digest, error) {
	_, where, err := r.located(ctx, documents)
	if err != nil || where == "" {
		return "", err
	}
	r.mu.Lock()
	known, ok := r.digests[where]
	r.mu.Unlock()
	if ok {
		return known, nil
	}
	assigned, err := r.For(ctx, documents...)
	if assigned == nil {
		return "", err
	}
	return assigned.Set, err
}

// located is a set at the commit that it is read at.
type located struct {
	Set
	rev holdfast.Revision
	key string // which of what was opened it is
}

// located are the sets of a cluster, and where all of its policies are; empty if it has none.
func (r *Reader) located(ctx context.Context, documents []holdfast.Cluster) (sets []located, where string, err error) {
	var keys []string
	for _, set := range r.of(documents) {
		rev, err := r.revision(ctx, set)
		if err != nil {
			return nil, "", fmt.Errorf("policies %s: %w", set.Name, err)
		}
		key := strings.Join([]string{set.Name, set.Repo, string(rev), set.Dir}, "\x00")
		sets, keys = append(sets, located{set, rev, key}), append(keys, key)
	}
	if r.shipped(documents) {
		keys = append(keys, "shipped")
	}
	return sets, strings.Join(keys, "\x01"), nil
}

// For returns the policies of a cluster, without their context; nil if it has none. Documents
// are its own, and those that were last applied, or begun: a change that takes a cluster to
// another project or environment does not take it out of the policies that judge the change.
func (r *Reader) For(ctx context.Context, documents ...holdfast.Cluster) (*protocol.AssignedPolicies, error) {
	sets, where, err := r.located(ctx, documents)
	if err != nil || where == "" {
		return nil, err
	}
	var sources []protocol.PolicySource
	size := 0
	for _, set := range sets {
		found, err := r.read(ctx, set.key, set.Set, set.rev)
		if err != nil {
			return nil, fmt.Errorf("policies %s: %w", set.Name, err)
		}
		for _, source := range found.sources {
			size += len(source.Text)
		}
		if size > mostTogether {
			return nil, fmt.Errorf("the policies of cluster %s have more than %d MiB", documents[0].Name, mostTogether>>20)
		}
		sources = append(sources, found.sources...)
	}
	if r.shipped(documents) {
		sources = append(sources, r.ours...)
	}
	return &protocol.AssignedPolicies{Set: r.digest(where, sources), Sources: sources}, nil
}

// mostDigests and mostOpened bound what is kept: when there is more, it is made again.
const (
	mostDigests = 256
	mostOpened  = 32
)

func (r *Reader) digest(where string, sources []protocol.PolicySource) holdfast.Digest {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.digests[where]; ok {
		return known
	}
	if len(r.digests) >= mostDigests {
		clear(r.digests)
	}
	r.digests[where] = policy.Digest(sources, nil)
	return r.digests[where]
}

// revision is the commit that a set is read at.
func (r *Reader) revision(ctx context.Context, set Set) (holdfast.Revision, error) {
	refs, err := r.opts.Refs(ctx, set.Repo)
	if err != nil {
		return "", fmt.Errorf("read repository %s: %w", set.Repo, err)
	}
	if set.Version == "" {
		rev, ok := refs["refs/heads/"+set.Branch]
		if !ok {
			return "", fmt.Errorf("repository %s has no branch %s", set.Repo, set.Branch)
		}
		return rev, nil
	}
	for _, tag := range templates.TagsFor(set.Name, set.Version) {
		rev, ok := refs["refs/tags/"+tag]
		if !ok {
			continue
		}
		first, err := r.opts.Pins.PinTag(ctx, set.Repo, tag, rev)
		if err != nil {
			return "", fmt.Errorf("record tag %s of %s: %w", tag, set.Repo, err)
		}
		if first != rev {
			return "", &templates.MovedTagError{Tag: tag, Was: first, Now: rev}
		}
		return rev, nil
	}
	return "", fmt.Errorf("repository %s has no tag %s", set.Repo, strings.Join(templates.TagsFor(set.Name, set.Version), " or "))
}

// Bounds of a set, and of the sets of a cluster: an agent gets them with each run.
const (
	mostFiles    = 500
	mostBytes    = 2 << 20
	mostTogether = 4 << 20
)

// read reads the files of a set.
func (r *Reader) read(ctx context.Context, key string, set Set, rev holdfast.Revision) (found opened, err error) {
	r.mu.Lock()
	known, ok := r.opened[key]
	r.mu.Unlock()
	if ok {
		return known, nil
	}
	tree, err := r.opts.Git.Tree(ctx, set.Repo, string(rev))
	if err != nil {
		return found, fmt.Errorf("open %s: %w", rev, err)
	}
	if found.sources, err = readTree(tree, set); err != nil {
		return found, err
	}
	if found.waivers, err = r.waiversIn(found.sources); err != nil {
		return found, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.opened) >= mostOpened {
		clear(r.opened)
	}
	r.opened[key] = found
	return found, nil
}

// isPolicy reports whether a file of that name has policies, or data for them, and no tests.
func isPolicy(name string) bool { return policy.IsSource(name) && !policy.IsTest(name) }

// readTree reads the policies in a folder of a tree, without their tests, and waivers. These are
// part of what is identified: a new one has open pull requests planned again.
func readTree(tree holdfast.Tree, set Set) (sources []protocol.PolicySource, err error) {
	root, size := path.Clean(cmp.Or(set.Dir, ".")), 0
	err = fs.WalkDir(tree, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() || !isPolicy(entry.Name()) && !isWaiver(root, name) {
			return nil
		}
		text, err := tree.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if size += len(text); size > mostBytes || len(sources) >= mostFiles {
			return fmt.Errorf("there are more than %d files, or %d MiB, with policies in %s", mostFiles, mostBytes>>20, root)
		}
		inside := strings.TrimPrefix(strings.TrimPrefix(name, root), "/")
		if root == "." {
			inside = name
		}
		sources = append(sources, protocol.PolicySource{From: set.Name, Path: inside, Text: string(text)})
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no folder %s", root)
	case err != nil:
		return nil, err
	case !slices.ContainsFunc(sources, func(s protocol.PolicySource) bool { return isPolicy(path.Base(s.Path)) }):
		return nil, fmt.Errorf("the folder %s has no policy: they are files that end in .rego", root)
	}
	return sources, nil
}
