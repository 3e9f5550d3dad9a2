package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/rollout"
)

// sample is a sample of a template's change with its plan.
func sample(name string, plan *holdfast.Plan) report.Cluster {
	c := planned(name, plan)
	c.Sample, c.Plan.Sample = true, true
	c.Plan.Revision = older // of its own repository
	c.Plan.Template = "kubernetes@1.5.0 (abc1234)"
	return c
}

// poolPlan updates node pools in place: as many as there are sizes.
func poolPlan(sizes ...int) *holdfast.Plan {
	plan := &holdfast.Plan{Counts: holdfast.Counts{Update: len(sizes)}, Fingerprint: "sha256:4"}
	for i, size := range sizes {
		plan.Changes = append(plan.Changes, holdfast.ResourceChange{
			Address: fmt.Sprintf(`module.kubernetes["a.b"].aws_eks_node_group.node_pool["pool-%d"]`, i), Type: "aws_eks_node_group",
			Action: holdfast.ActionUpdate,
			Attributes: []holdfast.AttributeChange{
				{Path: "scaling_config[0].desired_size", Before: raw(fmt.Sprint(size)), After: raw(fmt.Sprint(size + 1))},
			},
		})
	}
	return plan
}

// controlPlanePlan replaces the control plane, and changes more.
func controlPlanePlan() *holdfast.Plan {
	plan := poolPlan(3)
	plan.Counts.Replace, plan.Counts.Create = 1, 1
	plan.Changes = append([]holdfast.ResourceChange{{
		Address: "module.kubernetes.aws_eks_cluster.this[0]", Type: "aws_eks_cluster", Action: holdfast.ActionReplace,
		ReplacePaths: []string{"vpc_config[0].subnet_ids"},
	}}, plan.Changes...)
	plan.Changes = append(plan.Changes, holdfast.ResourceChange{
		Address: "module.network.aws_subnet.extra", Type: "aws_subnet", Action: holdfast.ActionCreate,
	})
	return plan
}

func databasePlan() *holdfast.Plan {
	return &holdfast.Plan{Counts: holdfast.Counts{Delete: 1}, Changes: []holdfast.ResourceChange{
		{Address: "module.essentials.aws_rds_cluster.main", Type: "aws_rds_cluster", Action: holdfast.ActionDelete, Reason: "delete_because_no_module"},
	}}
}

// group is clusters of one change of the root module: so many of each reach.
func group(key string, changes []string, clusters ...rollout.ImpactCluster) rollout.ImpactGroup {
	return rollout.ImpactGroup{Key: holdfast.Digest(key), Changes: changes, Clusters: clusters}
}

func many(prefix string, n int, reach rollout.ImpactReach, version string) []rollout.ImpactCluster {
	clusters := make([]rollout.ImpactCluster, n)
	for i := range clusters {
		clusters[i] = rollout.ImpactCluster{Name: fmt.Sprintf("%s-%02d", prefix, i+1), Repo: "fleet", Reach: reach, Version: version}
	}
	return clusters
}

func one(name string, reach rollout.ImpactReach, version string) rollout.ImpactCluster {
	return rollout.ImpactCluster{Name: name, Repo: "fleet", Reach: reach, Version: version}
}

// impact is the example of the documentation: 42 clusters, three groups.
func impact() report.Impact {
	pools := many("team", 4, rollout.ReachUpgrade, "1.4.2")
	pools[3].Version, pools[3].Repo = "1.3.0", "apps"
	return report.Impact{
		Impact: rollout.Impact{
			Template: "kubernetes", Dir: "templates/kubernetes", Released: "1.4.2", Version: "1.5.0",
			Changes: []rollout.TemplateChange{
				{About: "module network (aws)", What: "has its input subnets from another variable"},
				{About: "variable zones", What: "is new"},
			},
			Groups: []rollout.ImpactGroup{
				group("1", []string{`module "kubernetes": version of the node groups' image`}, slices.Concat(many("dev", 30, rollout.ReachUpgrade, "1.4.2"), many("stg", 2, rollout.ReachManual, "1.4.2"))...),
				group("2", []string{`module "kubernetes": input node_pools`, `module "network": input cidr`}, pools...),
				group("3", []string{`module "network": input subnets`}, one("prod-eu", rollout.ReachRelease, "1.5.0")),
			},
			Same: 5,
		},
	}
}

