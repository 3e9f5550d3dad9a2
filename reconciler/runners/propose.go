package runners

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/modules"
	"github.com/holdfast-dev/holdfast/templates/runnerdoc"
)

// Branches is how the branches of our proposals begin.
const Branches = "holdfast/runner/"

// Repository is one that may define runners.
type Repository struct {
	Name   string
	Branch string   // the tracked branch
	Globs  []string // of the files that may define runners
	Forge  Proposer
}

// Proposer makes pull requests; its contract is that of reconciler.Forge.
type Proposer interface {
	Propose(ctx context.Context, repo string, p proposals.PullRequest) (holdfast.PullRequest, error)
}

// Sources are where documents of runners are.
type Sources struct {
	Repositories []Repository // those that may define runners
	Catalogs     *catalog.Reader
	Documents    runnerdoc.Options
	// Head returns the head of a repository's tracked branch as it was taken in.
	Head func(ctx context.Context, repo string) (holdfast.Revision, error)
}

// editing is a proposal while it is made.
type editing struct {
	proposals.RunnerChange
	repo   Repository
	head   holdfast.Revision
	path   string
	before []byte // of the file; nil: it is new
}

// Propose makes a pull request that changes the document of a runner. Faults say what is
// wrong with what it would say, an ErrConflict why it cannot be asked for.
func (k *Keeper) Propose(ctx context.Context, p proposals.RunnerChange) (made proposals.RunnerOutcome, err error) {
	e, cat, err := k.edit(ctx, p)
	if err != nil {
		return made, err
	}
	file, document, err := e.edited()
	if err != nil {
		return made, err
	}
	if err := k.foresee(ctx, cat, e, file); err != nil {
		return made, err
	}
	action := map[string]string{"create": "Create", "update": "Update", "delete": "Delete"}[p.Change]
	title := fmt.Sprintf("%s runner %s", action, p.Name)
	made.Path, made.Document = e.path, string(document)
	made.PullRequest, err = e.repo.Forge.Propose(ctx, e.repo.Name, proposals.PullRequest{
		// Another one for each content: what was closed or merged stays so.
		Branch: Branches + p.Name + "-" + holdfast.DigestOf(append([]byte(e.head+"\n"), file...)).Short()[:8],
		Base:   e.head, BaseBranch: e.repo.Branch, Files: map[string][]byte{e.path: file}, New: true,
		Message: title + fmt.Sprintf("\n\nAsked for by %s.", p.By), Title: title,
		Body: report.AskedBy(p.By) + ". The comment of this pull request lists the environments and clusters that it affects.",
	})
	if err != nil {
		return made, fmt.Errorf("propose a change of runner %s: %w", p.Name, err)
	}
	return made, nil
}

// invalid is what is wrong with what somebody asks for.
func invalid(format string, args ...any) error {
	return holdfast.Faults{{File: "request", Message: fmt.Sprintf(format, args...)}}
}

// edit finds the file that a proposal is about.
func (k *Keeper) edit(ctx context.Context, p proposals.RunnerChange) (e editing, cat *catalog.Catalog, err error) {
	e.RunnerChange = p
	if !decode.ValidName(p.Name) || p.Name == holdfast.LocalRunner {
		return e, nil, invalid("%q cannot be the name of a runner: %s", p.Name, decode.NameHint)
	}
	if !slices.Contains([]string{"create", "update", "delete"}, p.Change) {
		return e, nil, invalid("change is %q: one of create, update and delete", p.Change)
	}
	is, err := k.known(ctx)
	if err != nil {
		return e, nil, err
	}
	rec, known := is.runner(p.Name)
	switch {
	case p.Change == "create" && known:
		return e, nil, fmt.Errorf("runner %q already exists, in repository %s: %w", p.Name, rec.Place.Repo, holdfast.ErrConflict)
	case p.Change != "create" && !known:
		return e, nil, fmt.Errorf("runner %q: %w", p.Name, holdfast.ErrNotFound)
	}
	if e.repo, err = k.repository(p, rec); err != nil {
		return e, nil, err
	}
	if e.head, err = k.opts.Sources.Head(ctx, e.repo.Name); err != nil {
		return e, nil, err
	}
	if cat, err = k.opts.Sources.Catalogs.Read(ctx, e.repo.Name, string(e.head)); err != nil {
		return e, nil, err
	}
	return e, cat, k.place(&e, cat)
}

