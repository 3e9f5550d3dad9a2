package uplink

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// TestOutcomeKeepsAStateThatCannotBeRead: the folder is named, and nothing is applied
// before a person has looked at it.
func TestOutcomeKeepsAStateThatCannotBeRead(t *testing.T) {
	t.Parallel()
	logger := slog.New(slog.DiscardHandler)
	k := &Folder{Dir: t.TempDir(), Logger: logger, Now: time.Now}
	if err := k.Make(); err != nil {
		t.Fatal(err)
	}
	s, err := k.Open(Claimed{AttemptRef: holdfast.AttemptRef{Run: "run-1", Attempt: 1}, Kind: holdfast.RunApply}, logger)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "workspace")
	state := filepath.Join(dir, "root", protocol.ArtefactErrored)
	if err := os.MkdirAll(filepath.Dir(state), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(state, []byte(`{"serial":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(state, state+".link"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, applyingFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	result, err := s.Outcome(dir)
	if err != nil {
		t.Fatal(err)
	}
	kept, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*", "root", protocol.ArtefactErrored))
	if result.Failure.Cause != holdfast.CauseStateUnsaved || result.Failure.Transient || len(kept) != 1 ||
		!strings.Contains(result.Failure.Hint, filepath.Dir(filepath.Dir(kept[0]))) {
		t.Errorf("kept is %q, the result is %+v, %+v", kept, result, result.Failure)
	}
}
