package docs_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// step is a block of a page that people paste, and what is to come of it.
type step struct {
	until    string // what has to succeed first: what the page says in words
	commands string
	shows    []string // lines, in order
}

var fence = regexp.MustCompile("(?s)(?:<!-- until: ([^\n]*) -->\n)?```(sh|text)\n(.*?)```\n")

// The ten minutes of templates.md are what they say: each block is pasted into
// one shell, with the very binary, engine and Git, and shows what is shown.
func TestTenMinutes(t *testing.T) {
	t.Parallel()
	_, text, ok := strings.Cut(read(t, "templates.md"), "\n## Ten minutes\n")
	text, _, closed := strings.Cut(text, "\n## The format\n")
	if !ok || !closed {
		t.Fatal("templates.md has no ten minutes")
	}
	walk(t, stepsOf(text), 13)
}

// stepsOf returns the blocks of a text that people paste, with what they show.
func stepsOf(text string) []step {
	var steps []step
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		if m[2] == "sh" {
			steps = append(steps, step{until: m[1], commands: m[3]})
		} else if len(steps) > 0 {
			last := &steps[len(steps)-1]
			last.shows = append(last.shows, strings.Split(strings.TrimSpace(m[3]), "\n")...)
		}
	}
	return steps
}

// walk pastes steps, of which there are at least so many, and holds them to what the
// page shows.
func walk(t *testing.T, steps []step, least int) {
	t.Helper()
	if len(steps) < least {
		t.Fatalf("there are %d steps, fewer than there were", len(steps))
	}
	out := paste(t, steps)
	for i, s := range steps {
		shown := section(out, i)
		if missing := firstMissing(shown, s.shows); missing != "" {
			t.Errorf("after\n%s\nthe page shows\n\n  %s\n\nand there was\n\n%s", s.commands, missing, shown)
		}
	}
	if t.Failed() {
		t.Logf("all of it:\n%s", out)
	}
}

const stepMark = "==== step"

// paste runs the steps in one shell, and returns all that it said.
func paste(t *testing.T, steps []step) string {
	t.Helper()
	need(t, "bash", "git", "curl")
	if _, err := exec.LookPath("tofu"); err != nil {
		need(t, "terraform")
	}
	dir, err := os.MkdirTemp("", "holdfast-docs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the agent may be another user
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(bin, "holdfast"), "github.com/holdfast-dev/holdfast/cmd/holdfast")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build holdfast: %v\n%s", err, out)
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil { //nolint:gosec // as above
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script(t, steps))
	cmd.Dir = work
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) } // the server with it
	cmd.Env = append(os.Environ(),
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+work, "NO_COLOR=1", "TF_CLI_CONFIG_FILE="+os.DevNull,
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=You", "GIT_AUTHOR_EMAIL=you@example.com", "GIT_COMMITTER_NAME=You", "GIT_COMMITTER_EMAIL=you@example.com")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		log, _ := os.ReadFile(filepath.Join(work, "serve.log"))
		t.Fatalf("a step fails: %v\n%s\nserve.log:\n%s", err, out.String(), log)
	}
	return out.String()
}

// script is the steps as one script that ends with the first that fails, and
// leaves nothing running.
func script(t *testing.T, steps []step) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`set -eo pipefail
end() {
  agents=$(cat data/agent*/agent.lock 2>/dev/null || true)
  kill $(jobs -p) $agents 2>/dev/null || true
  wait
}
trap end EXIT
until_so() {
  for _ in $(seq 300); do
    if eval "$1" >/dev/null 2>&1; then return; fi
    sleep 0.2
  done
  echo "in vain: $1"
  eval "$1"
}
`)
	for i, s := range steps {
		if s.until != "" {
			fmt.Fprintf(&b, "until_so '%s'\n", strings.ReplaceAll(s.until, "'", `'\''`))
		}
		fmt.Fprintf(&b, "echo '%s %d'\n%s\n", stepMark, i, s.commands)
	}
	text := b.String()
	for _, port := range []string{"8080", "8081"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // both are held until both are known
		text = strings.ReplaceAll(text, "127.0.0.1:"+port, l.Addr().String())
	}
	return text
}

// need ends the test if a program is missing: in CI it must not be.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil && os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed", name)
		} else if err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
}

// section is what the ith step said.
func section(out string, i int) string {
	_, rest, _ := strings.Cut(out, fmt.Sprintf("%s %d\n", stepMark, i))
	text, _, _ := strings.Cut(rest, stepMark)
	return text
}

// firstMissing returns the first line that is not shown after those before it.
// "…" stands for anything, and alone on a line for any lines; so many spaces are
// as good as one.
func firstMissing(shown string, lines []string) string {
	rest := words(shown)
	for _, line := range lines {
		if strings.TrimSpace(line) == "…" || strings.TrimSpace(line) == "" {
			continue
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(words(line)), "…", ".*?")
		at := regexp.MustCompile("(?m)" + pattern).FindStringIndex(rest)
		if at == nil {
			return line
		}
		rest = rest[at[1]:]
	}
	return ""
}

// words joins the words of each line by single spaces.
func words(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}
