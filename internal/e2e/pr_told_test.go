package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

// A merge that failed stays one when another pull request mends it, and that one
// never shows what was waited for before. A head that others came after gets a
// last status.
func TestOutcomesStayReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	w.fail("apply", "alpha", "Error: Invalid value for variable")
	first := w.fleet().open(cluster("alpha", "nodes: 1"))
	first.untilPlanned("1 to create")
	first.merge()
	w.untilWaiting("alpha", "ApplyFailed")
	w.fleet().untilStatus(first.merged, holdfast.ContextApply, holdfast.StatusFailure, "alpha")
	w.succeed("apply", "alpha")
	w.untilIdle()

	w.hold("plan", "alpha")
	second := w.fleet().open(document("alpha", "variables: {nodes: 2}"))
	older := second.head
	w.fleet().untilStatus(older, holdfast.ContextPlan, holdfast.StatusPending)
	second.push(document("alpha", "variables: {nodes: 3}"))
	w.fleet().untilStatus(older, holdfast.ContextPlan, holdfast.StatusError, "superseded by "+second.head[:7])
	w.release("plan", "alpha")
	second.untilPlanned("3 to create")
	second.merge()
	second.untilApplied("3 created")

	by := fmt.Sprintf("superseded by #%d", second.number)
	first.untilComment("Invalid value for variable", by)
	w.fleet().untilStatus(first.merged, holdfast.ContextApply, holdfast.StatusFailure, by)
	if w.fleet().everSaid(second.merged, holdfast.ContextApply, holdfast.StatusFailure) {
		t.Error("the merge that mended it was told to have failed")
	}
}

// A comment that GitHub refuses shows no plan: its status is an error, and is
// green when the comment is there.
func TestAPlanThatIsRefusedIsNotGreen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	// All of them: on a slow machine one says that the plan is under way.
	w.hub.Fail(1000, "POST /repos/{owner}/{repo}/issues/{number}/comments", githubserver.Forbidden)
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	w.fleet().untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusError, "the plan cannot be shown")
	if w.fleet().everSaid(pr.head, holdfast.ContextPlan, holdfast.StatusSuccess) {
		t.Error("the status was green, and nobody could see the plan")
	}
	w.do("describe pullrequest acme/fleet#1", "Refused by the code host", "GitHub answered 403")
	w.until("/metrics counts the comment that was given up", func() (bool, string) {
		_, body := w.get(w.api + "/metrics")
		return strings.Contains(body, `holdfast_posts_given_up_total{kind="comment"} `), body
	})
	w.hub.Recover()
	pr.say(dev, "/holdfast plan")
	pr.untilPlanned("1 to create")
}

// Plans are shown as one only if they are equal except for the clusters' own names, and
// what differs is listed by cluster. Three clusters with a resource each are three.
func TestEachPlanIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.max": 4})
	w.start()
	endpoint := func(name string) files {
		return join(document(name, "variables: {endpoint_access: "+name+"}"), files{"infra/" + name + "/main.tf": "# " + name + `
variable "endpoint_access" { type = string }
resource "terraform_data" "endpoint" { input = var.endpoint_access }
`})
	}
	only := func(name, resource string) files {
		return join(document(name), files{"infra/" + name + "/main.tf": "# " + name + "\n" +
			`resource "terraform_data" "` + resource + `" {}` + "\n"})
	}
	pr := w.fleet().open(join(
		endpoint("private"), endpoint("public"), only("red", "firewall"), only("green", "database"), only("blue", "bucket"),
	))
	pr.untilPlanned("5 clusters: 5 to create")
	comment := pr.comment()
	for _, words := range []string{
		`terraform_data.firewall`, `terraform_data.database`, `terraform_data.bucket`,
		"- `terraform_data.endpoint` `input`: `\"private\"` in `private`; `\"public\"` in `public`",
	} {
		if !strings.Contains(comment, words) {
			t.Errorf("the comment does not say %s:\n%s", words, comment)
		}
	}
	if n := strings.Count(comment, " with the same plan"); n != 1 || !strings.Contains(comment, "<b>private</b> (shown) and <b>public</b>") {
		t.Errorf("it shows %d groups of clusters as one, want private and public alone:\n%s", n, comment)
	}
}

// What clusters waited for before a merge is not said of it: not while it is applied,
// by its comment or by its status, and not of the commit that it came after.
func TestAMergeWaitsForNothingOlder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.max": 4})
	w.start()
	names := []string{"alpha", "beta", "gamma"}
	nodes := func(n int) files {
		all := make(files)
		for _, name := range names {
			all = join(all, cluster(name, fmt.Sprintf("nodes: %d", n)))
		}
		return all
	}
	apply := func(n int, held string) *pull {
		pr := w.fleet().open(nodes(n))
		pr.untilPlanned("to create")
		w.hold("apply", held)
		pr.merge()
		w.untilHeld("apply", held)
		w.fleet().untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusPending, "applying")
		pr.untilComment("Merged as", "applying")
		return pr
	}
	began, base := time.Now(), w.fleet().push(nodes(1))
	for _, name := range names {
		w.untilWaiting(name, "Unreviewed")
	}
	w.fleet().untilStatus(base, holdfast.ContextApply, holdfast.StatusPending, "Unreviewed")

	first := apply(2, "alpha")
	w.fail("apply", "alpha", "Error: Invalid value for variable")
	w.release("apply", "alpha")
	w.untilWaiting("alpha", "ApplyFailed")
	w.fleet().untilStatus(first.merged, holdfast.ContextApply, holdfast.StatusFailure, "alpha")
	w.untilIdle()
	w.succeed("apply", "alpha")

	second := apply(3, "beta")
	w.release("apply", "beta")
	second.untilApplied()
	second.untilComment("and applied")

	for _, pr := range []*pull{first, second} {
		for _, status := range w.fleet().hub.Statuses(pr.merged) {
			pending := status.State == string(holdfast.StatusPending)
			if pending && !strings.HasPrefix(status.Description, "applying") || pr == second && status.State == string(holdfast.StatusFailure) {
				t.Errorf("the merge of %d was told as %s: %s", pr.number, status.State, status.Description)
			}
		}
	}
	for _, body := range second.said() {
		if strings.Contains(body, "held") || strings.Contains(body, "for a person") {
			t.Errorf("the comment of %d said:\n%s", second.number, body)
		}
	}
	w.fleet().untilStatus(base, holdfast.ContextApply, holdfast.StatusFailure, "a later commit took its place")
	// While clusters leave a commit its status changes each ten seconds at most.
	most := 5 + int(time.Since(began)/(10*time.Second))
	if told := w.fleet().hub.Statuses(base); len(told) > most {
		t.Errorf("the commit before the merges was told of %d times: %+v", len(told), told)
	}
}
