package kubetest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast"
)

const one = `resource "terraform_data" "one" { input = "a" }
`

// slow takes a while to be applied.
func slow(seconds int) string {
	return fmt.Sprintf(`resource "terraform_data" "one" {
  provisioner "local-exec" { command = "sleep %d" }
}
`, seconds)
}

// propose makes a pull request with a cluster, and waits for its plan.
func (w *world) propose(cluster, code string) {
	w.t.Helper()
	w.git("checkout", "-q", "-b", "add-"+cluster, "main")
	w.cluster(cluster, code)
	w.commit("Add " + cluster)
	w.git("checkout", "-q", "main")
	w.untilRun(cluster, holdfast.RunPlan, cluster+" is planned", is(holdfast.RunPlanned))
}

func (w *world) merge(cluster string) {
	w.t.Helper()
	until(w.t, "the plan is shown", func() (bool, string) {
		out, err := w.holdfast("get", "pullrequests", "-o", "json")
		return err == nil && strings.Contains(out, cluster), out
	})
	time.Sleep(2 * time.Second) // until the comment is posted, which a merge must come after
	w.git("merge", "-q", "--no-ff", "--no-edit", "add-"+cluster)
}

// A pull request is planned and its merge applied, each by a Job.
func TestRunsAsJobs(t *testing.T) {
	startNode(t, "runs")
	w := newWorld(t, "runs-as-jobs", "real", "")
	began := time.Now()
	w.propose("alpha", one)
	t.Logf("planned after %s", time.Since(began))
	plan, _ := w.runs("alpha", holdfast.RunPlan)
	if plan[0].Agent != "east/"+plan[0].ID+"-1" {
		t.Errorf("its agent is %q", plan[0].Agent)
	}
	w.merge("alpha")
	run := w.untilRun("alpha", holdfast.RunApply, "alpha is applied", is(holdfast.RunApplied))
	jobs, err := admin.BatchV1().Jobs(w.space.name).List(t.Context(), meta.ListOptions{LabelSelector: "holdfast.dev/run=" + run.ID})
	if err != nil || len(jobs.Items) != 1 || jobs.Items[0].Spec.Template.Spec.ServiceAccountName != "holdfast-apply" {
		t.Errorf("its Jobs are %+v, %v", jobs.Items, err)
	}
	t.Logf("from queue to start of the plan: %s", plan[0].StartedAt.Sub(plan[0].CreatedAt))
}

// A server that is killed finds its Jobs again: an apply continues, and is not begun twice.
func TestServerIsKilledDuringAnApply(t *testing.T) {
	startNode(t, "killed")
	w := newWorld(t, "killed", "real", "")
	w.propose("alpha", slow(8))
	w.merge("alpha")
	w.untilRun("alpha", holdfast.RunApply, "it applies", func(r holdfast.Run) bool { return r.Step == "apply" })
	w.kill(syscall.SIGKILL)
	w.start()
	run := w.untilRun("alpha", holdfast.RunApply, "alpha is applied", is(holdfast.RunApplied))
	if run.Attempt != 1 {
		t.Errorf("it took %d attempts", run.Attempt)
	}
}

// A node goes silent in the middle of an apply, and its Pod is deleted by force: the apply
// still runs, and no second one begins.
func TestSilentNodeDuringAnApply(t *testing.T) {
	n := startNode(t, "quiet")
	w := newWorld(t, "quiet", "real", "")
	w.propose("alpha", slow(15))
	w.merge("alpha")
	run := w.untilRun("alpha", holdfast.RunApply, "it applies", func(r holdfast.Run) bool { return r.Step == "apply" })
	n.silence()
	none := int64(0)
	if err := admin.CoreV1().Pods(w.space.name).Delete(t.Context(), podOf(t, w.space, run.ID), meta.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
		t.Fatal(err)
	}
	run = w.untilRun("alpha", holdfast.RunApply, "alpha is applied", is(holdfast.RunApplied))
	if runs, _ := w.runs("alpha", holdfast.RunApply); run.Attempt != 1 || len(runs) != 1 {
		t.Errorf("it took %d attempts and %d runs", run.Attempt, len(runs))
	}
}

