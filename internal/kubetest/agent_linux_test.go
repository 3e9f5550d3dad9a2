package kubetest_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast"
)

// agentSpace makes the namespaces of deploy/kubernetes/kubernetes-agent.yaml, one for Jobs and
// one for the agent, with all but the agent itself, whose Deployment it returns. They end with
// the test.
func agentSpace(t *testing.T, name string) (space, *apps.Deployment) {
	t.Helper()
	need(t)
	ctx := t.Context()
	names := map[string]string{"holdfast-runs": name, "holdfast-agent": name + "-agent"}
	var agent *apps.Deployment
	for _, o := range deployed(t, "kubernetes-agent.yaml") {
		in := names[o.(meta.Object).GetNamespace()]
		var err error
		switch o := o.(type) {
		case *core.Namespace:
			o.Name = names[o.Name]
			_, err = admin.CoreV1().Namespaces().Create(ctx, o, meta.CreateOptions{})
		case *core.ServiceAccount:
			_, err = admin.CoreV1().ServiceAccounts(in).Create(ctx, inSpace(o, in).(*core.ServiceAccount), meta.CreateOptions{})
		case *rbac.Role:
			_, err = admin.RbacV1().Roles(in).Create(ctx, inSpace(o, in).(*rbac.Role), meta.CreateOptions{})
		case *rbac.RoleBinding:
			for i := range o.Subjects {
				o.Subjects[i].Namespace = names[o.Subjects[i].Namespace]
			}
			_, err = admin.RbacV1().RoleBindings(in).Create(ctx, inSpace(o, in).(*rbac.RoleBinding), meta.CreateOptions{})
		case *networking.NetworkPolicy:
			_, err = admin.NetworkingV1().NetworkPolicies(in).Create(ctx, inSpace(o, in).(*networking.NetworkPolicy), meta.CreateOptions{})
		case *apps.Deployment:
			agent = inSpace(o, in).(*apps.Deployment)
			_, err = admin.AppsV1().Deployments(in).Create(ctx, agent.DeepCopy(), meta.CreateOptions{})
		default:
			err = fmt.Errorf("%T is not expected there", o)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		none := int64(0)
		for _, in := range names {
			_ = admin.CoreV1().Pods(in).DeleteCollection(context.Background(), meta.DeleteOptions{GracePeriodSeconds: &none}, meta.ListOptions{})
			_ = admin.CoreV1().Namespaces().Delete(context.Background(), in, meta.DeleteOptions{})
		}
	})
	return space{name: name}, agent
}

// newAgentWorld is a server with a runner of type kubernetes-agent, whose key it makes.
func newAgentWorld(t *testing.T, s space) *world {
	t.Helper()
	return newWorldOf(t, s, func(w *world) string {
		w.write("token", "of nothing")
		var public bytes.Buffer
		cmd := exec.Command(filepath.Join(dir, "image", "holdfast"), "agent", "key", w.key())
		if cmd.Stdout = &public; cmd.Run() != nil {
			t.Fatal("no key was made")
		}
		return fmt.Sprintf(`  type: kubernetes-agent
  keys:
    - |
      %s
  job:
    namespace: %s
    image: holdfast:real
    planServiceAccount: holdfast-plan
    applyServiceAccount: holdfast-apply
`, strings.ReplaceAll(strings.TrimSpace(public.String()), "\n", "\n      "), s.name)
	})
}

func (w *world) key() string { return filepath.Join(w.dir, "agent.key") }

