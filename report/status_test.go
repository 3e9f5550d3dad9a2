package report_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
)

func TestStatuses(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ plan, apply holdfast.StatusState }{
		"plan":              {holdfast.StatusSuccess, ""},
		"plan-one":          {holdfast.StatusSuccess, ""},
		"gates":             {holdfast.StatusSuccess, ""},
		"plan-same":         {holdfast.StatusSuccess, ""},
		"plan-unchanged":    {holdfast.StatusSuccess, ""},
		"plan-manual":       {holdfast.StatusSuccess, ""},
		"planning":          {holdfast.StatusPending, ""},
		"plan-failed":       {holdfast.StatusFailure, ""},
		"faults":            {holdfast.StatusFailure, ""},
		"conflict":          {holdfast.StatusFailure, ""},
		"none":              {holdfast.StatusSuccess, ""},
		"settings":          {holdfast.StatusSuccess, ""},
		"settings-planned":  {holdfast.StatusSuccess, ""},
		"settings-merged":   {holdfast.StatusSuccess, holdfast.StatusSuccess},
		"merged-applying":   {holdfast.StatusSuccess, holdfast.StatusPending},
		"merged-applied":    {holdfast.StatusSuccess, holdfast.StatusSuccess},
		"merged-changed":    {holdfast.StatusSuccess, holdfast.StatusFailure},
		"merged-failed":     {holdfast.StatusSuccess, holdfast.StatusFailure},
		"merged-waiting":    {holdfast.StatusSuccess, holdfast.StatusPending},
		"merged-unplanned":  {holdfast.StatusFailure, holdfast.StatusPending},
		"destroy":           {holdfast.StatusSuccess, ""},
		"destroy-planning":  {holdfast.StatusPending, ""},
		"destroy-guarded":   {holdfast.StatusFailure, ""},
		"destroy-many":      {holdfast.StatusSuccess, ""},
		"renamed":           {holdfast.StatusSuccess, ""},
		"order":             {holdfast.StatusSuccess, ""},
		"destroying":        {holdfast.StatusSuccess, holdfast.StatusPending},
		"destroyed":         {holdfast.StatusSuccess, holdfast.StatusSuccess},
		"destroyed-outside": {holdfast.StatusSuccess, holdfast.StatusSuccess},
		"destroy-failed":    {holdfast.StatusSuccess, holdfast.StatusFailure},
		"destroy-again":     {holdfast.StatusSuccess, holdfast.StatusFailure},
		"destroy-left":      {holdfast.StatusSuccess, holdfast.StatusFailure},
		"destroy-held":      {holdfast.StatusFailure, holdfast.StatusFailure},
		"merged-order":      {holdfast.StatusSuccess, holdfast.StatusFailure},
		"merged-slow":       {holdfast.StatusSuccess, holdfast.StatusPending},
		"merged-left":       {holdfast.StatusSuccess, holdfast.StatusFailure},
		"impact":            {holdfast.StatusSuccess, ""},
		"impact-planning":   {holdfast.StatusPending, ""},
		"impact-budget":     {holdfast.StatusSuccess, ""},
		"impact-failed":     {holdfast.StatusFailure, ""},
		"impact-all":        {holdfast.StatusSuccess, ""},
		"impact-fault":      {holdfast.StatusFailure, ""},
		"impact-major":      {holdfast.StatusSuccess, ""}, // refuses documents, as a major version may
		"impact-path":       {holdfast.StatusSuccess, ""},
		"impact-refused":    {holdfast.StatusFailure, ""},
		"impact-unused":     {holdfast.StatusSuccess, ""},
		"impact-same":       {holdfast.StatusSuccess, ""},
		"impact-mixed":      {holdfast.StatusSuccess, ""},
		"impact-merged":     {holdfast.StatusSuccess, holdfast.StatusSuccess},
		"impact-applied":    {holdfast.StatusSuccess, holdfast.StatusSuccess},
	}
	for name, r := range cases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, ok := tests[name]
			if !ok {
				t.Fatal("the case has no expectation")
			}
			if got := report.PlanStatus(r); got.State != want.plan || got.Revision != head {
				t.Errorf("plan: %s on %s (%s), want %s", got.State, got.Revision, got.Description, want.plan)
			}
			got, ok := report.ApplyStatus(r)
			if ok != (want.apply != "") || got.State != want.apply {
				t.Errorf("apply: %s (%s), want %s", got.State, got.Description, want.apply)
			}
			if ok && (got.Revision != merged || got.Context != holdfast.ContextApply) {
				t.Errorf("apply on %s: %s", got.Revision, got.Context)
			}
		})
	}
}

