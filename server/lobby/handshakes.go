package lobby

import (
	"crypto"
	"crypto/tls"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"
)

// signPatience is how long a handshake waits for its signature: as long as whoever
// delivers waits for an answer.
const signPatience = 10 * time.Second

var errBusy = errors.New("too many handshakes at once")

// Handshakes returns config with signatures that are made one on each processor, the
// newest handshake first. They are what a handshake costs: done all at once, each
// waits for those of all strangers that have connected before it.
func Handshakes(config *tls.Config) *tls.Config {
	return handshakes(config, newTurns(runtime.GOMAXPROCS(0), maxStrangers))
}

func handshakes(config *tls.Config, turns *turns) *tls.Config {
	config = config.Clone()
	inTurn := func(c tls.Certificate) tls.Certificate {
		if key, ok := c.PrivateKey.(crypto.Signer); ok {
			c.PrivateKey = signer{key, turns}
		}
		return c
	}
	certificates := make([]tls.Certificate, len(config.Certificates))
	for i, c := range config.Certificates {
		certificates[i] = inTurn(c)
	}
	config.Certificates = certificates
	if get := config.GetCertificate; get != nil {
		config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			c, err := get(hello)
			if c == nil || err != nil {
				return c, err
			}
			own := inTurn(*c)
			return &own, nil
		}
	}
	return config
}

// signer signs when it is its turn.
type signer struct {
	crypto.Signer
	turns *turns
}

func (s signer) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if !s.turns.take(signPatience) {
		return nil, errBusy
	}
	defer s.turns.give()
	return s.Signer.Sign(rand, digest, opts)
}

// turns are handed out to so many at once, and to the newest of those that wait: the
// older one has waited, the less likely it is that its peer still does. The number of
// those that wait is bounded, too: each holds the memory of a handshake, also when its
// connection was closed to make room. It is safe for concurrent use.
type turns struct {
	most int // that wait

	mu      sync.Mutex
	free    int
	waiting []*turn // the newest is last
}

// turn is one that is waited for. What is sent says whether it is given, or refused.
type turn struct{ given chan bool }

func newTurns(n, most int) *turns { return &turns{free: n, most: most} }

// take waits for a turn, at most that long, and reports whether there was one: give
// must be called after it.
func (t *turns) take(patience time.Duration) bool {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return true
	}
	own := &turn{given: make(chan bool, 1)}
	t.waiting = append(t.waiting, own)
	if len(t.waiting) > t.most {
		t.waiting[0].given <- false
		t.waiting = append(t.waiting[:0], t.waiting[1:]...)
	}
	t.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case given := <-own.given:
		return given
	case <-timer.C:
		return !t.leave(own) && <-own.given
	}
}

// leave reports whether own waited still; otherwise it has its answer.
func (t *turns) leave(own *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range t.waiting {
		if other == own {
			t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
			return true
		}
	}
	return false
}

func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := len(t.waiting) - 1
	if last < 0 {
		t.free++
		return
	}
	next := t.waiting[last]
	t.waiting[last] = nil
	t.waiting = t.waiting[:last]
	next.given <- true
}
