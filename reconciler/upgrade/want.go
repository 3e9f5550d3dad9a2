package upgrade

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/templates/semver"
)

// upgradeCandidate is a cluster for which there is a newer version.
type upgradeCandidate struct {
	rollout.UpgradeCluster
	template string
	labels   map[string]string
	faults   holdfast.Faults // of its document with the newer version: it is left out
	held     []string        // versions that are newer still and cannot be used, each in a sentence
	by       string          // who asked for it; empty: its own document
}

// wantedUpgrade is a pull request that there should be.
type wantedUpgrade struct {
	key, template, group string
	by                   string
	clusters             []rollout.UpgradeCluster // by name
	left                 []report.LeftOut         // by name
	held                 []string
}

// wantUpgrades makes pull requests of candidates, by key: one for each template
// and group, and one next to it for what somebody has asked for. A group is made of
// the clusters whose labels have the same values for groupBy. It is pure.
//
// Whoever wants newer versions to reach a fleet in waves changes this function: it
// sees all candidates at once, and a candidate that it leaves out of every pull
// request stays where it is, to be seen again the next time.
func wantUpgrades(groupBy []string, candidates []upgradeCandidate) map[string]*wantedUpgrade {
	wanted := make(map[string]*wantedUpgrade)
	candidates = slices.Clone(candidates)
	slices.SortStableFunc(candidates, func(a, b upgradeCandidate) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range candidates {
		key, group := upgradeKey(c.template, groupBy, c.labels)
		if c.by != "" {
			key += askedSuffix
		}
		w := wanted[key]
		if w == nil {
			w = &wantedUpgrade{key: key, template: c.template, group: group, by: c.by}
			wanted[key] = w
		}
		if len(c.faults) > 0 {
			w.left = append(w.left, report.LeftOut{Name: c.Name, To: c.To, Faults: c.faults})
			continue
		}
		w.clusters = append(w.clusters, c.UpgradeCluster)
		for _, sentence := range c.held {
			if !slices.Contains(w.held, sentence) {
				w.held = append(w.held, sentence)
			}
		}
	}
	for _, w := range wanted {
		slices.Sort(w.held)
	}
	return wanted
}

// askedSuffix ends the keys of what somebody has asked for.
const askedSuffix = " (asked)"

// upgradeKey returns the key of a pull request, and what its clusters have in
// common: "kubernetes team=payments" and "team=payments".
func upgradeKey(template string, groupBy []string, labels map[string]string) (key, group string) {
	parts := make([]string, 0, len(groupBy))
	for _, label := range groupBy {
		parts = append(parts, label+"="+labels[label])
	}
	group = strings.Join(parts, ", ")
	return strings.TrimSpace(template + " " + strings.Join(parts, " ")), group
}

// Branches is how the branches of our upgrades begin.
const Branches = "holdfast/upgrade/"

// upgradeBranch returns the branch of the nth pull request with a key: the same
// for the same, so that one whose answer was lost is found again, and another one
// for each, so that one that was closed stays so.
func upgradeBranch(key string, nth int) string {
	slug := strings.Join(strings.FieldsFunc(key, func(r rune) bool {
		return r >= unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), "-")
	if slug != key { // then others may come to the same result
		slug = strings.Trim(slug[:min(len(slug), 60)], "-") + "-" + holdfast.DigestOf([]byte(key)).Short()[:8]
	}
	if nth > 1 {
		slug += fmt.Sprintf(".%d", nth)
	}
	return Branches + slug
}

// nextUpgrade is the record of the pull request that comes after last: another
// one, on another branch.
func nextUpgrade(repo Repository, w *wantedUpgrade, last rollout.Upgrade) rollout.Upgrade {
	nth, name := 1, w.key
	if repo.Further {
		name += " " + repo.Branch // another entry may propose the same into its branch
	}
	for last.Branch != "" && upgradeBranch(name, nth) != last.Branch && nth < 10_000 {
		nth++
	}
	if last.Branch != "" {
		nth++
	}
	return rollout.Upgrade{
		Repo: repo.Name, Key: w.key, Template: w.template, By: w.by,
		Branch: upgradeBranch(name, nth), State: rollout.UpgradeOpen, Version: last.Version,
	}
}

// What is to be done about one pull request.
type upgradeAction string

const (
	upgradeNothing  upgradeAction = "nothing"
	upgradePropose  upgradeAction = "propose" // make it, or bring it up to date
	upgradeWithdraw upgradeAction = "withdraw"
)

// judgeUpgrade says what is to be done about a pull request, given what is on
// record of it (the zero record if nothing is) and what is wanted (nil if nothing
// is). It is pure.
func judgeUpgrade(rec rollout.Upgrade, wanted *wantedUpgrade) upgradeAction {
	nothing := wanted == nil || len(wanted.clusters) == 0
	switch {
	case rec.State == rollout.UpgradeEdited && rec.PullRequest != 0: // it is somebody else's
		return upgradeNothing
	case nothing && rec.State == rollout.UpgradeOpen:
		return upgradeWithdraw
	case nothing:
		return upgradeNothing
	case rec.State == rollout.UpgradeDeclined && !newSince(rec, wanted):
		return upgradeNothing
	default:
		return upgradePropose
	}
}

// newSince reports whether there is a version that was not declined yet.
func newSince(declined rollout.Upgrade, wanted *wantedUpgrade) bool {
	to, known := make(map[string]string), make(map[string]bool)
	for _, c := range declined.Clusters {
		to[c.Name], known[c.To] = c.To, true
	}
	return slices.ContainsFunc(wanted.clusters, func(c rollout.UpgradeCluster) bool {
		if was, ok := to[c.Name]; ok {
			return semver.Newer(c.To, was)
		}
		return !known[c.To]
	})
}

// versionPairs are the pairs of versions that clusters go from and to, those of
// most clusters first.
func versionPairs(clusters []rollout.UpgradeCluster) []report.UpgradeStep {
	counts := make(map[[2]string]int)
	for _, c := range clusters {
		counts[[2]string{c.From, c.To}]++
	}
	pairs := slices.Collect(maps.Keys(counts))
	slices.SortFunc(pairs, func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	steps := make([]report.UpgradeStep, 0, len(pairs))
	for _, p := range pairs {
		steps = append(steps, report.UpgradeStep{From: p[0], To: p[1], Clusters: counts[p]})
	}
	return steps
}
