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
	l, err := lock.NewRedis(lock.Options{URL: server.URL(), Timeout: 50 * time.Millisecond})
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
	server := redisserver.StartWithPassword(t, "correct-horse")
	for password, want := range map[string]error{
		"correct-horse": nil,
		"wrong-horse":   holdfast.ErrUnauthorized,
		"":              holdfast.ErrUnauthorized,
	} {
		l, err := lock.NewRedis(lock.Options{URL: server.URL(), Password: password})
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
	for name, opts := range map[string]lock.Options{
		"no URL":              {},
		"another scheme":      {URL: "http://localhost"},
		"password in the URL": {URL: "redis://user:s3cret-word@localhost"},
		"broken URL":          {URL: "redis://user:s3cret-word@[localhost"},
		"TLS without rediss":  {URL: "redis://localhost", TLS: &tls.Config{}},
	} {
		_, err := lock.NewRedis(opts)
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the password is in %q", name, err)
		}
	}
}

func TestRedisAway(t *testing.T) {
	t.Parallel()
	l, err := lock.NewRedis(lock.Options{URL: "redis://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Holder(t.Context(), "state"); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Holder at a closed port = %v, want ErrUnavailable", err)
	}
}
