package upgrade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/semver"
)

// Upgrade proposes newer versions at once, whether documents allow them or not, and
// returns the pull requests in which they are: each with Trouble where that did not work, or where clusters were left out or not found.
// ErrNotFound if no cluster that was named is defined anywhere; ErrConflict, with the reason
// in its text, if there is nothing to propose.
func (k *Keeper) Upgrade(ctx context.Context, req rollout.UpgradeRequest) ([]rollout.Upgrade, error) {
	if req.Actor == "" {
		req.Actor = "somebody"
	}
	missing := make(map[string]bool, len(req.Clusters))
	for _, name := range req.Clusters {
		missing[name] = true
	}
	var out []rollout.Upgrade
	var why, fine []string
	var errs []error // where one repository cannot be read the clusters of the others are upgraded
	for _, repo := range k.opts.Repositories {
		a := &upgradeAsk{k: k, repo: k.repos[repo.Name], req: req, missing: missing, known: k.opts.Look()}
		upgrades, err := a.ask(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("upgrade clusters of %s: %w", repo.Name, err))
		}
		out, why, fine = append(out, upgrades...), append(why, a.why...), append(fine, a.fine...)
	}
	if len(req.Clusters) > 0 && len(missing) == 0 {
		errs = nil // all that were named are elsewhere
	}
	if len(missing) > 0 && len(errs) == 0 {
		errs = []error{notDefined(slices.Sorted(maps.Keys(missing)))}
	}
	switch err := errors.Join(errs...); {
	case err != nil && len(out) == 0:
		return nil, err
	case err != nil:
		last := &out[len(out)-1]
		last.Trouble = strings.TrimPrefix(last.Trouble+"; "+strings.ReplaceAll(err.Error(), "\n", "; "), "; ")
	}
	if len(out) == 0 {
		if why = append(why, fine...); len(why) == 0 {
			why = []string{"no selected cluster uses a version of a template"}
		}
		return nil, &holdfast.RefusedError{Text: sentences(why)}
	}
	return out, nil
}

// notDefined says that there are no clusters of these names.
func notDefined(names []string) error {
	which := "cluster"
	if len(names) > 1 {
		which = "any of the clusters"
	}
	return holdfast.ErrorOf(holdfast.ErrNotFound, "no tracked branch defines %s %s", which, strings.Join(names, ", "))
}

// sentences are reasons in one line, of which there may be thousands.
func sentences(why []string) string {
	const most = 5
	slices.Sort(why)
	if len(why) > most {
		why = append(why[:most:most], fmt.Sprintf("and so on for %d more", len(why)-most))
	}
	return strings.Join(why, "; ")
}

// upgradeAsk is what somebody asks of one repository.
type upgradeAsk struct {
	k       *Keeper
	repo    Repository
	req     rollout.UpgradeRequest
	missing map[string]bool // names that were not found yet, in no repository
	known   *releases.Look
	why     []string // why clusters are not upgraded
	fine    []string // why nothing is to be done for some that nobody has named
}

func (a *upgradeAsk) ask(ctx context.Context) ([]rollout.Upgrade, error) {
	cat, _, err := a.k.opts.Fleet.Tracked(ctx, a.repo.Name)
	if err != nil || cat == nil {
		return nil, err
	}
	chosen, err := a.choose(ctx, cat)
	if err != nil || len(chosen) == 0 {
		return nil, err
	}
	for again := 0; ; again++ {
		keys, err := a.intend(ctx, cat, chosen)
		if errors.Is(err, holdfast.ErrConflict) && again < 5 {
			continue // somebody else has written meanwhile
		} else if err != nil {
			return nil, err
		}
		// What does not work is in the records, and tried again.
		if err := a.k.upgrade(ctx, a.repo, true); err != nil {
			a.k.opts.Logger.WarnContext(ctx, "upgrade was not proposed", "repo", a.repo.Name, "err", err)
			a.k.Ask(a.repo.Name)
		}
		return a.results(ctx, keys)
	}
}

