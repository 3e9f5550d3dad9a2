package uplink

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

const (
	// AnswerTimeout is how long an answer may take that the server does not hold back.
	AnswerTimeout = 60 * time.Second // until the head of an answer; longer than a claim waits
	slowestLink   = 64 << 10         // bytes a second that a transfer must reach on average
	maxAnswer     = 16 << 20         // bytes of a JSON answer
)

// Client speaks the agent protocol to one server. It is safe for concurrent
// use and tries each call once; retry tries again.
type Client struct {
	base       string // without a slash at its end
	credential Credential
	http       *http.Client
}

// Credential returns what an agent shows the server now; attempts have their own
// credentials. It is safe for concurrent use.
type Credential func() (string, error)

// Token is a credential that stays the same.
func Token(token string) Credential { return func() (string, error) { return token, nil } }

// AnswerError is an answer of the server other than success, or one that was cut off. It
// is the error of the vocabulary that its status stands for.
type AnswerError struct {
	Status int
	text   string
	Ours   bool // the body was one of the protocol's, not one of a proxy in between
}

func (e *AnswerError) Error() string {
	if e.text == "" {
		return fmt.Sprintf("server answered %d", e.Status)
	}
	return fmt.Sprintf("server answered %d: %s", e.Status, e.text)
}

func (e *AnswerError) Unwrap() error {
	switch {
	case !e.Ours:
		return holdfast.ErrUnavailable
	case e.Status == http.StatusUnauthorized:
		return holdfast.ErrUnauthorized
	case e.Status == http.StatusForbidden:
		return holdfast.ErrForbidden
	case e.Status == http.StatusNotFound:
		return holdfast.ErrNotFound
	case e.Status == http.StatusConflict:
		return holdfast.ErrFenced
	case e.Status == http.StatusLocked:
		return holdfast.ErrLocked
	default:
		return holdfast.ErrUnavailable
	}
}

// Final reports whether asking again cannot help: the server itself has said
// no. Whatever a proxy in between says is transient.
func Final(err error) bool {
	var answer *AnswerError
	if errors.As(err, &answer) {
		return answer.Ours && answer.Status >= 400 && answer.Status < 500 &&
			answer.Status != http.StatusRequestTimeout &&
			answer.Status != http.StatusTooEarly &&
			answer.Status != http.StatusTooManyRequests
	}
	var local *LocalError
	return errors.As(err, &local)
}

// LocalError is trouble on this side, such as a file that cannot be read:
// asking the server again does not help.
type LocalError struct{ err error }

func (e *LocalError) Error() string { return e.err.Error() }
func (e *LocalError) Unwrap() error { return e.err }

// NewClient returns a client for unix:///path, https://host or, on a loopback
// address only, http://host.
func NewClient(server string, credential Credential, caFile string) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("parse server URL: %w", err)
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	transport := &http.Transport{
		DialContext:           dialer.DialContext,
		ResponseHeaderTimeout: AnswerTimeout,
		TLSHandshakeTimeout:   10 * time.Second,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   16,
		// HTTP/1.1: a connection that died in silence takes one call with it,
		// not all of them.
		Protocols: new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(true)
	base := strings.TrimSuffix(u.Scheme+"://"+u.Host+u.EscapedPath(), "/")
	switch {
	case u.Scheme == "unix" && u.Path != "":
		path := u.Path
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		}
		base = "http://agent"
	case u.Scheme == "https" && u.Host != "":
		transport.Proxy = http.ProxyFromEnvironment
		if transport.TLSClientConfig, err = tlsConfig(caFile); err != nil {
			return nil, err
		}
	case u.Scheme == "http" && loopback(u.Hostname()):
	default:
		return nil, fmt.Errorf("server URL %q: want unix:///path or https://host (http only to a loopback address)", u.Redacted())
	}
	return &Client{base: base, credential: credential, http: &http.Client{
		Transport: transport,
		// A redirect would carry credentials to somewhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func tlsConfig(caFile string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read certificate authorities: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read certificate authorities %s: no PEM certificate in it", caFile)
	}
	return config, nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// call is one request of the protocol.
type call struct {
	method string
	path   string // escaped
	query  url.Values
	token  string
	kind   string // of the body: its media type
	body   io.Reader
	size   int64 // of body, in bytes
	md5    string
}

// do sends c. An answer other than success is an *AnswerError; on success the
// caller closes the body, which ends the call's context too.
func (c *Client) do(ctx context.Context, r call) (*http.Response, error) {
	limit := 2*AnswerTimeout + time.Duration(r.size/slowestLink)*time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, r.body)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	if r.body != nil {
		req.ContentLength = r.size
		if r.size == 0 {
			req.Body = http.NoBody
		}
		req.Header.Set("Content-Type", r.kind)
	}
	if r.md5 != "" {
		req.Header.Set("Content-MD5", r.md5)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)

	res, err := c.http.Do(req)
	if err != nil {
		cancel()
		return nil, unreachable(r, err)
	}
	res.Body = &endingBody{ReadCloser: res.Body, end: cancel}
	if res.StatusCode/100 != 2 {
		defer res.Body.Close()
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, readAnswerError(res))
	}
	return res, nil
}

