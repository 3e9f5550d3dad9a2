package gke

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// answerError is an answer other than success.
type answerError struct {
	status  int
	message string
}

func (e *answerError) Error() string { return fmt.Sprintf("%d: %s", e.status, e.message) }

// request is a call: with a form or a body it is a POST.
type request struct {
	address string
	bearer  string
	form    url.Values
	body    any
}

const (
	tries    = 3
	maxBytes = 4 << 20 // of an answer
)

// call sends a request and decodes the answer. What fails for the moment is tried again: all
// of these calls may be made twice.
func (c *Cluster) call(ctx context.Context, r request, into any) error {
	for try := 1; ; try++ {
		err := c.once(ctx, r, into)
		var answer *answerError
		transient := err != nil && (!errors.As(err, &answer) || answer.status == http.StatusTooManyRequests || answer.status >= http.StatusInternalServerError)
		if !transient || try == tries || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Duration(try) * 200 * time.Millisecond):
		}
	}
}

func (c *Cluster) once(ctx context.Context, r request, into any) error {
	method, kind, body := http.MethodGet, "", []byte(nil)
	switch {
	case r.form != nil:
		method, kind, body = http.MethodPost, "application/x-www-form-urlencoded", []byte(r.form.Encode())
	case r.body != nil:
		data, err := json.Marshal(r.body)
		if err != nil {
			return err
		}
		method, kind, body = http.MethodPost, "application/json", data
	}
	req, err := http.NewRequestWithContext(ctx, method, r.address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if r.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+r.bearer)
	}
	req.Header.Set("User-Agent", "holdfast")
	resp, err := c.opts.Client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBytes))
	switch {
	case err != nil:
		return err
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return &answerError{resp.StatusCode, messageOf(data)}
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("the answer is not one of this API, but %q", clip(strings.Join(strings.Fields(string(data)), " ")))
	}
	return nil
}

// messageOf is what an answer says went wrong: of APIs, or of a token service.
func messageOf(data []byte) string {
	var ofAPI struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(data, &ofAPI) == nil && ofAPI.Error.Message != "" {
		return clip(ofAPI.Error.Message)
	}
	var ofTokens struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(data, &ofTokens) == nil && ofTokens.Error != "" {
		return clip(strings.TrimSuffix(ofTokens.Error+": "+ofTokens.Description, ": "))
	}
	return cmp.Or(clip(strings.Join(strings.Fields(string(data)), " ")), "no message")
}

func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), 1000)], "") }

// explain says what an error means, by the status of the answer.
func explain(what string, err error, byStatus map[int]holdfast.Reason) error {
	err = fmt.Errorf("%s: %w", what, err)
	if errors.Is(err, context.Canceled) {
		return err
	}
	refused := &protocol.LaunchError{Reason: holdfast.CauseRunnerUnreachable, Err: err}
	var answer *answerError
	if errors.As(err, &answer) {
		refused.Reason = cmp.Or(byStatus[answer.status], refused.Reason)
	}
	return refused
}
