// Package realengine is for tests that put a script in front of a real engine. To start an
// engine takes as long as a small plan, so that nobody should do so to learn its version.
package realengine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

var (
	mu      sync.Mutex
	answers = make(map[string]string) // by the engine's path
)

// version returns what an engine answers to `version -json`. It is asked once.
func version(path string) (string, error) {
	mu.Lock()
	defer mu.Unlock()
	if answer, ok := answers[path]; ok {
		return answer, nil
	}
	dir, err := os.MkdirTemp("", "holdfast-version-") // where no root module is
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	ask := exec.Command(path, "version", "-json")
	// As the store of engines asks: by TF_CLI_CONFIG_FILE, OpenTofu would warn in its answer.
	ask.Dir, ask.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "CHECKPOINT_DISABLE=1"}
	out, err := ask.Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", path, err)
	}
	answer := strings.TrimSpace(string(out))
	if !json.Valid(out) || strings.Contains(answer, "'") {
		return "", fmt.Errorf("ask %s for its version: %w", path, errors.New("no answer that a script could give"))
	}
	answers[path] = answer
	return answer, nil
}

// Answer returns lines of a script that give an engine's answer to `version -json`, and
// end the script with it.
func Answer(path string) (string, error) {
	answer, err := version(path)
	return fmt.Sprintf("if [ \"$*\" = \"version -json\" ]; then\n\tprintf '%%s\\n' '%s'\n\texit\nfi\n", answer), err
}

// BarePath is PATH without the folders of engines: who has the script asks no other one,
// and would start each engine that is there. PATH stays as it is if one of the needed
// programs is in such a folder.
func BarePath(needed ...string) string {
	all := filepath.SplitList(os.Getenv("PATH"))
	bare := slices.DeleteFunc(slices.Clone(all), func(dir string) bool {
		return firstIn([]string{dir}, "tofu")+firstIn([]string{dir}, "terraform") != ""
	})
	for _, program := range needed {
		if firstIn(bare, program) != firstIn(all, program) {
			bare = all
		}
	}
	return strings.Join(bare, string(os.PathListSeparator))
}

// firstIn returns where a program is in the first of the folders that have it; empty if
// none does.
func firstIn(dirs []string, program string) string {
	for _, dir := range dirs {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}
