package webhook

import (
	"errors"
	"io"
	"sync"
)

const (
	// maxBody is GitHub's own limit for a payload, in bytes.
	maxBody = 25 << 20
	// maxBuffered bounds the bodies that are held at once: whoever sends them is
	// not known before they are here as a whole.
	maxBuffered = 32 << 20
	// firstBuffer is what a body begins with. It doubles as bytes arrive.
	firstBuffer = 4 << 10
)

var (
	errNoRoom  = errors.New("too many deliveries at once")
	errTooLong = errors.New("the body is larger than 25 MB")
)

// bodies are those that are being read or looked at. What they hold together is
// bounded: if there is no room for one, that which is being read for longest has to
// go. A delivery of a code host comes within milliseconds.
// It is safe for concurrent use.
type bodies struct {
	limit int

	mu    sync.Mutex
	held  map[*body]bool
	begun int
	used  int // bytes
}

func newBodies() *bodies { return &bodies{limit: maxBuffered, held: make(map[*body]bool)} }

// body is one of them.
type body struct {
	all    *bodies
	stop   func() // ends its reading
	number int    // of all that have begun
	size   int    // what is reserved for it
	whole  bool   // it was read to its end
	gone   bool   // it had to make room
}

// begin takes a body in. end must follow when nobody looks at it any longer.
func (b *bodies) begin(stop func()) *body {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun++
	one := &body{all: b, stop: stop, number: b.begun}
	b.held[one] = true
	return one
}

func (o *body) end() {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	o.all.drop(o)
}

// drop is called with mu held.
func (b *bodies) drop(o *body) {
	if b.held[o] {
		delete(b.held, o)
		b.used -= o.size
	}
}

// reserve makes room for n more bytes of o, and reports whether there is any.
func (o *body) reserve(n int) bool {
	b := o.all
	b.mu.Lock()
	defer b.mu.Unlock()
	for !o.gone && b.used+n > b.limit {
		first := b.oldest(o)
		first.gone = true
		b.drop(first)
		first.stop()
	}
	if o.gone {
		return false
	}
	o.size += n
	b.used += n
	return true
}

// oldest returns the body that is being read for longest, asker if there is no
// other. It is called with mu held.
func (b *bodies) oldest(asker *body) *body {
	oldest := asker
	for o := range b.held {
		if !o.whole && o.size > 0 && o.number < oldest.number {
			oldest = o
		}
	}
	return oldest
}

// read reads r to its end. length is what was announced, less than 0 if nothing
// was.
func (o *body) read(r io.Reader, length int64) ([]byte, error) {
	var data []byte
	for {
		if len(data) == cap(data) {
			larger := min(max(2*cap(data), firstBuffer), maxBody+1)
			if length >= 0 && length < int64(larger) {
				larger = int(length) + 1 // one more, to see the end
			}
			if larger <= cap(data) {
				return nil, errTooLong
			}
			if !o.reserve(larger - cap(data)) {
				return nil, errNoRoom
			}
			data = append(make([]byte, 0, larger), data...)
		}
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			if !o.finish() {
				return nil, errNoRoom
			}
			return data, nil
		case err != nil && !o.finish():
			return nil, errNoRoom
		case err != nil:
			return nil, err
		}
	}
}

// finish notes that nothing more is read, so that it is no longer ended. It
// reports whether it was not before.
func (o *body) finish() bool {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	o.whole = true
	return !o.gone
}
