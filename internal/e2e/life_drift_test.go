package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
)

// What is changed behind Holdfast's back is told in one issue, once for as long
// as it stays the same, and until it is gone.
func TestDriftIsReportedUntilItIsGone(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	fleet.bring(w.keeper("alpha", "a=one b=two"))
	w.do("drift check alpha --wait", "none")
	w.do("get drift", "no drift")

	w.take("alpha", "a")
	w.do("drift check alpha --wait", `local_file.node["a"]`, "1 gone", "holdfast apply alpha")
	first := fleet.untilIssue("drift alpha", false, "alpha", "1 gone", `local_file.node["a"]`, "holdfast apply alpha", "ignore:")
	w.until("the list names the issue", func() (bool, string) {
		out := w.do("get drift", "alpha", "1 gone")
		return strings.Contains(out, "#"+itoa(first.Number)), out
	})
	w.do("describe drift alpha", `local_file.node["a"]`)
	w.do("describe cluster alpha", "1 gone", "Drifted        True")
	if !slices.Contains(first.Labels, "holdfast-drift") {
		t.Errorf("the issue has the labels %q", first.Labels)
	}

	// The same again is not news; something else is.
	w.do("drift check alpha --wait", "1 gone")
	w.change("alpha", "b", "three")
	w.do("drift check alpha --wait", "2 gone")
	second := fleet.untilIssue("drift alpha", false, "2 gone", `local_file.node["b"]`)
	if diff := cmp.Diff([]string{"opened", "edited"}, second.Actions()); diff != "" {
		t.Errorf("what has happened to the issue (-want +got):\n%s", diff)
	}

	w.change("alpha", "a", "one")
	w.change("alpha", "b", "two")
	w.do("drift check alpha --wait", "none")
	closed := fleet.untilIssue("drift alpha", true, "found no drift", w.record("alpha").Drift.Run, w.record("alpha").Applied.Run)
	if closed.StateReason != "completed" {
		t.Errorf("the issue was closed as %q", closed.StateReason)
	}
	w.do("get drift", "no drift")
	w.do("describe cluster alpha", "Drifted        False")

	w.take("alpha", "b")
	w.do("drift check alpha --wait", "1 gone")
	again := fleet.untilIssue("drift alpha", false, `local_file.node["b"]`)
	if again.Number != first.Number || !slices.Contains(again.Actions(), "reopened") {
		t.Errorf("issue %d was followed by %d with %q, want it reopened", first.Number, again.Number, again.Actions())
	}
	if n := len(fleet.hub.Issues()); n != 1 {
		t.Errorf("there are %d issues, want one", n)
	}
	if n := w.countCalls("apply alpha"); n != 1 {
		t.Errorf("the engine has applied %d times, want once", n)
	}
}

// A rule that is merged hides drift: nobody is notified, and whoever looks sees it
// still. It needs no plan and no apply.
func TestDriftIsHiddenByRule(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	fleet.bring(w.keeper("alpha", "a=one b=two"))
	w.take("alpha", "a")
	w.do("drift check alpha --wait", "1 gone")
	fleet.untilIssue("drift alpha", false, "1 gone")
	plans := w.countCalls("plan alpha")

	rule := fleet.open(keeps("alpha", "a=one b=two",
		`drift: {ignore: [{address: 'local_file.node["a"]', reason: the night shift takes it}]}`))
	fleet.untilStatus(rule.head, holdfast.ContextPlan, holdfast.StatusSuccess)
	rule.merge()
	fleet.untilIssue("drift alpha", true, "1 hidden by a rule", `local_file.node["a"]`, "the night shift takes it")
	w.do("describe drift alpha", `local_file.node["a"]`, "the night shift takes it")
	w.do("get drift --all", "alpha", "none (1 ignored)")
	if n := w.countCalls("plan alpha"); n != plans {
		t.Errorf("the engine has planned %d times more, want never", n-plans)
	}

	// It hides what it names.
	w.take("alpha", "b")
	w.do("drift check alpha --wait", "1 gone", "1 hidden by a rule")
	fleet.untilIssue("drift alpha", false, "1 gone, 1 hidden by a rule", `local_file.node["b"]`)
}