func templatePullRequest(impacts []report.Impact, clusters ...report.Cluster) report.PullRequest {
	r := pullRequest(clusters...)
	r.PullRequest.Repo = "platform"
	r.Impacts = impacts
	return r
}

// impactCases are pull requests that change templates, through their lives.
func impactCases() map[string]report.PullRequest {
	samples := func() []report.Cluster {
		return []report.Cluster{sample("dev-01", emptyPlan()), sample("team-01", poolPlan(3)), sample("prod-eu", controlPlanePlan())}
	}
	full := templatePullRequest([]report.Impact{impact()}, samples()...)
	full.LogURL = func(run string) string { return "https://holdfast.example.com/runs/" + run }

	planning := templatePullRequest([]report.Impact{impact()}, samples()...)
	planning.Clusters[0].Plan, planning.Clusters[0].Summary = run("r1", "dev-01", holdfast.RunPlan, holdfast.RunRunning, nil), nil
	planning.Clusters[1].Plan, planning.Clusters[1].Summary = nil, nil

	over := impact()
	over.Over = 4
	budget := templatePullRequest([]report.Impact{over}, samples()[0], samples()[2])

	failed := templatePullRequest([]report.Impact{impact()}, samples()...)
	failed.Clusters[1].Summary = nil
	failed.Clusters[1].Plan = run("run-team-01", "team-01", holdfast.RunPlan, holdfast.RunErrored, nil)
	failed.Clusters[1].Plan.PullRequest = holdfast.PullRequestRef{Repo: "platform", Number: 7}
	failed.Clusters[1].Plan.Failure = &holdfast.Failure{
		Step: "plan", Summary: "the configuration is not valid", Cause: "InvalidConfiguration", Hint: "correct the reference and push",
		Diagnostics: []holdfast.Diagnostic{{Severity: "error", Summary: "Unsupported argument", File: "main.tf", Line: 12}},
	}

	all := impact()
	all.All = true
	var each []report.Cluster
	for i, g := range all.Impact.Groups {
		for j, c := range g.Clusters {
			plan := []*holdfast.Plan{emptyPlan(), poolPlan(3, j), controlPlanePlan()}[i]
			if c.Name == "dev-07" {
				plan = databasePlan()
			}
			each = append(each, sample(c.Name, plan))
		}
	}

	refusing := impact()
	refusing.Changes = append(refusing.Changes, rollout.TemplateChange{About: "variable zones", What: "is now required", Breaking: true})
	refusing.Fault = "it breaks documents that are valid with 1.4.2 (variable zones is now required), and only a new major version, 2.0.0, may do that"
	for i, c := range many("old", 3, rollout.ReachUpgrade, "1.4.2") {
		refusing.Refused = append(refusing.Refused, rollout.ImpactRefusal{ImpactCluster: c, Faults: holdfast.Faults{
			{File: "clusters/" + c.Name + ".yaml", Line: 10 + i, Column: 3, Cluster: c.Name, Message: "variable zones is missing", Hint: "add zones: a list of strings"},
		}})
	}
	refusing.Refused[2].Faults = append(refusing.Refused[2].Faults, holdfast.Fault{
		File: "clusters/old-03.yaml", Line: 15, Column: 17, Cluster: "old-03", Message: "variable node_count is 200: at most 100 are allowed",
	})
	major := refusing
	major.Version, major.Fault = "2.0.0", ""

	byPath := report.Impact{Impact: rollout.Impact{
		Template: "local", Dir: "templates/local",
		Groups: []rollout.ImpactGroup{group("1", []string{`output "endpoint"`}, one("dev-us", rollout.ReachMerge, ""), one("dev-eu", rollout.ReachMerge, ""))},
	}}
	refusedNow := byPath
	refusedNow.Refused = []rollout.ImpactRefusal{{ImpactCluster: one("dev-ap", rollout.ReachMerge, ""), Faults: holdfast.Faults{
		{File: "clusters/dev-ap.yaml", Line: 9, Column: 5, Cluster: "dev-ap", Message: "variable size is missing"},
	}}}

	unused := report.Impact{Impact: rollout.Impact{Template: "cache", Dir: "templates/cache", Version: "1.0.0"}}
	stays := report.Impact{Impact: rollout.Impact{Template: "kubernetes", Released: "1.4.2", Same: 42}}

	outputs := &holdfast.Plan{Counts: holdfast.Counts{Outputs: 1}, OutputChanges: []holdfast.OutputChange{{Name: "endpoint", Action: holdfast.ActionCreate}}}
	mixed := impact()
	mixed.Impact.Groups[1].Clusters = append([]rollout.ImpactCluster{one("dev-us", rollout.ReachMerge, "")}, mixed.Impact.Groups[1].Clusters...)

	return map[string]report.PullRequest{
		"impact":          full,
		"impact-planning": planning,
		"impact-budget":   budget,
		"impact-failed":   failed,
		"impact-all":      templatePullRequest([]report.Impact{all}, each...),
		"impact-fault":    templatePullRequest([]report.Impact{refusing}, samples()...),
		"impact-major":    templatePullRequest([]report.Impact{major}, samples()...),
		"impact-path":     templatePullRequest([]report.Impact{byPath}, planned("dev-us", outputs), planned("dev-eu", outputs)),
		"impact-refused":  templatePullRequest([]report.Impact{refusedNow}, planned("dev-us", outputs), planned("dev-eu", outputs)),
		"impact-unused":   templatePullRequest([]report.Impact{unused}),
		"impact-same":     templatePullRequest([]report.Impact{stays}),
		"impact-mixed":    templatePullRequest([]report.Impact{byPath, mixed, unused}, append([]report.Cluster{planned("dev-us", poolPlan(1)), planned("dev-eu", outputs)}, samples()...)...),
		"impact-merged":   merge(templatePullRequest([]report.Impact{impact()}, samples()...)),
		"impact-applied":  merge(templatePullRequest([]report.Impact{mixed}, append([]report.Cluster{appliedCluster("dev-us", poolPlan(1), holdfast.RunApplied)}, samples()...)...)),
	}
}

