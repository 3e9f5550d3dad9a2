package e2e_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// elsewhere starts an agent as somebody does on another machine, with its own folder,
// and returns where its log is. It ends with the world.
func (w *world) elsewhere(id, dir, tokenFile string, slotUser int) (cmd *exec.Cmd, log string) {
	w.t.Helper()
	return w.elsewhereAs(nil, nil, id, dir, tokenFile, "--slot-user", fmt.Sprint(slotUser))
}

// elsewhereAs is elsewhere for an agent that is started by a command, and is another
// user with that credential, if they are not nil.
func (w *world) elsewhereAs(
	under []string, as *syscall.Credential, id, dir, tokenFile string, args ...string,
) (cmd *exec.Cmd, log string) {
	w.t.Helper()
	if err := os.MkdirAll(w.path(dir), 0o755); err != nil {
		w.t.Fatal(err)
	}
	log = w.path(dir + ".log")
	out, err := os.Create(log)
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Close()
	line := append(slices.Clone(under), cmp.Or(w.program, binary), "agent", "--server", "unix://"+w.path("data", "run", "agent.sock"),
		"--token-file", w.path(tokenFile), "--id", id, "--dir", w.path(dir), "--engine-dir", w.path("engine"), "--download=false",
		"--sandbox-write", w.path("seen"), "--slots", "2")
	line = append(line, args...)
	cmd = exec.Command(line[0], line[1:]...)
	if as != nil {
		if err := os.Chown(w.path(dir), int(as.Uid), int(as.Gid)); err != nil {
			w.t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.path(dir), out, out
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.path(dir)}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return cmd, log
}

// untilIn waits until a file says something.
func (w *world) untilIn(path, words string) {
	w.t.Helper()
	w.until(filepath.Base(path)+" says "+words, func() (bool, string) {
		data, err := os.ReadFile(path)
		return strings.Contains(string(data), words), fmt.Sprint(string(data), err)
	})
}

// A unit file was copied: two agents elsewhere have one id, each its own folder. The
// second one is refused with words, at both sides, and the apply of the first one is
// left alone, across a restart of the server as well. Before there was any agent
// people were told so; one with a wrong token says so and ends.
func TestTwoAgentsWithOneID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"agent.off": true, "runs.lease": "4s", "server.agents.tokens": []any{map[string]any{
		"name": "edge", "token": map[string]any{"file": "edge-token"}, "kinds": []string{"plan", "drift", "apply", "destroy"},
	}}})
	w.write("edge-token", "the token of agents elsewhere", 0o600)
	w.write("wrong-token", "another token of the same length", 0o600)
	w.start()
	pr := w.fleet().open(worker("alpha", "1", w.gated("work")))
	pr.untilComment("no running agent")
	if _, body := w.get(w.api + "/readyz"); !strings.Contains(body, "no living agent executes plan, apply, drift, destroy runs") {
		t.Errorf("readiness: %s", body)
	}

	users, _ := slotUsers(t)
	stranger, log := w.elsewhere("edge/1", "stranger", "wrong-token", users)
	if err := stranger.Wait(); err == nil {
		t.Error("an agent with a wrong token ends well")
	}
	w.untilIn(log, "refuses this agent")
	w.untilLogged("claim was refused")

	w.elsewhere("edge/1", "first", "edge-token", users)
	pr.untilPlanned("2 to create")
	pr.merge()
	w.untilSaid("work", "start")
	_, log = w.elsewhere("edge/1", "second", "edge-token", users+10)
	w.untilIn(log, "with another folder: give each agent an id of its own")
	w.untilLogged("with another folder: give each agent an id of its own")
	var agents struct{ Items []v1.Agent }
	w.getJSON("agents", nil, &agents)
	if len(agents.Items) != 1 || !agents.Items[0].Living || agents.Items[0].Isolation == "" || len(agents.Items[0].Runs) != 1 {
		t.Errorf("agents: %+v", agents.Items)
	}
	w.crash()
	w.start()
	w.until("an agent has claimed", func() (bool, string) {
		w.getJSON("agents", nil, &agents)
		return len(agents.Items) == 1 && agents.Items[0].Living && agents.Items[0].Isolation != "", fmt.Sprint(agents.Items)
	})
	w.openGate("work")
	pr.untilApplied("2 created")
	if applies := w.applies("alpha"); len(applies) != 1 || applies[0].Attempt != 1 {
		t.Errorf("applies: %+v, want one of one attempt", applies)
	}
	if said := w.said("work"); said != "start stop" {
		t.Errorf("the script said %q", said)
	}
}
