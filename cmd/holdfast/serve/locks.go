package serve

import (
	"context"
	"errors"
	"fmt"

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
	password := ""
	if !s.cfg.Lock.Redis.Password.IsZero() {
		var err error
		if password, err = s.cfg.Lock.Redis.Password.Value(); err != nil {
			return fmt.Errorf("read Redis password: %w", err)
		}
	}
	trusted := s.cfg.Isolation == string(sandbox.ModeNone)
	redis, err := lock.NewRedis(lock.Options{
		URL: s.cfg.Lock.Redis.URL, Password: password, Prefix: s.cfg.Lock.Redis.Prefix, MayBeOpen: trusted, Logger: s.logger,
	})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, redis.Close)
	if err := s.guardedRedis(ctx, redis, trusted); err != nil {
		return err
	}
	opts.Replica.Locker, opts.Replica.Waker = redis, redis
	return nil
}

// guardedRedis refuses a Redis that engines could use. One that does not answer
// yet is looked at when it does, see lock.Options.
func (s *services) guardedRedis(ctx context.Context, redis *lock.Redis, trusted bool) error {
	err := redis.Guarded(ctx)
	switch {
	case err == nil:
		return nil
	case trusted:
		s.logger.Warn("isolation is none, and Redis may be open to what engines execute", "err", err)
		return nil
	case errors.Is(err, lock.ErrOpen):
		return hint.New(
			fmt.Errorf("lock.redis.url: %w: what a pull request executes could take and end locks", err),
			"give Redis a password (requirepass, or an ACL user with one and the default user off) and write it to "+
				"lock.redis.password; or, if everything that engines execute is trusted, set isolation: none",
		)
	default:
		s.logger.Warn("Redis could not be checked for a password yet; it is not used before that", "err", err)
		return nil
	}
}
