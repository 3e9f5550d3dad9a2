package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ErrOpen says that Redis lets in whoever connects. Engines share the network of
// their machine: what a pull request executes could end locks or take them.
var ErrOpen = errors.New("redis accepts clients without a password")

// errRefused: a client without a credential was refused.
var errRefused = errors.New("refused")

// Guarded reports whether Redis refuses clients that do not have our
// credential: it connects without one, and with a random password for the
// user that the URL names. ErrOpen says that such a client was obeyed,
// holdfast.ErrUnavailable that Redis did not answer.
func (r *Redis) Guarded(ctx context.Context) error {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	stranger := r.stranger
	if err := r.refuses(ctx, stranger); err != nil {
		return fmt.Errorf("connect to redis at %s without a password: %w", stranger.Addr, err)
	}
	if r.user == "" {
		return nil
	}
	// A user without a password is let in with any.
	stranger.Username, stranger.Password = r.user, rand.Text()
	if err := r.refuses(ctx, stranger); err != nil {
		return fmt.Errorf("connect to redis at %s as user %q with a random password: %w", stranger.Addr, r.user, err)
	}
	return nil
}

// refuses reports whether nothing that matters is answered: neither reading and
// deleting locks, nor waking replicas, nor changing Redis itself. What is deleted
// and woken does not exist.
func (r *Redis) refuses(ctx context.Context, conf redis.Options) error {
	client := redis.NewClient(&conf)
	defer client.Close()
	nothing := r.prefix + "lock:probe-" + rand.Text()
	var unclear error
	for _, command := range [][]any{
		{"GET", nothing},
		{"DEL", nothing},
		{"PUBLISH", r.channel(), ""},
		{"CONFIG", "GET", "maxclients"},
	} {
		err := client.Do(ctx, command...).Err()
		switch err := judge(err); {
		case err == nil:
			return ErrOpen
		case !errors.Is(err, errRefused):
			unclear = classify(ctx, err)
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
