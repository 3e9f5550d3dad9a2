package propose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/edit"
)

// Branches is how the branches of these proposals begin.
const Branches = "holdfast/cluster/"

// Desk takes what people ask for. It is safe for concurrent use.
type Desk struct{ opts Options }

// New returns a Desk.
func New(opts Options) *Desk { return &Desk{opts} }

// draft is a proposal while it is made.
type draft struct {
	proposals.ClusterChange
	repo Repository
	head holdfast.Revision
	cat  *catalog.Catalog
	path string
	file []byte // as it is; nil: it is new
}

// Propose makes a pull request that adds, changes or removes the document of a cluster; of a
// dry run, only what it would be. What is wrong with it are the Faults of the answer, and
// there is no pull request then. An ErrConflict says why it cannot be asked for, Faults of the
// file "request" or "set" what is wrong with what is asked, and an ErrForbidden that it is not
// for the projects that it is limited to.
func (d *Desk) Propose(ctx context.Context, p proposals.ClusterChange) (made proposals.ClusterOutcome, err error) {
	r, err := d.begin(ctx, p)
	if err != nil {
		return made, err
	}
	file, text, err := r.edited()
	if err != nil {
		return made, err
	}
	made = proposals.ClusterOutcome{Repo: r.repo.Name, Path: r.path, Document: string(unix(text)), Line: lineOf(file, text)}
	to, err := d.opts.Catalogs.Edited(ctx, r.cat, r.path, file)
	if err != nil {
		return made, err
	}
	if err := r.within(to); err != nil {
		return made, err
	}
	seen, err := d.opts.Fleet.Foresee(ctx, r.cat, to)
	if err != nil {
		return made, err
	}
	if made.Faults, err = d.faults(ctx, r, seen); err != nil {
		return made, err
	}
	if len(made.Faults) > 0 || p.DryRun {
		return made, nil
	}
	made.PullRequest, err = r.propose(ctx, file)
	return made, err
}

// invalid is what is wrong with what somebody asks for.
func invalid(hint, format string, args ...any) error {
	return holdfast.Faults{{File: "request", Message: fmt.Sprintf(format, args...), Hint: hint}}
}

// begin finds the file that a proposal is about.
func (d *Desk) begin(ctx context.Context, p proposals.ClusterChange) (*draft, error) {
	r := &draft{ClusterChange: p}
	if !decode.ValidName(p.Name) {
		return nil, invalid(decode.NameHint, "%.80q cannot be the name of a cluster", p.Name)
	}
	known, err := d.opts.Fleet.Cluster(ctx, p.Name)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return nil, err
	}
	living := err == nil && known.Phase != holdfast.PhaseDeleted
	switch {
	case !slices.Contains([]string{proposals.Create, proposals.Update, proposals.Delete}, p.Change):
		return nil, invalid("", "change is %.40q: one of create, update and delete", p.Change)
	case p.Change == proposals.Create && living:
		return nil, holdfast.ErrorOf(holdfast.ErrConflict, "there is a cluster %q already", p.Name)
	case p.Change != proposals.Create && !living:
		return nil, holdfast.ErrorOf(holdfast.ErrNotFound, "cluster %q: not found", p.Name)
	case p.Change != proposals.Create:
		r.Repo = known.Owner
	}
	if r.repo, err = d.repository(r.Repo); err != nil {
		return nil, err
	}
	if r.cat, r.head, err = d.opts.Fleet.Tracked(ctx, r.repo.Name); err != nil {
		return nil, err
	}
	if r.cat == nil {
		return nil, holdfast.ErrorOf(holdfast.ErrConflict, "repository %s has no branch %s", r.repo.Name, r.repo.Branch)
	}
	return r, r.place()
}

// repository is where the document is, or is to be.
func (d *Desk) repository(name string) (Repository, error) {
	var names []string
	for _, repo := range d.opts.Repositories {
		if repo.Name == name {
			return repo, nil
		}
		names = append(names, repo.Name)
	}
	switch {
	case len(names) == 0:
		return Repository{}, holdfast.ErrorOf(holdfast.ErrConflict, "no repository may define clusters: name their files under repositories[].clusters in holdfast.yaml")
	case name != "":
		return Repository{}, invalid("", "repository %.80q does not define clusters; these do: %s", name, strings.Join(names, ", "))
	case len(names) > 1:
		return Repository{}, invalid("", "several repositories define clusters, name one: %s", strings.Join(names, ", "))
	}
	return d.opts.Repositories[0], nil
}

// edited is the file as it would be, nil if it is removed, and the document in it.
func (r *draft) edited() (file, text []byte, err error) {
	if r.Change == proposals.Create {
		text = []byte(strings.TrimSpace(r.Document) + "\n")
		if r.Document == "" {
			text = fmt.Appendf(nil, "apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\nspec: {}\n", decode.APIVersion, decode.KindCluster, r.Name)
		}
		if text, err = edit.Set(text, "spec", r.Set); err != nil {
			return nil, nil, err
		}
		return edit.Append(r.file, text), text, r.names(text)
	}
	r.setVersion()
	parts := edit.Parts(r.file)
	i := slices.IndexFunc(parts, func(part []byte) bool {
		docs, _ := document.ParseClusters(r.path, part)
		return slices.ContainsFunc(docs, func(doc document.Document) bool { return doc.Cluster.Name == r.Name })
	})
	switch {
	case i < 0:
		return nil, nil, holdfast.ErrorOf(holdfast.ErrConflict, "the document of %s was not found in %s: edit it by hand", r.Name, r.path)
	case !edit.IsOne(parts[i]):
		return nil, nil, holdfast.ErrorOf(holdfast.ErrConflict, "the document of %s in %s has another one behind it without a line --- between them: edit it by hand", r.Name, r.path)
	case r.Change == proposals.Delete:
		return edit.Remove(parts, i), nil, nil
	}
	_, text = edit.Cut(parts[i])
	if r.Document != "" {
		text = []byte(strings.TrimSpace(r.Document) + "\n")
	}
	if text, err = edit.Set(text, "spec", r.Set); err != nil {
		return nil, nil, err
	}
	return edit.Replace(parts, i, text), text, r.names(text)
}

