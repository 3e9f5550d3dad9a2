package call

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// API is the API, asked in the name of whoever asked for a page.
type API struct {
	handler http.Handler
	of      *http.Request // for the page
}

// As asks what answers for the API in the name of who has made a request.
func As(of *http.Request, handler http.Handler) *API { return &API{handler: handler, of: of} }

// ProblemError is an answer of the API that is not a success.
type ProblemError struct{ v1.Problem }

// Refusal is what the API would say if it refused something with these words.
func Refusal(status int, detail, hint string) *ProblemError {
	return &ProblemError{v1.ProblemOf(status, detail, hint)}
}

// Error is what is wrong.
func (e *ProblemError) Error() string {
	if e.Detail != "" {
		return e.Detail
	}
	return e.Title
}

// Is reports whether the API answered with a status.
func Is(err error, status int) bool {
	var problem *ProblemError
	return errors.As(err, &problem) && problem.Status == status
}

// Query is a query from pairs of names and values; empty values are left out.
func Query(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Add(pairs[i], pairs[i+1])
		}
	}
	return q
}

// Get reads what the API has at a path below /api/v1.
func (c *API) Get(path string, q url.Values, into any) error {
	w := &answer{header: http.Header{}}
	if err := c.ask(http.MethodGet, path, q, nil, nil, w); err != nil {
		return err
	}
	return w.read(path, into)
}

// Post makes a request that changes something, with the token that a form has for it.
func (c *API) Post(path, form string, body, into any) error {
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
		problem := &ProblemError{v1.ProblemOf(w.status, "", "")}
		_ = json.Unmarshal(w.body.Bytes(), &problem.Problem) // an answer that is not a problem keeps its status
		problem.Status = w.status
		return problem
	}
	if err := json.Unmarshal(w.body.Bytes(), into); err != nil {
		return fmt.Errorf("read answer of %s: %w", path, err)
	}
	return nil
}

// Stream has the API answer to w, with what it has at a path.
func (c *API) Stream(path string, q url.Values, w http.ResponseWriter) error {
	return c.ask(http.MethodGet, path, q, nil, nil, w)
}

// Pour passes on what the API has at a path as it comes, if the answer is a success.
func (c *API) Pour(path string, q url.Values, to io.Writer) error {
	w := &poured{answer: answer{header: http.Header{}}, to: to}
	if err := c.Stream(path, q, w); err != nil {
		return err
	}
	if w.status != 0 && w.status != http.StatusOK {
		return Refusal(w.status, "", "")
	}
	return nil
}

// ask makes a request to the API with the credentials of the page's.
func (c *API) ask(method, path string, q url.Values, header http.Header, body []byte, w http.ResponseWriter) (err error) {
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
	c.handler.ServeHTTP(w, req)
	return nil
}

// List reads one part of a list.
func List[T any](c *API, path string, q url.Values) (v1.List[T], error) {
	var part v1.List[T]
	err := c.Get(path, q, &part)
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

// poured is an answer whose body is passed on as it comes.
type poured struct {
	answer
	to io.Writer
}

func (w *poured) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.status != http.StatusOK {
		return len(data), nil
	}
	return w.to.Write(data)
}
