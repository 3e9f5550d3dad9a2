package report_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/rollout"
)

var (
	mention = regexp.MustCompile(`(^|[^\w` + "`" + `/])@[A-Za-z0-9]`)
	fence   = regexp.MustCompile("^(`{3,})(.*)$")
	tag     = regexp.MustCompile(`</?([A-Za-z!][A-Za-z]*)[^>]*>`)
	verb    = regexp.MustCompile(`/holdfast (\w+)`)
)

// check holds what is true of every comment.
func check(t *testing.T, r report.PullRequest, comment string) {
	t.Helper()

	if comment == "" {
		return
	}
	checkText(t, report.Marker(r.PullRequest.PullRequestRef), comment)
	for _, s := range []holdfast.CommitStatus{report.PlanStatus(r), report.PolicyStatus(r)} {
		if n := utf8.RuneCountInString(s.Description); n == 0 || n > 140 {
			t.Errorf("status of %d characters: %q", n, s.Description)
		}
	}
}

// checkText holds what is true of everything that we post.
func checkText(t *testing.T, marker, body string) {
	t.Helper()

	if body == "" {
		return
	}
	if !strings.HasPrefix(body, marker+"\n") {
		t.Errorf("the text does not begin with the marker: %.80q", body)
	}
	if n := utf8.RuneCountInString(body); n > 65_536 {
		t.Errorf("the text has %d characters", n)
	}
	if !utf8.ValidString(body) {
		t.Error("the text is not UTF-8")
	}
	prose := outsideCode(t, strings.TrimPrefix(body, marker))
	checkTables(t, prose)
	if m := mention.FindString(prose); m != "" {
		t.Errorf("the text mentions somebody: %q", m)
	}
	open := map[string]int{}
	for _, m := range tag.FindAllStringSubmatch(prose, -1) {
		name := strings.ToLower(m[1])
		switch name {
		case "details", "summary", "b", "i", "sub", "code":
		case "br":
			continue
		default:
			t.Errorf("the text has the tag %q", m[0])
		}
		if strings.HasPrefix(m[0], "</") {
			open[name]--
		} else {
			open[name]++
		}
	}
	for name, n := range open {
		if n != 0 {
			t.Errorf("%d unclosed tags %s", n, name)
		}
	}
}

// checkTables holds that each row of a table has as many cells as its header.
// Code has been taken out of it; what is escaped separates nothing.
func checkTables(t *testing.T, prose string) {
	t.Helper()

	header := ""
	for _, line := range strings.Split(prose, "\n") {
		switch {
		case !strings.HasPrefix(line, "|"):
			header = ""
		case header == "":
			header = line
		case cells(line) != cells(header):
			t.Errorf("a row of %d cells in a table of %d: %q", cells(line), cells(header), line)
		}
	}
}

func cells(row string) int {
	return strings.Count(strings.ReplaceAll(row, `\|`, ""), "|") - 1
}

// outsideCode returns a comment without its code, and checks that its fences
// are paired.
func outsideCode(t *testing.T, comment string) string {
	t.Helper()

	var prose strings.Builder
	inside := ""
	for _, line := range strings.Split(comment, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case inside == "" && m != nil && !strings.Contains(m[2], "`"):
			inside = m[1]
		case inside != "" && m != nil && len(m[1]) >= len(inside) && strings.TrimSpace(m[2]) == "":
			inside = ""
		case inside == "":
			prose.WriteString(stripSpans(line) + "\n")
		}
	}
	if inside != "" {
		t.Error("a code block is not closed")
	}
	return prose.String()
}

// stripSpans removes code spans as Markdown pairs them: by runs of equal length.
func stripSpans(line string) string {
	var out strings.Builder
	for i := 0; i < len(line); {
		if line[i] == '\\' && i+1 < len(line) {
			out.WriteString(line[i : i+2])
			i += 2
			continue
		}
		if line[i] != '`' {
			out.WriteByte(line[i])
			i++
			continue
		}
		n := 0
		for i+n < len(line) && line[i+n] == '`' {
			n++
		}
		end := closing(line, i+n, n)
		if end < 0 {
			out.WriteString(line[i : i+n])
			i += n
			continue
		}
		i = end
	}
	return out.String()
}

