package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/parallel"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/templates/diff"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/semver"
)

// upgradeChecks remembers which documents a newer version would refuse, by
// repository and what a check depends on.
type upgradeChecks struct {
	mu   sync.Mutex
	last map[string]map[upgradeCheck]holdfast.Faults
}

type upgradeCheck struct{ file, path, cluster, to string }

func (c *upgradeChecks) of(repo string) map[upgradeCheck]holdfast.Faults {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last[repo]
}

func (c *upgradeChecks) keep(repo string, checks map[upgradeCheck]holdfast.Faults) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[repo] = checks
}

// candidates returns the clusters of a tree for which there is a newer version: those
// whose documents allow it, and those that somebody has asked for, which are of their
// records alone.
func (k *Keeper) candidates(ctx context.Context, cat *catalog.Catalog, known *releases.Look, records []rollout.Upgrade) ([]upgradeCandidate, error) {
	var out []upgradeCandidate
	asked := make(map[string]bool)
	for _, rec := range records {
		if rec.By == "" || rec.State != rollout.UpgradeOpen {
			continue
		}
		for _, c := range rec.Clusters {
			doc, ok := upgradable(cat, c.Name)
			if ref := doc.Cluster.Template; ok && ref.Name == rec.Template && semver.Newer(c.To, ref.Version) {
				out = append(out, candidateOf(doc, c.To, rec.By))
				asked[c.Name] = true
			}
		}
	}
	for name := range cat.Upgrading() {
		doc, ok := upgradable(cat, name)
		if !ok || asked[name] {
			continue
		}
		ref := doc.Cluster.Template
		step, err := known.After(ctx, ref.Name, ref.Version, ref.Upgrades)
		if err != nil {
			return nil, err
		}
		if step.To != "" {
			c := candidateOf(doc, step.To, "")
			c.held = step.Held
			out = append(out, c)
		}
	}
	return out, k.check(ctx, cat, out)
}

func candidateOf(doc document.Document, to, by string) upgradeCandidate {
	c := doc.Cluster
	return upgradeCandidate{
		UpgradeCluster: rollout.UpgradeCluster{Name: c.Name, Path: c.Path, From: c.Template.Version, To: to},
		template:       c.Template.Name, labels: c.Labels, by: by,
	}
}

// upgradable returns the document of a cluster that names a version of a template and
// has no faults itself.
func upgradable(c *catalog.Catalog, name string) (document.Document, bool) {
	entries := c.Named(name)
	if len(entries) != 1 || len(entries[0].File.FaultsOf(name)) > 0 {
		return document.Document{}, false
	}
	ref := entries[0].Doc.Cluster.Template
	return entries[0].Doc, ref != nil && ref.Name != "" && ref.Version != ""
}

// unclear reports whether a tree does not say what some of an upgrade's clusters are:
// their files have faults, or they are claimed twice. People will correct that, and do
// not want another pull request meanwhile.
func unclear(c *catalog.Catalog, rec rollout.Upgrade) bool {
	return slices.ContainsFunc(rec.Clusters, func(cluster rollout.UpgradeCluster) bool {
		return c.Spoiled(cluster.Path) || len(c.Named(cluster.Name)) > 1
	})
}

// check fills in which candidates the newer version would refuse. The result for the
// same document is remembered.
func (k *Keeper) check(ctx context.Context, cat *catalog.Catalog, candidates []upgradeCandidate) error {
	former := k.checks.of(cat.Repo)
	checks := make([]upgradeCheck, len(candidates))
	err := parallel.Each(ctx, len(candidates), func(i int) error {
		c := &candidates[i]
		e := cat.Named(c.Name)[0]
		checks[i] = upgradeCheck{e.File.ID, e.File.Path, c.Name, c.To}
		if faults, ok := former[checks[i]]; ok && e.File.ID != "" {
			c.faults = faults
			return nil
		}
		var err error
		_, c.faults, err = k.opts.Fleet.Resolve(ctx, cat.Tree, e.Doc.WrittenVersion(c.To))
		return err
	})
	if err != nil {
		return fmt.Errorf("check what newer versions say: %w", err)
	}
	kept := make(map[upgradeCheck]holdfast.Faults, len(checks))
	for i, c := range candidates {
		kept[checks[i]] = c.faults
	}
	k.checks.keep(cat.Repo, kept)
	return nil
}

