package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/holdfast-dev/holdfast"
)

// classifyTalk is classify for what went wrong once the session was open: whatever is
// not known to be final is worth another try, such as a garbled answer or a full disk.
func classifyTalk(ctx context.Context, err error) error {
	err = classify(ctx, err)
	var status *githttp.Err
	for _, kind := range []error{
		context.Canceled, holdfast.ErrUnauthorized, holdfast.ErrForbidden,
		holdfast.ErrNotFound, holdfast.ErrUnavailable,
	} {
		if errors.Is(err, kind) {
			return err
		}
	}
	if errors.As(err, &status) {
		return err
	}
	return fmt.Errorf("%w: %w", holdfast.ErrUnavailable, err)
}

// classify turns what a remote or its transport said into the errors that
// callers branch on. ctx is that of the session.
func classify(ctx context.Context, err error) error {
	var unexpected *plumbing.UnexpectedError
	if errors.As(err, &unexpected) { // it hides its cause
		err = unexpected.Err
	}
	if kind := kindOf(ctx, err); kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

func kindOf(ctx context.Context, err error) error {
	var (
		status  *githttp.Err
		notGit  *notGitError
		network net.Error
		hostKey *knownhosts.KeyError
		command *commandError
	)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, context.Canceled):
		return context.Canceled
	case cause != nil: // stalled, or out of time
		return holdfast.ErrUnavailable
	case errors.Is(err, transport.ErrAuthenticationRequired):
		return holdfast.ErrUnauthorized
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return holdfast.ErrForbidden
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return holdfast.ErrNotFound
	case errors.As(err, &status):
		if code := status.StatusCode(); code == http.StatusTooManyRequests || code >= 500 {
			return holdfast.ErrUnavailable
		}
		return nil
	case errors.As(err, &hostKey): // a person has to look at it
		return holdfast.ErrForbidden
	case strings.Contains(err.Error(), "ssh: unable to authenticate"):
		return holdfast.ErrUnauthorized
	case errors.As(err, &command):
		return kindOfCommand(command)
	case errors.Is(err, exec.ErrNotFound):
		return nil
	case errors.As(err, &notGit), errors.As(err, &network),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return holdfast.ErrUnavailable
	}
	return nil
}

// localFaults are what a machine says of its own disk and memory, with what would be
// taken for a server's refusal in some of it.
var localFaults = []string{ //nolint:gochecknoglobals // a constant list
	"read-only file system", "no space left on device", "input/output error", "too many open files", "disk quota exceeded",
	"cannot allocate memory",
}

// kindOfCommand classifies an error of Git's program by its text; there is nothing else
// to go by.
func kindOfCommand(err *commandError) error {
	text := strings.ToLower(err.text)
	for _, words := range localFaults {
		if strings.Contains(text, words) {
			return holdfast.ErrUnavailable
		}
	}
	for _, words := range []string{"not appear to be a git repository", "not found", "does not exist", "no such repository"} {
		if strings.Contains(text, words) {
			return holdfast.ErrNotFound
		}
	}
	for _, words := range []string{"permission denied", "access denied", "dubious ownership", "read only", "read-only", "not allowed to push"} {
		if strings.Contains(text, words) {
			return holdfast.ErrForbidden
		}
	}
	return holdfast.ErrUnavailable
}

// isDamage reports whether an error about an object that must be there means
// that the mirror is broken, rather than the machine short of something.
func isDamage(err error) bool {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno == syscall.ENOENT
	}
	return err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) &&
		!errors.Is(err, fs.ErrPermission)
}

// isMalformed reports whether an error says that a commit, tree or tag, which is as the remote
// sent it, cannot be used. Git takes some of these from whoever pushes them.
func isMalformed(err error) bool {
	return errors.Is(err, object.ErrMalformedTree) || errors.Is(err, object.ErrMalformedCommit) || errors.Is(err, object.ErrMalformedTag)
}
