package impact

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/byname"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// What a change of a template does to a cluster is remembered while its pull
// request is open: with each push to a fleet all the other clusters are asked
// about again, and to render them takes seconds where there are thousands.

// effectsKept is for how many pull requests that is remembered. Of ten thousand
// clusters it is some three megabytes each.
const effectsKept = 16

// effect is what a template's change does to one cluster.
type effect struct {
	kind    effectKind
	key     holdfast.Digest // of how the root module changes
	digest  holdfast.Digest // of the root module that there would be
	refused holdfast.Faults
}

type effectKind uint8

const (
	effectNone    effectKind = iota // nothing that this pull request tells
	effectSame                      // the root module stays what it is
	effectChange                    // it changes; key and digest are set
	effectRefused                   // the document would be refused
)

// effects are what one template's change does to clusters, by their documents.
type effects struct {
	of       holdfast.Digest // of what they depend on besides the documents; empty: nothing can be said
	clusters map[documentAt]effect
	words    map[holdfast.Digest][]string // what changes, by the keys of effects
}

// documentAt is a cluster's document: what it says, and where.
type documentAt struct{ repo, cluster, file, path string }

// effectsOf returns what is remembered of a template's change: nothing, if it was
// made from something else.
func (a *assessments) effectsOf(ref holdfast.PullRequestRef, template string, of holdfast.Digest) effects {
	a.mu.Lock()
	defer a.mu.Unlock()
	if former := a.effects[ref][template]; of != "" && former.of.Equal(of) {
		return former
	}
	return effects{of: of}
}

// keep remembers what a template's change does, in place of what was known of it.
func (a *assessments) keep(ref holdfast.PullRequestRef, template string, now effects) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recent = append(slices.DeleteFunc(a.recent, func(other holdfast.PullRequestRef) bool { return other == ref }), ref)
	for len(a.recent) > effectsKept {
		delete(a.effects, a.recent[0])
		a.recent = a.recent[1:]
	}
	if a.effects[ref] == nil {
		a.effects[ref] = make(map[string]effects)
	}
	a.effects[ref][template] = now
}

// effectsDependOn is a digest of all that the effects of a template's change depend on,
// the documents aside; empty if that is not known.
func (a *assessor) effectsDependOn(t changedTemplate) holdfast.Digest {
	digest := holdfast.NewDigester("effects")
	digest.Add(t.name, t.dir, a.version, a.named)
	for _, side := range []struct {
		tree     holdfast.Tree
		template *templates.Template
	}{{a.from.Tree, t.from}, {a.to.Tree, t.to}} {
		if side.template == nil {
			digest.Add("none")
			continue
		}
		id := identity(side.tree, side.template)
		if id == "" {
			return ""
		}
		digest.Add(id)
	}
	for _, repo := range a.k.opts.Repositories {
		refs := a.k.opts.Fleet.Refs(repo.Name)
		for _, ref := range slices.Sorted(maps.Keys(refs)) {
			if strings.HasPrefix(ref, "refs/tags/") && len(repo.Templates) > 0 {
				digest.Add(repo.Name, ref, string(refs[ref]))
			}
		}
	}
	return digest.Digest()
}

// documentOf returns the document that a cluster is made from, if the effect
// depends on nothing but it and on what effectsDependOn tells: not if the pull
// request changes the document, too, nor if it may depend on what was applied.
func (a *assessor) documentOf(user templateUser, reach rollout.ImpactReach) (at documentAt, ok bool) {
	name := user.doc.Cluster.Name
	entries := user.cat.Named(name)
	if a.former.of == "" || reach == rollout.ReachRelease || len(entries) != 1 || entries[0].File.ID == "" {
		return at, false
	}
	file := entries[0].File
	if user.cat == a.to {
		was := a.from.Named(name)
		byPath := user.doc.Cluster.Template.Path != ""
		if len(was) != 1 || !was[0].File.Same(file) || byPath && !a.based {
			return at, false
		}
	}
	return documentAt{repo: user.cat.Repo, cluster: name, file: file.ID, path: file.Path}, true
}

