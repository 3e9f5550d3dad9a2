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

// Authorize checks an attempt's token and returns its run: ErrUnauthorized if
// it is not that attempt's, ErrFenced if the attempt is over.
func (d *Dispatcher) Authorize(ctx context.Context, id string, attempt int, token string) (holdfast.Run, error) {
	run, err := d.opts.Store.Run(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) {
		return run, holdfast.ErrUnauthorized
	} else if err != nil {
		return run, fmt.Errorf("read run %s: %w", id, err)
	}
	if !hmac.Equal([]byte(token), []byte(d.token(id, attempt))) {
		return holdfast.Run{}, holdfast.ErrUnauthorized
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