func closing(line string, from, n int) int {
	for i := from; i < len(line); {
		if line[i] != '`' {
			i++
			continue
		}
		run := 0
		for i+run < len(line) && line[i+run] == '`' {
			run++
		}
		if i += run; run == n {
			return i
		}
	}
	return -1
}

// hostile fills every place that others write with s.
func hostile(s string, n int) []report.PullRequest {
	plan := &holdfast.Plan{Counts: holdfast.Counts{Replace: n, Update: n}, Text: "will perform the following actions:\n" + s, Fingerprint: "x"}
	for i := range n {
		c := holdfast.ResourceChange{
			Address: fmt.Sprintf("%s[%d]", s, i), PreviousAddress: s, Type: "aws_eks_cluster", Action: holdfast.ActionReplace, Reason: s,
			ReplacePaths: []string{s}, Importing: s,
			Attributes: []holdfast.AttributeChange{{Path: s, Before: raw(`"` + s + `"`), After: raw(s), Forces: true}},
		}
		plan.Changes = append(plan.Changes, c)
		c.Action = holdfast.ActionUpdate
		plan.Drift = append(plan.Drift, c)
		plan.OutputChanges = append(plan.OutputChanges, holdfast.OutputChange{Name: s, Action: holdfast.ChangeAction(s)})
		plan.Warnings = append(plan.Warnings, holdfast.Diagnostic{Summary: s, Detail: s, Address: s, File: s, Line: 1})
	}
	good := planned("good", plan)
	good.Name, good.Document.Environment, good.Document.Region = s, s, s
	good.Gates = []holdfast.Gate{
		{Name: s, Given: []string{s, s}, Missing: s, From: s},
		{Name: s, Met: true, Given: []string{s}},
		{Name: holdfast.GatePolicy, Missing: s, From: s, Given: []string{s, s}},
	}
	hostileVerdicts(good.Plan, s, n)
	good.Waived = []string{s}
	good.Plan.Template, good.Plan.EngineName, good.Plan.EngineVersion = s, s, s
	bad := planned("bad", plan)
	bad.Summary, bad.Plan.Status = nil, holdfast.RunErrored

	bad.Plan.Failure = hostileFailure(s, n)
	open := pullRequest(good, bad, hostileRemoval(s, n))
	open.Notices = []string{s, s}
	open.PullRequest.Head = holdfast.Revision(s)
	open.LogURL = func(string) string { return s }
	for range n {
		open.PullRequest.Faults = append(open.PullRequest.Faults, holdfast.Fault{File: s, Line: 1, Column: 2, Message: s, Hint: s})
	}
	refused := pullRequest(good)
	refused.PullRequest.Reason, refused.PullRequest.Detail = holdfast.Reason(s), s
	held := appliedCluster("held", plan, holdfast.RunPlanned)
	held.Apply.Detail, held.Apply.Reason = s, holdfast.Reason(s)
	left := appliedCluster("left", plan, holdfast.RunPlanned)
	left.Failed = &holdfast.Run{ID: s, Cluster: s, Kind: holdfast.RunDestroy, Status: holdfast.RunErrored, RunProgress: holdfast.RunProgress{Begun: true, Attempt: 1}, RunOutcome: holdfast.RunOutcome{Failure: hostileFailure(s, n)}}
	left.Waiting, left.WaitingDetail = "DestroyFailed", s
	after := merge(pullRequest(held, left, hostileRemoval(s, n), waits(appliedCluster("c", plan, holdfast.RunErrored), holdfast.Reason(s), s), waits(planned("d", plan), "Locked", s), bad))
	return append([]report.PullRequest{open, refused, after}, hostileImpacts(s, n)...)
}

