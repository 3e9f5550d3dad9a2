package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// plainUser makes the server one of a user who is not root and cannot make user
// namespaces, as it is in a container with Docker's default profile.
func (w *world) plainUser() {
	w.t.Helper()
	under := noUserNamespaces()
	if out, err := exec.Command(under[0], append(under[1:], "true")...).CombinedOutput(); err != nil {
		if os.Getuid() != 0 {
			return // it is one already
		}
		w.t.Fatalf("become a plain user: %v\n%s", err, out)
	}
	w.under = under
}

// noUserNamespaces is a command that starts another one as a user who is not root and
// cannot make user namespaces.
func noUserNamespaces() []string {
	const once = `echo 1 >/proc/sys/user/max_user_namespaces && exec unshare --user --map-user=1000 --map-group=1000 -- "$@"`
	return []string{"unshare", "--user", "--map-root-user", "sh", "-c", once, "sh"}
}

// needLandlock is for what takes a kernel that has it; CI's does.
func needLandlock(w *world) {
	w.t.Helper()
	probe := exec.Command(binary, "agent", "probe", "--isolation", "landlock")
	if len(w.under) > 0 {
		probe = exec.Command(w.under[0], append(w.under[1:], probe.Args...)...)
	}
	if out, err := probe.Output(); err != nil || string(out) != "landlock\n" {
		if os.Getenv("CI") == "true" {
			w.t.Fatalf("%v\n%s", err, out)
		}
		w.t.Skipf("the kernel does not have it: %v\n%s", err, out)
	}
}

// Where Landlock is all that there is, pull requests are planned, and what is
// merged is not applied by the user who plans: the pull request says why, and what
// to do. One of the ways is to do without isolation.
func TestLandlockOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"isolation": "landlock", "runs.retries": 0})
	w.plainUser()
	needLandlock(w)
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("1 to create")
	if log := w.agentLog(); !strings.Contains(log, "mode=landlock") {
		t.Errorf("the agent does not say in which mode it is:\n%s", log)
	}
	pr.merge()
	run := w.untilRun("alpha", holdfast.RunApply, holdfast.RunErrored)
	if run.Reason != "NoIsolation" || run.Begun {
		t.Errorf("the apply ended for %s: %+v", run.Reason, run.Failure)
	}
	w.fleet().untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusFailure)
	pr.untilComment("only Landlock keeps them apart", "isolation: none")
	if n := w.countCalls("apply"); n != 0 {
		t.Errorf("%d applies began", n)
	}

	w.stop()
	w.set(settings{"isolation": "none"})
	w.start()
	w.do("replan alpha")
	w.untilShown("alpha")
	pr.say(dev, "/holdfast apply -c alpha")
	pr.untilApplied("1 created")
}

// With Landlock alone, agents of two users plan and apply. Code in a plan finds
// nothing of the agent that applies, not its token, nor its folder, nor what its
// processes have; and code in an apply finds nothing of the agent that plans.
func TestTwoLandlockAgents(t *testing.T) {
	t.Parallel()
	const planKey, applyKey = "plan-secret-66ab01ce99d2f4e0", "apply-secret-2c7d85f1b03e9a64"
	const planToken, applyToken = "plan-secret-5e5e5e5e0a0a0a0a", "apply-secret-4d4d4d4d1b1b1b1b"
	w := newWorld(t, settings{
		"agent.off": true, "server.agents.tokens": []any{
			map[string]any{"name": "edge", "token": map[string]any{"file": "plan-token"}, "kinds": []string{"plan", "drift"}},
			map[string]any{"name": "edge/apply", "token": map[string]any{"file": "apply-token"}, "kinds": []string{"apply", "destroy"}},
		}, "credentials": []any{
			map[string]any{"phase": "plan", "secrets": map[string]any{"PLAN_KEY": map[string]any{"file": "plan-key"}}},
			map[string]any{"phase": "apply", "secrets": map[string]any{"APPLY_KEY": map[string]any{"file": "apply-key"}}},
		},
	})
	needRoot(w)
	w.plainUser()
	needLandlock(w)
	w.under = nil // only the agents are other users
	for name, text := range map[string]string{
		"plan-key": planKey, "apply-key": applyKey, "plan-token": planToken, "apply-token": applyToken,
	} {
		w.write(name, text, 0o600)
	}
	w.start()
	if err := os.Chmod(w.path("data", "run", "agent.sock"), 0o666); err != nil { //nolint:gosec // as an address would be for both
		t.Fatal(err)
	}
	first, _ := slotUsers(t)
	agent := func(id, dir, token string, user int) *exec.Cmd {
		w.write(dir+".token", token, 0o600)
		if err := os.Chown(w.path(dir+".token"), user, user); err != nil {
			t.Fatal(err)
		}
		as := &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
		cmd, log := w.elsewhereAs(noUserNamespaces(), as, id, dir, dir+".token", "--isolation", "landlock", "--kinds", map[bool]string{
			true: "plan,drift", false: "apply,destroy",
		}[dir == "planner"])
		w.untilIn(log, "mode=landlock")
		return cmd
	}
	planner := agent("edge/plan", "planner", planToken, first)
	applier := agent("edge/apply", "applier", applyToken, first+1)

	// The apply looks for what the agent that plans has, and stays.
	look := fmt.Sprintf(`for f in $(find %[1]s %[1]s.token -type f 2>/dev/null) /proc/%[2]d/environ; do cat "$f"; done >%[3]s/loot 2>/dev/null; `,
		w.path("planner"), planner.Process.Pid, w.path("seen"))
	victim := w.fleet().open(worker("beta", "1", `echo "$APPLY_KEY" >note; exec 8<note; `+look+w.gated("work")))
	victim.untilPlanned("2 to create")
	victim.merge()
	w.untilSaid("work", "start")

	targets := w.targetsOf(w.path("applier"), applyKey, append(descendants(applier.Process.Pid), applier.Process.Pid))
	targets.Files = append(targets.Files, w.path("applier.token"), w.path("planner.token"))
	text, err := json.Marshal(targets)
	if err != nil {
		t.Fatal(err)
	}
	thief := w.fleet().open(join(document("alpha"), moduleFile("alpha", thiefCode), files{"infra/alpha/targets.json": string(text)}))
	thief.untilPlanned("2 to create")
	dots := func(s string) string { return strings.Join(strings.Split(s, ""), ".") }
	body := thief.comment()
	if !strings.Contains(body, dots(planKey)) {
		t.Fatalf("the thief does not even find its own key, so that the test proves nothing:\n%s", body)
	}
	for what, secret := range map[string]string{"its agent's token": planToken, "the apply's token": applyToken, "the apply's key": applyKey} {
		if strings.Contains(body, dots(secret)) || strings.Contains(body, secret) {
			t.Errorf("the code of a plan has %s:\n%s", what, body)
		}
	}
	w.openGate("work")
	victim.untilApplied("2 created")
	loot, err := os.ReadFile(w.path("seen", "loot"))
	if err != nil || strings.Contains(string(loot), "plan-secret-") || len(loot) > 0 {
		t.Errorf("the code of an apply has of the agent that plans: %q, %v", loot, err)
	}
}

// descendants are the processes that one has started, and those that they have.
func descendants(pid int) []int {
	children := childrenOf()
	found := slices.Clone(children[pid])
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}
