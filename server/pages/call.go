package pages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// caller asks the API in the name of whoever asked for a page.
type caller struct {
	api http.Handler
	of  *http.Request
}

// problemError is an answer of the API that is not a success.
type problemError struct{ v1.Problem }

func (e *problemError) Error() string {
	if e.Detail != "" {
		return e.Detail
	}
	return e.Title
}

// is reports whether the API answered with a status.
func is(err error, status int) bool {
	var problem *problemError
	return errors.As(err, &problem) && problem.Status == status
}

// query is a query from pairs of names and values; empty values are left out.
func query(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Add(pairs[i], pairs[i+1])
		}
	}
	return q
}

// get reads what the API has at a path below /api/v1.
func (c *caller) get(path string, q url.Values, into any) error {
	w := &answer{header: http.Header{}}
	if err := c.ask(http.MethodGet, path, q, nil, nil, w); err != nil {
		return err
	}
	return w.read(path, into)
}

// post makes a request that changes something, with the token that a form has for it.
func (c *caller) post(path, form string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("ask for %s: %w", path, err)
	}
	w := &answer{header: http.Header{}}
	header := http.Header{"Content-Type": {"application/json"}, "X-Csrf-Token": {form}}
	if err := c.ask(http.MethodPost, path, nil, header, data, w); err != nil {
		return err
	}
	return w.read(path, into)
}

// read reads the answer of the API, or why there is none.
func (w *answer) read(path string, into any) error {
	if w.status >= http.StatusMultipleChoices || w.status < http.StatusOK {
		problem := &problemError{v1.ProblemOf(w.status, "", "")}
		_ = json.Unmarshal(w.body.Bytes(), &problem.Problem) // an answer that is not a problem keeps its status
		problem.Status = w.status
		return problem
	}
	if err := json.Unmarshal(w.body.Bytes(), into); err != nil {
		return fmt.Errorf("read answer of %s: %w", path, err)
	}
	return nil
}

// do reads from the API with the credentials of the page's.
func (c *caller) do(path string, q url.Values, w http.ResponseWriter) error {
	return c.ask(http.MethodGet, path, q, nil, nil, w)
}

// ask makes a request to the API with the credentials of the page's.
func (c *caller) ask(method, path string, q url.Values, header http.Header, body []byte, w http.ResponseWriter) (err error) {
	defer func() {
		if cause := recover(); cause == http.ErrAbortHandler { //nolint:errorlint // panics have this very value
			err = fmt.Errorf("ask for %s: the answer was cut off", path)
		} else if cause != nil {
			panic(cause)
		}
	}()
	target := "/api/v1" + path
	if len(q) > 0 {
		target += "?" + q.Encode()
	}
	req, err := http.NewRequestWithContext(c.of.Context(), method, target, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask for %s: %w", path, err)
	}
	maps.Copy(req.Header, header)
	for _, name := range []string{"Authorization", "Cookie", "User-Agent", "Sec-Fetch-Site", "Origin", "X-Forwarded-For"} {
		if values := c.of.Header.Values(name); len(values) > 0 {
			req.Header[name] = values
		}
	}
	req.Host, req.RemoteAddr, req.TLS = c.of.Host, c.of.RemoteAddr, c.of.TLS
	c.api.ServeHTTP(w, req)
	return nil
}

// list reads one part of a list.
func list[T any](c *caller, path string, q url.Values) (v1.List[T], error) {
	var part v1.List[T]
	err := c.get(path, q, &part)
	return part, err
}

// answer reads an answer of the API.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *answer) Header() http.Header { return w.header }

func (w *answer) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *answer) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(data)
}

// Flush is for handlers that stream.
func (w *answer) Flush() { w.WriteHeader(http.StatusOK) }
