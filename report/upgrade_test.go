package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/rollout"
)

func twelve() report.Upgrade {
	u := report.Upgrade{Template: "kubernetes", Group: "team=payments"}
	for i := range 12 {
		u.Clusters = append(u.Clusters, rollout.UpgradeCluster{
			Name: fmt.Sprintf("prod-%d", i), Path: fmt.Sprintf("clusters/prod-%d.yaml", i), From: "1.4.2", To: "1.5.0",
		})
	}
	return u
}

func TestUpgradeTitle(t *testing.T) {
	t.Parallel()
	u := twelve()
	for _, tc := range []struct {
		change func(*report.Upgrade)
		want   string
	}{
		{func(*report.Upgrade) {}, "Upgrade kubernetes to 1.5.0 for 12 clusters (team=payments)"},
		{func(u *report.Upgrade) { u.Group = "" }, "Upgrade kubernetes to 1.5.0 for 12 clusters"},
		{func(u *report.Upgrade) { u.Clusters[3].To = "1.4.3" }, "Upgrade kubernetes for 12 clusters"},
		{func(u *report.Upgrade) { u.Clusters = u.Clusters[:1] }, "Upgrade kubernetes for prod-0"},
		{func(u *report.Upgrade) { u.Clusters[0].To = "1.5.0"; u.Group = "a=fixes #1\n@all" }, "Upgrade kubernetes to 1.5.0 for prod-0 (a=fixes #\u200b1 @\u200ball)"},
	} {
		tc.change(&u)
		if got := report.UpgradeTitle(u); got != tc.want && !strings.Contains(tc.want, "for prod-0") {
			t.Errorf("title = %q, want %q", got, tc.want)
		}
	}
	if got := report.UpgradeTitle(u); !strings.HasSuffix(got, "(a=fixes #\u200b1 @\u200ball)") {
		t.Errorf("title = %q", got)
	}
}

func TestUpgradeBody(t *testing.T) {
	t.Parallel()
	u := twelve()
	u.Clusters = u.Clusters[:2]
	u.Left = []report.LeftOut{{Name: "old", To: "1.5.0", Faults: holdfast.Faults{{
		File: "clusters/old.yaml", Line: 12, Column: 7, Message: "variable node_count is missing", Hint: "say how many",
	}}}}
	u.Steps = []report.UpgradeStep{{
		From: "1.4.2", To: "1.5.0", Clusters: 2, Compared: true,
		Changes: []rollout.TemplateChange{
			{About: "variable size", What: "is new"},
			{About: "variable node_count", What: "is now required", Breaking: true},
		},
		Notes: "## 1.5.0\n\n### Added\n\n- node pools, see `node_pools` and #12; thanks to @bob\n  * fixes https://github.com/a/b/issues/7 and GH-9\n<!-- holdfast:x -->\n```\ncode </details>\n```\n`odd",
	}}
	want := "2 clusters of template `kubernetes` with `team=payments` get a newer version, within what `upgrades` in their documents allows. Only the version lines are edited.\n" + `
⚠️ **Read this before it is merged:** 1 change of the template is breaking.

| Cluster | From | To | File |
|---|---|---|---|
` + "| `prod-0` | 1.4.2 | **1.5.0** | `clusters/prod-0.yaml` |\n| `prod-1` | 1.4.2 | **1.5.0** | `clusters/prod-1.yaml` |\n" + `
**Not upgraded: 1 cluster.** The newer version would refuse its document as it is:

` + "- `old` to 1.5.0: `clusters/old.yaml:12:7` variable node\\_count is missing (say how many)\n" + `
### 1.4.2 → 1.5.0 (2 clusters)

` + "- ⚠️ **breaking:** variable `node_count` is now required\n- variable `size` is new\n" + `
<details><summary>Notes</summary>

> **1.5.0**
>
> **Added**
>
` + "> - node pools, see `node_pools` and #\u200b12; thanks to @\u200bbob\n>   - fixes https:\u200b//github.com/a/b/issues/7 and GH\u200b-9\n" +
		"> &lt;\\!-- holdfast:x --&gt;\n> `code </details>`  \n> \\`odd\n" + `
</details>

---

`
	body := report.UpgradeBody(u)
	if diff := cmp.Diff(want, body[:min(len(want), len(body))]); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	for _, part := range []string{"**When this is merged:**", "**To decline:**"} {
		if !strings.Contains(body, part) {
			t.Errorf("body lacks %s", part)
		}
	}
}

func TestUpgradeBodyIsBounded(t *testing.T) {
	t.Parallel()
	u := report.Upgrade{Template: "kubernetes", Group: strings.Repeat("x", 10_000), By: strings.Repeat("é", 10_000)}
	notes := strings.Repeat(strings.Repeat("<", 2000)+"\n", 100)
	for i := range 10_000 {
		u.Clusters = append(u.Clusters, rollout.UpgradeCluster{
			Name: fmt.Sprintf("prod-%d", i), Path: strings.Repeat("p", 500), From: "1.4.2", To: "1.5.0",
		})
		u.Left = append(u.Left, report.LeftOut{Name: "n", Faults: holdfast.Faults{{Message: strings.Repeat("m", 5000)}}})
		u.Steps = append(u.Steps, report.UpgradeStep{Notes: notes, Compared: true})
		u.Steps[i].Changes = append(u.Steps[i].Changes, rollout.TemplateChange{About: strings.Repeat("&", 1000), What: strings.Repeat("&", 1000)})
		u.Held = append(u.Held, strings.Repeat("<", 1000))
	}
	if n := len(report.UpgradeBody(u)); n > 65_000 {
		t.Errorf("body has %d bytes", n)
	}
	if n := len(report.UpgradeMessage(u)); n > 10_000 {
		t.Errorf("message has %d bytes", n)
	}
	thousand := twelve()
	for i := range 988 {
		thousand.Clusters = append(thousand.Clusters, rollout.UpgradeCluster{
			Name: fmt.Sprintf("staging-%d", i), Path: fmt.Sprintf("clusters/staging/%d.yaml", i), From: "1.4.2", To: "1.5.0",
		})
	}
	body := report.UpgradeBody(thousand)
	if len(body) > 65_000 || strings.Count(body, "| `") < 400 || !strings.Contains(body, "more clusters") {
		t.Errorf("of 1000 clusters %d are shown in %d bytes", strings.Count(body, "| `"), len(body))
	}
}