// With onDrift: apply drift is reverted without a person, and the issue says how.
// What destroys or replaces something waits for one.
func TestDriftIsReverted(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	switched := w.fileModule("beta", `
resource "terraform_data" "switch" {
  triggers_replace = fileexists("`+w.path("switch")+`")
}
`)
	fleet.bring(join(w.keeper("alpha", "a=one", "drift: {onDrift: apply}"),
		keeps("beta", "b=two", "drift: {onDrift: apply}"), switched))

	w.take("alpha", "a")
	w.do("drift check alpha --wait")
	issue := fleet.untilIssue("drift alpha", true, "found no drift", "onDrift: apply", "reverted the drift")
	if opened := issue.History[0]; !strings.Contains(opened.Body, `local_file.node["a"]`) {
		t.Errorf("the issue first said:\n%s", opened.Body)
	}
	if run := w.applies("alpha")[1]; run.Shown == "" || run.Actor != "" || !strings.Contains(issue.Body, run.ID) {
		t.Errorf("run %s of the plan %q by %q has reverted it, the issue says:\n%s", run.ID, run.Shown, run.Actor, issue.Body)
	}
	if got := w.things("alpha"); got != "a=one" {
		t.Errorf("alpha keeps %q", got)
	}

	w.write("switch", "", 0o644)
	w.do("drift check beta --wait", "terraform_data.switch", "DESTROYS", "1 input changed")
	fleet.untilIssue("drift beta", false, "REPLACED", "terraform_data.switch", "it is not reverted automatically", "holdfast apply beta")
	w.untilWaiting("beta", "DriftHeld")
	w.do("get drift", "apply, held")
	w.do("describe cluster beta", "DriftHeld", "not reverted: reverting it would destroy or replace something")
	w.untilIdle()
	if n := w.countCalls("apply beta"); n != 1 {
		t.Fatalf("the engine has applied %d times, want once", n)
	}
	w.do("apply beta")
	fleet.untilIssue("drift beta", true, "reverted the drift", "requested by")
	w.untilWaiting("beta", "")
	if n := w.countCalls("apply beta"); n != 2 {
		t.Errorf("the engine has applied %d times, want twice", n)
	}
}

// What somebody has changed is told attribute by attribute, and a rule can hide
// one of them.
func TestDriftedAttributes(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	cloudy := files{"infra/alpha/main.tf": `# alpha
terraform {
  required_providers {
    cloud = { source = "holdfast-dev/cloud" }
  }
}

provider "cloud" {
  folder = "` + w.thing("alpha", "") + `"
}

resource "cloud_cluster" "main" {
  name     = "main"
  size     = 3
  tags     = { team = "a" }
  password = "not to be told"
}
`}
	fleet.bring(join(document("alpha"), cloudy))
	object := w.things("alpha")
	changed := strings.NewReplacer("cloud_cluster.main.json=", "", `"size": 3`, `"size": 7`, `"team": "a"`, `"team": "b"`,
		"not to be told", "never to be told").Replace(object)
	w.replace("alpha", "cloud_cluster.main.json", changed)

	out := w.do("drift check alpha --wait", "1 changed outside", "cloud_cluster.main", "size: 3 -> 7", "tags.team", "password: (sensitive value)")
	issue := fleet.untilIssue("drift alpha", false, "`size` `3` → `7`", "`tags.team`", "`password` (sensitive value) → (sensitive value)", "change it back")
	if all := out + issue.Body + w.log.all() + w.agentLog(); strings.Contains(all, "to be told") {
		t.Error("a password is told")
	}

	hide := func(attributes ...string) {
		t.Helper()
		var rules []string
		for _, attribute := range attributes {
			rules = append(rules, "{address: 'cloud_cluster.*', attribute: "+attribute+", reason: it grows by itself}")
		}
		rule := fleet.open(document("alpha", "drift: {ignore: ["+strings.Join(rules, ", ")+"]}"))
		fleet.untilStatus(rule.head, holdfast.ContextPlan, holdfast.StatusSuccess)
		rule.merge()
	}
	hide("size")
	fleet.untilIssue("drift alpha", false, "1 changed outside, 1 hidden by a rule", "it grows by itself", "`tags.team`")
	w.do("describe drift alpha", "Hidden by rules", "which also reverts what rules hide")
	hide("size", "tags", "password")
	fleet.untilIssue("drift alpha", true, "1 hidden by a rule", "it grows by itself")
	w.do("get drift", "no drift")
	if got := w.things("alpha"); !strings.Contains(got, `"size": 7`) {
		t.Errorf("what is hidden was reverted: %s", got)
	}
}

