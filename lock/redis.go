package lock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-dev/holdfast"
)

// Options say where Redis is and how to reach it.
type Options struct {
	// URL is redis://host:port/db, or rediss:// for TLS. A user may stand in
	// it; a password belongs in Password, and is an error here. Required.
	URL      string
	Password string

	// TLS replaces the settings that a rediss:// URL implies. Nil means those:
	// the system's roots, the URL's host name. It is an error with redis://.
	TLS *tls.Config

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

// Redis is locks and wake-ups that the replicas of a server share. While Redis
// is away calls fail with holdfast.ErrUnavailable; they work again once it is
// back, with all locks free. It is safe for concurrent use.
type Redis struct {
	client   *redis.Client
	stranger redis.Options // of a client without a credential
	user     string        // in the URL; empty: none
	prefix   string
	timeout  time.Duration
	logger   *slog.Logger
}

// NewRedis returns a Redis without connecting: Redis may start later. Close it.
func NewRedis(opts Options) (*Redis, error) {
	conf, err := clientOptions(opts)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if opts.Prefix == "" {
		opts.Prefix = "holdfast:"
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	// The client would print to stderr, in a format of its own, what its calls
	// return as errors besides. The switch is for the whole process, and atomic.
	logging.Disable()
	r := &Redis{
		stranger: strangerOptions(conf),
		user:     conf.Username,
		prefix:   opts.Prefix,
		timeout:  conf.DialTimeout,
		logger:   opts.Logger,
	}
	if !opts.MayBeOpen {
		// Not only at the start: Redis may come later, or back without a password.
		conf.OnConnect = func(ctx context.Context, _ *redis.Conn) error { return r.Guarded(ctx) }
	}
	r.client = redis.NewClient(conf)
	return r, nil
}

// strangerOptions are conf without what makes us known.
func strangerOptions(conf *redis.Options) redis.Options {
	return redis.Options{
		Network: conf.Network, Addr: conf.Addr, TLSConfig: conf.TLSConfig, PoolSize: 1, MaxRetries: -1, Protocol: 2,
		DisableIdentity: true, DialerRetries: 1, ContextTimeoutEnabled: true,
		DialTimeout: conf.DialTimeout, ReadTimeout: conf.ReadTimeout, WriteTimeout: conf.WriteTimeout,
	}
}

func clientOptions(opts Options) (*redis.Options, error) {
	u, err := url.Parse(opts.URL)
	if err != nil {
		return nil, errors.New("redis: URL cannot be parsed") // the cause would print it
	}
	if _, has := u.User.Password(); has {
		return nil, errors.New("redis: password in the URL: keep it in a file or the environment")
	}
	if opts.TLS != nil && u.Scheme != "rediss" {
		return nil, fmt.Errorf("redis: TLS settings for a %s:// URL", u.Scheme)
	}
	conf, err := redis.ParseURL(opts.URL)
	if err != nil {
		return nil, err
	}
	if opts.TLS != nil {
		conf.TLSConfig = opts.TLS.Clone()
		if conf.TLSConfig.ServerName == "" {
			conf.TLSConfig.ServerName = u.Hostname()
		}
	}
	if opts.Timeout == 0 {
		opts.Timeout = 2 * time.Second
	}
	conf.Password = opts.Password
	conf.DialTimeout, conf.ReadTimeout, conf.WriteTimeout = opts.Timeout, opts.Timeout, opts.Timeout
	conf.PoolTimeout = opts.Timeout
	conf.ContextTimeoutEnabled = true
	conf.DialerRetries = 1
	// Once more, for a connection that died in the pool. Every command may be
	// sent twice: an owner that has the lock already gets it again.
	conf.MaxRetries = 1
	return conf, nil
}

// Close ends all connections. Calls fail afterwards.
func (r *Redis) Close() error { return r.client.Close() }

// Ping reports whether Redis answers.
func (r *Redis) Ping(ctx context.Context) error {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	if err := r.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping redis: %w", classify(ctx, err))
	}
	return nil
}

// A lock is a hash with owner and since (milliseconds of Redis's own clock,
// which all replicas share), whose expiry is the lease.
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
		return fmt.Errorf("lock %q for %q: %w", key, owner, classify(ctx, err))
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
		return fmt.Errorf("renew lock %q of %q: %w", key, owner, classify(ctx, err))
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
		return fmt.Errorf("release lock %q of %q: %w", key, owner, classify(ctx, err))
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
		return holdfast.LockHolder{}, fmt.Errorf("read holder of lock %q: %w", key, classify(ctx, err))
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
		return fmt.Errorf("wake %q: %w", topic, classify(ctx, err))
	}
	return nil
}

// Subscribe calls woken with each topic, one call at a time, until ctx is done,
// and returns nil then. It reconnects automatically; what was told meanwhile is lost.
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
		case <-time.After(r.timeout / 2):
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

	for pinged := false; ; {
		msg, err := sub.ReceiveTimeout(ctx, 3*r.timeout)
		var timeout net.Error
		switch {
		case err == nil:
			pinged = false
		case errors.As(err, &timeout) && timeout.Timeout() && !pinged:
			if err := sub.Ping(ctx); err != nil {
				return fmt.Errorf("ping redis: %w", classify(ctx, err))
			}
			pinged = true
			continue
		default:
			return fmt.Errorf("receive from redis: %w", classify(ctx, err))
		}
		if m, ok := msg.(*redis.Message); ok {
			woken(m.Payload)
		}
	}
}

// bound makes a call end even where the client would try for longer.
func (r *Redis) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 3*r.timeout)
}

// classify turns what go-redis returns into the errors that callers branch on.
func classify(ctx context.Context, err error) error {
	var (
		reply  redis.Error
		locked *holdfast.LockedError
	)
	switch {
	case errors.As(err, &locked), errors.Is(err, holdfast.ErrNotFound), errors.Is(err, ErrOpen):
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Cause(ctx)
	case errors.As(err, &reply):
		return classifyReply(err)
	default: // the network, a timeout, an end of file, a full pool, a closed client
		return fmt.Errorf("redis: %w: %w", holdfast.ErrUnavailable, err)
	}
}

// classifyReply judges an error that Redis itself answered, by its first word.
func classifyReply(err error) error {
	word, _, _ := strings.Cut(err.Error(), " ")
	switch word {
	case "NOAUTH", "WRONGPASS":
		return fmt.Errorf("redis: %w: %w", holdfast.ErrUnauthorized, err)
	case "NOPERM":
		return fmt.Errorf("redis: %w: %w", holdfast.ErrForbidden, err)
	case "LOADING", "READONLY", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "BUSY", "OOM", "MISCONF", "NOREPLICAS":
		return fmt.Errorf("redis: %w: %w", holdfast.ErrUnavailable, err)
	default:
		return fmt.Errorf("redis: %w", err)
	}
}