// TestImpactIsHonest: what was not planned is never told as if it were.
func TestImpactIsHonest(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		r     report.PullRequest
		says  []string
		never []string
	}{
		"one of 32": {impactCases()["impact"], []string{
			"used by 42 clusters · 5 unaffected · 1 without changes · 1 `module.kubernetes…node_pool` updated in place · **1: control plane replaced** · ❔ 34 not planned",
			"Planned: 3 of the 37", "⚪ <b>1 cluster</b>: no changes · ❔ <b>31</b> not planned", "the root modules of the 31 others change in the same way", "plan each cluster: `/holdfast plan --all`",
		}, []string{"all planned", "All 37"}},
		"budget": {impactCases()["impact-budget"], []string{
			"35 not planned", "4 clusters (1 group) were not planned: the limit is `repositories[].samples`", "`/holdfast plan --all` plans all of them",
		}, []string{"plan each cluster"}},
		"all": {impactCases()["impact-all"], []string{"All 37 clusters whose root module changes are planned.", "31 without changes", "1: `module.essentials.aws_rds_cluster.main` destroyed"}, []string{"--all", "32 without changes"}},
		"fault": {impactCases()["impact-fault"], []string{
			"❌ **kubernetes 1.5.0 cannot be released as it is:**", "**3 refused**", "`old-01` at `clusters/old-01.yaml:10:3`", "⚠️ **breaking:** variable `zones` is now required", "correct it and push",
		}, []string{"releases it"}},
		"merged": {impactCases()["impact-merged"], []string{"Nothing was applied: clusters move when they name the new version."}, []string{"**Next:**", "<details open>"}},
		"unused": {impactCases()["impact-unused"], []string{"no cluster uses it"}, []string{"<details"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			comment := report.Comment(test.r)
			for _, want := range test.says {
				if !strings.Contains(comment, want) {
					t.Errorf("the comment lacks %q:\n%s", want, comment)
				}
			}
			for _, never := range test.never {
				if strings.Contains(comment, never) {
					t.Errorf("the comment has %q:\n%s", never, comment)
				}
			}
		})
	}
}