// choose returns the clusters that are selected and can be upgraded.
func (a *upgradeAsk) choose(ctx context.Context, cat *catalog.Catalog) ([]upgradeCandidate, error) {
	var out []upgradeCandidate
	for name := range a.names(cat) {
		entries := cat.Named(name)
		if len(entries) == 0 {
			continue
		}
		delete(a.missing, name)
		cluster := entries[0].Doc.Cluster
		if !a.selected(cluster) {
			continue
		}
		doc, ok := upgradable(cat, name)
		if !ok {
			if len(a.req.Clusters) > 0 {
				a.why = append(a.why, name+" is invalid, or does not use a version of a template")
			}
			continue
		}
		to, err := a.version(ctx, doc)
		if err != nil {
			return nil, err
		}
		if to != "" {
			out = append(out, candidateOf(doc, to, a.req.Actor))
		}
	}
	if err := a.k.check(ctx, cat, out); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, func(c upgradeCandidate) bool {
		if len(c.faults) > 0 {
			a.why = append(a.why, fmt.Sprintf("%s %s would refuse %s: %v", c.template, c.To, c.Name, c.faults[0]))
		}
		return len(c.faults) > 0
	}), nil
}

// names are those to look at: of a few that are named, not the whole fleet.
func (a *upgradeAsk) names(cat *catalog.Catalog) map[string]bool {
	names := make(map[string]bool)
	for _, name := range a.req.Clusters {
		names[name] = true
	}
	if len(a.req.Clusters) == 0 {
		for name := range cat.All() {
			names[name] = true
		}
	}
	return names
}

// selected reports whether a cluster is asked for.
func (a *upgradeAsk) selected(c holdfast.Cluster) bool {
	if a.req.Template != "" && (c.Template == nil || c.Template.Name != a.req.Template) {
		return false
	}
	for key, value := range a.req.Labels {
		if is, ok := c.Labels[key]; !ok || is != value {
			return false
		}
	}
	return a.req.All || len(a.req.Labels) > 0 || slices.Contains(a.req.Clusters, c.Name)
}

// version returns what a cluster should be upgraded to; empty if there is nothing.
func (a *upgradeAsk) version(ctx context.Context, doc document.Document) (string, error) {
	ref, name := doc.Cluster.Template, doc.Cluster.Name
	if a.req.To == "" {
		step, err := a.known.After(ctx, ref.Name, ref.Version, ref.Upgrades)
		if err == nil && step.To == "" {
			within := "of the same major version"
			if ref.Upgrades != "" {
				within = fmt.Sprintf("that its upgrades, %q, allows", ref.Upgrades)
			}
			why := strings.Join(append([]string{
				fmt.Sprintf("%s is at %s %s: there is no newer version %s", name, ref.Name, ref.Version, within),
			}, step.Held...), ", and ")
			if len(a.req.Clusters) == 0 && len(step.Held) == 0 {
				a.fine = append(a.fine, why)
			} else {
				a.why = append(a.why, why)
			}
		}
		return step.To, err
	}
	if !semver.Newer(a.req.To, ref.Version) {
		a.why = append(a.why, fmt.Sprintf("%s is at %s %s, which is not older than %s", name, ref.Name, ref.Version, a.req.To))
		return "", nil
	}
	_, unusable, err := a.known.Template(ctx, ref.Name, a.req.To)
	if err != nil {
		return "", err
	}
	if unusable != "" {
		a.why = append(a.why, fmt.Sprintf("%s %s cannot be used: %s", ref.Name, a.req.To, unusable))
		return "", nil
	}
	return a.req.To, nil
}

