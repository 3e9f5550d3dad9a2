package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/holdfast-dev/holdfast/cost/price"
)

// Source is one publisher of prices.
type Source interface {
	// Name is that of the source, as the origin of its prices.
	Name() string
	// Has reports whether the source can be asked for a key.
	Has(price.Key) bool
	// Fetch returns the prices of keys, all of them such as Has allows. What it has no
	// price for is not in the table. It may bring more than what was asked for.
	Fetch(ctx context.Context, keys []price.Key) (*price.Table, error)
}

// Options are how sources are asked.
type Options struct {
	// Client makes the requests; nil: one of its own, with the proxies of the environment.
	Client *http.Client
	// Now is the time, which becomes the date of the prices.
	Now func() time.Time
	// FirstWait is how long is waited before a request is made again, the first time.
	// 0: a second.
	FirstWait time.Duration
}

// Bounds of answers: far above what is sent, far below what hurts.
const (
	maxPage  = 64 << 20 // bytes
	maxPages = 500
	maxTries = 4
	patience = time.Minute // for an answer to begin, and for a page
)

// fetcher makes requests.
type fetcher struct {
	Options
	name string
}

func newFetcher(o Options, name string) fetcher {
	if o.Client == nil {
		o.Client = &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: patience, TLSHandshakeTimeout: 15 * time.Second,
			MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
		}}
	}
	if o.FirstWait == 0 {
		o.FirstWait = time.Second
	}
	return fetcher{Options: o, name: name}
}

// Name implements Source.
func (f fetcher) Name() string { return f.name }

// origin is that of a price that was read now.
func (f fetcher) origin() price.Origin {
	return price.Origin{Source: f.name, AsOf: f.Now().UTC().Format(time.DateOnly)}
}

// page requests a document and decodes it, again if the source is busy or unavailable. What
// is cut off is an error.
func page[T any](ctx context.Context, f fetcher, r request) (document T, err error) {
	ctx, stop := context.WithTimeout(ctx, maxTries*patience)
	defer stop()
	err = f.again(ctx, r, func(body io.Reader) error {
		var fresh T
		dec := json.NewDecoder(io.LimitReader(body, maxPage))
		dec.UseNumber()
		if err := dec.Decode(&fresh); err != nil {
			return fmt.Errorf("decode answer: %w", brief(err))
		}
		document = fresh
		return nil
	})
	return document, err
}

// request is what is asked.
type request struct {
	method, url string
	header      map[string]string
	body        string
}

// again makes a request until it is answered, and reads the answer.
func (f fetcher) again(ctx context.Context, r request, read func(io.Reader) error) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval = f.FirstWait
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		return struct{}{}, f.once(ctx, r, read)
	}, backoff.WithBackOff(wait), backoff.WithMaxTries(maxTries))
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return nil
}

func (f fetcher) once(ctx context.Context, r request, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, strings.NewReader(r.body))
	if err != nil {
		return backoff.Permanent(errors.New("its address is not a URL"))
	}
	req.Header.Set("User-Agent", "holdfast")
	req.Header.Set("Accept", "application/json")
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	resp, err := f.Client.Do(req)
	if err != nil {
		return reachError(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK:
		return read(resp.Body)
	case resp.StatusCode == http.StatusTooManyRequests:
		const longest = 60
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds >= 0 && seconds <= longest {
			return backoff.RetryAfter(seconds)
		}
		return errors.New("it has too many requests")
	case resp.StatusCode >= 500:
		return fmt.Errorf("it answers %d", resp.StatusCode)
	default:
		return backoff.Permanent(refused(resp))
	}
}

// reachError says why a server cannot be reached, without the address: that may have a key
// in it.
func reachError(err error) error {
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	return fmt.Errorf("it cannot be reached: %w", err)
}

// refused says why a server refuses a request, in its own words if these are short.
func refused(resp *http.Response) error {
	var said struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Code    string          `json:"error_code"`
	}
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	text := ""
	if json.Unmarshal(data, &said) == nil {
		var message string
		var inner struct {
			Message string `json:"message"`
		}
		switch {
		case json.Unmarshal(said.Error, &message) == nil:
			text = message
		case json.Unmarshal(said.Error, &inner) == nil:
			text = inner.Message
		default:
			text = said.Message
		}
		if said.Code != "" {
			text = said.Code + ": " + text
		}
	}
	const longest = 200
	if text == "" || len(text) > longest {
		return fmt.Errorf("it answers %d", resp.StatusCode)
	}
	return fmt.Errorf("it answers %d: %s", resp.StatusCode, text)
}

// brief says what is wrong with JSON without quoting it.
func brief(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("it is cut off")
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("unexpected %s at byte %d", kind.Value, kind.Offset)
	}
	return err
}

// sameHost reports whether a link leads to where it was found: no answer sends us, and our
// key, elsewhere.
func sameHost(link, base string) bool {
	a, errA := url.Parse(link)
	b, errB := url.Parse(base)
	return errA == nil && errB == nil && a.Host == b.Host && a.Scheme == b.Scheme
}

// regionsOf are the keys by region.
func regionsOf(keys []price.Key) map[string][]price.Key {
	all := make(map[string][]price.Key)
	for _, k := range keys {
		all[k.Region] = append(all[k.Region], k)
	}
	return all
}