// deploy runs the Pod of the agent's Deployment on the stand-in node, where the Service of the
// API server is not to be had: its address is said by variables.
func (w *world) deploy(d *apps.Deployment) {
	w.t.Helper()
	key, err := os.ReadFile(w.key())
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = admin.CoreV1().Secrets(d.Namespace).Create(w.t.Context(), &core.Secret{
		ObjectMeta: meta.ObjectMeta{Name: "holdfast-agent"}, Data: map[string][]byte{"key": key, "ca.crt": api.CA},
	}, meta.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	at, err := url.Parse(api.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: "holdfast-agent", Labels: d.Spec.Template.Labels}, Spec: *d.Spec.Template.Spec.DeepCopy()}
	c := &pod.Spec.Containers[0]
	c.Image = "holdfast:real"
	c.Env = []core.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: at.Hostname()}, {Name: "KUBERNETES_SERVICE_PORT", Value: at.Port()}}
	for i, arg := range c.Args {
		if strings.HasPrefix(arg, "--server=") {
			c.Args[i] = "--server=http://" + w.agents
		}
	}
	// Its service account's token is there once the controllers have seen the namespace.
	until(w.t, "the agent's Pod is accepted", func() (bool, string) {
		_, err := admin.CoreV1().Pods(d.Namespace).Create(w.t.Context(), pod, meta.CreateOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// launcher is an agent that is started on this machine.
type launcher struct {
	cmd *exec.Cmd
	log *logBuffer
}

// startLauncher starts an agent that reaches the cluster by a kubeconfig. It ends with the test.
func (w *world) startLauncher(id string) *launcher {
	w.t.Helper()
	name := strings.ReplaceAll(id, "/", "-") + ".kubeconfig"
	w.write(name, string(api.Kubeconfig(tokenOf(w.t, w.space.name+"-agent", "holdfast-agent"))))
	l := &launcher{log: &logBuffer{}, cmd: exec.Command(filepath.Join(dir, "image", "holdfast"), "agent", "launch",
		"--server", "http://"+w.agents, "--id", id, "--key", w.key(), "--kubeconfig", filepath.Join(w.dir, name))}
	l.cmd.Stdout, l.cmd.Stderr = l.log, l.log
	if err := l.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = l.cmd.Process.Kill()
		_ = l.cmd.Wait()
		if w.t.Failed() {
			w.t.Logf("agent %s:\n%s", id, l.log)
		}
	})
	return l
}

// jobsOf are how many Jobs there are for each run.
func (w *world) jobsOf() map[string]int {
	w.t.Helper()
	list, err := admin.BatchV1().Jobs(w.space.name).List(w.t.Context(), meta.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	jobs := map[string]int{}
	for _, job := range list.Items {
		jobs[job.Labels["holdfast.dev/run"]]++
	}
	return jobs
}

// The agent of deploy/kubernetes launches the runs of its runner in its own cluster, with the
// service accounts of the runner's document; the server has no access to that.
func TestAgentLaunchesJobs(t *testing.T) {
	startNode(t, "launches")
	s, deployment := agentSpace(t, "launches")
	w := newAgentWorld(t, s)
	w.git("checkout", "-q", "-b", "add-alpha", "main")
	w.cluster("alpha", one)
	w.commit("Add alpha")
	w.git("checkout", "-q", "main")
	w.untilRun("alpha", holdfast.RunPlan, "it waits for the agent", is(holdfast.RunQueued))
	w.deploy(deployment)
	plan := w.untilRun("alpha", holdfast.RunPlan, "alpha is planned", is(holdfast.RunPlanned))
	if plan.Agent != "east/"+plan.ID+"-1" {
		t.Errorf("its agent is %q", plan.Agent)
	}
	if out, err := w.holdfast("get", "agents"); err != nil || !strings.Contains(out, "east/agent") {
		t.Errorf("agents: %v %s", err, out)
	}
	w.merge("alpha")
	run := w.untilRun("alpha", holdfast.RunApply, "alpha is applied", is(holdfast.RunApplied))
	jobs, err := admin.BatchV1().Jobs(s.name).List(t.Context(), meta.ListOptions{LabelSelector: "holdfast.dev/run=" + run.ID})
	if err != nil || len(jobs.Items) != 1 || jobs.Items[0].Spec.Template.Spec.ServiceAccountName != "holdfast-apply" {
		t.Errorf("its Jobs are %+v, %v", jobs.Items, err)
	}
}

// Two agents of one runner start one Job for each attempt.
func TestTwoAgentsOfOneRunner(t *testing.T) {
	const clusters = 6
	startNode(t, "pair")
	s, _ := agentSpace(t, "pair")
	w := newAgentWorld(t, s)
	w.startLauncher("east/one")
	w.startLauncher("east/two")
	w.git("checkout", "-q", "-b", "add-many", "main")
	for i := range clusters {
		w.cluster(fmt.Sprintf("many-%d", i), one)
	}
	w.commit("Add many")
	w.git("checkout", "-q", "main")
	for i := range clusters {
		run := w.untilRun(fmt.Sprintf("many-%d", i), holdfast.RunPlan, "it is planned", is(holdfast.RunPlanned))
		if run.Attempt != 1 {
			t.Errorf("%s took %d attempts", run.Cluster, run.Attempt)
		}
	}
	jobs := w.jobsOf()
	for run, n := range jobs {
		if n != 1 {
			t.Errorf("run %s has %d Jobs", run, n)
		}
	}
	if len(jobs) != clusters {
		t.Errorf("there are Jobs of %d runs: %v", len(jobs), jobs)
	}
}

// Server and agent are killed in the middle of an apply: its Job continues, and delivers once
// the server is back. The next agent leaves it alone.
func TestAgentAndServerAreKilledDuringAnApply(t *testing.T) {
	startNode(t, "killed-agent")
	s, _ := agentSpace(t, "killed-agent")
	w := newAgentWorld(t, s)
	l := w.startLauncher("east/agent")
	w.propose("alpha", slow(10))
	w.merge("alpha")
	w.untilRun("alpha", holdfast.RunApply, "it applies", func(r holdfast.Run) bool { return r.Step == "apply" })
	w.kill(syscall.SIGKILL)
	_ = l.cmd.Process.Kill()
	_ = l.cmd.Wait()
	w.startLauncher("east/agent") // which waits for the server
	w.start()
	run := w.untilRun("alpha", holdfast.RunApply, "alpha is applied", is(holdfast.RunApplied))
	if runs, _ := w.runs("alpha", holdfast.RunApply); run.Attempt != 1 || len(runs) != 1 || w.jobsOf()[run.ID] != 1 {
		t.Errorf("it took %d attempts, %d runs and Jobs %v", run.Attempt, len(runs), w.jobsOf())
	}
}

// An agent whose key is removed ends, and nothing is launched by it: what is queued waits.
func TestKeyOfAnAgentIsRemoved(t *testing.T) {
	startNode(t, "removed-key")
	s, _ := agentSpace(t, "removed-key")
	w := newAgentWorld(t, s)
	l := w.startLauncher("east/agent")
	w.propose("alpha", one)
	text, err := os.ReadFile(filepath.Join(w.fleet, "runners", "east.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	before, after, _ := strings.Cut(string(text), "  keys:\n")
	_, after, _ = strings.Cut(after, "  job:\n")
	w.write("fleet/runners/east.yaml", before+"  job:\n"+after)
	w.commit("Remove the key")
	ended := make(chan error, 1)
	go func() { ended <- l.cmd.Wait() }()
	if err := <-ended; err == nil || !strings.Contains(l.log.String(), "no runner has the key") {
		t.Errorf("the agent ended with %v: %s", err, l.log)
	}
	w.git("checkout", "-q", "-b", "add-beta", "main")
	w.cluster("beta", one)
	w.commit("Add beta")
	w.git("checkout", "-q", "main")
	w.untilRun("beta", holdfast.RunPlan, "it waits", func(r holdfast.Run) bool {
		return r.Status == holdfast.RunQueued && r.Reason == holdfast.ReasonNoAgent
	})
}
