package github

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

const (
	// concurrency is how many calls one credential has under way, of which one may
	// be a write. GitHub's secondary limits punish bursts.
	concurrency = 8
	// maxBody bounds an answer that is read into memory, in bytes.
	maxBody = 32 << 20
)

// transport does for every call what GitHub asks of its clients: it
// authenticates, asks conditionally, keeps to the rate limits and remembers
// them. It is the only place that sees tokens and limits.
type transport struct {
	base    *url.URL
	next    http.RoundTripper
	tokens  tokens // nil: next authenticates
	limits  *limits
	cache   *cache
	slots   chan struct{}
	pace    *pace // of writes
	frozen  *archives
	observe func(Call)
	now     func() time.Time
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
	}
	if req.URL.Host != t.base.Host || req.URL.Scheme != t.base.Scheme {
		// A token is for the host that it was given for.
		return nil, fmt.Errorf("not going to %s://%s", req.URL.Scheme, req.URL.Host)
	}
	if isWrite(req, t.base) {
		if err := t.limits.check(true); err != nil {
			return nil, err // nothing to queue for
		}
		if err := t.frozen.check(req.URL.Path); err != nil {
			return nil, err
		}
		done, err := t.pace.begin(req.Context())
		if err != nil {
			return nil, err
		}
		defer done()
	}
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	var known *cached
	if req.Method == http.MethodGet {
		known = t.cache.get(cacheKey(req))
	}
	resp, answer, err := t.authenticated(req, body, known)
	if err != nil {
		return nil, err
	}
	return t.accept(req, resp, answer, known)
}

// authenticated sends the request; with another token once more if GitHub does
// not know the first one: it may have ended on the way.
func (t *transport) authenticated(req *http.Request, body []byte, known *cached) (*http.Response, []byte, error) {
	if t.tokens == nil {
		return t.send(req, body, "", known)
	}
	token, err := t.tokens.token(req.Context())
	if err != nil {
		return nil, nil, err
	}
	resp, answer, err := t.send(req, body, token, known)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, answer, err
	}
	t.tokens.refused(token)
	another, err := t.tokens.token(req.Context())
	if err != nil {
		return nil, nil, err
	}
	if another == token {
		return resp, answer, nil
	}
	return t.send(req, body, another, known)
}

// send makes one exchange and reads the answer.
func (t *transport) send(req *http.Request, body []byte, token string, known *cached) (*http.Response, []byte, error) {
	if err := t.limits.check(isWrite(req, t.base)); err != nil {
		return nil, nil, err
	}
	try := req.Clone(req.Context())
	if req.Body != nil {
		try.Body = io.NopCloser(bytes.NewReader(body))
	}
	if token != "" {
		try.Header.Set("Authorization", "Bearer "+token)
	}
	if known != nil {
		try.Header.Set("If-None-Match", known.etag)
	}
	start := t.now()
	resp, err := t.next.RoundTrip(try)
	if err != nil {
		t.observe(Call{Method: req.Method, Duration: t.now().Sub(start)})
		return nil, nil, err
	}
	var answer []byte
	if resp.ContentLength <= maxBody { // -1: it does not say
		answer, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	}
	_ = resp.Body.Close()
	t.observe(Call{Method: req.Method, Status: resp.StatusCode, Duration: t.now().Sub(start)})
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("read the answer: %w", err)
	case len(answer) > maxBody, resp.ContentLength > maxBody:
		return nil, nil, fmt.Errorf("the answer is larger than %d MB: %w", maxBody>>20, holdfast.ErrUnavailable)
	}
	return resp, answer, nil
}

