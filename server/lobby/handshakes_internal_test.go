package lobby

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// gatedKey signs when its test says so.
type gatedKey struct {
	crypto.Signer
	asked, let chan struct{}
}

func (k gatedKey) Sign(r io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	k.asked <- struct{}{}
	<-k.let
	return k.Signer.Sign(r, digest, opts)
}

// A handshake that comes after a hundred others is done next, whatever way the
// certificate is given.
func TestNewestHandshakeIsNext(t *testing.T) {
	t.Parallel()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plan := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, plan, plan, own.Public(), own)
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]func(c tls.Certificate) *tls.Config{
		"given": func(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} },
		"asked for": func(c tls.Certificate) *tls.Config {
			return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &c, nil }}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			const strangers = 100
			key := gatedKey{own, make(chan struct{}, strangers+1), make(chan struct{})}
			served := handshakes(config(tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}), newTurns(1, strangers))
			served.MinVersion = tls.VersionTLS12
			done := make(chan int, strangers+1)
			connect := func(i int) {
				client, server := net.Pipe()
				go func() {
					_ = tls.Server(server, served).HandshakeContext(context.Background())
				}()
				go func() {
					if tls.Client(client, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(context.Background()) == nil {
						done <- i
					}
				}()
				synctest.Wait() // it signs, or waits for its turn
			}
			for i := range strangers + 1 {
				connect(i)
			}
			if n := len(key.asked); n != 1 {
				t.Errorf("%s: %d signatures are made at once, want 1", name, n)
			}
			for range 2 {
				key.let <- struct{}{}
				synctest.Wait()
			}
			if first, second := <-done, <-done; first != 0 || second != strangers {
				t.Errorf("%s: handshakes %d and %d were done first, want 0, which had begun, and %d", name, first, second, strangers)
			}
			for range strangers - 1 {
				key.let <- struct{}{}
			}
			synctest.Wait()
			if n := len(done); n != strangers-1 {
				t.Errorf("%s: %d of the others were done, want %d", name, n, strangers-1)
			}
		})
	}
}

// Whoever has waited for too long goes, and takes nobody's turn along.
func TestHandshakesThatWaitTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(2, 10)
		for range 2 {
			if !turns.take(time.Second) {
				t.Fatal("there was no turn")
			}
		}
		began := time.Now()
		if turns.take(time.Second) || time.Since(began) != time.Second {
			t.Errorf("a third turn, after %s", time.Since(began))
		}
		turns.give()
		turns.give()
		for i := range 2 {
			if !turns.take(0) {
				t.Errorf("turn %d was lost", i)
			}
		}
		if turns.take(0) {
			t.Error("there are more turns than there were")
		}
	})
}

// Beyond a bound the one that waits for longest is refused, at once.
func TestHandshakesThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1, 3)
		if !turns.take(time.Second) {
			t.Fatal("there was no turn")
		}
		var got [5]string
		began := time.Now()
		for i := range got {
			go func() {
				if turns.take(time.Minute) {
					got[i] = "given"
				} else {
					got[i] = "refused"
				}
			}()
			synctest.Wait()
		}
		if want := [5]string{"refused", "refused"}; got != want || time.Since(began) != 0 {
			t.Errorf("while one turn is taken: %q after %s, want %q at once", got, time.Since(began), want)
		}
		for range 3 {
			turns.give()
			synctest.Wait()
		}
		if want := [5]string{"refused", "refused", "given", "given", "given"}; got != want {
			t.Errorf("afterwards: %q, want %q", got, want)
		}
	})
}
