package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

// A forced push takes a merge off the branch again: what it brought is gone from
// what is desired, and nothing is done about it without a person.
func TestForcedPushTakesMergeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("1 to create")
	pr.merge()
	pr.untilApplied("1 created")
	more := w.fleet().open(document("alpha", "variables: {nodes: 2}"))
	more.untilPlanned("1 to create")
	before := w.fleet().git.Rev("main")
	more.merge()
	more.untilApplied("1 created")

	after := w.fleet().git.Rev("main")
	w.fleet().git.Branch("main", before)
	w.fleet().pushed(after)
	w.untilWaiting("alpha", "Unreviewed")
	if run := w.runs("alpha")[0]; run.Kind != holdfast.RunPlan || run.Counts.Delete != 1 {
		t.Errorf("the newest run is a %s with %+v, want a plan that deletes one", run.Kind, run.Counts)
	}
	if n := w.countCalls("apply alpha"); n != 2 {
		t.Errorf("the engine has applied %d times, want twice", n)
	}
}

// An emptied or deleted branch says nothing of its clusters.
func TestBranchIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("1 to create")
	pr.merge()
	pr.untilApplied("1 created")
	head := w.fleet().git.Rev("main")
	w.fleet().git.DeleteBranch("main")
	w.fleet().hub.Push("refs/heads/main", head, "")
	w.fleet().git.CommitOn("main", "", "Begin again", files{"README.md": "Nothing here.\n"})
	w.fleet().hub.Push("refs/heads/main", "", w.fleet().git.Rev("main"))

	w.fleet().push(cluster("beta", "nodes: 1"))
	w.untilWaiting("beta", "Unreviewed")
	if rec := w.record("alpha"); rec.Phase != holdfast.PhaseActive {
		t.Errorf("alpha is %s, want Active", rec.Phase)
	}
	if n := w.countCalls("apply") + w.countCalls("destroy"); n != 1 {
		t.Errorf("the engine was called %d times to apply or destroy, want once", n)
	}
}

// untilAnnotated waits until a failed check run on a commit has annotations there.
func (r *repo) untilAnnotated(sha string, places ...string) {
	r.w.t.Helper()
	r.w.until(fmt.Sprintf("%s has annotations at %q", sha, places), func() (bool, string) {
		runs := r.hub.CheckRuns(sha)
		if len(runs) == 0 {
			return false, "no check run"
		}
		newest := runs[len(runs)-1]
		var at []string
		for _, a := range newest.Annotations {
			at = append(at, fmt.Sprintf("%s:%d:%d", a.Path, a.StartLine, a.StartColumn))
		}
		return newest.Conclusion == "failure" && slices.Equal(at, places), fmt.Sprintf("%+v", newest)
	})
}

// A repository may define clusters only for what is bound to it. What it may not is
// told at its line.
func TestBindings(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t, nil)
	w.useApp()
	fleet := w.addRepo("acme/fleet", settings{"allow": []any{
		map[string]any{"paths": []string{"clusters/**"}, "projects": []string{"shop"}, "environments": []string{"staging"}},
	}})
	w.start()
	pr := fleet.open(cluster("alpha", "nodes: 1"))
	fleet.untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure, "clusters/alpha.yaml:4:9")
	pr.untilComment("clusters/alpha.yaml:4:9", "production", "holdfast.yaml")
	fleet.untilAnnotated(pr.head, "clusters/alpha.yaml:4:9")
	w.hub.SetPermissions(map[string]string{
		"metadata": "read", "contents": "read", "pull_requests": "write", "issues": "write", "statuses": "write",
	})
	pr.push(files{"clusters/alpha.yaml": "\n" + document("alpha")["clusters/alpha.yaml"]})
	fleet.untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure, "clusters/alpha.yaml:5:9")
	pr.untilComment("/blob/" + pr.head + "/clusters/alpha.yaml#L5") // without the permission a link has to do
	if runs := fleet.hub.CheckRuns(pr.head); len(runs) > 0 {
		t.Errorf("there are check runs without a permission: %+v", runs)
	}
	pr.push(files{"clusters/alpha.yaml": strings.Replace(
		document("alpha")["clusters/alpha.yaml"], "environment: production", "environment: staging", 1)})
	pr.untilPlanned("1 to create")
}

// A comment fits into GitHub's limit, however much there is to tell.
func TestHugePlanFits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 1200"))
	pr.untilPlanned("1200 to create")
	if n := len([]rune(pr.comment())); n > 65536 {
		t.Errorf("the comment has %d characters, want at most 65536", n)
	}
	pr.untilComment("Shortened")
}

// Credentials are those of the phase: a plan does not get what an apply gets,
// and neither is shown.
func TestCredentialsByPhase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"credentials": []any{
		map[string]any{"phase": "plan", "env": map[string]any{"ROLE": "reader"}, "secrets": map[string]any{
			"KEY": map[string]any{"file": "plan-key"},
		}},
		map[string]any{"project": "shop", "phase": "apply", "env": map[string]any{"ROLE": "writer"}, "secrets": map[string]any{
			"KEY": map[string]any{"file": "apply-key"},
		}},
		map[string]any{"project": "other", "env": map[string]any{"ROLE": "nobody"}},
	}})
	w.write("plan-key", "only-to-be-read-with", 0o600)
	w.write("apply-key", "to-be-written-with", 0o600)
	w.start()
	pr := w.fleet().open(join(document("alpha"), moduleFile("alpha", `
resource "terraform_data" "who" {
  provisioner "local-exec" {
    command = "echo role $ROLE, key $KEY"
  }
}
`)))
	// What a plan is given is told by a warning of it. An apply that read the same would
	// be held: its role is another one.
	reads := w.fleet().open(join(document("beta"), moduleFile("beta", `
locals {
  role = regex("ROLE=([a-z]+)", file("/proc/self/environ"))[0]
  key  = length(regex("KEY=([a-z-]+)", file("/proc/self/environ"))[0])
}

check "role" {
  assert {
    condition     = local.role == ""
    error_message = "planned as ${local.role}, with a key of ${local.key} letters"
  }
}
`)))
	pr.untilPlanned("2 to create")
	reads.untilPlanned("1 to create")
	pr.merge()
	pr.untilApplied("2 created")
	var all strings.Builder
	for cluster, want := range map[string]string{
		"alpha": "role writer, key (sensitive value)",
		"beta":  "planned as reader, with a key of 20 letters",
	} {
		out, stderr, code := w.cli("logs", w.runs(cluster)[0].ID)
		all.WriteString(out)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("the log of %s does not say %q: code %d: %s%s", cluster, want, code, out, stderr)
		}
	}
	all.WriteString(pr.comment() + reads.comment() + w.log.all() + w.agentLog())
	for _, key := range []string{"only-to-be-read-with", "to-be-written-with"} {
		if strings.Contains(all.String(), key) {
			t.Errorf("the key %q is shown", key)
		}
	}
}

// Many pull requests on many clusters come at once; each is planned and applied.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	var prs []*pull
	for i := range 8 {
		prs = append(prs, w.fleet().openAs(githubserver.PullRequest{}, cluster(fmt.Sprintf("c%d", i), "nodes: 1")))
	}
	for _, pr := range prs {
		pr.untilPlanned("1 to create")
	}
	for _, pr := range prs {
		pr.merge()
	}
	for _, pr := range prs {
		pr.untilApplied("1 created")
		pr.untilComment("and applied")
	}
}
