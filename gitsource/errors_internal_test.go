package gitsource

import (
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestLocalFaultsAreNoRefusals: what Git's program says of this machine's disk is not
// the word of a server.
func TestLocalFaultsAreNoRefusals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"error: cannot lock ref 'refs/heads/x': unable to create '/r/x.lock': Read-only file system": holdfast.ErrUnavailable,
		"error: unable to write file: No space left on device":                                       holdfast.ErrUnavailable,
		"fatal: cannot open '/r/HEAD': Too many open files":                                          holdfast.ErrUnavailable,
		"remote: this repository is read-only":                                                       holdfast.ErrForbidden,
		"fatal: '/r' does not appear to be a git repository":                                         holdfast.ErrNotFound,
	} {
		if got := kindOfCommand(&commandError{program: "receive-pack", text: text, err: errors.New("exit status 1")}); !errors.Is(got, want) {
			t.Errorf("%s\n got %v\nwant %v", text, got, want)
		}
	}
}