// accept turns an answer into one that go-github understands, or an error.
func (t *transport) accept(req *http.Request, resp *http.Response, answer []byte, known *cached) (*http.Response, error) {
	write := isWrite(req, t.base)
	if err := t.limits.note(resp, answer, write); err != nil {
		if write {
			t.pace.refused(t.limits.wait())
		}
		return nil, err
	}
	if write {
		if err := t.frozen.note(req.URL.Path, resp.StatusCode, answer); err != nil {
			return nil, err
		}
	}
	header := resp.Header.Clone()
	// go-github would refuse calls on its own, by its own clock.
	for _, key := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After"} {
		header.Del(key)
	}
	status := resp.StatusCode
	switch {
	case status == http.StatusNotModified && known != nil:
		body, err := known.body()
		if err != nil {
			return nil, fmt.Errorf("unpack a kept answer: %w", err)
		}
		fresh := header["Link"]
		status, header, answer = http.StatusOK, known.header.Clone(), body
		if len(fresh) > 0 {
			header["Link"] = fresh
		}
	case status >= 300 && status < 400:
	case len(answer) > 0 && !isJSON(header):
		return nil, fmt.Errorf("GitHub answered %d with %s instead of JSON: %w", status, mediaType(header), holdfast.ErrUnavailable)
	case status < 300 && !isWhole(req.Method, status, answer):
		return nil, fmt.Errorf("GitHub answered %d without what was asked for: %w", status, holdfast.ErrUnavailable)
	case status == http.StatusOK && req.Method == http.MethodGet && header.Get("ETag") != "" && !isFullLastPage(req, header, answer):
		t.cache.put(&cached{
			key: cacheKey(req), etag: header.Get("ETag"), packed: pack(answer),
			header: http.Header{"Content-Type": header["Content-Type"], "Link": header["Link"]},
		})
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: resp.Proto, ProtoMajor: resp.ProtoMajor, ProtoMinor: resp.ProtoMinor,
		Header: header, Body: io.NopCloser(bytes.NewReader(answer)), ContentLength: int64(len(answer)), Request: req,
	}, nil
}

// isWhole reports whether a success has what GitHub answers with: a list, or an
// object with a field by which it is known. A proxy that says "200" and nothing
// else would be taken for an empty list: of reviews, that there is none that asks
// for changes.
func isWhole(method string, status int, body []byte) bool {
	switch status {
	case http.StatusNoContent:
		return method == http.MethodDelete
	case http.StatusAccepted: // go-github makes an error of it
		return true
	case http.StatusOK, http.StatusCreated:
	default:
		return false
	}
	switch body = bytes.TrimSpace(body); {
	case bytes.HasPrefix(body, []byte("[")):
		return true
	case !bytes.HasPrefix(body, []byte("{")):
		return false
	}
	var object struct {
		ID         json.RawMessage `json:"id"`
		SHA        json.RawMessage `json:"sha"`
		Ref        json.RawMessage `json:"ref"`
		Token      json.RawMessage `json:"token"`
		Permission json.RawMessage `json:"permission"`
		Total      json.RawMessage `json:"total_count"`
		Data       json.RawMessage `json:"data"` // of a query
	}
	if json.Unmarshal(body, &object) != nil {
		return true // who decodes it says what is wrong with it
	}
	return len(object.ID)+len(object.SHA)+len(object.Ref)+len(object.Token)+len(object.Permission)+len(object.Total)+len(object.Data) > 0
}

// defaultPage is how many entries a page has that does not say how many.
const defaultPage = 30

// isFullLastPage reports whether an answer is a page with no room left and none
// after it. An ETag vouches for the entries only: the page after it may begin to
// exist, and this one's answer is "not modified" all the same, so it must not be
// asked for conditionally.
func isFullLastPage(req *http.Request, header http.Header, body []byte) bool {
	if strings.Contains(header.Get("Link"), `rel="next"`) {
		return false
	}
	size, err := strconv.Atoi(req.URL.Query().Get("per_page"))
	if err != nil || size < 1 {
		size = defaultPage
	}
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil {
		return len(list) >= size
	}
	// Some lists are a field of an object.
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return false
	}
	for _, field := range fields {
		if bytes.HasPrefix(field, []byte("[")) && json.Unmarshal(field, &list) == nil && len(list) >= size {
			return true
		}
	}
	return false
}

func mediaType(h http.Header) string {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return "an unknown type"
	}
	return kind
}

func isJSON(h http.Header) bool {
	kind := mediaType(h)
	return kind == "application/json" || strings.HasSuffix(kind, "+json")
}

// timedOut reports whether err is a timeout, of whatever layer.
func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &timeout) && timeout.Timeout())
}