// What was merged and waits is not drift: it stands apart, whether there is drift
// besides or not.
func TestWaitingChangeIsNotDrift(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	fleet.bring(w.keeper("alpha", "a=one"))
	manual := fleet.open(keeps("alpha", "a=one c=three", "apply: {onMerge: false}"))
	manual.untilPlanned("1 to create")
	manual.merge()
	w.untilWaiting("alpha", "Manual")

	w.do("drift check alpha --wait", "none", "Not drift: this cluster has changes in Git that are not applied yet", "Manual")
	w.do("get drift", "no drift")
	if got := line(w.do("get drift --all"), "alpha"); !strings.HasSuffix(got, "Manual") {
		t.Errorf("the list says %q", got)
	}
	w.take("alpha", "a")
	out := w.do("drift check alpha --wait", `local_file.node["a"]`, "1 gone", "Not drift")
	if strings.Contains(out, `local_file.node["c"]`) {
		t.Errorf("what waits is called drift:\n%s", out)
	}
	fleet.untilIssue("drift alpha", false, "1 gone", "**Not drift:**", "Manual", "the pending change is applied first")
	w.untilWaiting("alpha", "Manual")

	// Its apply is planned on the world as it is, and differs from what was seen.
	manual.say(dev, "/holdfast apply")
	w.untilWaiting("alpha", "PlanChanged")
	w.untilShown("alpha")
	manual.say(dev, "/holdfast apply")
	manual.untilApplied("2 created")
	fleet.untilIssue("drift alpha", true, "found no drift")
	if got := w.things("alpha"); got != "a=one c=three" {
		t.Errorf("alpha keeps %q", got)
	}
}

// A check that fails says so, and is not mistaken for an answer.
func TestCheckForDriftFails(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	fleet.bring(w.keeper("alpha", "a=one"))
	w.fail("plan", "alpha", "Error: the cloud has lost its mind")
	for n := range 3 {
		out, stderr, code := w.cli("drift", "check", "alpha", "--wait")
		if code != 3 || !strings.Contains(out+stderr, "lost its mind") {
			t.Fatalf("check %d ended with code %d: %s%s", n+1, code, out, stderr)
		}
		w.until("its failure is on record", func() (bool, string) {
			drift := w.record("alpha").Drift
			return drift.Failures == n+1, itoa(drift.Failures)
		})
	}
	w.do("get drift", "3 checks failed")
	w.do("describe drift alpha", "unknown: the last 3 checks failed", "lost its mind")
	w.do("describe cluster alpha", "CheckFailed")
	fleet.untilIssue("drift alpha", false, "cannot be checked", "lost its mind", "holdfast drift check alpha")
	w.succeed("plan", "alpha")
	w.do("drift check alpha --wait", "none")
	fleet.untilIssue("drift alpha", true, "found no drift")
	if rec := w.record("alpha"); rec.Phase != holdfast.PhaseActive || rec.Waiting != "" {
		t.Errorf("alpha is %s and waits for %q", rec.Phase, rec.Waiting)
	}
}