// hostileImpacts fill every place of a template's change that others write with
// s.
func hostileImpacts(s string, n int) []report.PullRequest {
	n = min(n, 4)
	plan := &holdfast.Plan{Counts: holdfast.Counts{Replace: n, Update: n}}
	for range n {
		plan.Changes = append(plan.Changes, holdfast.ResourceChange{Address: s, Type: "aws_eks_cluster", Action: holdfast.ActionReplace, ReplacePaths: []string{s}})
		plan.Changes = append(plan.Changes, holdfast.ResourceChange{Address: s + ".b." + s, Type: s, Action: holdfast.ChangeAction(s)})
	}
	good, bad := sample("good", plan), sample("bad", plan)
	good.Name, good.Document.Name, good.Plan.Template = s, s, s
	bad.Summary, bad.Plan.Status, bad.Plan.Failure = nil, holdfast.RunErrored, hostileFailure(s, n)
	i := report.Impact{Impact: rollout.Impact{Template: s, Dir: s, Released: s, Version: s, Same: n, Fault: s}}
	for _, reach := range []rollout.ImpactReach{rollout.ReachMerge, rollout.ReachUpgrade, rollout.ImpactReach(s)} {
		at := func(name string) rollout.ImpactCluster {
			return rollout.ImpactCluster{Name: name, Repo: s, Reach: reach, Version: s}
		}
		for j := range n {
			i.Changes = append(i.Changes, rollout.TemplateChange{About: s, What: s, Breaking: j%2 == 0})
			i.Impact.Groups = append(i.Impact.Groups, group(s, []string{s, s}, at(s), at(fmt.Sprintf("%s-%d", s, j)), at("bad")))
			i.Refused = append(i.Refused, rollout.ImpactRefusal{ImpactCluster: at(s), Faults: holdfast.Faults{{File: s, Line: j, Message: s, Hint: s}}})
		}
	}
	open := templatePullRequest([]report.Impact{i, i}, good, bad)
	few := i
	few.Impact.Groups, few.Fault, few.Released = []rollout.ImpactGroup{group(s, []string{s}, rollout.ImpactCluster{Name: s})}, "", ""
	few.Groups = []report.ImpactGroup{{ImpactGroup: few.Impact.Groups[0], Samples: []report.Cluster{good}}}
	return []report.PullRequest{open, merge(open), templatePullRequest([]report.Impact{few})}
}

// hostileVerdicts fill what policies say of a plan, and what it costs, with s.
func hostileVerdicts(run *holdfast.Run, s string, n int) {
	run.Policies = &holdfast.PolicyReport{Evaluated: 2, Undecided: []string{s, s + "b"}}
	total := []holdfast.CostTotal{{Currency: s, Change: holdfast.AmountRange{Low: holdfast.Amount(s), High: holdfast.Amount(s)}}}
	run.Cost = &holdfast.Cost{Totals: total, Prices: holdfast.CostPrices{Oldest: s, Newest: s + s}}
	for i := range n {
		policy := fmt.Sprintf("%s%d", s, i%3)
		run.Policies.Results = append(run.Policies.Results,
			holdfast.PolicyResult{Policy: s, Severity: holdfast.PolicyDeny, Address: s, Message: s, Link: s},
			holdfast.PolicyResult{Policy: policy, Severity: holdfast.PolicyDeny, Address: fmt.Sprintf("%s%d", s, i), Message: s, Link: "https://" + s},
			holdfast.PolicyResult{Policy: s, Severity: holdfast.PolicyWarn, Message: s},
			holdfast.PolicyResult{Policy: s, Severity: holdfast.PolicyInfo, Message: s, Excepted: true},
			holdfast.PolicyResult{Policy: s, Severity: holdfast.PolicySeverity(s), Message: s})
		run.Policies.Faults = append(run.Policies.Faults, holdfast.PolicyFault{Policy: policy, Fault: holdfast.Fault{File: s, Line: i, Message: s, Hint: s}})
		run.Cost.Unpriced = append(run.Cost.Unpriced, holdfast.UnpricedCost{Address: fmt.Sprintf("%s%d", s, i), Gap: holdfast.CostNoPrice, Detail: s})
	}
}

