package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testenv/freeport"
)

// keyedAgent is an agent elsewhere that has a key.
type keyedAgent struct {
	w        *world
	cmd      *exec.Cmd
	log, dir string
	ended    chan struct{}
}

// keyed starts an agent with a key, which connects over TCP, and ends with the test.
func (w *world) keyed(id, dir, address, key string, slotUser int, more ...string) *keyedAgent {
	w.t.Helper()
	if err := os.MkdirAll(w.path(dir), 0o755); err != nil {
		w.t.Fatal(err)
	}
	out, err := os.Create(w.path(dir + ".log"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Close()
	a := &keyedAgent{w: w, log: w.path(dir + ".log"), dir: w.path(dir), ended: make(chan struct{})}
	a.cmd = exec.Command(binary, append([]string{
		"agent", "--server", "http://" + address, "--key", w.path(key), "--id", id, "--dir", w.path(dir),
		"--engine-dir", w.path("engine"), "--download=false", "--sandbox-write", w.path("seen"), "--slots", "2", "--slot-user", fmt.Sprint(slotUser),
	}, more...)...)
	a.cmd.Dir, a.cmd.Stdout, a.cmd.Stderr = w.path(dir), out, out
	a.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.path(dir)}
	if err := a.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = a.cmd.Wait()
		close(a.ended)
	}()
	return a
}

// endsWith waits until the agent has ended, which says why.
func (a *keyedAgent) endsWith(words string) {
	a.w.t.Helper()
	a.w.until("the agent ends", func() (bool, string) {
		text, _ := os.ReadFile(a.log)
		select {
		case <-a.ended:
			return true, ""
		default:
			return false, string(text)
		}
	})
	if text, _ := os.ReadFile(a.log); !strings.Contains(string(text), words) || a.cmd.ProcessState.ExitCode() != 1 {
		a.w.t.Errorf("it ended with %d, want %q in\n%s", a.cmd.ProcessState.ExitCode(), words, text)
	}
}

// publicKey makes a key as people do, and returns its public one as a document has it.
func (w *world) publicKey(file string) string {
	w.t.Helper()
	public, stderr, code := w.cli("agent", "key", file)
	if code != 0 {
		w.t.Fatalf("agent key: %d %s", code, stderr)
	}
	return "- |\n      " + strings.ReplaceAll(strings.TrimSpace(public), "\n", "\n      ")
}