// A Pod that is deleted interrupts its engine; the plan is made again.
func TestPodIsDeletedDuringAPlan(t *testing.T) {
	startNode(t, "deleted")
	w := newWorld(t, "deleted", "real", "")
	w.git("checkout", "-q", "-b", "add-alpha", "main")
	w.cluster("alpha", one)
	w.commit("Add alpha")
	w.git("checkout", "-q", "main")
	var pod string
	until(t, "its Pod is there", func() (bool, string) {
		list, err := admin.CoreV1().Pods(w.space.name).List(t.Context(), meta.ListOptions{LabelSelector: "holdfast.dev/cluster=alpha"})
		if err != nil || len(list.Items) == 0 {
			return false, fmt.Sprint(err)
		}
		pod = list.Items[0].Name
		return true, ""
	})
	if err := admin.CoreV1().Pods(w.space.name).Delete(t.Context(), pod, meta.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.untilRun("alpha", holdfast.RunPlan, "it is planned in the end", func(r holdfast.Run) bool { return r.Status.Good() })
}

// What keeps a Job from starting is said on the run, and a cancel removes the Job.
func TestCancelOfARunThatDoesNotStart(t *testing.T) {
	startNode(t, "cancel")
	w := newWorld(t, "cancel", "missing", "")
	w.git("checkout", "-q", "-b", "add-alpha", "main")
	w.cluster("alpha", one)
	w.commit("Add alpha")
	w.git("checkout", "-q", "main")
	run := w.untilRun("alpha", holdfast.RunPlan, "it says what it waits for", func(r holdfast.Run) bool {
		return r.Reason == holdfast.CauseImagePullFailed && strings.Contains(r.Detail, "holdfast:missing")
	})
	if out, err := w.holdfast("cancel", run.ID); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.untilRun("alpha", holdfast.RunPlan, "it is canceled", is(holdfast.RunCanceled))
	until(t, "the Job is gone", func() (bool, string) {
		jobs, err := admin.BatchV1().Jobs(w.space.name).List(t.Context(), meta.ListOptions{LabelSelector: "holdfast.dev/run=" + run.ID})
		return err == nil && len(jobs.Items) == 0, fmt.Sprint(err)
	})
}

// With a token that has expired one run says so; once its file has another one it is executed,
// by the same server.
func TestTokenThatHasExpired(t *testing.T) {
	startNode(t, "expired")
	w := newWorld(t, "expired", "real", "")
	good := w.space.token
	w.kill(syscall.SIGTERM)
	w.write("token", expiredToken(t, w.space))
	w.start()
	w.git("checkout", "-q", "-b", "add-alpha", "main")
	w.cluster("alpha", one)
	w.commit("Add alpha")
	w.git("checkout", "-q", "main")
	w.untilRun("alpha", holdfast.RunPlan, "it says what is wrong", func(r holdfast.Run) bool {
		return r.Reason == holdfast.CauseRunnerUnauthorized
	})
	w.write("token", good)
	w.untilRun("alpha", holdfast.RunPlan, "it is planned", is(holdfast.RunPlanned))
}

// A ticket is good once: who finds it later gets nothing.
func TestTicketIsGoodOnce(t *testing.T) {
	startNode(t, "ticket")
	w := newWorld(t, "ticket", "real", "")
	w.propose("alpha", one)
	plan, _ := w.runs("alpha", holdfast.RunPlan)
	secret, err := admin.CoreV1().Secrets(w.space.name).Get(t.Context(), "holdfast-"+plan[0].ID+"-1", meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(w.dir, "stolen")
	if err := os.WriteFile(file, secret.Data["ticket"], 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := w.holdfast("agent", "--run", "--server", "http://"+w.agents, "--ticket-file", file, "--dir", filepath.Join(w.dir, "thief"),
		"--id", "east/thief", "--kinds", "plan", "--isolation", "none")
	if err == nil || !strings.Contains(out, "ticket is not valid") {
		t.Errorf("got %v: %s", errors.Unwrap(err), out)
	}
}

// The code of a plan reads neither the ticket nor what else its agent has in the Pod: the
// agent's folder, its memory and variables, the account of the Pod.
func TestPlanReadsNothingOfItsAgent(t *testing.T) {
	startNode(t, "hostile")
	w := newWorld(t, "hostile", "real", "")
	w.git("checkout", "-q", "-b", "add-alpha", "main")
	w.cluster("alpha", `locals {
  kept = [
    "/holdfast/ticket/ticket", "/holdfast/ticket/..data/ticket", "/proc/1/environ", "/proc/1/mem", "/proc/1/root/holdfast/ticket/ticket",
    "/proc/1/cwd/holdfast/ticket/ticket", "/var/run/secrets/kubernetes.io/serviceaccount/token",
  ]
  read  = [for path in local.kept : path if can(filebase64(path))]
  found = [for file in fileset("/holdfast/work/agent", "**") : file if can(filebase64("/holdfast/work/agent/${file}")) && !startswith(file, "work/")]
}
resource "terraform_data" "one" {
  lifecycle {
    precondition {
      condition     = length(local.read) == 0 && length(local.found) == 0
      error_message = "the code of a plan reads ${join(" ", concat(local.read, local.found))}"
    }
  }
}
`)
	w.commit("Add alpha")
	w.git("checkout", "-q", "main")
	run := w.untilRun("alpha", holdfast.RunPlan, "its plan has ended", func(r holdfast.Run) bool { return r.Status.Done() })
	if run.Status != holdfast.RunPlanned {
		t.Errorf("it is %s: %+v", run.Status, run.Failure)
	}
}