// effect renders a cluster as it is, or was applied last, and, by the other document, as it would be.
// Words says what changes.
func (a *assessor) effect(
	ctx context.Context, user templateUser, doc document.Document, reach rollout.ImpactReach,
) (e effect, words func() []string, err error) {
	before, faults, err := a.before(ctx, user)
	if err != nil {
		return e, nil, err
	}
	after, refused, err := a.proposed.Resolve(ctx, user.cat.Tree, doc)
	if err != nil {
		return e, nil, err
	}
	user.doc = doc
	coming := reach == rollout.ReachRelease
	var applied holdfast.Digest
	if before == nil && coming {
		if before, applied, err = a.applied(ctx, user); err != nil {
			return e, nil, err
		}
	}
	switch {
	case a.forbidden(user, before) || a.forbidden(user, after):
		return e, nil, nil // no cluster of the fleet: its own repository says why
	case len(faults) > 0 && !coming:
		return e, nil, nil
	case len(refused) > 0 && reach == rollout.ReachMerge: // a fault of the pull request itself
		return e, nil, nil
	case len(refused) > 0:
		return effect{kind: effectRefused, refused: refused}, nil, nil
	case before == nil && !coming: // new with this pull request
		return e, nil, nil
	}
	change := templates.Compare(before, after)
	if change.Key == "" {
		return effect{kind: effectSame}, nil, nil
	}
	e = effect{kind: effectChange, key: a.alike(change), digest: after.Digest}
	if before == nil && applied != "" { // its former content is not known: it is like no other
		digest := holdfast.NewDigester("applied")
		digest.Add(string(e.key), string(applied))
		e.key = digest.Digest()
	}
	return e, a.wordsOf(change), nil
}

// applied renders what was last applied of a cluster whose document names the version
// that is prepared, of which there is nothing to render yet: nil if that was nothing,
// or if it cannot be made again. Digest is of what was applied.
func (a *assessor) applied(ctx context.Context, user templateUser) (*templates.Root, holdfast.Digest, error) {
	name := user.doc.Cluster.Name
	records, err := byname.Records(ctx, a.k.opts.Store, []string{name})
	if err != nil {
		return nil, "", err
	}
	rec := records[name]
	last := rec.Applied
	switch ref := last.Document.Template; {
	case last.Run == "" || rec.Deletion != nil:
		return nil, "", nil
	case ref == nil || ref.Name == "": // what was in the folder then is not what is in it now
		return nil, last.SourceDigest, nil
	}
	root, _, err := a.k.opts.Resolver.Resolve(ctx, user.cat.Tree, document.Document{Cluster: last.Document})
	return root, last.SourceDigest, err
}

// alike distinguishes clusters whose root modules change in the same way but whose
// values that reach the change differ: the effect of a change of the code, such as of a
// count or a name, depends on these.
func (a *assessor) alike(change templates.RootChange) holdfast.Digest {
	a.mu.Lock()
	reach, known := a.reaches[change.Key]
	a.mu.Unlock()
	if !known {
		reach = change.Reach()
		a.mu.Lock()
		a.reaches[change.Key] = reach
		a.mu.Unlock()
	}
	digest := holdfast.NewDigester("alike")
	digest.Add(string(change.Key), string(change.Values(reach)))
	return digest.Digest()
}

// wordsOf returns what says how a root module changes, once for all that change
// in the same way. It is called with a.mu held.
func (a *assessor) wordsOf(change templates.RootChange) func() []string {
	return func() []string {
		words, known := a.words[change.Key]
		if !known {
			words = change.Words()
			a.words[change.Key] = words
		}
		return words
	}
}

// identity is a digest of all that a template is made of, in a tree that it was read
// from; empty if that is not known.
func identity(tree holdfast.Tree, t *templates.Template) string {
	document, err := tree.Hash(t.File)
	if err != nil {
		return ""
	}
	return document + " " + string(t.Digest())
}