// unreachable strips the URL from err: Go's own error repeats it.
func unreachable(r call, err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return fmt.Errorf("%s %s: %w: %w", r.method, r.path, holdfast.ErrUnavailable, err)
}

// endingBody ends its call's context when it is closed.
type endingBody struct {
	io.ReadCloser
	end context.CancelFunc
}

func (b *endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

func readAnswerError(res *http.Response) *AnswerError {
	raw, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	answer := &AnswerError{Status: res.StatusCode}
	var body struct {
		Error string `json:"error"`
		ID    string // a LockInfo, of whoever holds a state
	}
	if json.Unmarshal(raw, &body) == nil && (body.Error != "" || body.ID != "") {
		answer.Ours, answer.text = true, body.Error
		if body.ID != "" {
			answer.text = string(raw)
		}
	}
	return answer
}

// post sends in as JSON and decodes the answer into out, unless out is nil or
// there is none. It returns the answer's head.
func (c *Client) post(ctx context.Context, path, token string, in, out any) (status int, header http.Header, err error) {
	data, err := json.Marshal(in)
	if err != nil {
		return 0, nil, &LocalError{fmt.Errorf("encode request: %w", err)}
	}
	res, err := c.do(ctx, call{
		method: http.MethodPost, path: path, token: token,
		kind: "application/json", body: bytes.NewReader(data), size: int64(len(data)),
	})
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	if out == nil || res.StatusCode == http.StatusNoContent {
		return res.StatusCode, res.Header, nil
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(out); err != nil {
		return 0, nil, fmt.Errorf("POST %s: %w: decode answer: %w", path, holdfast.ErrUnavailable, err)
	}
	return res.StatusCode, res.Header, nil
}

// Claim asks for a run. It returns the server's time too, zero if unknown;
// holdfast.ErrNotFound if there is nothing to do.
func (c *Client) Claim(ctx context.Context, req protocol.ClaimRequest) (protocol.Assignment, time.Time, error) {
	var assignment protocol.Assignment
	status, header, err := c.ask(ctx, "/agent/v1/claims", req, &assignment)
	if err != nil {
		return protocol.Assignment{}, time.Time{}, err
	}
	if status == http.StatusNoContent {
		return protocol.Assignment{}, time.Time{}, holdfast.ErrNotFound
	}
	return assignment, dateOf(header), nil
}

// ask is post with the agent's own credential.
func (c *Client) ask(ctx context.Context, path string, in, out any) (status int, header http.Header, err error) {
	credential, err := c.credential()
	if err != nil {
		return 0, nil, &LocalError{fmt.Errorf("POST %s: %w", path, err)}
	}
	return c.post(ctx, path, credential, in, out)
}

// Exchange shows the client's credential, which is a ticket, and returns the assignment that it
// stands for, and the server's time, as Claim does.
func (c *Client) Exchange(ctx context.Context, req protocol.TicketRequest) (protocol.Assignment, time.Time, error) {
	var assignment protocol.Assignment
	_, header, err := c.ask(ctx, "/agent/v1/tickets", req, &assignment)
	return assignment, dateOf(header), err
}

// dateOf is the server's time; zero: not known.
func dateOf(header http.Header) time.Time {
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return now
}

func attemptPath(ref holdfast.AttemptRef, what string) string {
	return "/agent/v1/runs/" + url.PathEscape(ref.Run) + "/attempts/" + strconv.Itoa(ref.Attempt) + "/" + what
}

// Present says that an agent is there, and wants no run now.
func (c *Client) Present(ctx context.Context, req protocol.ClaimRequest) error {
	_, _, err := c.ask(ctx, "/agent/v1/presence", req, nil)
	return err
}

func (c *Client) heartbeat(ctx context.Context, ref holdfast.AttemptRef, token string, beat protocol.Heartbeat) (protocol.HeartbeatReply, error) {
	var reply protocol.HeartbeatReply
	beat.Fence = ref.Fence
	_, _, err := c.post(ctx, attemptPath(ref, "heartbeat"), token, beat, &reply)
	return reply, err
}

// Result says how an attempt has ended.
func (c *Client) Result(ctx context.Context, ref holdfast.AttemptRef, token string, result protocol.Result) error {
	_, _, err := c.post(ctx, attemptPath(ref, "result"), token, result, nil)
	return err
}

// log appends data at offset and returns the offset that the server expects
// next.
func (c *Client) log(ctx context.Context, ref holdfast.AttemptRef, token string, offset int64, data []byte) (int64, error) {
	res, err := c.do(ctx, call{
		method: http.MethodPost, path: attemptPath(ref, "logs"), token: token,
		query: url.Values{"offset": {strconv.FormatInt(offset, 10)}},
		kind:  "application/octet-stream", body: bytes.NewReader(data), size: int64(len(data)),
	})
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	var answer struct {
		Next int64 `json:"next"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&answer); err != nil {
		return 0, fmt.Errorf("append log: %w: decode answer: %w", holdfast.ErrUnavailable, err)
	}
	return answer.Next, nil
}

// maskLog has parts of the log overwritten.
func (c *Client) maskLog(ctx context.Context, ref holdfast.AttemptRef, token string, mask protocol.LogMask) error {
	_, _, err := c.post(ctx, attemptPath(ref, "logs/mask"), token, mask, nil)
	return err
}

func (c *Client) putArtefact(ctx context.Context, ref holdfast.AttemptRef, token, name string, data io.Reader, size int64) error {
	res, err := c.do(ctx, call{
		method: http.MethodPut, path: attemptPath(ref, "artefacts/"+url.PathEscape(name)), token: token,
		kind: "application/octet-stream", body: data, size: size,
	})
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// download copies what path answers into an unnamed file in dir and returns
// it from its start.
func (c *Client) download(ctx context.Context, path, token, dir string) (io.ReadCloser, error) {
	res, err := c.do(ctx, call{method: http.MethodGet, path: path, token: token})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	file, err := os.CreateTemp(dir, "download-")
	if err != nil {
		return nil, &LocalError{err}
	}
	_ = os.Remove(file.Name())
	target := &localWriter{w: file}
	if _, err := io.Copy(target, res.Body); err != nil {
		file.Close()
		if target.err != nil {
			return nil, &LocalError{target.err}
		}
		return nil, fmt.Errorf("GET %s: %w", path, &AnswerError{Status: res.StatusCode, Ours: true, text: "the answer is incomplete: " + err.Error()})
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		file.Close()
		return nil, &LocalError{err}
	}
	return file, nil
}

// localWriter remembers why writing failed, so that a full disk is not taken
// for a broken connection.
type localWriter struct {
	w   io.Writer
	err error
}

func (l *localWriter) Write(p []byte) (int, error) {
	n, err := l.w.Write(p)
	if err != nil {
		l.err = err
	}
	return n, err
}

// Retry calls op until it succeeds, its error is final or ctx is done; notify,
// unless nil, hears of each error that is followed by another try. Delays grow
// from a tenth of a second to five seconds: short enough that nobody waits for
// the agent after the server has come back.
func Retry[T any](ctx context.Context, notify func(error), op func() (T, error)) (T, error) {
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval = 100 * time.Millisecond
	delays.MaxInterval = 5 * time.Second
	return backoff.Retry(ctx, func() (T, error) {
		value, err := op()
		if err != nil && Final(err) {
			return value, backoff.Permanent(err)
		}
		return value, err
	}, backoff.WithBackOff(delays), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
		if notify != nil {
			notify(err)
		}
	}))
}