// TestImpactSamples: samples count wherever they are given, once, and in any
// order.
func TestImpactSamples(t *testing.T) {
	t.Parallel()

	r := impactCases()["impact"]
	want := report.Comment(r)
	in := r
	in.Clusters = nil
	in.Impacts = []report.Impact{impact()}
	for i, g := range in.Impacts[0].Impact.Groups {
		shown := report.ImpactGroup{ImpactGroup: g}
		shown.Samples = append(shown.Samples, r.Clusters[i])
		in.Impacts[0].Groups = append(in.Impacts[0].Groups, shown)
	}
	both := in
	both.Clusters = slices.Clone(r.Clusters)
	slices.Reverse(both.Clusters)
	for name, other := range map[string]report.PullRequest{"in groups": in, "in both": both} {
		if got := report.Comment(other); got != want {
			t.Errorf("%s: another comment:\n%s", name, got)
		}
		if got := report.PlanStatus(other); got != report.PlanStatus(r) {
			t.Errorf("%s: status %v", name, got)
		}
	}
}

// TestImpactOfAnotherSample: of two samples of a group that do different things,
// the worse one stands for those that are not planned.
func TestImpactOfAnotherSample(t *testing.T) {
	t.Parallel()

	r := impactCases()["impact"]
	r.Clusters = append(slices.Clone(r.Clusters), sample("dev-02", databasePlan()))
	comment := report.Comment(r)
	for _, want := range []string{"**1: `module.essentials.aws_rds_cluster.main` destroyed**", "<b>30</b> not planned", "**dev-02**, and perhaps 30 clusters that are not planned"} {
		if !strings.Contains(comment, want) {
			t.Errorf("the comment lacks %q:\n%s", want, comment)
		}
	}
}

// TestImpactOfWhatTheMergeDoes: the plan of a cluster that the pull request itself
// changes says nothing of what the template would do.
func TestImpactOfWhatTheMergeDoes(t *testing.T) {
	t.Parallel()

	r := impactCases()["impact"]
	want := report.Comment(r)
	own := planned("dev-02", databasePlan())
	r.Clusters = append(slices.Clone(r.Clusters), own)
	if !strings.Contains(want, "<b>31</b> not planned") || !strings.Contains(report.Comment(r), "<b>31</b> not planned") ||
		strings.Contains(report.Comment(r), "30 clusters") {
		t.Errorf("a plan of the merge stands for others:\n%s", report.Comment(r))
	}
}

// TestImpactOfSamplesOnly: what a sample shows is counted for it alone, and what
// happens to control planes is called by its name.
func TestImpactOfSamplesOnly(t *testing.T) {
	t.Parallel()

	plane := func(action holdfast.ChangeAction, counts holdfast.Counts) *holdfast.Plan {
		return &holdfast.Plan{Counts: counts, Changes: []holdfast.ResourceChange{{Address: "aws_eks_cluster.this[0]", Type: "aws_eks_cluster", Action: action}}}
	}
	tests := map[string]struct {
		plan     *holdfast.Plan
		headline string
		status   string
	}{
		"unchanged": {emptyPlan(), "### ❔ Plan for", "template kubernetes: 1 unchanged, 6 not planned"},
		"destroyed": {
			plane(holdfast.ActionDelete, holdfast.Counts{Delete: 1}), "### 🛑 Plan for",
			"template kubernetes: 1 cluster would change, 1 control plane destroyed, 6 not planned",
		},
		"replaced": {
			plane(holdfast.ActionReplace, holdfast.Counts{Replace: 1}), "### 🛑 Plan for",
			"template kubernetes: 1 cluster would change, 1 control plane replaced, 6 not planned",
		},
		"forgotten": {
			plane(holdfast.ActionForget, holdfast.Counts{Forget: 1}), "### 🛑 Plan for",
			"template kubernetes: 1 cluster would change, 1 loses resources, 6 not planned",
		},
		"forgotten, and only counted": {
			&holdfast.Plan{Counts: holdfast.Counts{Forget: 2}}, "### 🛑 Plan for",
			"template kubernetes: 1 cluster would change, 1 loses resources, 6 not planned",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := report.Impact{Impact: rollout.Impact{
				Template: "kubernetes", Groups: []rollout.ImpactGroup{group("1", []string{"input"}, many("team", 7, rollout.ReachUpgrade, "1.4.2")...)},
			}}
			r := templatePullRequest([]report.Impact{i}, sample("team-01", tt.plan))
			if got := report.PlanStatus(r).Description; got != tt.status {
				t.Errorf("status %q, want %q", got, tt.status)
			}
			if comment := report.Comment(r); !strings.Contains(comment, tt.headline) {
				t.Errorf("the headline is not %q:\n%s", tt.headline, comment)
			}
		})
	}
}

