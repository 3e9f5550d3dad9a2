package serve

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/internal/testenv/redisserver"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// watched opens the locks of a configuration as serve does.
func watched(t *testing.T, cfg config.Redis) (w *redisWatch, log *bytes.Buffer) {
	t.Helper()
	log = new(bytes.Buffer)
	s := &services{logger: slog.New(slog.NewTextHandler(log, nil)), cfg: &config.Config{
		Isolation: "auto", Lock: config.Lock{Type: "redis", Redis: cfg},
	}}
	t.Cleanup(s.close)
	if err := s.openLock(t.Context(), &reconciler.Options{}); err != nil {
		t.Fatal(err)
	}
	return s.redis, log
}

// passwordFile is a secret with that value.
func passwordFile(t *testing.T, password string) config.Secret {
	t.Helper()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Secret{File: file}
}

// untilLook looks until there is a problem with these words, or none if they are empty.
func untilLook(t *testing.T, w *redisWatch, words string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		_ = w.look(t.Context())
		if got := w.problem(); (got == "") == (words == "") && strings.Contains(got, words) {
			return
		}
	}
	t.Fatalf("the problem is %q, want %q", w.problem(), words)
}

// /readyz says when Redis goes and is silent when it is back; the log has each once.
func TestRedisGoesAndComes(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	w, log := watched(t, config.Redis{URL: server.URL(), Password: passwordFile(t, server.Password())})
	if got := w.problem(); got != "" {
		t.Fatalf("the problem is %q", got)
	}
	server.Stop()
	untilLook(t, w, "Redis is out of reach")
	untilLook(t, w, "Redis is out of reach")
	s := &services{redis: w}
	if got := s.redis.problem(); strings.Contains(got, "127.0.0.1") {
		t.Errorf("everybody may read %q", got)
	}
	server.Restart()
	untilLook(t, w, "")
	text := log.String()
	if strings.Count(text, "Redis cannot be used") != 1 || strings.Count(text, "Redis can be used again") != 1 ||
		!strings.Contains(text, server.Addr()) || !strings.Contains(text, "look whether Redis runs") || strings.Contains(text, server.Password()) {
		t.Errorf("the log is %s", text)
	}
	if (*redisWatch)(nil).problem() != "" {
		t.Error("locks in memory have a problem")
	}
}

// A user without rights, and a wrong password, are found at the start, and what is
// advised helps.
func TestRedisAdviceHelps(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	server.Do("ACL SETUSER careful on >right-password -@all")
	place := config.Redis{URL: server.URL(), User: "careful", Password: passwordFile(t, "right-password")}
	w, log := watched(t, place)
	if !strings.Contains(w.problem(), "lacks rights") {
		t.Fatalf("the problem is %q", w.problem())
	}
	_, command, _ := strings.Cut(log.String(), "give the user the rights: ")
	command, _, _ = strings.Cut(command, `"`)
	server.Do(command)
	untilLook(t, w, "")

	place.Password = passwordFile(t, "wrong-password")
	w, log = watched(t, place)
	if !strings.Contains(w.problem(), "refuse the server's user or password") {
		t.Errorf("the problem is %q", w.problem())
	}
	if text := log.String(); !strings.Contains(text, "lock.redis.password") || strings.Contains(text, "wrong-password") {
		t.Errorf("the log is %s", text)
	}
}

// Sentinels that obey anybody are refused as a Redis is, and so is a master behind
// sentinels that do not.
func TestOpenSentinelsAreRefused(t *testing.T) {
	t.Parallel()
	group := redisserver.StartGroup(t)
	cfg := config.Redis{
		Password: passwordFile(t, group.Master.Password()),
		Sentinel: config.RedisSentinel{
			Master: redisserver.MasterName, Addresses: redisserver.Addrs(group.Sentinels...),
			Password: passwordFile(t, group.Sentinels[0].Password()),
		},
	}
	w, _ := watched(t, cfg)
	if got := w.problem(); got != "" {
		t.Fatalf("the problem is %q", got)
	}
	open := func(password string, servers ...*redisserver.Server) error {
		for _, s := range servers {
			s.Do("ACL SETUSER default " + password)
		}
		s := &services{logger: slog.New(slog.DiscardHandler), cfg: &config.Config{
			Isolation: "auto", Lock: config.Lock{Type: "redis", Redis: cfg},
		}}
		defer s.close()
		return s.openLock(t.Context(), &reconciler.Options{})
	}
	if err := open("nopass", group.Sentinels...); !errors.Is(err, lock.ErrOpen) {
		t.Errorf("with open sentinels: %v, want ErrOpen", err)
	}
	for _, s := range group.Sentinels {
		s.Do("ACL SETUSER default resetpass >" + s.Password())
	}
	if err := open("nopass", group.Master); !errors.Is(err, lock.ErrOpen) {
		t.Errorf("with an open master: %v, want ErrOpen", err)
	}
}

