package gitsource

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestLocalFaultsAreNotRefusals: what Git's program says of this machine's disk is not
// the word of a server.
func TestLocalFaultsAreNotRefusals(t *testing.T) {
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

// TestAMissingPackIsNotAMissingPath: whoever asks what is in a tree must not take a file that
// its mirror has lost for one that the tree does not have.
func TestAMissingPackIsNotAMissingPath(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{syscall.ENOENT, syscall.EMFILE} {
		err := new(mirror).broken(&fs.PathError{Op: "open", Path: "pack", Err: cause})
		if !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v becomes %v", cause, err)
		}
	}
}
