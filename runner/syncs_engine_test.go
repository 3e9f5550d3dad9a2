package runner_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// syncs notes what an agent waits for the disk with, and does not.
type syncs struct {
	mu    sync.Mutex
	names []string // of files, and of folders with a slash at the end
}

var (
	unfinishedName = regexp.MustCompile(`^tmp-(.*)-\d+$`)
	numberedName   = regexp.MustCompile(`^\d{6}-`)
)

func (s *syncs) SyncFile(f *os.File) error {
	name := numberedName.ReplaceAllString(filepath.Base(f.Name()), "waiting ")
	s.note(unfinishedName.ReplaceAllString(name, "$1"))
	return nil
}

func (s *syncs) SyncDir(dir string) error {
	s.note(filepath.Base(dir) + "/")
	return nil
}

func (s *syncs) note(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = append(s.names, name)
}

// since returns what was noted after the first n.
func (s *syncs) since(n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.names[n:]...)
}

// TestSyncs: a plan waits for no disk. An apply does when it is claimed, before it
// begins, with each state, and at its end; what its plan has left is on disk together,
// before it is written down that the apply begins.
func TestSyncs(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	files := map[string]string{"main.tf": "resource \"terraform_data\" \"x\" {}\noutput \"x\" { value = 1 }\n"}
	planned, _ := l.run("plan", holdfast.RunPlan, files, nil)
	l.want(planned, "plan", holdfast.RunPlanned, "")
	if got := l.disk.since(0); len(got) != 0 {
		t.Errorf("a plan waits for the disk with %q", got)
	}

	// The server takes no artefact before the engine that applies has the state's lock:
	// all that the plan has left still waits when the apply begins.
	locks, begun := 0, make(chan struct{})
	var mu sync.Mutex
	l.server.set(func() {
		l.server.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == "LOCK" {
				mu.Lock()
				defer mu.Unlock()
				if locks++; locks == 2 {
					close(begun)
				}
			}
			if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/artefacts/") {
				select {
				case <-begun:
				case <-r.Context().Done():
				}
			}
			return l.stored(w, r)
		}
	})
	applied, _ := l.run("apply", holdfast.RunApply, files, func(a *protocol.Assignment) { a.Reviews = review("plan", planned) })
	l.want(applied, "apply", holdfast.RunApplied, "")
	want := []string{
		"attempt.json", "apply-1/", "attempts/", // what names the attempt
		"waiting input", "waiting document", "waiting info", "artefacts/", // the plan
		"applying", "apply-1/", // and only then the apply begins
		"state", "states/",
		"outputs", "artefacts/", "resources", "artefacts/",
		"result.json", "apply-1/",
	}
	if diff := cmp.Diff(want, l.disk.since(0)); diff != "" {
		t.Errorf("an apply waits for the disk with (-want +got):\n%s", diff)
	}
}