func TestPushStatus(t *testing.T) {
	t.Parallel()

	unreviewed := waits(report.Cluster{
		Name: "dev-us", Apply: run("r", "dev-us", holdfast.RunPlan, holdfast.RunPlanned, nil),
	}, "Unreviewed", "")
	tests := map[string]struct {
		clusters []report.Cluster
		state    holdfast.StatusState
		says     string
	}{
		"none":       {nil, holdfast.StatusSuccess, "no cluster affected"},
		"unreviewed": {[]report.Cluster{unreviewed}, holdfast.StatusPending, "Unreviewed"},
		"applied":    {[]report.Cluster{appliedCluster("a", smallPlan("a"), holdfast.RunApplied)}, holdfast.StatusSuccess, "applied 1 cluster"},
		"adopted":    {[]report.Cluster{{Name: "a", Apply: run("r", "a", holdfast.RunPlan, holdfast.RunNoChanges, nil)}}, holdfast.StatusSuccess, "nothing to apply"},
		"planning":   {[]report.Cluster{{Name: "a", Apply: run("r", "a", holdfast.RunPlan, holdfast.RunRunning, nil)}}, holdfast.StatusPending, "1 cluster"},
		"removed":    {[]report.Cluster{waits(report.Cluster{Name: "a", Removed: true}, "Removed", "")}, holdfast.StatusPending, "1 cluster"},
		"failed":     {[]report.Cluster{{Name: "a", Apply: run("r", "a", holdfast.RunPlan, holdfast.RunErrored, nil)}}, holdfast.StatusFailure, "failed for a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := report.PushStatus(merged, test.clusters)
			if got.State != test.state || !strings.Contains(got.Description, test.says) || got.Context != holdfast.ContextApply || got.Revision != merged {
				t.Errorf("PushStatus = %+v, want %s with %q", got, test.state, test.says)
			}
		})
	}
}

// TestOlderPlanIsGrey: a plan of another head than the newest is never shown as
// valid.
func TestOlderPlanIsGrey(t *testing.T) {
	t.Parallel()

	c := planned("prod-eu", replacePlan())
	c.Plan.Revision = older
	r := pullRequest(c)
	comment := report.Comment(r)
	if !strings.Contains(comment, "no longer valid") || strings.Contains(comment, "[!CAUTION]") || strings.Contains(comment, "merge to apply") {
		t.Errorf("the comment shows an older plan as valid:\n%s", comment)
	}
	if s := report.PlanStatus(r); s.State != holdfast.StatusPending {
		t.Errorf("status = %+v", s)
	}
}

// A plan whose engine or agent dies is made again, until it is not: then its
// status is final.
func TestInterruptedPlan(t *testing.T) {
	t.Parallel()
	c := planned("prod-eu", smallPlan("prod-eu"))
	c.Plan.Status, c.Plan.Reason, c.Summary = holdfast.RunInterrupted, "EngineKilled", nil
	c.Plan.Failure = &holdfast.Failure{Step: "plan", Summary: "the engine was killed", Cause: "EngineKilled"}
	for waiting, want := range map[string]holdfast.StatusState{
		"": holdfast.StatusPending, "PlanFailed": holdfast.StatusFailure,
	} {
		if got := report.PlanStatus(pullRequest(waits(c, holdfast.Reason(waiting), ""))); got.State != want {
			t.Errorf("waiting %q: %s %q, want %s", waiting, got.State, got.Description, want)
		}
	}
}

