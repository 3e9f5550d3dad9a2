package upgrade_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/reconciler/upgrade"
	"github.com/holdfast-dev/holdfast/rollout"
)

func TestWantedUpgrades(t *testing.T) {
	t.Parallel()
	payments, search := map[string]string{"team": "payments"}, map[string]string{"team": "search", "tier": "gold"}
	type candidate = upgrade.Candidate
	all := []candidate{
		{Name: "c", Template: "web", From: "1.0.0", To: "1.1.0", Labels: search},
		{Name: "a", Template: "web", From: "1.0.0", To: "1.1.0", Labels: payments},
		{Name: "b", Template: "web", From: "1.0.0", To: "1.2.0"},
		{Name: "d", Template: "db", From: "2.0.0", To: "2.1.0", Labels: payments},
		{Name: "e", Template: "web", From: "1.0.0", To: "1.1.0", Refused: true, Labels: payments},
		{Name: "f", Template: "web", From: "1.0.0", To: "1.1.0", By: "alice", Labels: payments},
	}
	for name, tc := range map[string]struct {
		groupBy []string
		want    map[string]upgrade.Wanted
	}{
		"one for each template": {nil, map[string]upgrade.Wanted{
			"web":         {Clusters: []string{"a 1.1.0", "b 1.2.0", "c 1.1.0"}, Left: []string{"e"}},
			"web (asked)": {By: "alice", Clusters: []string{"f 1.1.0"}},
			"db":          {Clusters: []string{"d 2.1.0"}},
		}},
		"by label": {[]string{"team"}, map[string]upgrade.Wanted{
			"web team=payments":         {Group: "team=payments", Clusters: []string{"a 1.1.0"}, Left: []string{"e"}},
			"web team=payments (asked)": {Group: "team=payments", By: "alice", Clusters: []string{"f 1.1.0"}},
			"web team=search":           {Group: "team=search", Clusters: []string{"c 1.1.0"}},
			"web team=":                 {Group: "team=", Clusters: []string{"b 1.2.0"}},
			"db team=payments":          {Group: "team=payments", Clusters: []string{"d 2.1.0"}},
		}},
		"by two": {[]string{"team", "tier"}, map[string]upgrade.Wanted{
			"web team=payments tier=":         {Group: "team=payments, tier=", Clusters: []string{"a 1.1.0"}, Left: []string{"e"}},
			"web team=payments tier= (asked)": {Group: "team=payments, tier=", By: "alice", Clusters: []string{"f 1.1.0"}},
			"web team=search tier=gold":       {Group: "team=search, tier=gold", Clusters: []string{"c 1.1.0"}},
			"web team= tier=":                 {Group: "team=, tier=", Clusters: []string{"b 1.2.0"}},
			"db team=payments tier=":          {Group: "team=payments, tier=", Clusters: []string{"d 2.1.0"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, upgrade.WantUpgrades(tc.groupBy, all...)); diff != "" {
				t.Errorf("wanted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUpgradeBranches(t *testing.T) {
	t.Parallel()
	if got := upgrade.UpgradeBranch("web", 1); got != "holdfast/upgrade/web" {
		t.Errorf("branch = %q", got)
	}
	if got := upgrade.UpgradeBranch("web", 2); got != "holdfast/upgrade/web.2" {
		t.Errorf("second branch = %q", got)
	}
	seen := make(map[string]string)
	for _, key := range []string{
		"web", "web-team-payments", "web team=payments", "web team-payments", "web team=pay/ments", "web team=..", "web team=\n", "web--x",
		"web (asked)", "web-asked-", "web team=Ünïcode", "web team=" + string(make([]byte, 5000)),
	} {
		branch := upgrade.UpgradeBranch(key, 1)
		if other, taken := seen[branch]; taken {
			t.Errorf("%q and %q have the branch %s", key, other, branch)
		}
		seen[branch] = key
		for _, r := range branch {
			if r != '/' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') {
				t.Errorf("branch %q of %q has %q", branch, key, r)
			}
		}
		if len(branch) > 100 {
			t.Errorf("branch of %q has %d bytes", key, len(branch))
		}
	}
}

func TestJudgeUpgrade(t *testing.T) {
	t.Parallel()
	to := func(name, version string) []rollout.UpgradeCluster {
		return []rollout.UpgradeCluster{{Name: name, From: "1.0.0", To: version}}
	}
	of := func(state rollout.UpgradeState) rollout.Upgrade {
		return rollout.Upgrade{State: state, PullRequest: 1, Clusters: to("a", "1.1.0")}
	}
	taken := of(rollout.UpgradeEdited)
	taken.PullRequest = 0
	for name, tc := range map[string]struct {
		rec    rollout.Upgrade
		wanted []rollout.UpgradeCluster
		want   string
	}{
		"a new one":                           {rollout.Upgrade{}, to("a", "1.1.0"), "propose"},
		"nothing":                             {rollout.Upgrade{}, nil, "nothing"},
		"an open one":                         {of(rollout.UpgradeOpen), to("a", "1.1.0"), "propose"},
		"nothing left":                        {of(rollout.UpgradeOpen), nil, "withdraw"},
		"all are refused":                     {of(rollout.UpgradeOpen), []rollout.UpgradeCluster{}, "withdraw"},
		"declined":                            {of(rollout.UpgradeDeclined), to("a", "1.1.0"), "nothing"},
		"declined, and an older one":          {of(rollout.UpgradeDeclined), to("a", "1.0.9"), "nothing"},
		"declined, and another cluster":       {of(rollout.UpgradeDeclined), to("b", "1.1.0"), "nothing"},
		"declined, and a newer one":           {of(rollout.UpgradeDeclined), to("a", "1.2.0"), "propose"},
		"declined, and a newer one elsewhere": {of(rollout.UpgradeDeclined), to("b", "1.2.0"), "propose"},
		"declined, and nothing left":          {of(rollout.UpgradeDeclined), nil, "nothing"},
		"edited":                              {of(rollout.UpgradeEdited), to("a", "1.2.0"), "nothing"},
		"edited, and nothing left":            {of(rollout.UpgradeEdited), nil, "nothing"},
		"somebody has the branch":             {taken, to("a", "1.1.0"), "propose"},
		"merged":                              {of(rollout.UpgradeMerged), nil, "nothing"},
		"merged, and another one":             {of(rollout.UpgradeMerged), to("a", "1.2.0"), "propose"},
		"merged and taken back":               {of(rollout.UpgradeMerged), to("a", "1.1.0"), "propose"},
		"withdrawn, and wanted again":         {of(rollout.UpgradeObsolete), to("a", "1.1.0"), "propose"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := upgrade.JudgeUpgrade(tc.rec, tc.wanted); got != tc.want {
				t.Errorf("judged %s, want %s", got, tc.want)
			}
		})
	}
}