// Only so many clusters get their own issue. One more sums up the rest, and what they
// have in common.
func TestManyDriftedClusters(t *testing.T) {
	t.Parallel()
	w := newFleet(t, settings{"drift.maxIssues": 1})
	w.start()
	fleet := w.fleet()
	names := []string{"alpha", "beta", "gamma"}
	var all []files
	for _, name := range names {
		all = append(all, w.keeper(name, "a="+name))
	}
	fleet.bring(join(all...))
	for _, name := range names {
		w.take(name, "a")
		w.do("drift check "+name+" --wait", "1 gone")
	}
	fleet.untilIssue("drift alpha", false, "1 gone")
	fleet.untilIssue("drift-summary acme/fleet", false, "3 clusters", "The same in several clusters", "| 3 |", "`local_file`",
		"`beta`", "`gamma`", "Without their own issue")
	if n := len(fleet.hub.Issues()); n != 2 {
		t.Errorf("there are %d issues, want two", n)
	}

	// Who is well makes room for the next.
	w.change("alpha", "a", "alpha")
	w.do("drift check alpha --wait", "none")
	fleet.untilIssue("drift alpha", true, "found no drift")
	fleet.untilIssue("drift beta", false, "1 gone")
	fleet.untilIssue("drift-summary acme/fleet", false, "2 clusters")
	w.do("apply gamma")
	fleet.untilIssue("drift-summary acme/fleet", true)
	fleet.untilIssue("drift beta", false)
	going := fleet.open(gone("beta")) // what is gone does not drift
	going.untilPlanned()              // its file is gone already
	going.merge()
	w.untilPhase("beta", holdfast.PhaseDeleted)
	fleet.untilIssue("drift beta", true, "is no longer checked for drift")
	if n := len(fleet.hub.Issues()); n != 3 {
		t.Errorf("there are %d issues, want three", n)
	}
}

// Without a code host drift is told by the command line.
func TestDriftWithoutCodeHost(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t, nil)
	w.useProviders()
	fleet := w.addLocalRepo("fleet")
	fleet.commit(join(w.keeper("alpha", "a=one", "drift: {onDrift: apply}"), w.keeper("beta", "b=two")))
	w.start()
	for _, name := range []string{"alpha", "beta"} {
		w.untilWaiting(name, "Unreviewed")
		w.do("apply " + name)
		w.untilPhase(name, holdfast.PhaseActive)
	}

	w.do("suspend alpha")
	if _, stderr, code := w.cli("drift", "check", "alpha", "--wait"); code == 0 || !strings.Contains(stderr, "suspended") {
		t.Errorf("a suspended cluster is checked: code %d: %s", code, stderr)
	}
	w.do("resume alpha")
	w.change("alpha", "a", "another")
	w.do("drift check alpha --wait")
	w.until("it is reverted", func() (bool, string) {
		rec := w.record("alpha")
		return rec.Drift.Status == holdfast.DriftNone && rec.Drift.Revert != "", string(rec.Drift.Status)
	})
	w.do("describe drift alpha", "reverted it", "none")
	if got := w.things("alpha"); got != "a=one" {
		t.Errorf("alpha keeps %q", got)
	}

	w.take("beta", "b")
	w.do("drift check beta --wait", "1 gone", `local_file.node["b"]`, "create it again")
	if got := line(w.do("get drift"), "beta"); !strings.HasPrefix(got, "beta 1 gone") || !strings.HasSuffix(got, "report") {
		t.Errorf("the list says %q", got)
	}
	w.do("apply beta")
	w.until("a person has reverted it", func() (bool, string) {
		out := w.do("get drift")
		return strings.Contains(out, "no drift"), out
	})
	w.until("it is reported who reverted it", func() (bool, string) {
		out := w.do("describe drift beta")
		return strings.Contains(out, "requested by admin) reverted it"), out
	})
	if n := w.hub.CallCount(); n != 0 {
		t.Errorf("GitHub was called %d times: %v", n, w.hub.Calls())
	}
}