func hostileFailure(s string, n int) *holdfast.Failure {
	f := &holdfast.Failure{Step: s, Summary: s, Detail: s, Hint: s, Cause: holdfast.Reason(s), Address: s, Unrecorded: []string{s, s}}
	for range n {
		f.Diagnostics = append(f.Diagnostics, holdfast.Diagnostic{Severity: s, Summary: s, Detail: s, Address: s, File: s, Line: 1, Snippet: s})
		f.Completed, f.Remaining = append(f.Completed, s, s+": created"), append(f.Remaining, s)
	}
	return f
}

// hostileRemoval is a cluster whose document is removed.
func hostileRemoval(s string, n int) report.Cluster {
	plan := &holdfast.Plan{Counts: holdfast.Counts{Delete: n}, Fingerprint: "x"}
	for range n {
		plan.Changes = append(plan.Changes, holdfast.ResourceChange{Address: s, Type: "aws_eks_cluster", Action: holdfast.ActionDelete})
	}
	c := deleted("removed", plan)
	c.Name, c.Document.RenamedFrom, c.Plan.Provisional = s, s, []string{s, s}
	c.Waiting, c.WaitingDetail = "MassDeletion", s
	return c
}

// hostileDrift fills every place of a drift report that others write with s.
func hostileDrift(s string, n int) []holdfast.DriftReport {
	r := drifted()
	r.Cluster, r.Template, r.Revision, r.Waiting, r.NotApplied = s, s, holdfast.Revision(s), holdfast.Reason(s), true
	r.Document = holdfast.Cluster{Name: s, Project: s, Environment: s}
	r.State.Run, r.State.Applied, r.State.Detail, r.State.Causes = s, s, s, []string{s, s + " " + s, "a " + s}
	r.Items = nil
	for i := range n {
		for _, kind := range []holdfast.DriftKind{holdfast.DriftChanged, holdfast.DriftGone, holdfast.DriftInput, holdfast.DriftKind(s)} {
			item := holdfast.DriftItem{
				Address: fmt.Sprintf("%s[%d]", s, i), Type: s, Kind: kind, Action: holdfast.ActionReplace,
				Attributes: []holdfast.AttributeChange{{Path: s, Before: raw(`"` + s + `"`), After: raw(s)}},
			}
			r.Items = append(r.Items, item)
			item.Action = holdfast.ChangeAction(s)
			r.Items = append(r.Items, item)
			item.Ignored = s
			r.Items = append(r.Items, item)
		}
	}
	held, failed, reverted, failing, kept := r, r, r, r, r
	held.Document.Drift.OnDrift, held.State.Hold = "apply", s
	revert := holdfast.Run{ID: s, Status: holdfast.RunErrored, Reason: holdfast.Reason(s), Detail: s, RunSpec: holdfast.RunSpec{Actor: s}, RunProgress: holdfast.RunProgress{Attempt: 1}, RunOutcome: holdfast.RunOutcome{Failure: hostileFailure(s, n)}}
	failed.Revert = &revert
	canceled := revert
	canceled.Status, canceled.Failure = holdfast.RunCanceled, nil
	reverted.Revert, reverted.State.Status = &canceled, holdfast.DriftNone
	failing.State.Status, failing.State.Failures, failing.Failure, failing.State.Fingerprint, failing.Items = holdfast.DriftFailed, 3, hostileFailure(s, n), "", nil
	kept.State.Status, kept.State.Failures, kept.Revert = holdfast.DriftFailed, 3, &canceled
	return []holdfast.DriftReport{r, held, failed, reverted, failing, kept}
}

