package kubetest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-dev/holdfast"
)

// moveTo has the runner of a world launch its Jobs in another namespace, where the account of
// the former one has the same Role.
func (w *world) moveTo(s space, account rbac.Subject) {
	w.t.Helper()
	_, err := admin.RbacV1().RoleBindings(s.name).Create(w.t.Context(), &rbac.RoleBinding{
		ObjectMeta: meta.ObjectMeta{Name: "moved"}, Subjects: []rbac.Subject{account},
		RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: "holdfast-runner"},
	}, meta.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(w.fleet, "runners", "east.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("fleet/runners/east.yaml", strings.Replace(string(text), "namespace: "+w.space.name+"\n", "namespace: "+s.name+"\n", 1))
	w.commit("Move the runner")
	until(w.t, "the runner is moved", func() (bool, string) {
		out, err := w.holdfast("describe", "runner", "east", "-o", "json")
		return err == nil && strings.Contains(out, s.name), out
	})
	time.Sleep(5 * time.Second) // a server looks at the documents in force every 2 s
}

// jobsIn are the names of the Jobs of a namespace.
func jobsIn(t *testing.T, s space) (names []string) {
	t.Helper()
	list, err := admin.BatchV1().Jobs(s.name).List(t.Context(), meta.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range list.Items {
		names = append(names, job.Name)
	}
	return names
}

// A runner is given another namespace in the middle of an apply: that continues where it was
// started, and what dies there is known to be dead, by a server that was started after that, too.
// What is started later is in the new namespace; what waits for its image in the former one can
// be canceled.
func TestRunnerMovesDuringAnApply(t *testing.T) {
	startNode(t, "moves")
	w := newWorld(t, "moves-from", "real", "")
	to := newSpace(t, "moves-to")
	w.propose("alpha", slow(600))
	w.merge("alpha")
	run := w.untilRun("alpha", holdfast.RunApply, "it applies", func(r holdfast.Run) bool { return r.Step == "apply" })
	w.moveTo(to, rbac.Subject{Kind: rbac.ServiceAccountKind, Namespace: w.space.name, Name: "holdfast-server"})
	w.propose("beta", one)
	if jobs := jobsIn(t, to); len(jobs) != 1 {
		t.Errorf("in the new namespace are %v", jobs)
	}
	w.kill(9)
	pods := admin.CoreV1().Pods(w.space.name)
	patch := []byte(`{"metadata":{"annotations":{"standin/evict":"The node was low on resource: memory."}}}`)
	if _, err := pods.Patch(t.Context(), podOf(t, w.space, run.ID), types.MergePatchType, patch, meta.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "its container has ended", func() (bool, string) {
		list, err := pods.List(t.Context(), meta.ListOptions{LabelSelector: "holdfast.dev/run=" + run.ID})
		if err != nil || len(list.Items) != 1 || len(list.Items[0].Status.ContainerStatuses) == 0 {
			return false, fmt.Sprint(err, list)
		}
		return list.Items[0].Status.ContainerStatuses[0].State.Terminated != nil, fmt.Sprint(list.Items[0].Status)
	})
	w.start()
	w.untilRun("alpha", holdfast.RunApply, "its end is noticed", func(r holdfast.Run) bool { return r.ID != run.ID || r.Status.Done() || r.Attempt > 1 })
}

// What is left over in a namespace that its runner has left is stopped.
func TestLeftInAFormerNamespace(t *testing.T) {
	startNode(t, "leaves")
	w := newWorld(t, "leaves-from", "missing", "")
	to := newSpace(t, "leaves-to")
	w.git("checkout", "-q", "-b", "add-alpha", "main")
	w.cluster("alpha", one)
	w.commit("Add alpha")
	w.git("checkout", "-q", "main")
	run := w.untilRun("alpha", holdfast.RunPlan, "it waits for its image", func(r holdfast.Run) bool { return r.Reason == holdfast.CauseImagePullFailed })
	w.moveTo(to, rbac.Subject{Kind: rbac.ServiceAccountKind, Namespace: w.space.name, Name: "holdfast-server"})
	w.kill(15)
	w.start()
	if out, err := w.holdfast("cancel", run.ID); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.untilRun("alpha", holdfast.RunPlan, "it is canceled", is(holdfast.RunCanceled))
	until(t, "its Job is gone", func() (bool, string) {
		jobs := jobsIn(t, w.space)
		return len(jobs) == 0, fmt.Sprint(jobs)
	})
	if jobs := jobsIn(t, to); len(jobs) > 0 {
		t.Errorf("in the new namespace are %v", jobs)
	}
}

// A Job whose Secret could not be made gets it later, without waiting for its deadline.
func TestJobWithoutItsSecret(t *testing.T) {
	startNode(t, "halves")
	w := newWorld(t, "halves", "real", "")
	_, err := admin.CoreV1().ResourceQuotas(w.space.name).Create(t.Context(), &core.ResourceQuota{
		ObjectMeta: meta.ObjectMeta{Name: "secrets"}, Spec: core.ResourceQuotaSpec{Hard: core.ResourceList{"count/secrets": resource.MustParse("0")}},
	}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the quota is counted", func() (bool, string) {
		q, err := admin.CoreV1().ResourceQuotas(w.space.name).Get(t.Context(), "secrets", meta.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0, fmt.Sprint(err)
	})
	w.git("checkout", "-q", "-b", "add-alpha", "main")
	w.cluster("alpha", one)
	w.commit("Add alpha")
	w.git("checkout", "-q", "main")
	w.untilRun("alpha", holdfast.RunPlan, "it says that there is a quota", func(r holdfast.Run) bool { return r.Reason == holdfast.CauseRunnerQuota })
	if jobs := jobsIn(t, w.space); len(jobs) != 1 {
		t.Errorf("its Jobs are %v", jobs)
	}
	if err := admin.CoreV1().ResourceQuotas(w.space.name).Delete(t.Context(), "secrets", meta.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	run := w.untilRun("alpha", holdfast.RunPlan, "it is planned", is(holdfast.RunPlanned))
	if run.Attempt != 1 {
		t.Errorf("it took %d attempts", run.Attempt)
	}
}