// TestImpactUnseen: what could not be read is told where everybody looks.
func TestImpactUnseen(t *testing.T) {
	t.Parallel()

	in := report.Impact{Impact: rollout.Impact{Template: "kubernetes", Same: 2, Unseen: []string{"apps", "<b>"}}}
	r := impactCases()["impact"]
	r.Clusters, r.Impacts = nil, []report.Impact{in}
	if got := report.Comment(r); !strings.Contains(got, "⚠️ Clusters of `apps` and `<b>` are not counted") || strings.Contains(got, "✅ **kubernetes") {
		t.Errorf("comment:\n%s", got)
	}
	r.Impacts[0].Same = 0
	if got := report.Comment(r); !strings.Contains(got, "⚠️ **kubernetes**: no cluster uses it in the repositories that could be read") {
		t.Errorf("comment:\n%s", got)
	}
}

// TestImpactStatuses are those that golden files do not have.
func TestImpactStatuses(t *testing.T) {
	t.Parallel()

	closed := impactCases()["impact-planning"]
	canceled := impactCases()["impact"]
	canceled.Clusters[1].Plan.Status, canceled.Clusters[1].Plan.Reason, canceled.Clusters[1].Summary = holdfast.RunCanceled, "Canceled", nil
	off := templatePullRequest([]report.Impact{impact()})
	off.Impacts[0].Over = 37
	draft := off
	draft.PullRequest.Reason = "Draft"
	unused := templatePullRequest([]report.Impact{{Impact: rollout.Impact{Template: "kubernetes", Unseen: []string{"apps"}}}})
	unread := func(r report.PullRequest) report.PullRequest {
		r.Impacts = slices.Clone(r.Impacts)
		for i := range r.Impacts {
			r.Impacts[i].Unseen = []string{"apps", "shops"}
		}
		return r
	}
	tests := map[string]struct {
		r     report.PullRequest
		state holdfast.StatusState
		says  string
	}{
		"example":                {impactCases()["impact"], holdfast.StatusSuccess, "template kubernetes: 2 clusters would change, 1 unchanged, 1 control plane replaced, 34 not planned"},
		"budget":                 {impactCases()["impact-budget"], holdfast.StatusSuccess, "1 cluster would change, 1 unchanged, 1 control plane replaced, 35 not planned"},
		"refused by a major":     {impactCases()["impact-major"], holdfast.StatusSuccess, "3 refused"},
		"refused by the merge":   {impactCases()["impact-refused"], holdfast.StatusFailure, "1 cluster would be refused: clusters/dev-ap.yaml:9:5: variable size is missing"},
		"fault":                  {impactCases()["impact-fault"], holdfast.StatusFailure, "kubernetes 1.5.0: it breaks documents"},
		"planning":               {impactCases()["impact-planning"], holdfast.StatusPending, "planning 3 clusters"},
		"merged while planning":  {merge(closed), holdfast.StatusSuccess, "1 control plane replaced"},
		"canceled":               {canceled, holdfast.StatusSuccess, "35 not planned"},
		"no samples":             {off, holdfast.StatusSuccess, "the root modules of 37 clusters change, none is planned"},
		"draft":                  {draft, holdfast.StatusPending, "draft"},
		"none, one unread":       {unused, holdfast.StatusError, "repository apps could not be read: its clusters are not counted"},
		"unread":                 {unread(impactCases()["impact"]), holdfast.StatusError, "repositories apps and shops could not be read: their clusters are not counted"},
		"unread while planning":  {unread(impactCases()["impact-planning"]), holdfast.StatusPending, "planning 3 clusters"},
		"unread, refused":        {unread(impactCases()["impact-refused"]), holdfast.StatusFailure, "1 cluster would be refused"},
		"unread, with clusters":  {unread(impactCases()["impact-mixed"]), holdfast.StatusError, "repositories apps and shops could not be read"},
		"clusters and templates": {impactCases()["impact-mixed"], holdfast.StatusSuccess, "2 clusters: 1 to change; 3 templates: 5 clusters would change"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := report.PlanStatus(test.r)
			if got.State != test.state || !strings.Contains(got.Description, test.says) {
				t.Errorf("status %s %q, want %s with %q", got.State, got.Description, test.state, test.says)
			}
			check(t, test.r, report.Comment(test.r))
		})
	}
}