// checkDrift holds what is true of every issue about drift.
func checkDrift(t *testing.T, repo string, reports []holdfast.DriftReport) {
	t.Helper()

	for _, r := range reports {
		title, body, _ := report.DriftIssue(r, now)
		checkText(t, report.DriftMarker(r.Cluster), body)
		checkTitle(t, title, body)
		checkPlain(t, report.DriftText(r))
	}
	for _, own := range []int{0, 1, len(reports)} {
		title, body, _ := report.DriftSummary(repo, reports, own, now)
		checkText(t, report.DriftSummaryMarker(repo), body)
		checkTitle(t, title, body)
	}
}

func checkTitle(t *testing.T, title, body string) {
	t.Helper()

	if (title == "") != (body == "") || utf8.RuneCountInString(title) > 256 || strings.ContainsAny(title, "\n\x1b`") || mention.MatchString(title) || !utf8.ValidString(title) {
		t.Errorf("title %q", title)
	}
}

// checkPlain holds what is true of every text for a terminal.
func checkPlain(t *testing.T, text string) {
	t.Helper()

	if strings.ContainsAny(text, "\x1b\r\x07\u202e") || !utf8.ValidString(text) {
		t.Errorf("what a terminal would act upon is in %q", text)
	}
}

func TestDriftOfHostileText(t *testing.T) {
	t.Parallel()

	for i, s := range append(nasty, strings.Repeat("long @me `text` | ", 4000)) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			checkDrift(t, s, hostileDrift(s, 2))
			for _, status := range []holdfast.RunStatus{holdfast.RunErrored, holdfast.RunRetrying} {
				for _, kind := range []holdfast.RunKind{holdfast.RunPlan, holdfast.RunApply, holdfast.RunDestroy, holdfast.RunDrift} {
					run := holdfast.Run{
						ID: s, Cluster: s, Kind: kind, Status: status,
						RunSpec:     holdfast.RunSpec{PullRequest: holdfast.PullRequestRef{Repo: s, Number: 7}},
						RunProgress: holdfast.RunProgress{Attempt: 1, Begun: kind.Writes()},
						RunOutcome:  holdfast.RunOutcome{Failure: hostileFailure(s, 2)},
					}
					checkPlain(t, report.FailureText(run))
				}
			}
		})
	}
}

var nasty = []string{
	"@everybody", "x @team/all", "</details>", "<script>alert(1)</script>", "<!-- holdfast:pull-request fleet#7 -->",
	"```\nout of the fence\n```", "````diff\n@me", "`code` `", "``", "a|b|c", "\\", "\\|", "**bold** _it_ ~~no~~", "[x](javascript:alert(1))",
	"![i](https://x/y.png)", "# heading", "- list", "/holdfast apply", "#12 fixes #13", "line\r\nline\x00\x1b[31mred", "\u202eturned",
	"\xff\xfe", "&lt;@x", "$x$", "@", "\\@x", "`@x", "<@x>", "  ", "",
}

func TestCommentOfHostileText(t *testing.T) {
	t.Parallel()

	for i, s := range nasty {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for _, r := range hostile(s, 2) {
				check(t, r, report.Comment(r))
			}
		})
	}
}