// intend records what is asked for, unless it is proposed already, and returns
// the keys of the records in which it is. What is recorded is proposed, by this
// replica or by the one that comes after a crash.
func (a *upgradeAsk) intend(ctx context.Context, cat *catalog.Catalog, chosen []upgradeCandidate) (map[string]bool, error) {
	unlock := a.k.one.Lock(holdfast.Request{Cluster: a.repo.Name})
	defer unlock()
	records, err := a.k.followUpgrades(ctx, a.repo.Name)
	if err != nil {
		return nil, err
	}
	keys := make(map[string]bool)
	chosen = slices.DeleteFunc(slices.Clone(chosen), func(c upgradeCandidate) bool {
		key := proposedIn(records, c.UpgradeCluster)
		keys[key] = true
		return key != ""
	})
	delete(keys, "")
	chosen = a.byThemselves(cat, records, chosen, keys)
	wanted := wantUpgrades(a.repo.Groups, chosen)
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		w, rec := wanted[key], records[key]
		if rec.State != rollout.UpgradeOpen || rec.Version == 0 {
			rec = nextUpgrade(a.repo, w, rec)
		}
		rec.Clusters, rec.By, rec.Digest = joinClusters(rec.Clusters, w.clusters), a.req.Actor, ""
		if _, err := a.k.saveUpgrade(ctx, rec); err != nil {
			return nil, err
		}
		keys[key] = true
		a.k.opts.Fleet.Audit(ctx, a.req.Actor, "template.upgrade", a.repo.Name,
			fmt.Sprintf("%s: %s", key, clusterList(w.clusters)))
	}
	return keys, nil
}

// byThemselves removes from what is asked for those that are proposed anyway by this
// look, and adds the keys of the records in which they will be: the pull request that
// they are in moves on, and they get no other one.
func (a *upgradeAsk) byThemselves(
	cat *catalog.Catalog, records map[string]rollout.Upgrade, chosen []upgradeCandidate, keys map[string]bool,
) []upgradeCandidate {
	if a.req.To != "" {
		return chosen
	}
	var own []upgradeCandidate
	for _, c := range chosen {
		doc, _ := upgradable(cat, c.Name)
		asked := slices.ContainsFunc(slices.Collect(maps.Values(records)), func(rec rollout.Upgrade) bool {
			return rec.By != "" && rec.State == rollout.UpgradeOpen && slices.ContainsFunc(rec.Clusters, func(in rollout.UpgradeCluster) bool { return in.Name == c.Name })
		})
		if c.by = ""; doc.Cluster.Template.Upgrades != "" && !asked {
			own = append(own, c)
		}
	}
	left := make(map[string]bool)
	for key, w := range wantUpgrades(a.repo.Groups, own) {
		if judgeUpgrade(records[key], w) != upgradePropose {
			continue
		}
		keys[key] = true
		for _, c := range w.clusters {
			left[c.Name] = true
		}
	}
	return slices.DeleteFunc(chosen, func(c upgradeCandidate) bool { return left[c.Name] })
}

// proposedIn returns the key of the open pull request that moves a cluster to
// that version; empty if there is none.
func proposedIn(records map[string]rollout.Upgrade, c rollout.UpgradeCluster) string {
	for _, key := range slices.Sorted(maps.Keys(records)) {
		rec := records[key]
		in := slices.ContainsFunc(rec.Clusters, func(other rollout.UpgradeCluster) bool {
			return other.Name == c.Name && other.To == c.To
		})
		if rec.State == rollout.UpgradeOpen && in {
			return key
		}
	}
	return ""
}

// joinClusters adds clusters to others, in place of those with the same name.
func joinClusters(clusters, more []rollout.UpgradeCluster) []rollout.UpgradeCluster {
	byName := make(map[string]rollout.UpgradeCluster)
	for _, c := range slices.Concat(clusters, more) {
		byName[c.Name] = c
	}
	out := make([]rollout.UpgradeCluster, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[name])
	}
	return out
}

func clusterList(clusters []rollout.UpgradeCluster) string {
	const most = 20
	parts := make([]string, 0, most)
	for _, c := range clusters[:min(most, len(clusters))] {
		parts = append(parts, c.Name+" to "+c.To)
	}
	if more := len(clusters) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

// results are the records as they are now.
func (a *upgradeAsk) results(ctx context.Context, keys map[string]bool) ([]rollout.Upgrade, error) {
	records, err := a.k.opts.Store.Upgrades(ctx, a.repo.Name)
	if err != nil {
		return nil, fmt.Errorf("list upgrades: %w", err)
	}
	records = slices.DeleteFunc(records, func(rec rollout.Upgrade) bool { return !keys[rec.Key] })
	if len(records) > 0 && len(a.why) > 0 {
		last := &records[len(records)-1]
		last.Trouble = strings.TrimPrefix(last.Trouble+"; not upgraded: "+sentences(a.why), "; ")
	}
	return records, nil
}