// TestImpactOfAFleet: 10,000 clusters in 50 groups are told in one comment, the
// dangerous ones with their plans.
func TestImpactOfAFleet(t *testing.T) {
	t.Parallel()

	for _, all := range []bool{false, true} {
		t.Run(fmt.Sprintf("all %t", all), func(t *testing.T) {
			t.Parallel()
			r := fleetImpact(all)
			comment := report.Comment(r)
			check(t, r, comment)
			if len(comment) > 65_000 {
				t.Errorf("the comment has %d bytes", len(comment))
			}
			for _, want := range []string{
				"used by 10500 clusters · 500 unaffected", "control plane replaced**", "[!CAUTION]", "module.kubernetes.aws_eks_cluster.this",
				"500 clusters are unaffected", "Left out:",
			} {
				if !strings.Contains(comment, want) {
					t.Errorf("the comment lacks %q:\n%.3000s", want, comment)
				}
			}
			of := "200 clusters"
			if !all {
				of = "<b>199</b> not planned"
			}
			if n := strings.Count(strings.ReplaceAll(comment, "**199** not", "<b>199</b> not"), of); n < 50 {
				t.Errorf("%d groups are told, want 50:\n%s", n, comment)
			}
			if rows := strings.Count(comment, "| 🔵 change |"); rows == 0 {
				t.Error("no plan is shown")
			}
		})
	}
}

// fleetImpact is a change that replaces the control planes of the last of 50
// groups of 200 clusters, and does other things to the others.
func fleetImpact(all bool) report.PullRequest {
	i := impact()
	i.Same, i.Impact.Groups, i.All = 500, nil, all
	var samples []report.Cluster
	for g := range 50 {
		members := make([]rollout.ImpactCluster, 200)
		for c := range members {
			reach := []rollout.ImpactReach{rollout.ReachRelease, rollout.ReachUpgrade, rollout.ReachManual}[c%3]
			members[c] = rollout.ImpactCluster{Name: fmt.Sprintf("team-%02d-production-%04d", g, c), Repo: "fleet", Reach: reach, Version: "1.4.2"}
		}
		i.Impact.Groups = append(i.Impact.Groups, group(fmt.Sprint(g), []string{fmt.Sprintf("variable size_%d is given as %d", g, g)}, members...))
		for c, member := range members {
			plan := poolPlan(1, 2, 3, 4)
			for j := range plan.Changes {
				plan.Changes[j].Address = fmt.Sprintf("module.kubernetes.aws_eks_node_group.kind_%d[%d]", g, j)
			}
			if g == 49 {
				plan = controlPlanePlan()
			}
			if c == 0 || all {
				samples = append(samples, sample(member.Name, plan))
			}
		}
	}
	return templatePullRequest([]report.Impact{i}, samples...)
}

// What is wrong with a template is wrong for every cluster that is made from its
// folder: it is told once.
func TestFaultsOfATemplateAreReportedOnce(t *testing.T) {
	t.Parallel()
	fault := holdfast.Fault{File: "kubernetes/template.yaml", Line: 34, Column: 20, Message: "there is no variable sise"}
	r := report.PullRequest{PullRequest: holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{
		PullRequestRef: holdfast.PullRequestRef{Repo: "platform", Number: 7}, Head: "abc1234", State: holdfast.PullRequestOpen,
	}, Faults: holdfast.Faults{fault}}}
	for _, name := range []string{"dev-eu", "dev-us"} {
		fault.Cluster = name
		r.PullRequest.Faults = append(r.PullRequest.Faults, fault)
	}
	comment := report.Comment(r)
	if strings.Count(comment, "there is no variable sise") != 1 || !strings.Contains(comment, "1 error") {
		t.Errorf("comment:\n%s", comment)
	}
	if description := report.PlanStatus(r).Description; !strings.HasPrefix(description, "1 error: kubernetes/template.yaml:34:20:") {
		t.Errorf("status %q", description)
	}
}
