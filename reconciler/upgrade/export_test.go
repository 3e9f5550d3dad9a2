package upgrade

import (
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rollout"
)

// Candidate is a cluster that there is a newer version for.
type Candidate struct {
	Name, Template, From, To, By string
	Labels                       map[string]string
	Refused                      bool
}

// Wanted is a pull request that there shall be.
type Wanted struct {
	Group    string
	By       string
	Clusters []string
	Left     []string
}

// WantUpgrades makes pull requests of candidates, by key.
func WantUpgrades(groupBy []string, candidates ...Candidate) map[string]Wanted {
	var in []upgradeCandidate
	for _, c := range candidates {
		candidate := upgradeCandidate{
			UpgradeCluster: rollout.UpgradeCluster{Name: c.Name, From: c.From, To: c.To},
			template:       c.Template, labels: c.Labels, by: c.By,
		}
		if c.Refused {
			candidate.faults = holdfast.Faults{{Message: "refused"}}
		}
		in = append(in, candidate)
	}
	out := make(map[string]Wanted)
	for key, w := range wantUpgrades(groupBy, in) {
		wanted := Wanted{Group: w.group, By: w.by}
		for _, c := range w.clusters {
			wanted.Clusters = append(wanted.Clusters, c.Name+" "+c.To)
		}
		for _, l := range w.left {
			wanted.Left = append(wanted.Left, l.Name)
		}
		out[key] = wanted
	}
	return out
}

// UpgradeBranch is the branch of the nth pull request with a key.
func UpgradeBranch(key string, nth int) string { return upgradeBranch(key, nth) }

// JudgeUpgrade says what is to be done about a pull request; none are wanted if
// clusters is nil.
func JudgeUpgrade(rec rollout.Upgrade, clusters []rollout.UpgradeCluster) string {
	if clusters == nil {
		return string(judgeUpgrade(rec, nil))
	}
	return string(judgeUpgrade(rec, &wantedUpgrade{clusters: clusters}))
}