// repository is where the document is, or is to be.
func (k *Keeper) repository(p proposals.RunnerChange, rec runnerspec.Record) (Repository, error) {
	name := p.Repo
	if rec.Place.Repo != "" {
		name = rec.Place.Repo
	}
	var names []string
	for _, repo := range k.opts.Sources.Repositories {
		if repo.Name == name {
			return repo, nil
		}
		names = append(names, repo.Name)
	}
	switch {
	case len(names) == 0:
		return Repository{}, fmt.Errorf("no repository may define runners: allow it under repositories[].allow in holdfast.yaml: %w", holdfast.ErrConflict)
	case name != "":
		return Repository{}, invalid("repository %q may not define runners; these may: %s", name, strings.Join(names, ", "))
	case len(names) > 1:
		return Repository{}, invalid("several repositories may define runners, name one: %s", strings.Join(names, ", "))
	}
	return k.opts.Sources.Repositories[0], nil
}

// place finds the path of the file and reads it.
func (k *Keeper) place(e *editing, cat *catalog.Catalog) error {
	e.path = path.Clean(e.Path)
	if e.Path == "" {
		e.path = "runners/" + e.Name + ".yaml"
	}
	if e.Change != "create" {
		e.path = ""
		for _, file := range cat.RunnerFiles() {
			if slices.ContainsFunc(file.Runners, func(d runnerdoc.Document) bool { return d.Runner != nil && d.Name() == e.Name }) {
				e.path = file.Path
			}
		}
		if e.path == "" {
			return fmt.Errorf("the document of runner %q is no longer in repository %s: %w", e.Name, e.repo.Name, holdfast.ErrConflict)
		}
	} else if !slices.ContainsFunc(e.repo.Globs, func(glob string) bool { ok, err := doublestar.Match(glob, e.path); return ok && err == nil }) {
		return invalid("repository %s may not define runners in %s, but in %s: name a path", e.repo.Name, e.path, strings.Join(e.repo.Globs, ", "))
	}
	data, err := cat.Tree.ReadFile(e.path)
	if why, refused := modules.Refused(err); refused {
		return holdfast.ErrorOf(holdfast.ErrConflict, "%s is there, and cannot be changed: %s", e.path, why)
	} else if err != nil && (e.Change != "create" || !errors.Is(err, fs.ErrNotExist)) {
		return fmt.Errorf("read %s: %w", e.path, err) // it must not be written over
	}
	e.before = data
	return nil
}

// edited is the file as it would be, nil if it is removed, and the document in it.
func (e editing) edited() (file, document []byte, err error) {
	switch {
	case e.Change == "delete":
		file, err = runnerdoc.Remove(e.path, e.before, e.Name)
		return file, nil, err
	case e.Document != "":
		document = []byte(strings.TrimSpace(e.Document) + "\n")
	case e.Change == "create":
		document = runnerdoc.New(e.Name, e.Type)
	default:
		if document, err = runnerdoc.Text(e.path, e.before, e.Name); err != nil {
			return nil, nil, err
		}
	}
	if document, err = runnerdoc.Set(document, e.Set); err != nil {
		return nil, nil, err
	}
	docs, faults := runnerdoc.Parse(e.path, document, true, runnerdoc.Options{AnySecret: true})
	if len(faults) == 0 && (len(docs) != 1 || docs[0].Runner == nil || docs[0].Name() != e.Name || !runnerdoc.IsOne(document)) {
		faults = holdfast.Faults{{File: e.path, Message: fmt.Sprintf("the document must be one of kind Runner with the name %s", e.Name)}}
	}
	if len(faults) > 0 {
		return nil, nil, faults
	}
	if e.Change == "create" {
		return runnerdoc.Append(e.before, document), document, nil
	}
	file, err = runnerdoc.Replace(e.path, e.before, e.Name, document)
	return file, document, err
}

// foresee finds fault with what the file would say.
func (k *Keeper) foresee(ctx context.Context, cat *catalog.Catalog, e editing, file []byte) error {
	is, err := k.known(ctx)
	if err != nil {
		return err
	}
	said := treeOf(cat, "")
	said.docs = slices.DeleteFunc(said.docs, func(d runnerdoc.Document) bool { return d.Path == e.path })
	docs, unnamed := runnerdoc.Parse(e.path, file, true, k.opts.Sources.Documents)
	said.docs, said.unnamed = append(said.docs, docs...), unnamed
	said.spoiled = func(string) bool { return false }
	var faults holdfast.Faults
	v, err := k.judge(ctx, said, is)
	if err != nil {
		return err
	}
	for _, fault := range v.faults {
		if fault.File == e.path {
			faults = append(faults, fault)
		}
	}
	return faults.Err()
}