// editsFor returns the new contents of the files that an upgrade edits. Clusters
// whose documents cannot be edited move to those that are left out.
func editsFor(c *catalog.Catalog, w *wantedUpgrade) (map[string][]byte, error) {
	byFile := make(map[string][]document.VersionEdit)
	for _, cluster := range w.clusters {
		doc, _ := upgradable(c, cluster.Name)
		byFile[cluster.Path] = append(byFile[cluster.Path], document.VersionEdit{Document: doc, Version: cluster.To})
	}
	files := make(map[string][]byte, len(byFile))
	refused := make(map[string]holdfast.Faults)
	for _, name := range slices.Sorted(maps.Keys(byFile)) {
		data, err := c.Tree.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		edited, err := document.SetVersions(data, byFile[name])
		if err != nil {
			edited, err = editWhatCanBe(data, byFile[name], refused)
		}
		if err != nil {
			return nil, err
		}
		if edited != nil {
			files[name] = edited
		}
	}
	if len(refused) == 0 {
		return files, nil
	}
	w.clusters = slices.DeleteFunc(w.clusters, func(cluster rollout.UpgradeCluster) bool {
		faults, ok := refused[cluster.Name]
		if ok {
			w.left = append(w.left, report.LeftOut{Name: cluster.Name, To: cluster.To, Faults: faults})
		}
		return ok
	})
	slices.SortFunc(w.left, func(a, b report.LeftOut) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// madeFrom is a digest of all that a pull request is made from: if it is the same, so
// is the content, as far as tags have not moved.
func madeFrom(c *catalog.Catalog, w *wantedUpgrade) holdfast.Digest {
	d := holdfast.NewDigester("upgrade")
	d.Add(w.key, w.group, w.by, strings.Join(w.held, "\n"))
	for _, cluster := range w.clusters {
		d.Add(cluster.Name, cluster.Path, cluster.From, cluster.To, c.Named(cluster.Name)[0].File.ID)
	}
	for _, l := range w.left {
		d.Add("left", l.Name, l.To, l.Faults.Error())
	}
	return d.Digest()
}

// editWhatCanBe edits a file of which some documents cannot be edited, and says
// of these why. Nil if there is nothing left to edit.
func editWhatCanBe(data []byte, edits []document.VersionEdit, refused map[string]holdfast.Faults) ([]byte, error) {
	var good []document.VersionEdit
	for _, edit := range edits {
		if _, err := document.SetVersion(data, edit.Document, edit.Version); err != nil {
			fault := edit.Document.Fault(err.Error(), "", "spec", "template", "version")
			refused[edit.Document.Cluster.Name] = holdfast.Faults{fault}
			continue
		}
		good = append(good, edit)
	}
	if len(good) == 0 {
		return nil, nil
	}
	return document.SetVersions(data, good)
}

// compare fills in what comes with going from one version to another.
func compare(ctx context.Context, l *releases.Look, name string, step *report.UpgradeStep) error {
	to, why, err := l.Template(ctx, name, step.To)
	if err != nil || why != "" {
		return err
	}
	from, why, err := l.Template(ctx, name, step.From)
	if err != nil {
		return err
	}
	if step.Compared = why == ""; step.Compared {
		step.Changes = diff.Templates(from.Blueprint(), to.Blueprint())
	}
	_, tree, dir, why, err := l.Open(ctx, name, step.To)
	if err != nil || why != "" {
		return err
	}
	for _, folder := range slices.Compact([]string{dir, "."}) {
		log, err := tree.ReadFile(path.Join(folder, "CHANGELOG.md"))
		if err == nil {
			step.Notes = diff.Notes(log, step.From, step.To)
			return nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil //nolint:nilerr // too large, or a folder: there are no notes then
		}
	}
	return nil
}

// WouldRefuse returns what a newer version of its template would find wrong in a
// cluster's document.
func (k *Keeper) WouldRefuse(ctx context.Context, cat *catalog.Catalog, name, to string) (holdfast.Faults, error) {
	doc, ok := upgradable(cat, name)
	if !ok {
		return nil, nil
	}
	file := cat.Named(name)[0].File
	if faults, ok := k.checks.of(cat.Repo)[upgradeCheck{file.ID, file.Path, name, to}]; ok && file.ID != "" {
		return faults, nil
	}
	_, faults, err := k.opts.Fleet.Resolve(ctx, cat.Tree, doc.WrittenVersion(to))
	return faults, err
}
