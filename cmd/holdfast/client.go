package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/server"
)

const (
	// callTime bounds a call; commands wait for their outcome at the server.
	callTime = 2 * time.Minute
	// maxAnswer bounds what one answer may hold.
	maxAnswer = 256 << 20
)

// client speaks a server's API.
type client struct {
	base  *url.URL
	token string
	http  *http.Client
}

func newClient(base *url.URL, token string) *client {
	return &client{base: base, token: token, http: &http.Client{
		// The API does not redirect: whoever does is not the API, and gets no token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// apiError is a server's refusal.
type apiError struct {
	status int
	text   string
	hint   string
}

func (e *apiError) Error() string { return e.text }

// Is makes errors.Is find the root package's errors behind the status.
func (e *apiError) Is(target error) bool {
	switch target {
	case holdfast.ErrNotFound:
		return e.status == http.StatusNotFound
	case holdfast.ErrLocked:
		return e.status == http.StatusLocked
	case holdfast.ErrUnavailable:
		return e.status >= http.StatusInternalServerError
	default:
		return false
	}
}

// call sends in, if it is not nil, and decodes the answer into out.
func (c *client) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	res, err := c.send(ctx, method, path, query, in)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(out); err != nil {
		return fmt.Errorf("read answer of %s: %w", c.base.Host, err)
	}
	return nil
}

// send returns a successful answer; its body is the caller's to close.
func (c *client) send(ctx context.Context, method, path string, query url.Values, in any) (*http.Response, error) {
	address := c.base.JoinPath("/api/v1", path)
	address.RawQuery = query.Encode()
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("write request: %w", err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, address.String(), body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("User-Agent", "holdfast/"+buildVersion())
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, c.refusal(res)
}

// unreachableError is a server that did not answer. It is worth a retry.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string        { return e.err.Error() }
func (e *unreachableError) Unwrap() error        { return e.err }
func (e *unreachableError) Is(target error) bool { return target == holdfast.ErrUnavailable }

func (c *client) unreachable(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Canceled
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the URL is said once, by us
	}
	err = &unreachableError{fmt.Errorf("reach server %s: %w", c.base.Redacted(), err)}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return &hintError{err, "is the server running, and is this the address of its API?"}
	}
	return err
}

func (c *client) refusal(res *http.Response) error {
	var answer server.ErrorAnswer
	data, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if json.Unmarshal(data, &answer) != nil || answer.Error == "" {
		return &apiError{
			status: res.StatusCode,
			text:   fmt.Sprintf("server %s answered %s, and not in Holdfast's way", c.base.Redacted(), res.Status),
			hint:   "is this the address of the server's API?",
		}
	}
	return &apiError{status: res.StatusCode, text: answer.Error, hint: answer.Hint}
}

func (c *client) cluster(ctx context.Context, name string) (record holdfast.ClusterRecord, err error) {
	err = c.call(ctx, http.MethodGet, "clusters/"+url.PathEscape(name), nil, nil, &record)
	return record, err
}

func (c *client) outputs(ctx context.Context, cluster string) ([]holdfast.Output, error) {
	return items[holdfast.Output](ctx, c, clusterPath(cluster, "outputs"), nil)
}

func (c *client) runs(ctx context.Context, query url.Values) ([]holdfast.Run, error) {
	return items[holdfast.Run](ctx, c, "runs", query)
}

func (c *client) run(ctx context.Context, id string) (run holdfast.Run, err error) {
	err = c.call(ctx, http.MethodGet, "runs/"+url.PathEscape(id), nil, nil, &run)
	return run, err
}

// plan returns nil if the run has none.
func (c *client) plan(ctx context.Context, id string) (*holdfast.Plan, error) {
	var plan holdfast.Plan
	err := c.call(ctx, http.MethodGet, "runs/"+url.PathEscape(id)+"/plan", nil, nil, &plan)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, nil
	}
	return &plan, err
}

func (c *client) attempts(ctx context.Context, id string) ([]holdfast.Attempt, error) {
	return items[holdfast.Attempt](ctx, c, "runs/"+url.PathEscape(id)+"/attempts", nil)
}

func (c *client) pullRequests(ctx context.Context, query url.Values) ([]holdfast.PullRequestRecord, error) {
	return items[holdfast.PullRequestRecord](ctx, c, "pullrequests", query)
}

func (c *client) pullRequest(ctx context.Context, ref holdfast.PullRequestRef) (answer server.PullRequestAnswer, err error) {
	err = c.call(ctx, http.MethodGet, "pullrequests/get", pullRequestQuery(ref), nil, &answer)
	return answer, err
}

func pullRequestQuery(ref holdfast.PullRequestRef) url.Values {
	return url.Values{"repo": {ref.Repo}, "number": {strconv.Itoa(ref.Number)}}
}

func (c *client) audit(ctx context.Context, object string, limit int) ([]holdfast.AuditEntry, error) {
	query := url.Values{"object": {object}, "limit": {strconv.Itoa(limit)}}
	return items[holdfast.AuditEntry](ctx, c, "audit", query)
}

func (c *client) command(ctx context.Context, req server.CommandRequest) (command holdfast.Command, err error) {
	err = c.call(ctx, http.MethodPost, "commands", nil, req, &command)
	return command, err
}

func (c *client) reconcile(ctx context.Context, req server.ReconcileRequest) error {
	return c.call(ctx, http.MethodPost, "reconcile", nil, req, &struct{}{})
}

func (c *client) lock(ctx context.Context, cluster string) (lock server.LockAnswer, err error) {
	err = c.call(ctx, http.MethodGet, "locks/"+url.PathEscape(cluster), nil, nil, &lock)
	return lock, err
}

func (c *client) unlock(ctx context.Context, cluster string, force bool) (lock server.LockAnswer, err error) {
	query := url.Values{"force": {strconv.FormatBool(force)}}
	err = c.call(ctx, http.MethodDelete, "locks/"+url.PathEscape(cluster), query, nil, &lock)
	return lock, err
}

// log opens an attempt's log at offset; attempt 0 is the last one. With follow
// it lasts until the attempt ends.
func (c *client) log(ctx context.Context, id string, attempt int, offset int64, follow bool) (io.ReadCloser, error) {
	query := url.Values{
		"attempt": {strconv.Itoa(attempt)}, "offset": {strconv.FormatInt(offset, 10)}, "follow": {strconv.FormatBool(follow)},
	}
	res, err := c.send(ctx, http.MethodGet, "runs/"+url.PathEscape(strings.TrimSpace(id))+"/log", query, nil)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}
