package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/lock"
)

// redisEvery is how often Redis is checked.
const redisEvery = 5 * time.Second

// redisWatch knows whether Redis can be used, and logs when that changes.
type redisWatch struct {
	redis  *lock.Redis
	cfg    config.Redis
	logger *slog.Logger
	words  atomic.Value // a string: what is wrong, for everybody; empty: nothing
}

// run looks at Redis until ctx is done.
func (w *redisWatch) run(ctx context.Context) {
	tick := time.NewTicker(redisEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = w.look(ctx)
		}
	}
}

// look checks Redis once, and logs what is wrong and was not before.
func (w *redisWatch) look(ctx context.Context) error {
	err := w.redis.Check(ctx)
	if ctx.Err() != nil {
		return err
	}
	words := redisWords(err)
	before, _ := w.words.Swap(words).(string)
	switch {
	case words == before:
	case err == nil:
		w.logger.Info("Redis can be used again")
	default:
		w.logger.Error("Redis cannot be used: no run is started until it can", "err", err, "hint", w.advice(err))
	}
	return err
}

// problem is what is wrong with Redis, without addresses, as everybody may read it. It
// is empty if nothing is wrong, and without Redis.
func (w *redisWatch) problem() string {
	if w == nil {
		return ""
	}
	words, _ := w.words.Load().(string)
	return words
}

func redisWords(err error) string {
	const consequence = ": no run is started until that is mended; the server's log says what to do"
	switch {
	case err == nil:
		return ""
	case errors.Is(err, lock.ErrOpen):
		return "Redis accepts clients without a password" + consequence
	case errors.Is(err, holdfast.ErrUnauthorized):
		return "Redis or its sentinels refuse the server's user or password" + consequence
	case errors.Is(err, holdfast.ErrForbidden):
		return "the server's user lacks rights in Redis" + consequence
	default:
		return "Redis is out of reach or cannot be used: no run is started until it can; the server's log says why"
	}
}

// advice is what to do about an error of Redis, by the keys of holdfast.yaml.
func (w *redisWatch) advice(err error) string {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		alert     tls.AlertError
	)
	switch {
	case errors.Is(err, lock.ErrOpen):
		return "give Redis a password (requirepass, or an ACL user with one and the default user off) and write it to " +
			"lock.redis.password, that of sentinels to lock.redis.sentinel.password; or, if everything that engines execute is trusted, set isolation: none"
	case errors.Is(err, holdfast.ErrUnauthorized) && w.cfg.Sentinel.Master != "":
		return "check lock.redis.user and lock.redis.password, and those below lock.redis.sentinel: sentinels have their own"
	case errors.Is(err, holdfast.ErrUnauthorized):
		return "check lock.redis.user (or the user in lock.redis.url) and lock.redis.password"
	case errors.Is(err, holdfast.ErrForbidden):
		return "give the user the rights: " + w.redis.ACL()
	case errors.Is(err, lock.ErrUnknownCommand) && w.cfg.Sentinel.Master != "":
		return "lock.redis.sentinel.addresses must be those of sentinels (usually port 26379), not of Redis"
	case errors.Is(err, lock.ErrUnknownCommand):
		return "if this is a sentinel, name it in lock.redis.sentinel.addresses; a Redis must not have renamed EVAL or EVALSHA"
	case errors.As(err, &authority):
		return "name the file with the authority of Redis's certificate in lock.redis.tls.caFile"
	case errors.As(err, &host):
		return "set lock.redis.tls.serverName to a name in Redis's certificate"
	case errors.As(err, &alert):
		return "if Redis asks for a certificate (tls-auth-clients), set lock.redis.tls.certFile and keyFile to one that its authority has signed"
	default:
		return w.adviceOnPlace(err)
	}
}

// adviceOnPlace is what to do if something else than expected is there, or nothing.
func (w *redisWatch) adviceOnPlace(err error) string {
	switch {
	case errors.Is(err, lock.ErrClusterNode):
		return "write lock.redis.cluster: {addresses: [HOST:PORT, …]} instead of url or sentinel"
	case errors.Is(err, lock.ErrNoCluster):
		return "write lock.redis.url: redis://HOST:PORT/DB instead of cluster"
	case errors.Is(err, lock.ErrUnknownMaster):
		return "lock.redis.sentinel.master must be a name that SENTINEL MASTERS lists"
	case errors.Is(err, lock.ErrReplica) && w.cfg.URL != "":
		return "name the master in lock.redis.url, or use lock.redis.sentinel, which follows a failover"
	case errors.Is(err, lock.ErrReplica):
		return "a failover is probably in progress: nothing to do if it ends"
	default:
		return "look whether Redis runs and can be reached from this machine at that address, and whether it expects TLS " +
			"(rediss://, or lock.redis.tls.enabled)"
	}
}