func TestRedisAdvice(t *testing.T) {
	t.Parallel()
	single, sentinel := config.Redis{URL: "redis://x"}, config.Redis{Sentinel: config.RedisSentinel{Master: "m", Addresses: []string{"x:1"}}}
	for name, tt := range map[string]struct {
		cfg  config.Redis
		err  error
		want string
	}{
		"password":            {single, holdfast.ErrUnauthorized, "the user in lock.redis.url"},
		"a sentinel's":        {sentinel, holdfast.ErrUnauthorized, "sentinels have their own"},
		"rights":              {single, holdfast.ErrForbidden, "ACL SETUSER default"},
		"a cluster's node":    {single, lock.ErrClusterNode, "lock.redis.cluster"},
		"not a cluster":       {single, lock.ErrNoCluster, "lock.redis.url"},
		"an unknown master":   {sentinel, lock.ErrUnknownMaster, "SENTINEL MASTERS"},
		"a replica":           {single, lock.ErrReplica, "lock.redis.sentinel"},
		"a failover":          {sentinel, lock.ErrReplica, "failover"},
		"a sentinel as Redis": {single, lock.ErrUnknownCommand, "lock.redis.sentinel.addresses"},
		"Redis as a sentinel": {sentinel, lock.ErrUnknownCommand, "not of Redis"},
		"an authority":        {single, x509.UnknownAuthorityError{}, "lock.redis.tls.caFile"},
		"a name":              {single, x509.HostnameError{Certificate: &x509.Certificate{}}, "lock.redis.tls.serverName"},
		"no certificate":      {single, tls.AlertError(116), "lock.redis.tls.certFile"},
		"anything else":       {single, holdfast.ErrUnavailable, "look whether Redis runs"},
	} {
		place, err := redisPlace(tt.cfg)
		if err != nil {
			t.Fatal(err)
		}
		redis, err := lock.NewRedis(lock.Options{Server: place})
		if err != nil {
			t.Fatal(err)
		}
		defer redis.Close()
		w := &redisWatch{redis: redis, cfg: tt.cfg}
		if got := w.advice(fmt.Errorf("redis at x:1: %w: %w", holdfast.ErrUnavailable, tt.err)); !strings.Contains(got, tt.want) {
			t.Errorf("%s: the advice is %q, want %q", name, got, tt.want)
		}
	}
}

func TestRedisFiles(t *testing.T) {
	t.Parallel()
	certs := redisserver.NewCertificates(t)
	for name, tt := range map[string]struct {
		cfg  config.Redis
		want string
	}{
		"no secret":      {config.Redis{URL: "redis://x", Password: config.Secret{File: "/nowhere"}}, "lock.redis.password: read secret"},
		"no authority":   {config.Redis{URL: "rediss://x", TLS: config.RedisTLS{CAFile: "/nowhere"}}, "lock.redis.tls.caFile: open /nowhere"},
		"not PEM":        {config.Redis{URL: "rediss://x", TLS: config.RedisTLS{CAFile: certs.ClientKey}}, "has no certificate in PEM"},
		"no certificate": {config.Redis{URL: "rediss://x", TLS: config.RedisTLS{CertFile: "/nowhere", KeyFile: certs.ClientKey}}, "lock.redis.tls: open /nowhere"},
		"all there": {config.Redis{URL: "rediss://x", TLS: config.RedisTLS{
			CAFile: certs.CA, CertFile: certs.ClientCert, KeyFile: certs.ClientKey, ServerName: "redis",
		}}, ""},
	} {
		if _, err := redisPlace(tt.cfg); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
