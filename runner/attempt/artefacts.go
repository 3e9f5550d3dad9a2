// What an attempt keeps for others, and reads of what others have kept.

package attempt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
)

// put keeps an artefact, even if the attempt has been stopped.
func (t *attempt) put(ctx context.Context, name string, data io.Reader) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), artefactTimeout)
	defer cancel()
	if err := t.session.PutArtefact(ctx, name, data); err != nil {
		return &failure.Error{Cause: holdfast.CauseArtefactUnavailable, Transient: !errors.Is(err, failure.ErrTooLarge), Err: fmt.Errorf("keep artefact %s: %w", name, err)}
	}
	return nil
}

// artefactTimeout bounds how long keeping an artefact may take.
const artefactTimeout = 5 * time.Minute

// putLeft keeps a file that an engine left in its workspace.
func (t *attempt) putLeft(ctx context.Context, name, path string, limit int64) error {
	f, err := t.openLeft(path, limit)
	if err != nil {
		return err
	}
	defer f.Close()
	return t.put(ctx, name, f)
}

func (t *attempt) putJSON(ctx context.Context, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return t.put(ctx, name, bytes.NewReader(data))
}

// readStored decodes a JSON artefact of another run.
func (t *attempt) readStored(ctx context.Context, run, name string, into any) error {
	r, err := t.session.StoredArtefact(ctx, run, name)
	if err != nil {
		return err
	}
	defer r.Close()
	return json.NewDecoder(io.LimitReader(r, t.exec.opts.Limits.Plan)).Decode(into)
}
