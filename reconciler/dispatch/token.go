package dispatch

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// Authorize checks an attempt's token and returns what its run allows: ErrUnauthorized if
// it is not that attempt's, ErrFenced if the attempt is over. Each request of an agent asks
// it, and it decodes no record: what it answers is in columns that are written with it.
func (d *Dispatcher) Authorize(ctx context.Context, id string, attempt int, token string) (holdfast.RunBrief, error) {
	run, err := d.opts.Store.Brief(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) {
		return holdfast.RunBrief{}, holdfast.ErrUnauthorized
	} else if err != nil {
		return holdfast.RunBrief{}, fmt.Errorf("read run %s: %w", id, err)
	}
	if !hmac.Equal([]byte(token), []byte(d.token(id, attempt))) {
		return holdfast.RunBrief{}, holdfast.ErrUnauthorized
	}
	if attempt != run.Attempt || run.Status != holdfast.RunRunning {
		return run, holdfast.ErrFenced
	}
	return run, nil
}

// token is the credential of one attempt.
func (d *Dispatcher) token(run string, attempt int) string {
	mac := hmac.New(sha256.New, d.opts.TokenKey)
	fmt.Fprintf(mac, "%s/%d", run, attempt)
	return holdfast.FormatRunToken(run, attempt, hex.EncodeToString(mac.Sum(nil)))
}
