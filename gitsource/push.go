package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/holdfast-dev/holdfast"
)

// Push makes a branch of the remote that is at from (empty: that is not there) be at to
// (empty: be deleted), which the mirror has and which is based on what the remote has.
// The remote compares and sets: no other branch is touched, and nothing of this one is
// lost. A branch that is at to already is not an error: the answer to a former try got
// lost.
//
// Errors: ErrConflict if the branch is elsewhere; ErrForbidden if the remote does
// not let us, ErrUnauthorized, ErrNotFound, ErrUnavailable. The mirror learns of
// it by the next Fetch.
func (s *Source) Push(ctx context.Context, repo, branch string, from, to holdfast.Revision) error {
	m, err := s.mirror(repo)
	if err == nil {
		err = m.push(ctx, branch, from, to)
	}
	if err != nil {
		return fmt.Errorf("push branch %q of repository %q: %w", branch, repo, err)
	}
	return nil
}

func (m *mirror) push(ctx context.Context, branch string, from, to holdfast.Revision) error {
	update := &packp.Command{Name: plumbing.NewBranchReferenceName(branch)}
	if err := update.Name.Validate(); err != nil || branch == "" {
		return errors.New("it is not a valid branch name")
	}
	for _, end := range []struct {
		rev  holdfast.Revision
		hash *plumbing.Hash
	}{{from, &update.Old}, {to, &update.New}} {
		if end.rev == "" {
			continue
		}
		var err error
		if *end.hash, err = parseHash(string(end.rev)); err != nil {
			return err
		}
	}
	if update.Old == update.New {
		return nil
	}
	var pack []byte
	if update.Action() != packp.Delete {
		var err error
		if pack, err = m.open().pack(ctx, update.New); err != nil {
			return err
		}
	}
	ctx, dog, cancel := watch(ctx, m.remote.timeout, m.remote.idle)
	defer cancel()
	sess, err := m.remote.openPush(ctx)
	if err != nil {
		return classify(ctx, err)
	}
	defer func() { _ = sess.close() }()
	advertised, err := sess.advertise(ctx)
	if err != nil {
		return classifyTalk(ctx, err)
	}
	switch at := advertised.References[update.Name.String()]; at {
	case update.New:
		return nil
	case update.Old:
	default:
		return fmt.Errorf("it is at %s, not at %s: %w", nameOf(at), nameOf(update.Old), holdfast.ErrConflict)
	}
	req := packp.NewReferenceUpdateRequestFromCapabilities(advertised.Capabilities)
	if !req.Capabilities.Supports(capability.ReportStatus) {
		return errors.New("the remote does not report what it does")
	}
	req.Commands = []*packp.Command{update}
	if pack != nil {
		req.Packfile = io.NopCloser(dog.reader(bytes.NewReader(pack)))
	} else if err := req.Capabilities.Set(capability.DeleteRefs); err != nil {
		return err
	}
	report, err := sess.push(ctx, req)
	if report == nil {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return classifyTalk(ctx, err)
	}
	return judge(report, update.Name)
}

func nameOf(hash plumbing.Hash) string {
	if hash.IsZero() {
		return "nothing"
	}
	return hash.String()
}

// judge derives the result of a push from the remote's text; there is nothing else to
// go by.
func judge(report *packp.ReportStatus, name plumbing.ReferenceName) error {
	status := "it said nothing of the branch"
	for _, of := range report.CommandStatuses {
		if of.ReferenceName == name {
			status = of.Status
		}
	}
	if unpacked := report.UnpackStatus; unpacked != "ok" {
		kind := holdfast.ErrUnavailable
		if strings.Contains(unpacked, "unable to create temporary object directory") { // its folder is another user's
			kind = holdfast.ErrForbidden
		}
		return fmt.Errorf("%w: the remote did not take the commit: %s", kind, clean(unpacked))
	}
	if status == "ok" {
		return nil
	}
	err := fmt.Errorf("the remote refused: %s", clean(status))
	text := strings.ToLower(status)
	for _, kind := range []struct {
		err   error
		words []string
	}{
		{holdfast.ErrForbidden, []string{"hook declined", "protected", "prohibited", "denied", "not allowed", "deny", "non-fast-forward", "checked out", "hidden ref"}},
		{holdfast.ErrConflict, []string{"failed to update ref", "cannot lock", "already exists", "fetch first", "stale", "incorrect old value", "reference does not exist", "failed to lock"}},
	} {
		for _, word := range kind.words {
			if strings.Contains(text, word) {
				return fmt.Errorf("%w: %w", kind.err, err)
			}
		}
	}
	return fmt.Errorf("%w: %w", holdfast.ErrUnavailable, err)
}

// clean is what a remote said, fit for an error.
func clean(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	return text[:min(len(text), maxErrorBody)]
}

// pack returns a pack of what a commit adds to its first parent.
func (o *objects) pack(ctx context.Context, commit plumbing.Hash) ([]byte, error) {
	hashes, err := o.difference(ctx, commit)
	if err != nil {
		return nil, err
	}
	// A store of its own: nothing is held while the remote takes its time.
	loose := memory.NewStorage()
	err = o.use(func(store *filesystem.Storage) error {
		for _, hash := range hashes {
			obj, err := store.EncodedObject(plumbing.AnyObject, hash)
			if err != nil {
				return o.mirror.broken(err)
			}
			if _, err := loose.SetEncodedObject(obj); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := packfile.NewEncoder(&b, loose, false).Encode(hashes, 0); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return b.Bytes(), nil
}
