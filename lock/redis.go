package lock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-dev/holdfast"
)

// Options say where Redis is and what is kept there.
type Options struct {
	Server Server // required

	// Prefix begins every key and channel, so that several Holdfasts can share
	// a Redis. Empty means "holdfast:".
	Prefix string

	// Timeout bounds connecting, and each answer. Zero means 2 s. A call takes
	// at most three times as long, as it is tried twice, and less if its context
	// ends before.
	Timeout time.Duration

	// MayBeOpen lets Redis be one that obeys clients without a password. Else
	// each new connection first makes sure that it does not, see Guarded, and
	// calls fail with ErrOpen.
	MayBeOpen bool

	Logger *slog.Logger // nil discards
}

// callTimeouts is how many times Options.Timeout a call may take.
const callTimeouts = 3

// Redis is locks and wake-ups that the replicas of a server share: one Redis, the
// master that sentinels name, or a Redis Cluster. While Redis is unavailable calls fail
// with holdfast.ErrUnavailable. They work again once it is back, or a replica was
// promoted: with all locks free, or with those that had reached the replica. It is safe
// for concurrent use.
type Redis struct {
	client     redis.UniversalClient
	at         place
	prefix     string
	timeout    time.Duration
	logger     *slog.Logger
	subscribed atomic.Bool // a subscription works
}

// NewRedis returns a Redis without connecting: Redis may start later. Close it.
func NewRedis(opts Options) (*Redis, error) {
	at, err := opts.Server.place()
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if opts.Prefix == "" {
		opts.Prefix = "holdfast:"
	}
	if opts.Timeout == 0 {
		opts.Timeout = 2 * time.Second
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	// The client would print to stderr, in its own format, what its calls return as
	// errors besides. The switch is for the whole process, and atomic.
	logging.Disable()
	at.bounded(opts.Timeout)
	r := &Redis{at: at, prefix: opts.Prefix, timeout: opts.Timeout, logger: opts.Logger}
	conf := at.conf
	conf.Dialer = func(ctx context.Context, _, addr string) (net.Conn, error) {
		if !opts.MayBeOpen {
			// Not only at the start: Redis may come later, or back without a password.
			if err := r.guarded(ctx, addr); err != nil {
				return nil, err
			}
		}
		return r.at.dial(ctx, addr, r.timeout)
	}
	r.client = redis.NewUniversalClient(&conf)
	return r, nil
}

// Close ends all connections. Calls fail afterwards.
func (r *Redis) Close() error { return r.client.Close() }

// Ping reports whether Redis answers.
func (r *Redis) Ping(ctx context.Context) error {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	if err := r.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping redis: %w", r.classify(ctx, err))
	}
	return nil
}

// A lock is a single key, so that each script has a place in a Redis Cluster. It is a
// hash with owner and since (milliseconds of Redis's own clock, which all replicas share),
// whose expiry is the lease.
var (
	acquireScript = redis.NewScript(`
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and owner ~= ARGV[1] then
  return {owner, redis.call('HGET', KEYS[1], 'since'), redis.call('PTTL', KEYS[1])}
end
if not owner then
  local now = redis.call('TIME')
  redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'since', now[1] * 1000 + math.floor(now[2] / 1000))
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {}`)

	renewScript = redis.NewScript(`
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`)

	releaseScript = redis.NewScript(`
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])`)

	holderScript = redis.NewScript(`
local owner = redis.call('HGET', KEYS[1], 'owner')
if not owner then
  return {}
end
return {owner, redis.call('HGET', KEYS[1], 'since'), redis.call('PTTL', KEYS[1])}`)
)

// Acquire locks key for owner until ttl (at least a millisecond) has passed. It
// does not wait: a *holdfast.LockedError says who has it. Acquiring what owner
// holds already renews it. After an ErrUnavailable owner may hold it or not.
func (r *Redis) Acquire(ctx context.Context, key, owner string, ttl time.Duration) error {
	if err := check(key, owner, ttl); err != nil {
		return err
	}
	ctx, cancel := r.bound(ctx)
	defer cancel()
	reply, err := acquireScript.Run(ctx, r.client, r.keys(key), owner, ttl.Milliseconds()).Slice()
	if err == nil && len(reply) > 0 {
		var holder holdfast.LockHolder
		if holder, err = parseHolder(reply); err == nil {
			err = &holdfast.LockedError{Holder: holder}
		}
	}
	if err != nil {
		return fmt.Errorf("lock %q for %q: %w", key, owner, r.classify(ctx, err))
	}
	return nil
}

