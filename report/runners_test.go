package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
)

// TestRunners: what a pull request changes of runners and rules is told with the environments and
// clusters on which that bears, also if no cluster is planned for it.
func TestRunners(t *testing.T) {
	t.Parallel()
	affected := func(environment, runner, next string, clusters ...string) holdfast.AffectedEnvironment {
		return holdfast.AffectedEnvironment{
			EnvironmentKey: holdfast.EnvironmentKey{Project: "shop", Name: environment}, Runner: runner, Next: next, Clusters: clusters,
		}
	}
	pr := report.PullRequest{PullRequest: holdfast.PullRequestRecord{
		PullRequest: holdfast.PullRequest{PullRequestRef: holdfast.PullRequestRef{Repo: "acme/platform", Number: 7}, State: holdfast.PullRequestOpen, Head: "0123456789"},
		Runners: []holdfast.RunnerChange{
			{Kind: "Runner", Name: "eu", Change: "changed", Environments: []holdfast.AffectedEnvironment{affected("prod", "eu", "", "a", "b"), affected("test", "eu", "")}},
			{Kind: "Runner", Name: "us", Change: "added"},
			{Kind: "RunnerRule", Name: "prod", Change: "changed", Environments: []holdfast.AffectedEnvironment{affected("prod", "eu", "us", "a")}},
			{Kind: "RunnerRule", Name: "gone", Change: "removed", Environments: []holdfast.AffectedEnvironment{affected("dev", "eu", "", "c")}},
			{Kind: "RunnerRule", Name: "new", Change: "added"},
		},
	}}
	body := report.Comment(pr)
	const want = "#### Runners\n\n" +
		"- Runner `eu` is changed. It executes the runs of:\n" +
		"  - `shop/prod`: 2 clusters, `a`, `b`\n" +
		"  - `shop/test`: it has no clusters\n" +
		"- Runner `us` is added. No environment is pinned to it.\n" +
		"- Rule `prod` is changed. No environment moves now. `holdfast refresh runner` would have another result for:\n" +
		"  - `shop/prod` from `eu` to `us`: 1 cluster, `a`\n" +
		"- Rule `gone` is removed. No environment moves now. `holdfast refresh runner` would have another result for:\n" +
		"  - `shop/dev`, which no rule matches now: 1 cluster, `c`\n" +
		"- Rule `new` is added. It does not move environments that have had runs.\n"
	if !strings.Contains(body, want) || !strings.Contains(body, "it changes 2 runners and 3 runner rules") {
		t.Errorf("the comment is\n%s\nwant\n%s", body, want)
	}
	status := report.PlanStatus(pr)
	if status.State != holdfast.StatusSuccess || !strings.Contains(status.Description, "changes 2 runners and 3 runner rules") {
		t.Errorf("the status is %+v", status)
	}

	many := pr
	many.PullRequest.Runners = nil
	for i := range 3000 {
		c := holdfast.RunnerChange{Kind: "Runner", Name: strings.Repeat("`<!--x", 5) + fmt.Sprint(i), Change: "changed"}
		for n := range 5 {
			c.Environments = append(c.Environments, affected(fmt.Sprint("e", n), "eu", "", strings.Split(strings.Repeat("cluster ", 90), " ")...))
		}
		many.PullRequest.Runners = append(many.PullRequest.Runners, c)
	}
	if body := report.Comment(many); len(body) > 65_536 || strings.Contains(strings.ReplaceAll(body, report.Marker(pr.PullRequest.PullRequestRef), ""), "<!--x") && !strings.Contains(body, "``") {
		t.Errorf("a comment of much has %d bytes", len(body))
	}
}
