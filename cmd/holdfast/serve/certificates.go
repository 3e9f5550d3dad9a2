package serve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
)

// certificate is that of a listener; nil if it has none.
func certificate(t config.TLS) (*tls.Config, error) {
	if t.CertFile == "" {
		return nil, nil
	}
	pair := &keyPair{files: t}
	if _, err := pair.get(); err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.get() },
	}, nil
}

// keyPair is a certificate with its key in files that are renewed in place. It is read
// again when they have changed: to read it costs about as much as a handshake, and
// anybody can ask for one. It is safe for concurrent use.
type keyPair struct {
	files config.TLS

	mu        sync.Mutex
	cert, key os.FileInfo // of what was read last
	pair      *tls.Certificate
}

// get returns the certificate that the files have, or the last one that they had while
// they are being renewed.
func (k *keyPair) get() (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	cert, certErr := os.Stat(k.files.CertFile)
	key, keyErr := os.Stat(k.files.KeyFile)
	if k.pair != nil && (certErr != nil || keyErr != nil || isSame(cert, k.cert) && isSame(key, k.key)) {
		return k.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(k.files.CertFile, k.files.KeyFile)
	switch {
	case err == nil:
		k.pair, k.cert, k.key = &pair, cert, key
	case k.pair == nil:
		return nil, err
	}
	return k.pair, nil
}

// isSame reports whether a file is the one that it was and was not written since.
func isSame(now, before os.FileInfo) bool {
	return os.SameFile(now, before) && now.ModTime().Equal(before.ModTime()) && now.Size() == before.Size()
}

// expiresSoon is how long before its end a certificate is reported.
const expiresSoon = 7 * 24 * time.Hour

// certificateFaults returns what is wrong with the listeners' certificates now, and
// what will be within a week. Files that are not here are left out: a configuration
// can be checked elsewhere than where it is used.
func certificateFaults(s config.Server, now time.Time) (wrong, soon []error) {
	for _, l := range []struct {
		key string
		tls config.TLS
	}{
		{"server.public.tls", s.Public.TLS}, {"server.api.tls", s.API.TLS}, {"server.agents.tls", s.Agents.TLS},
	} {
		if l.tls.CertFile == "" {
			continue
		}
		pair, err := tls.LoadX509KeyPair(l.tls.CertFile, l.tls.KeyFile)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		case err != nil:
			wrong = append(wrong, fmt.Errorf("%s: %w", l.key, err))
		case now.After(pair.Leaf.NotAfter):
			wrong = append(wrong, fmt.Errorf("%s: certificate %s has expired at %s: clients that verify it cannot connect",
				l.key, l.tls.CertFile, pair.Leaf.NotAfter.UTC().Format(time.RFC3339)))
		case now.Before(pair.Leaf.NotBefore):
			wrong = append(wrong, fmt.Errorf("%s: certificate %s is not valid before %s: clients that verify it cannot connect",
				l.key, l.tls.CertFile, pair.Leaf.NotBefore.UTC().Format(time.RFC3339)))
		case now.Add(expiresSoon).After(pair.Leaf.NotAfter):
			soon = append(soon, fmt.Errorf("%s: certificate %s expires at %s", l.key, l.tls.CertFile, pair.Leaf.NotAfter.UTC().Format(time.RFC3339)))
		}
	}
	return wrong, soon
}

// reportCertificates writes into the log what certificateFaults finds.
func (s *services) reportCertificates() {
	wrong, soon := certificateFaults(s.cfg.Server, s.clock.Now())
	for _, err := range wrong {
		s.logger.Error("certificate is not valid", "err", err)
	}
	for _, err := range soon {
		s.logger.Warn("certificate has to be renewed", "err", err)
	}
}
