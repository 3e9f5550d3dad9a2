package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ErrOpen says that Redis lets in whoever connects. Engines share the network of
// their machine: what a pull request executes could end locks or take them.
var ErrOpen = errors.New("redis accepts clients without a password")

// errRefused: a client without a credential was refused.
var errRefused = errors.New("refused")

// Guarded reports whether Redis, at the addresses that are known from the start, refuses
// clients that do not have our credential: it connects without one, and with a random
// password for the user that we are. ErrOpen says that such a client was obeyed,
// holdfast.ErrUnavailable that Redis did not answer. Sentinels have to refuse, too:
// whoever may command them decides which Redis is the master.
func (r *Redis) Guarded(ctx context.Context) error {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	for _, addr := range r.at.conf.Addrs {
		if err := r.guarded(ctx, addr); err != nil {
			return r.classify(ctx, err)
		}
	}
	return nil
}

// guarded is Guarded for one node, or one sentinel.
func (r *Redis) guarded(ctx context.Context, addr string) error {
	if err := r.refuses(ctx, addr, "", ""); err != nil {
		return fmt.Errorf("connect to %s without a password: %w", addr, err)
	}
	// A user without a password is let in with any.
	for _, user := range []string{r.at.conf.Username, r.at.conf.SentinelUsername} {
		if user == "" {
			continue
		}
		if err := r.refuses(ctx, addr, user, rand.Text()); err != nil {
			return fmt.Errorf("connect to %s as user %q with a random password: %w", addr, user, err)
		}
	}
	return nil
}

// stranger returns a client without what makes us known.
func (r *Redis) stranger(addr, user, password string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, Username: user, Password: password, PoolSize: 1, MaxRetries: -1, Protocol: 2,
		Dialer: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return r.at.dial(ctx, addr, r.timeout)
		},
		DisableIdentity: true, DialerRetries: 1, ContextTimeoutEnabled: true,
		DialTimeout: r.timeout, ReadTimeout: r.timeout, WriteTimeout: r.timeout,
	})
}

// refuses reports whether nothing that matters is answered: neither reading and
// deleting locks, nor waking replicas, nor changing Redis itself or what a sentinel
// watches. What is deleted, woken and changed does not exist.
func (r *Redis) refuses(ctx context.Context, addr, user, password string) error {
	client := r.stranger(addr, user, password)
	defer client.Close()
	nothing := r.prefix + "lock:probe-" + rand.Text()
	var unclear error
	for _, command := range [][]any{
		{"GET", nothing},
		{"DEL", nothing},
		{"PUBLISH", r.channel(), ""},
		{"CONFIG", "GET", "maxclients"},
		{"SENTINEL", "SET", nothing, "quorum", "1"},
	} {
		err := client.Do(ctx, command...).Err()
		switch err := judge(err); {
		case err == nil:
			return ErrOpen
		case !errors.Is(err, errRefused):
			unclear = err
		}
	}
	return unclear
}

// judge tells an answer that obeys (nil), one that refuses (errRefused), and
// one that says neither.
func judge(err error) error {
	var reply redis.Error
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return nil
	case !errors.As(err, &reply):
		return err
	case strings.HasPrefix(reply.Error(), "ERR No such master"): // a sentinel that would have changed it
		return nil
	}
	for _, word := range []string{
		"NOAUTH", "NOPERM", "WRONGPASS", "DENIED", // DENIED: protected mode, from other machines
		"ERR invalid password", "ERR Client sent AUTH", "ERR unknown command", // a command that was renamed
	} {
		if strings.HasPrefix(reply.Error(), word) {
			return errRefused
		}
	}
	return err
}