func TestReply(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		command holdfast.Command
		want    []string
	}{
		"help":    {holdfast.Command{Verb: holdfast.VerbHelp, Text: "/holdfast help"}, []string{"/holdfast unlock", "`-c NAME`"}},
		"typo":    {holdfast.Command{Verb: holdfast.VerbUnknown, Text: "/holdfast aply -c x"}, []string{"Did you mean `/holdfast apply`?"}},
		"unknown": {holdfast.Command{Verb: holdfast.VerbUnknown, Text: "/holdfast xyzzy"}, []string{"Unknown command.\n", "/holdfast plan"}},
		"refused": {
			holdfast.Command{Verb: holdfast.VerbApply, Text: "/holdfast apply", Status: holdfast.CommandRefused, CommandResult: holdfast.CommandResult{Reply: "not merged, @ann"}},
			[]string{"**Refused:** not merged, @\u200bann", "> `/holdfast apply`"},
		},
		"of several clusters": {
			holdfast.Command{Verb: holdfast.VerbApply, Status: holdfast.CommandDone, CommandResult: holdfast.CommandResult{Reply: "`a`: apply queued\n`b_*`: it waits: `holdfast resume` first"}},
			[]string{"\n- `a`: apply queued\n- `b_*`: it waits: `holdfast resume` first\n"},
		},
		"a backtick too many": {
			holdfast.Command{Verb: holdfast.VerbApply, Status: holdfast.CommandRefused, CommandResult: holdfast.CommandResult{Reply: "`a`: <b>`"}},
			[]string{"**Refused:** \\`a\\`: &lt;b&gt;\\`"},
		},
		"refused without a word": {holdfast.Command{Verb: holdfast.VerbApply, Status: holdfast.CommandRefused}, []string{"**Refused:** it cannot be done"}},
		"done":                   {holdfast.Command{Verb: holdfast.VerbCancel, Status: holdfast.CommandDone, CommandResult: holdfast.CommandResult{Reply: "2 runs are canceled"}}, []string{"2 runs are canceled"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := report.Reply(test.command)
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("Reply = %q, want %q in it", got, want)
				}
			}
		})
	}
	if got := report.Reply(holdfast.Command{Verb: holdfast.VerbPlan, Status: holdfast.CommandDone}); got != "" {
		t.Errorf("Reply to a done command = %q", got)
	}
}

