package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/runner/local"
)

// What the agent must know reaches it on its standard input, and stands neither
// on its command line nor in its environment, where other processes of its user
// could read it.
func TestInputIsHandedToTheAgent(t *testing.T) {
	t.Parallel()
	const secret = "a token that nobody may read"
	dir := t.TempDir()
	agent, err := local.Start(t.Context(), local.Options{
		Command: local.Command{Binary: "/bin/sh", Args: []string{"-c", "tr '\\0' ' ' < /proc/$$/cmdline > seen; env >> seen; cat > input.new; mv input.new input; exec sleep 60"}, Input: secret},
		Dir:     dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := agent.Stop(t.Context()); err != nil {
			_ = agent.Interrupt()
		}
	})
	for {
		got, err := os.ReadFile(filepath.Join(dir, "input"))
		if err == nil && string(got) == secret {
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("the agent's input was %q: %v", got, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	seen, err := os.ReadFile(filepath.Join(dir, "seen"))
	if err != nil || strings.Contains(string(seen), secret) {
		t.Errorf("the agent's command line and environment were %q: %v", seen, err)
	}
}