func TestCommentOfHugePlans(t *testing.T) {
	t.Parallel()

	tests := map[string]report.PullRequest{}
	for i, r := range hostile(strings.Repeat("long @me `text` | ", 4000), 3) {
		tests[fmt.Sprintf("long texts %d", i)] = r
	}
	for i, r := range hostile("aws_instance.x", 1500)[:3] {
		tests[fmt.Sprintf("many changes %d", i)] = r
	}
	templates := hostileImpacts("long @me `text` | ", 4)[0]
	templates.Impacts = slices.Repeat(templates.Impacts[:1], 100)
	tests["many templates"] = templates
	var many []report.Cluster
	for i := range 2000 {
		plan := smallPlan("x")
		plan.Counts.Create = i // all different
		many = append(many, planned(fmt.Sprintf("cluster-%d", i), plan))
	}
	tests["many clusters"] = pullRequest(many...)
	var held []report.Cluster
	for i := range 1500 {
		held = append(held, waits(planned(fmt.Sprintf("cluster-%d", i), smallPlan("x")), "Unreviewed", strings.Repeat("because ", 50)))
	}
	var barred []report.Cluster
	for i := range 1500 {
		c := planned(fmt.Sprintf("cluster-%d", i), smallPlan(fmt.Sprint("x", i)))
		words := fmt.Sprintf("%d %s", i, strings.Repeat("@me `a|b` ", 60))
		c.Gates = []holdfast.Gate{{Name: holdfast.GatePolicy, Missing: words, From: words, Given: []string{words, words}}, {Name: holdfast.GateCost, Met: true, Given: []string{words}}}
		hostileVerdicts(c.Plan, words, 3)
		barred = append(barred, c)
	}
	tests["many barred"] = pullRequest(barred...)
	tests["many held"] = merge(pullRequest(held...))
	for name, r := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			comment := report.Comment(r)
			check(t, r, comment)
			if !strings.Contains(comment, "Left out") && !strings.Contains(comment, "too much to show") {
				t.Error("the comment does not say that something is left out")
			}
		})
	}
}

// TestCommentLadder: what is dropped first is what is needed least.
func TestCommentLadder(t *testing.T) {
	t.Parallel()

	big := replacePlan()
	for i := range 20_000 {
		big.Changes[1].Attributes = append(big.Changes[1].Attributes, attr(fmt.Sprintf("attribute_%d", i), `1`, `2`))
	}
	comment := report.Comment(pullRequest(planned("prod-eu", big), planned("dev-us", smallPlan("dev-us"))))
	for _, want := range []string{
		"[!CAUTION]", "linode_lke_cluster.this", "Full plan (20006 lines)", "… 19006 more lines", "Left out: full plans beyond 1000 lines",
		"`holdfast describe run ID --plan`", "aws_iam_role.extra",
	} {
		if !strings.Contains(comment, want) {
			t.Errorf("the comment lacks %q", want)
		}
	}
}

// TestCommandsExist reads the commands in all comments.
func TestCommandsExist(t *testing.T) {
	t.Parallel()

	for name, r := range cases() {
		for _, m := range verb.FindAllStringSubmatch(report.Comment(r), -1) {
			switch holdfast.Verb(m[1]) {
			case holdfast.VerbPlan, holdfast.VerbApply, holdfast.VerbApprove, holdfast.VerbCancel, holdfast.VerbUnlock, holdfast.VerbHelp:
			default:
				t.Errorf("%s: no command %q", name, m[0])
			}
		}
	}
}

func FuzzComment(f *testing.F) {
	for _, s := range nasty {
		f.Add(s, 2)
	}
	f.Add(strings.Repeat("`", 300), 40)
	f.Fuzz(func(t *testing.T, s string, n int) {
		for _, r := range hostile(s, max(0, min(n, 50))) {
			check(t, r, report.Comment(r))
		}
		if changes := report.ChangesText([]rollout.TemplateChange{{About: s, What: s, Breaking: true}}, 1); changes != "" {
			checkText(t, "<!-- x -->", "<!-- x -->\n"+changes)
		}
		checkDrift(t, s, hostileDrift(s, max(0, min(n, 5))))
		if got := report.PlanText(*hostile(s, 1)[0].Clusters[0].Summary); strings.Contains(got, "\x1b") {
			t.Errorf("PlanText = %q", got)
		}
		check(t, pullRequest(), report.Marker(pullRequest().PullRequest.PullRequestRef)+"\n"+
			report.Reply(holdfast.Command{Text: s, Verb: holdfast.VerbUnknown})+report.Reply(holdfast.Command{Text: s, CommandResult: holdfast.CommandResult{Reply: s}, Status: holdfast.CommandRefused}))
	})
}
