package objects

import (
	"errors"
	"fmt"
	"io"

	"gocloud.dev/blob"

	"github.com/holdfast-dev/holdfast"
)

// maxResumed is how often reading one object continues after its connection broke.
const maxResumed = 5

// reader reads an object to its end over as many connections as it takes. It may: an
// object never changes.
type reader struct {
	from    *blob.Reader
	reopen  func(at int64) (*blob.Reader, error)
	at      int64 // how much was read
	size    int64
	resumed int
	broken  error // why nothing more comes; nil: it may
}

func (r *reader) Read(p []byte) (int, error) {
	for {
		if r.broken != nil {
			return 0, r.broken
		}
		n, err := r.from.Read(p)
		r.at += int64(n)
		switch {
		case errors.Is(err, io.EOF) && r.at >= r.size:
			return n, io.EOF
		case err != nil:
			r.resume(err)
		}
		if n > 0 || len(p) == 0 {
			return n, nil
		}
	}
}

// resume opens the object again where it broke off.
func (r *reader) resume(cause error) {
	if r.resumed++; r.resumed > maxResumed {
		r.broken = fmt.Errorf("read object: connection broke %d times: %w: %w", r.resumed, holdfast.ErrUnavailable, plain(cause))
		return
	}
	_ = r.from.Close()
	next, err := r.reopen(r.at)
	if err != nil {
		r.broken = err
		return
	}
	r.from = next
}

func (r *reader) Close() error { return r.from.Close() }