// setVersion changes the version of the template, if that is asked for, in place: to the byte,
// however it is written. Where that cannot be, it is a key as others are.
func (r *draft) setVersion() {
	i := slices.IndexFunc(r.Set, func(s string) bool { return strings.HasPrefix(s, versionKey) })
	entries := r.cat.Named(r.Name)
	if i < 0 || len(entries) != 1 || r.Document != "" {
		return
	}
	version := strings.Trim(strings.TrimPrefix(r.Set[i], versionKey), `"`)
	if file, err := document.SetVersion(r.file, entries[0].Doc, version); err == nil {
		r.file, r.Set = file, append(slices.Clone(r.Set[:i]), r.Set[i+1:]...)
	}
}

const versionKey = "template.version="

// lineOf is the line of a file at which a text begins; 0: it is not in there. Their lines may
// end in other ways.
func lineOf(file, text []byte) int {
	file, text = unix(file), unix(text)
	at := bytes.LastIndex(file, text)
	if at < 0 || len(text) == 0 {
		return 0
	}
	return 1 + bytes.Count(file[:at], []byte("\n"))
}

// unix is a text whose lines end in a newline alone, as it is shown.
func unix(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) }

// names refuses a document that is not one document of the cluster that is asked for.
func (r *draft) names(text []byte) error {
	docs, faults := document.ParseClusters(r.path, text)
	if len(docs) == 1 && docs[0].Cluster.Name == r.Name && len(edit.Parts(text)) == 1 && edit.IsOne(text) {
		return nil
	}
	if len(docs) == 0 && len(faults) > 0 {
		return faults
	}
	return invalid("", "the document must be one of kind Cluster with the name %s", r.Name)
}

// within refuses what is not for the projects that a proposal is limited to: by what the
// document says now, and by what it would say.
func (r *draft) within(to *catalog.Catalog) error {
	if len(r.Projects) == 0 {
		return nil
	}
	for _, cat := range []*catalog.Catalog{r.cat, to} {
		for _, entry := range cat.Named(r.Name) {
			if project := entry.Doc.Cluster.Project; !slices.Contains(r.Projects, project) {
				return holdfast.ErrorOf(holdfast.ErrForbidden, "cluster %q would be of project %.80q, and you may propose changes in %s", r.Name, project, strings.Join(r.Projects, ", "))
			}
		}
	}
	return nil
}

// faults are the faults that the change adds: of its file, and of the cluster. What is
// wrong elsewhere was wrong before.
func (d *Desk) faults(ctx context.Context, r *draft, seen holdfast.PullRequestRecord) (holdfast.Faults, error) {
	var out, before holdfast.Faults
	if was := r.cat.File(r.path); was != nil {
		before = slices.Clone(was.Faults)
	}
	for _, fault := range seen.Faults {
		if fault.File != r.path || fault.Cluster == "" || fault.Cluster == r.Name {
			continue
		}
		was, err := d.opts.Catalogs.Resolve(ctx, r.cat, fault.Cluster)
		if err != nil {
			return nil, err
		}
		if was != nil {
			before = append(before, was.Faults...)
		}
	}
	known := func(f holdfast.Fault) bool {
		return slices.ContainsFunc(before, func(b holdfast.Fault) bool { return b.Message == f.Message && b.Cluster == f.Cluster })
	}
	for _, fault := range seen.Faults {
		if fault.Cluster == r.Name || fault.File == r.path && !known(fault) {
			out = append(out, fault)
		}
	}
	return out, nil
}

// propose asks the code host for the pull request.
func (r *draft) propose(ctx context.Context, file []byte) (holdfast.PullRequest, error) {
	verb := map[string]string{proposals.Create: "Add", proposals.Update: "Change", proposals.Delete: "Remove"}[r.Change]
	title := fmt.Sprintf("%s cluster %s", verb, r.Name)
	body := report.AskedBy(r.By) + " through Holdfast, who cannot approve it. The plan is in the comment below, and is applied after the merge."
	if r.Change == proposals.Delete {
		body += " The merge removes the cluster: everything in it will be destroyed."
	}
	made, err := r.repo.Forge.Propose(ctx, r.repo.Name, proposals.PullRequest{
		// Another one for each content: what was closed or merged stays so.
		Branch: Branches + r.Name + "-" + holdfast.DigestOf(append([]byte(r.head+"\n"), file...)).Short()[:8],
		Base:   r.head, BaseBranch: r.repo.Branch, Files: map[string][]byte{r.path: file}, New: true,
		Message: title + fmt.Sprintf("\n\nAsked for by %s.", r.By), Title: title, Body: body,
	})
	if err != nil {
		return made, fmt.Errorf("propose a change of cluster %s: %w", r.Name, err)
	}
	return made, nil
}
