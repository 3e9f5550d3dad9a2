package lock_test

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/redisserver"
	"github.com/holdfast-dev/holdfast/lock"
)

func TestRedisRestarted(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	l := newRedis(t, server, "")
	topics := subscribe(t, l)
	awaitTopic(t, l, topics, "before")
	mustAcquire(t, l, "state", "run-1/1", time.Hour)

	server.Stop()
	if err := l.Renew(t.Context(), "state", "run-1/1", time.Hour); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Renew without Redis = %v, want ErrUnavailable", err)
	}
	if err := l.Acquire(t.Context(), "state", "run-2/1", time.Hour); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Acquire without Redis = %v, want ErrUnavailable", err)
	}
	if err := l.Wake(t.Context(), "nobody"); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Wake without Redis = %v, want ErrUnavailable", err)
	}
	if err := l.Ping(t.Context()); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Ping without Redis = %v, want ErrUnavailable", err)
	}

	server.Restart()
	if err := l.Renew(t.Context(), "state", "run-1/1", time.Hour); !errors.Is(err, holdfast.ErrLockLost) {
		t.Errorf("Renew after the restart = %v, want ErrLockLost", err)
	}
	mustAcquire(t, l, "state", "run-2/1", time.Hour) // the scripts are loaded again, too
	for len(topics) > 0 {
		<-topics
	}
	awaitTopic(t, l, topics, "after")
}

func TestRedisThatHangs(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	l, err := lock.NewRedis(lock.Options{Server: at(server), Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	topics := subscribe(t, l)
	awaitTopic(t, l, topics, "before")

	server.Pause()
	// The test's own deadline is the bound that matters here.
	if err := l.Acquire(t.Context(), "state", "run-1/1", time.Hour); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Acquire = %v, want ErrUnavailable", err)
	}
	server.Resume()
	eventually(t, "Redis answers again", func() bool { return l.Ping(t.Context()) == nil })
	for len(topics) > 0 {
		<-topics
	}
	awaitTopic(t, l, topics, "after")
}

func TestRedisPassword(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	for password, want := range map[string]error{
		server.Password(): nil,
		"wrong-horse":     holdfast.ErrUnauthorized,
		"":                holdfast.ErrUnauthorized,
	} {
		l, err := lock.NewRedis(lock.Options{Server: lock.Server{URL: server.URL(), Password: password}})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		err = l.Acquire(t.Context(), "state", "run-1/1", time.Minute)
		if !errors.Is(err, want) {
			t.Errorf("Acquire with password %q = %v, want %v", password, err, want)
		}
		if password != "" && err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("the password is in %q", err)
		}
	}
}

func TestNewRedisRefuses(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]lock.Server{
		"nothing":               {},
		"two places":            {URL: "redis://localhost", Cluster: []string{"localhost:7000"}},
		"another scheme":        {URL: "http://localhost"},
		"password in the URL":   {URL: "redis://user:s3cret-word@localhost"},
		"broken URL":            {URL: "redis://user:s3cret-word@[localhost"},
		"two users":             {URL: "redis://user@localhost", User: "other"},
		"TLS without rediss":    {URL: "redis://localhost", TLS: &tls.Config{}},
		"no master":             {Sentinel: lock.Sentinel{Addresses: []string{"localhost:26379"}}},
		"no sentinels":          {Sentinel: lock.Sentinel{Master: "main"}},
		"database of a cluster": {Cluster: []string{"localhost:7000"}, Database: 1},
	} {
		_, err := lock.NewRedis(lock.Options{Server: server})
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the password is in %q", name, err)
		}
	}
}

func TestRedisAway(t *testing.T) {
	t.Parallel()
	l, err := lock.NewRedis(lock.Options{Server: lock.Server{URL: "redis://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Holder(t.Context(), "state"); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Holder at a closed port = %v, want ErrUnavailable", err)
	}
}

// An engine can connect to whatever its machine can: a Redis that obeys it is
// not a place for locks, whether we have a password ourselves or not.
func TestRedisThatObeysStrangers(t *testing.T) {
	t.Parallel()
	guarded, open := redisserver.Start(t), redisserver.StartOpen(t)
	tests := map[string]struct {
		server   *redisserver.Server
		url      func(*redisserver.Server) string // nil: its own
		commands []string
		password string // empty: the server's
		open     bool
	}{
		"a password":                    {server: guarded},
		"none":                          {server: open, open: true},
		"only we have one":              {server: open, password: "correct-horse", open: true},
		"a socket, a password":          {server: guarded, url: socketURL},
		"a socket, none":                {server: open, url: socketURL, open: true},
		"a user with a password":        {server: guarded, url: userURL("careful"), commands: []string{"ACL SETUSER careful on >long-password ~* &* +@all"}, password: "long-password"},
		"a user who is let in with any": {server: guarded, url: userURL("careless"), commands: []string{"ACL SETUSER careless on nopass ~* &* +@all"}, password: "any", open: true},
		"strangers may ping, and nothing else": {server: redisserver.Start(t), commands: []string{
			"ACL SETUSER ours on >long-password ~* &* +@all", "ACL SETUSER default on nopass resetkeys resetchannels -@all +ping +auth",
		}, url: userURL("ours"), password: "long-password"},
		"strangers may wake": {server: redisserver.Start(t), commands: []string{
			"ACL SETUSER ours on >long-password ~* &* +@all", "ACL SETUSER default on nopass -@all +publish allchannels",
		}, url: userURL("ours"), password: "long-password", open: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(tt.commands) > 0 {
				tt.server.Do(tt.commands...)
			}
			place := at(tt.server)
			if tt.url != nil {
				place.URL = tt.url(tt.server)
			}
			if tt.password != "" {
				place.Password = tt.password
			}
			l, err := lock.NewRedis(lock.Options{Server: place})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if err := l.Guarded(t.Context()); errors.Is(err, lock.ErrOpen) != tt.open || !tt.open && err != nil {
				t.Errorf("Guarded() = %v, want ErrOpen: %t", err, tt.open)
			}
			err = l.Acquire(t.Context(), name, "run-1/1", time.Minute)
			if (err != nil) != tt.open {
				t.Errorf("Acquire() = %v, want an error: %t", err, tt.open)
			}
		})
	}
}

func socketURL(s *redisserver.Server) string { return "unix://" + s.Socket() }

func userURL(user string) func(*redisserver.Server) string {
	return func(s *redisserver.Server) string { return "redis://" + user + "@" + s.Addr() }
}

// Whoever says that engines are trusted may use any Redis.
func TestRedisMayBeOpen(t *testing.T) {
	t.Parallel()
	server := redisserver.StartOpen(t)
	l, err := lock.NewRedis(lock.Options{Server: at(server), MayBeOpen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mustAcquire(t, l, "state", "run-1/1", time.Minute)
}
