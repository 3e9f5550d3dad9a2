package dispatch

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Authorize checks an attempt's token and returns what its run allows: ErrUnauthorized if
// it is not that attempt's, ErrFenced if the attempt is over. Each request of an agent asks
// it, and it decodes no record: what it answers is in columns that are written with it.
func (d *Dispatcher) Authorize(ctx context.Context, ref holdfast.AttemptRef, token string) (holdfast.RunBrief, error) {
	run, err := d.opts.Store.Brief(ctx, ref.Run)
	if errors.Is(err, holdfast.ErrNotFound) {
		return holdfast.RunBrief{}, holdfast.ErrUnauthorized
	} else if err != nil {
		return holdfast.RunBrief{}, fmt.Errorf("read run %s: %w", ref.Run, err)
	}
	if !hmac.Equal([]byte(token), []byte(d.token(ref))) {
		return holdfast.RunBrief{}, holdfast.ErrUnauthorized
	}
	if ref != run.AttemptRef || run.Status != holdfast.RunRunning {
		return run, holdfast.ErrFenced
	}
	return run, nil
}

// token is the credential of one attempt. Its fence is part of it: records that were put
// back from a backup count attempts again, and the holder of an earlier one must not be
// taken for the attempt that has its number now.
func (d *Dispatcher) token(ref holdfast.AttemptRef) string {
	mac := hmac.New(sha256.New, d.opts.TokenKey)
	fmt.Fprintf(mac, "%s/%d/%d", ref.Run, ref.Attempt, ref.Fence)
	return protocol.FormatRunToken(ref, hex.EncodeToString(mac.Sum(nil)))
}
