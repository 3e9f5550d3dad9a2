package client

import (
	"bytes"
	"cmp"
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
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
)

const (
	// callTime bounds a call; commands wait for their outcome at the server.
	callTime = 2 * time.Minute
	// maxAnswer bounds what one answer may hold.
	maxAnswer = 256 << 20
)

// Client speaks a server's API. It is safe for concurrent use. A call takes at most two
// minutes; only Events, Log with follow, and the reading of what is opened, take longer.
type Client struct{ connection }

// connection sends requests to a server, and makes errors of what goes wrong.
type connection struct {
	base             *url.URL
	token, userAgent string
	http             *http.Client
}

// New returns a client of the server whose API is at base. The token proves
// who calls; userAgent tells the server what does.
func New(base *url.URL, token, userAgent string) *Client {
	return &Client{connection{base: base, token: token, userAgent: userAgent, http: &http.Client{
		// The API does not redirect: whoever does is not the API, and gets no token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}}
}

// Error is a server's refusal, in the server's words.
type Error struct {
	Status  int        // of HTTP
	Problem v1.Problem // what the server said; the zero value if it is older, or not Holdfast
	text    string
	hint    string
}

func (e *Error) Error() string { return e.text }

// Hint says what to do, if the server says so.
func (e *Error) Hint() string { return e.hint }

// Refused reports whether the server does not do now what it was asked for, such as because a
// run is in progress: neither is the request wrong, nor is its caller not allowed to make it.
func (e *Error) Refused() bool {
	return e.Status == http.StatusConflict || e.Status == http.StatusLocked
}

// Is makes errors.Is find the root package's errors behind the status.
func (e *Error) Is(target error) bool {
	switch target {
	case holdfast.ErrNotFound:
		return e.Status == http.StatusNotFound
	case holdfast.ErrLocked:
		return e.Status == http.StatusLocked
	case holdfast.ErrUnavailable:
		return e.Status >= http.StatusInternalServerError
	default:
		return false
	}
}

// call sends in, if it is not nil, and decodes the answer into out.
func (c *connection) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
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
func (c *connection) send(ctx context.Context, method, path string, query url.Values, in any) (*http.Response, error) {
	return c.sendWith(ctx, method, path, query, in, http.Header{})
}

// sendWith is send with headers besides our own.
func (c *connection) sendWith(ctx context.Context, method, path string, query url.Values, in any, header http.Header) (*http.Response, error) {
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
	req.Header = header
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("User-Agent", c.userAgent)
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

// UnreachableError is a server that did not answer. It is worth a retry.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string { return e.Err.Error() }
func (e *UnreachableError) Unwrap() error { return e.Err }

// Is makes errors.Is find ErrUnavailable.
func (e *UnreachableError) Is(target error) bool { return target == holdfast.ErrUnavailable }

func (c *connection) unreachable(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Canceled
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the URL is said once, by us
	}
	err = &UnreachableError{fmt.Errorf("reach server %s: %w", c.base.Redacted(), err)}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return hint.New(err, "is the server running, and is this the address of its API?")
	}
	return err
}

func (c *connection) refusal(res *http.Response) error {
	var answer struct {
		v1.Problem
		Error string `json:"error"` // of servers that are older than problems
	}
	data, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if json.Unmarshal(data, &answer) != nil || answer.Detail+answer.Error == "" {
		return &Error{
			Status: res.StatusCode,
			text:   fmt.Sprintf("server %s answered %s, which is not a Holdfast response", c.base.Redacted(), res.Status),
			hint:   "is this the address of the server's API?",
		}
	}
	return &Error{
		Status: res.StatusCode, Problem: answer.Problem, text: cmp.Or(answer.Detail, answer.Error), hint: cmp.Or(answer.Hint, commandHint(answer.Command)),
	}
}

// Cluster returns a cluster's record.
func (c *Client) Cluster(ctx context.Context, name string) (record v1.Cluster, err error) {
	err = c.call(ctx, http.MethodGet, "clusters/"+url.PathEscape(name), nil, nil, &record)
	return record, err
}

// Outputs returns the outputs of a cluster's last apply.
func (c *Client) Outputs(ctx context.Context, cluster string) ([]v1.Output, error) {
	return whole[v1.Output](ctx, c, clusterPath(cluster, "outputs"), nil)
}

// Runs returns runs, the newest first. The query is that of GET /runs: cluster, repo and
// number, kind, status, limit.
func (c *Client) Runs(ctx context.Context, query url.Values) ([]v1.Run, error) {
	return items[v1.Run](ctx, c, "runs", query)
}

// Run returns a run by its ID.
func (c *Client) Run(ctx context.Context, id string) (run v1.Run, err error) {
	err = c.call(ctx, http.MethodGet, "runs/"+url.PathEscape(id), nil, nil, &run)
	return run, err
}

// Plan returns a run's plan, nil if it has none.
func (c *Client) Plan(ctx context.Context, id string) (*v1.Plan, error) {
	var plan v1.Plan
	err := c.call(ctx, http.MethodGet, "runs/"+url.PathEscape(id)+"/plan", nil, nil, &plan)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, nil
	}
	return &plan, err
}

// Attempts returns the attempts of a run.
func (c *Client) Attempts(ctx context.Context, id string) ([]v1.Attempt, error) {
	return whole[v1.Attempt](ctx, c, "runs/"+url.PathEscape(id)+"/attempts", nil)
}

// PullRequests returns pull requests. The query is that of GET /pullrequests.
func (c *Client) PullRequests(ctx context.Context, query url.Values) ([]v1.PullRequest, error) {
	return items[v1.PullRequest](ctx, c, "pullrequests", query)
}

// PullRequest returns a pull request with the clusters it touches.
func (c *Client) PullRequest(ctx context.Context, ref v1.PullRequestRef) (answer v1.PullRequestDetail, err error) {
	err = c.call(ctx, http.MethodGet, "pullrequests/get", pullRequestQuery(ref), nil, &answer)
	return answer, err
}

func pullRequestQuery(ref v1.PullRequestRef) url.Values {
	return url.Values{"repo": {ref.Repo}, "number": {strconv.Itoa(ref.Number)}}
}

// Caller returns who the token belongs to.
func (c *Client) Caller(ctx context.Context) (caller v1.Caller, err error) {
	err = c.call(ctx, http.MethodGet, "whoami", nil, nil, &caller)
	return caller, err
}

// Version returns which server this is.
func (c *Client) Version(ctx context.Context) (version v1.Version, err error) {
	err = c.call(ctx, http.MethodGet, "version", nil, nil, &version)
	return version, err
}

// Reasons returns what the words mean that say why something waits, was refused or failed.
func (c *Client) Reasons(ctx context.Context) ([]v1.ReasonInfo, error) {
	return whole[v1.ReasonInfo](ctx, c, "reasons", nil)
}

// Audit returns what was done to an object, the newest first.
func (c *Client) Audit(ctx context.Context, object string, limit int) ([]v1.AuditEntry, error) {
	query := url.Values{"object": {object}, "limit": {strconv.Itoa(limit)}}
	return items[v1.AuditEntry](ctx, c, "audit", query)
}

// Command has a command executed and returns it with its outcome.
func (c *Client) Command(ctx context.Context, req v1.CommandRequest) (command v1.Command, err error) {
	err = c.call(ctx, http.MethodPost, "commands", nil, req, &command)
	return command, err
}

// Reconcile asks for another look at what req names.
func (c *Client) Reconcile(ctx context.Context, req v1.ReconcileRequest) error {
	return c.call(ctx, http.MethodPost, "reconcile", nil, req, &struct{}{})
}

// Lock returns who holds a cluster.
func (c *Client) Lock(ctx context.Context, cluster string) (lock v1.Lock, err error) {
	err = c.call(ctx, http.MethodGet, "locks/"+url.PathEscape(cluster), nil, nil, &lock)
	return lock, err
}

// Unlock ends a dead run that holds a cluster; with force whatever holds it.
func (c *Client) Unlock(ctx context.Context, cluster string, force bool) (lock v1.Lock, err error) {
	query := url.Values{"force": {strconv.FormatBool(force)}}
	err = c.call(ctx, http.MethodDelete, "locks/"+url.PathEscape(cluster), query, nil, &lock)
	return lock, err
}

// Log opens an attempt's log at offset, in bytes, for the caller to close; attempt 0 is the last one. With follow
// it lasts until the attempt ends.
func (c *Client) Log(ctx context.Context, id string, attempt int, offset int64, follow bool) (io.ReadCloser, error) {
	query := url.Values{
		"attempt": {strconv.Itoa(attempt)}, "offset": {strconv.FormatInt(offset, 10)}, "follow": {strconv.FormatBool(follow)},
	}
	res, err := c.send(ctx, http.MethodGet, "runs/"+url.PathEscape(strings.TrimSpace(id))+"/log", query, nil)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// commandHint says that a command helps; nothing if there is none.
func commandHint(command string) string {
	if command == "" {
		return ""
	}
	return "try `" + command + "`"
}
