//go:build !race

package reconciler_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestAThousandClustersInOnePullRequest(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("has many clusters")
	}
	var file strings.Builder
	for i := range 1000 {
		file.WriteString("---\n" + webCluster(fmt.Sprintf("c%04d", i), "1.0.0", "~> 1.0"))
	}
	u := newUpgradeFleet(t, map[string]string{"all": file.String()})
	u.must(u.r.TakeIn(t.Context(), infra, 0))
	u.push("Release", webVersion("1.1.0"))
	u.repo.Tag("web/v1.1.0", master)
	u.must(u.r.TakeIn(t.Context(), infra, 0))
	u.must(u.r.LookAtUpgrades(t.Context(), infra))
	rec := u.upgrades()[0]
	if len(rec.Clusters) != 1000 || rec.PullRequest == 0 {
		t.Errorf("%d clusters in pull request %d", len(rec.Clusters), rec.PullRequest)
	}
	if body := u.host.body(upgradeBranch); len(body) > 65_000 || !strings.Contains(body, "`c0001`") {
		t.Errorf("the body has %d bytes", len(body))
	}
	if got := strings.Count(u.at(upgradeBranch, "clusters/all.yaml"), "version: 1.1.0"); got != 1000 {
		t.Errorf("%d of 1000 documents are edited", got)
	}
}