func TestDidYouMean(t *testing.T) {
	t.Parallel()

	for word, want := range map[string]string{
		"plan": "plan", "paln": "plan", "Plan,": "plan", "aply": "apply", "aplly": "apply", "approve": "approve", "aprove": "approve", "appr": "approve",
		"unlok": "unlock", "cancle": "cancel", "hepl": "help", "deploy": "apply", "replan": "plan", "xyzzy": "", "": "", "p": "", "me": "",
	} {
		for _, line := range []string{word, "/holdfast " + word + " -c prod"} {
			got := report.DidYouMean(line)
			if word != "" && (strings.Contains(got, "did you mean /holdfast "+want+"?") != (want != "")) {
				t.Errorf("DidYouMean(%q) = %q, want %q", line, got, want)
			}
			if got == "" {
				t.Errorf("DidYouMean(%q) has no answer", line)
			}
		}
	}
	if got := report.DidYouMean("/holdfast xyzzy"); got != `unknown command "xyzzy"; there are plan, apply, approve, waive, cancel, unlock and help` {
		t.Errorf("DidYouMean = %q", got)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()

	help := report.Help()
	for _, verb := range []string{"plan", "apply", "approve", "cancel", "unlock", "help"} {
		if !strings.Contains(help, "/holdfast "+verb+" ") {
			t.Errorf("help lacks %s:\n%s", verb, help)
		}
	}
	if strings.ContainsAny(help, "|`") {
		t.Errorf("help has markup:\n%s", help)
	}
}

// TestLinks: runs, statuses and faults are linked where there is something to link
// to, and nothing else is.
func TestLinks(t *testing.T) {
	t.Parallel()

	r := cases()["faults"]
	r.URL, r.PullRequest.URL = "https://holdfast.example.com/pullrequests/7/fleet", "https://github.example.com/acme/fleet/pull/7"
	if got := report.PlanStatus(r).URL; got != r.URL {
		t.Errorf("status URL %q", got)
	}
	want := "[`clusters/prod-eu.yaml:12:17`](https://github.example.com/acme/fleet/blob/" + string(head) + "/clusters/prod-eu.yaml#L12)"
	if comment := report.Comment(r); !strings.Contains(comment, want) {
		t.Errorf("the comment lacks %s:\n%s", want, comment)
	}
	// An engine's error in a root module of the repository is linked, too; of what is
	// made from a template there is no file to link to.
	failing := cases()["plan-failed"]
	failing.PullRequest.URL = r.PullRequest.URL
	at := "(https://github.example.com/acme/fleet/blob/" + string(head) + "/infra/prod-us/main.tf#L12)"
	if comment := report.Comment(failing); strings.Contains(comment, at) {
		t.Errorf("a rendered file is linked:\n%s", comment)
	}
	for i := range failing.Clusters {
		if failing.Clusters[i].Name == "prod-us" {
			failing.Clusters[i].Document.Template, failing.Clusters[i].Document.Module = nil, &holdfast.ModuleRef{Path: "infra/prod-us"}
		}
	}
	if comment := report.Comment(failing); !strings.Contains(comment, "[`infra/prod-us/main.tf:12`]"+at) {
		t.Errorf("the comment lacks %s:\n%s", at, comment)
	}
	r.URL = "javascript:alert(1)"
	r.PullRequest.Faults[0].File = "clusters/a) b[`].yaml"
	if got := report.PlanStatus(r).URL; got != "" {
		t.Errorf("status URL %q", got)
	}
	comment := report.Comment(r)
	check(t, r, comment)
	if strings.Contains(comment, "/clusters/a)") {
		t.Errorf("a name ends a link early:\n%s", comment)
	}
}

// A head that moved at the last moment and changed nothing was not planned: what
// was shown before is its plan, if that is what is applied.
func TestPlanStatusOfAHeadThatMoved(t *testing.T) {
	t.Parallel()
	r := report.PullRequest{Clusters: []report.Cluster{{Name: "prod", Apply: &holdfast.Run{ID: "run-2", Kind: holdfast.RunApply, Status: holdfast.RunApplied}}}}
	r.PullRequest.PullRequestRef = holdfast.PullRequestRef{Repo: "fleet", Number: 7}
	r.PullRequest.State, r.PullRequest.Head, r.PullRequest.MergeCommit = holdfast.PullRequestMerged, "abc", "def"
	if got := report.PlanStatus(r); got.State != holdfast.StatusFailure || got.Description != "merged before it was planned" {
		t.Errorf("never planned: %s %q", got.State, got.Description)
	}
	r.Clusters[0].Apply.Reviews = []holdfast.Review{{PullRequest: r.PullRequest.PullRequestRef, Run: "run-1"}}
	if got := report.PlanStatus(r); got.State != holdfast.StatusSuccess {
		t.Errorf("planned for an earlier head: %s %q", got.State, got.Description)
	}
}

// What a person has canceled, and what a merge has ended, are told apart.
func TestPlanStatusOfCanceledPlans(t *testing.T) {
	t.Parallel()
	r := report.PullRequest{}
	for _, name := range []string{"a", "b"} {
		r.Clusters = append(r.Clusters, report.Cluster{Name: name, Plan: &holdfast.Run{ID: "run-" + name, Kind: holdfast.RunPlan, Status: holdfast.RunCanceled, Reason: holdfast.ReasonCanceled}})
	}
	r.PullRequest.PullRequestRef = holdfast.PullRequestRef{Repo: "fleet", Number: 7}
	r.PullRequest.State, r.PullRequest.Head = holdfast.PullRequestOpen, "abc"
	if got := report.PlanStatus(r); got.Description != "Canceled: a and b held, their runs were canceled" {
		t.Errorf("canceled: %s %q", got.State, got.Description)
	}
	r.PullRequest.State, r.PullRequest.MergeCommit = holdfast.PullRequestMerged, "def"
	for i := range r.Clusters {
		r.Clusters[i].Plan.Reason = holdfast.ReasonClosed
	}
	if got := report.PlanStatus(r); got.State != holdfast.StatusFailure || got.Description != "merged before it was planned" {
		t.Errorf("ended by the merge: %s %q", got.State, got.Description)
	}
}

// The headline says what failed, also of a merge that another one took the place of.
func TestHeadlineOfASupersededFailure(t *testing.T) {
	t.Parallel()
	for status, want := range map[holdfast.RunStatus]string{
		holdfast.RunErrored: "`prod` failed to apply", holdfast.RunInterrupted: "`prod` was interrupted while applying",
	} {
		for _, superseded := range []string{"", "#8"} {
			r := report.PullRequest{Clusters: []report.Cluster{{
				Name: "prod", Apply: &holdfast.Run{ID: "run-2", Kind: holdfast.RunApply, Status: status}, Superseded: superseded,
			}}}
			r.PullRequest.State, r.PullRequest.Head, r.PullRequest.MergeCommit = holdfast.PullRequestMerged, "abc", "def"
			if got := report.Comment(r); !strings.Contains(got, want) {
				t.Errorf("%s, superseded by %q: no %q in\n%s", status, superseded, want, got)
			}
		}
	}
}

// TestMergeThatWaitsForALock: a merge waits for a run of another one, which is retried until
// it gets the lock of the state's backend: nobody is asked to act.
func TestMergeThatWaitsForALock(t *testing.T) {
	t.Parallel()
	r := merge(pullRequest(waits(report.Cluster{Name: "prod-eu"}, holdfast.CauseStateLocked, "the lock left-1 is held; it is retried automatically")))
	comment := report.Comment(r)
	if !strings.Contains(comment, "Waits: somebody else holds the engine's own lock on the state (the lock left-1 is held; it is retried automatically)") {
		t.Errorf("the comment does not say what it waits for:\n%s", comment)
	}
	for _, word := range []string{"✋", "held: ", "[!IMPORTANT]"} {
		if strings.Contains(comment, word) {
			t.Errorf("the comment asks for a person (%q):\n%s", word, comment)
		}
	}
	if got, _ := report.ApplyStatus(r); got.State != holdfast.StatusPending || got.Description != "applying 1 cluster" {
		t.Errorf("status = %s %q", got.State, got.Description)
	}
}

// TestHeadThatWasNotPlanned: a merged head without a plan has a green status only if
// what is applied was reviewed, in a plan of an earlier head. A run that was held has
// the pull request, and no plan.
func TestHeadThatWasNotPlanned(t *testing.T) {
	t.Parallel()
	for plan, want := range map[string]holdfast.StatusState{"run-0": holdfast.StatusSuccess, "": holdfast.StatusFailure} {
		r := cases()["merged-unplanned"]
		for i := range r.Clusters {
			r.Clusters[i].Apply = &holdfast.Run{RunSpec: holdfast.RunSpec{
				Reviews: []holdfast.Review{{PullRequest: r.PullRequest.PullRequestRef, Run: plan}},
			}}
		}
		if got := report.PlanStatus(r); got.State != want {
			t.Errorf("reviewed by %q: %s (%s), want %s", plan, got.State, got.Description, want)
		}
	}
}

// What looks like any other plan, and will be held after the merge, says so before: the
// state is left behind, or what is created may exist.
func TestPlanStatusOfWhatWillBeHeld(t *testing.T) {
	t.Parallel()
	plan := &holdfast.Run{Kind: holdfast.RunPlan, Status: holdfast.RunPlanned}
	plan.Revision, plan.Counts = "abc", holdfast.Counts{Create: 1}
	dead := *plan
	dead.Reason, dead.Detail = holdfast.ReasonMayExist, "may exist already: a.b"
	summary := &holdfast.Plan{Counts: holdfast.Counts{Create: 1}}
	for name, c := range map[string]struct {
		clusters []report.Cluster
		want     string
	}{
		"another state": {[]report.Cluster{
			{Name: "a", Plan: plan, Summary: summary, Waiting: holdfast.ReasonStateWouldMove}, {Name: "b", Plan: plan, Summary: summary},
		}, "StateWouldMove will hold a: its state would move to another place"},
		"another state, and an approval is missing": {[]report.Cluster{
			{Name: "a", Plan: plan, Summary: summary, Waiting: holdfast.ReasonStateWouldMove},
			{Name: "b", Plan: plan, Summary: summary, Gates: []holdfast.Gate{{Name: holdfast.GateApproved}}},
		}, "approval missing; StateWouldMove will hold a: its state would move to another place"},
		"may exist":         {[]report.Cluster{{Name: "a", Plan: &dead, Summary: summary}}, "MayExist will hold a: the apply would create resources"},
		"nothing, or order": {[]report.Cluster{{Name: "a", Plan: plan, Summary: summary, Waiting: holdfast.ReasonDependencyMissing}}, "1 cluster: 1 to create"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := report.PullRequest{Clusters: c.clusters}
			r.PullRequest.State, r.PullRequest.Head = holdfast.PullRequestOpen, "abc"
			got := report.PlanStatus(r)
			if got.State != holdfast.StatusSuccess || !strings.HasPrefix(got.Description, c.want) {
				t.Errorf("open, it is %s: %s", got.State, got.Description)
			}
			r.PullRequest.State = holdfast.PullRequestMerged
			if got := report.PlanStatus(r); strings.Contains(got.Description, "will hold") {
				t.Errorf("merged, it is %s: %s", got.State, got.Description)
			}
		})
	}
}