// Renew makes owner's lock of key end ttl from now. It is ErrLockLost if owner
// does not hold it.
func (r *Redis) Renew(ctx context.Context, key, owner string, ttl time.Duration) error {
	if err := check(key, owner, ttl); err != nil {
		return err
	}
	ctx, cancel := r.bound(ctx)
	defer cancel()
	renewed, err := renewScript.Run(ctx, r.client, r.keys(key), owner, ttl.Milliseconds()).Int()
	if err != nil {
		return fmt.Errorf("renew lock %q of %q: %w", key, owner, r.classify(ctx, err))
	}
	if renewed == 0 {
		return lost(key, owner)
	}
	return nil
}

// Release unlocks key if owner holds it, and does nothing else.
func (r *Redis) Release(ctx context.Context, key, owner string) error {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	if err := releaseScript.Run(ctx, r.client, r.keys(key), owner).Err(); err != nil {
		return fmt.Errorf("release lock %q of %q: %w", key, owner, r.classify(ctx, err))
	}
	return nil
}

// Holder returns who holds key, ErrNotFound if nobody does.
func (r *Redis) Holder(ctx context.Context, key string) (holdfast.LockHolder, error) {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	reply, err := holderScript.Run(ctx, r.client, r.keys(key)).Slice()
	if err == nil && len(reply) == 0 {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return holdfast.LockHolder{}, fmt.Errorf("read holder of lock %q: %w", key, r.classify(ctx, err))
	}
	holder, err := parseHolder(reply)
	if err != nil {
		return holdfast.LockHolder{}, fmt.Errorf("read holder of lock %q: %w", key, err)
	}
	return holder, nil
}

func parseHolder(reply []any) (holdfast.LockHolder, error) {
	var (
		since     int64
		owner, ok = reply[0].(string)
		remaining int64
	)
	if len(reply) == 3 && ok {
		text, _ := reply[1].(string)
		remaining, ok = reply[2].(int64)
		if _, err := fmt.Sscan(text, &since); err == nil && ok {
			return holdfast.LockHolder{
				Owner:   owner,
				Since:   time.UnixMilli(since).UTC(),
				Expires: time.Now().UTC().Add(time.Duration(remaining) * time.Millisecond),
			}, nil
		}
	}
	return holdfast.LockHolder{}, errors.New("the key holds something that is not a lock")
}

func (r *Redis) keys(key string) []string { return []string{r.prefix + "lock:" + key} }

func (r *Redis) channel() string { return r.prefix + "wake" }

// Wake tells every subscriber of every replica the topic, this one included.
func (r *Redis) Wake(ctx context.Context, topic string) error {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	if err := r.client.Publish(ctx, r.channel(), topic).Err(); err != nil {
		return fmt.Errorf("wake %q: %w", topic, r.classify(ctx, err))
	}
	return nil
}

// Subscribe calls woken with each topic, one call at a time, until ctx is done, and
// returns nil then. It reconnects automatically; messages sent meanwhile are lost.
func (r *Redis) Subscribe(ctx context.Context, woken func(topic string)) error {
	for ctx.Err() == nil {
		began := time.Now()
		err := r.receive(ctx, woken)
		if ctx.Err() != nil {
			return nil
		}
		r.logger.WarnContext(ctx, "subscription was lost", "err", err, "duration", time.Since(began))
		select {
		case <-ctx.Done():
		case <-time.After(min(r.timeout/2, time.Second)):
		}
	}
	return nil
}

// receive reads one subscription until it fails or ctx is done. Silence is not
// trusted: after a few timeouts of it Redis has to answer a ping.
func (r *Redis) receive(ctx context.Context, woken func(topic string)) error {
	sub := r.client.Subscribe(ctx, r.channel())
	defer sub.Close()
	// A read in progress does not see ctx; closing the connection ends it.
	stop := context.AfterFunc(ctx, func() { _ = sub.Close() })
	defer stop()
	defer r.subscribed.Store(false)

	for pinged := false; ; {
		msg, err := sub.ReceiveTimeout(ctx, callTimeouts*r.timeout)
		var timeout net.Error
		switch {
		case err == nil:
			pinged = false
		case errors.As(err, &timeout) && timeout.Timeout() && !pinged:
			if err := sub.Ping(ctx); err != nil {
				return fmt.Errorf("ping redis: %w", r.classify(ctx, err))
			}
			pinged = true
			continue
		default:
			return fmt.Errorf("receive from redis: %w", r.classify(ctx, err))
		}
		r.subscribed.Store(true)
		if m, ok := msg.(*redis.Message); ok && m.Payload != noTopic {
			woken(m.Payload)
		}
	}
}

// bound makes a call end even where the client would try for longer.
func (r *Redis) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callTimeouts*r.timeout)
}