// TestAgentsWithKeys: the agents of a remote runner have keys, which its document names. A second
// key is for rotation; one that is removed ends at once, and nobody else's agents are affected.
// Tokens for another server, and of clocks that are too far off, are refused with words on both
// sides.
func TestAgentsWithKeys(t *testing.T) {
	t.Parallel()
	address := fmt.Sprintf("127.0.0.1:%d", freeport.Of(t))
	w := emptyWorld(t, settings{"runs.lease": "4s", "server.agents.address": address, "server.agents.url": "http://" + address})
	w.addRepo("acme/fleet", settings{"allow": []any{
		map[string]any{"kinds": []string{"Cluster"}},
		map[string]any{"kinds": []string{"Runner", "RunnerRule"}, "paths": []string{"runners/**"}, "runners": []string{"*"}},
	}})
	w.fleet().commit(join(files{"runners/edge.yaml": runnerFile("edge"), "runners/staging.yaml": ruleFile("edge")}, inStaging("beta", "nodes: 1")))
	w.start()
	first, second := w.publicKey("first.key"), w.publicKey("second.key")
	if _, stderr, code := w.cli("agent", "key", "first.key"); code == 0 || !strings.Contains(stderr, "exists already") {
		t.Errorf("a key was overwritten: %d %s", code, stderr)
	}
	if info, err := os.Stat(w.path("first.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the private key: %v, %v", info, err)
	}
	users, _ := slotUsers(t)
	w.keyed("edge/0", "early", address, "first.key", users+20).endsWith(`no runner has the key`)

	keys := func(subject string, public ...string) {
		t.Helper()
		w.fleet().push(files{"runners/edge.yaml": runnerFile("edge", append([]string{"keys:"}, public...)...)})
		w.until(subject, func() (bool, string) {
			out, _, _ := w.cli("describe", "runner", "edge", "-o", "json")
			return strings.Count(out, "BEGIN PUBLIC KEY") == len(public), out
		})
	}
	keys("its document has a key", first)
	one := w.keyed("edge/1", "one", address, "first.key", users)
	planned := func(by string) {
		t.Helper()
		w.until("beta is planned by "+by, func() (bool, string) {
			runs := w.runs("beta")
			if len(runs) == 0 {
				return false, "none"
			}
			return runs[0].Status == "planned" && runs[0].Agent == by, fmt.Sprint(runs[0].Status, " by ", runs[0].Agent)
		})
	}
	planned("edge/1")

	for _, refused := range []struct{ dir, words, flag, value string }{
		{"lost", `this server is "http://` + address, "--audience", "https://other.example.com"},
		{"ahead", "clock is ahead", "", "2m"},
		{"behind", "the agent's clock may be behind", "", "-10m"},
	} {
		var more []string
		if refused.flag != "" {
			more = []string{refused.flag, refused.value}
		} else if err := os.MkdirAll(w.path(refused.dir), 0o755); err == nil {
			off, err := time.ParseDuration(refused.value)
			if err != nil {
				t.Fatal(err)
			}
			w.setClock(w.path(refused.dir), off)
		}
		w.keyed("edge/"+refused.dir, refused.dir, address, "first.key", users+20, more...).endsWith(refused.words)
	}
	if out := w.log.all(); !strings.Contains(out, "this server is") || !strings.Contains(out, "reason=key") {
		t.Error("the server's log has no word of who was refused")
	}

	keys("it has two", first, second)
	two := w.keyed("edge/2", "two", address, "second.key", users+10)
	w.until("both are there", func() (bool, string) {
		out, _, _ := w.cli("get", "agents")
		return strings.Contains(out, "edge/1") && strings.Contains(out, "edge/2"), out
	})
	keys("it has the second one alone", second)
	one.endsWith("server answered 401") // at once, or with its next claim
	w.do("replan beta")
	planned("edge/2")
	select {
	case <-two.ended:
		t.Error("the agent with the other key has ended, too")
	default:
	}
	_ = two.cmd.Process.Signal(os.Interrupt)
	<-two.ended
}

// TestKeyIsMadeWithItsRunner: create writes the private key to a new file, and proposes the public
// one.
func TestKeyIsMadeWithItsRunner(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t, nil)
	w.addRepo("acme/fleet", settings{"allow": []any{
		map[string]any{"kinds": []string{"Cluster"}},
		map[string]any{"kinds": []string{"Runner", "RunnerRule"}, "paths": []string{"runners/**"}, "runners": []string{"e*"}},
	}})
	w.fleet().commit(cluster("alpha", "nodes: 1"))
	w.start()
	w.do("create runner east --type remote --new-key east.key", "proposed: pull request acme/fleet#")
	public, stderr, code := w.cli("agent", "key", "--show", "east.key")
	if code != 0 {
		t.Fatalf("show the key: %d %s", code, stderr)
	}
	w.until("the document has its public key", func() (bool, string) {
		branch := strings.TrimSpace(w.fleet().git.Git("branch", "--list", "holdfast/runner/east-*", "--format=%(refname:short)"))
		if branch == "" {
			return false, "no branch"
		}
		text := w.fleet().git.Git("show", branch+":runners/east.yaml")
		lines := strings.Split(strings.TrimSpace(public), "\n")
		return strings.Contains(text, "keys:") && strings.Contains(text, lines[1]), text
	})
	for line, words := range map[string]string{
		"create runner west --type remote --new-key west.key":    "may not define runner",
		"create runner east2 --type kubernetes --new-key e2.key": "--new-key goes with",
		"create runner east3 --type remote --new-key east.key":   "exists already",
	} {
		if _, stderr, code := w.cli(strings.Fields(line)...); code == 0 || !strings.Contains(stderr, words) {
			t.Errorf("%s: %d %s", line, code, stderr)
		}
	}
	for name, there := range map[string]bool{"east.key": true, "west.key": false, "e2.key": false} {
		if _, err := os.Stat(w.path(name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}
