package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

func (s *services) openLock(ctx context.Context, opts *reconciler.Options) error {
	if s.cfg.Lock.Type == "memory" {
		opts.Replica.Locker = lock.NewMemory()
		return nil
	}
	place, err := redisPlace(s.cfg.Lock.Redis)
	if err != nil {
		return err
	}
	trusted := s.cfg.Isolation == string(sandbox.ModeNone)
	redis, err := lock.NewRedis(lock.Options{
		Server: place, Prefix: s.cfg.Lock.Redis.Prefix, MayBeOpen: trusted, Logger: s.logger,
	})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, redis.Close)
	if trusted {
		if err := redis.Guarded(ctx); errors.Is(err, lock.ErrOpen) {
			s.logger.Warn("isolation is none, and Redis is open to what engines execute", "err", err)
		}
	}
	s.redis = &redisWatch{redis: redis, cfg: s.cfg.Lock.Redis, logger: s.logger}
	// One that does not answer yet is used when it does. Nothing is started until then.
	if err := s.redis.look(ctx); errors.Is(err, lock.ErrOpen) {
		return hint.New(
			fmt.Errorf("lock.redis: %w: what a pull request executes could take and end locks", err),
			s.redis.advice(err),
		)
	}
	opts.Replica.Locker, opts.Replica.Waker = redis, redis
	return nil
}

// redisPlace reads where Redis is, with the secrets and files that are named.
func redisPlace(cfg config.Redis) (lock.Server, error) {
	place := lock.Server{
		URL: cfg.URL, Cluster: cfg.Cluster.Addresses, User: cfg.User, Database: cfg.Database,
		Sentinel: lock.Sentinel{Master: cfg.Sentinel.Master, Addresses: cfg.Sentinel.Addresses, User: cfg.Sentinel.User},
	}
	for _, secret := range []struct {
		key  string
		from config.Secret
		to   *string
	}{
		{"lock.redis.password", cfg.Password, &place.Password},
		{"lock.redis.sentinel.password", cfg.Sentinel.Password, &place.Sentinel.Password},
	} {
		if secret.from.IsZero() {
			continue
		}
		value, err := secret.from.Value()
		if err != nil {
			return place, fmt.Errorf("%s: %w", secret.key, err)
		}
		*secret.to = value
	}
	var err error
	place.TLS, err = redisTLS(cfg.TLS)
	return place, err
}

// redisTLS returns nil where nothing is configured: a rediss:// URL needs nothing.
func redisTLS(cfg config.RedisTLS) (*tls.Config, error) {
	if cfg == (config.RedisTLS{}) {
		return nil, nil
	}
	conf := &tls.Config{ServerName: cfg.ServerName, MinVersion: tls.VersionTLS12}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("lock.redis.tls.caFile: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("lock.redis.tls.caFile: %s has no certificate in PEM", cfg.CAFile)
		}
	}
	if cfg.CertFile == "" {
		return conf, nil
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("lock.redis.tls: %w", err)
		}
		return &pair, nil
	}
	// Read for each connection: certificates are renewed.
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	_, err := load()
	return conf, err
}
