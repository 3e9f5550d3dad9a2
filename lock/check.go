package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Check does once all that locks and hints need of Redis, with its own lock, and says
// what does not work: Redis is unavailable, another kind of Redis than configured, the
// password is wrong, or a right is missing. Each call may take as long as any other.
func (r *Redis) Check(ctx context.Context) error {
	const owner, ttl = "check", time.Minute
	key := "check-" + rand.Text()
	if err := r.Ping(ctx); err != nil {
		return err
	}
	if err := r.Acquire(ctx, key, owner, ttl); err != nil {
		return err
	}
	// However the others end: a lock of a minute is in nobody's way.
	defer func() { _ = r.Release(context.WithoutCancel(ctx), key, owner) }()
	if err := r.Renew(ctx, key, owner, ttl); err != nil {
		return err
	}
	if _, err := r.Holder(ctx, key); err != nil {
		return err
	}
	if err := r.checkKeys(ctx); err != nil {
		return err
	}
	if err := r.Release(ctx, key, owner); err != nil {
		return err
	}
	if err := r.Wake(ctx, noTopic); err != nil {
		return err
	}
	if r.subscribed.Load() {
		return nil
	}
	return r.checkSubscription(ctx)
}

// checkKeys finds a node of a Redis Cluster, which refuses the keys of other nodes only.
// The hash tags are in the middle of each third of the slots.
func (r *Redis) checkKeys(ctx context.Context) error {
	if r.at.conf.IsClusterMode {
		return nil
	}
	for _, tag := range []string{"76", "16", "26"} {
		if _, err := r.Holder(ctx, "{"+tag+"}check"); err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return err
		}
	}
	return nil
}

// noTopic is what a check wakes with. Subscribers are not called.
const noTopic = ""

// checkSubscription subscribes and leaves it at that.
func (r *Redis) checkSubscription(ctx context.Context) error {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	sub := r.client.Subscribe(ctx, r.channel())
	defer sub.Close()
	if _, err := sub.ReceiveTimeout(ctx, r.timeout); err != nil {
		return fmt.Errorf("subscribe to %q: %w", r.channel(), r.classify(ctx, err))
	}
	return nil
}

// ACL is the command that gives a user of Redis the rights that are needed, and no
// other; its password is set apart.
func (r *Redis) ACL() string {
	rights := []string{
		"resetkeys", "~" + r.prefix + "lock:*", "resetchannels", "&" + r.channel(), "-@all",
		"+eval", "+evalsha", "+hget", "+hset", "+pexpire", "+pttl", "+time", "+del",
		"+publish", "+subscribe", "+ping",
	}
	if r.at.conf.DB != 0 {
		rights = append(rights, "+select")
	}
	if r.at.conf.IsClusterMode {
		rights = append(rights, "+cluster|slots", "+command")
	}
	user := r.at.conf.Username
	if user == "" {
		user = "default"
	}
	return "ACL SETUSER " + user + " " + strings.Join(rights, " ")
}
