package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/replica"
)

// asReplica is what the server is among others that have the same database.
func asReplica(cfg *config.Config, version string) datastore.Replica {
	return datastore.Replica{
		Identity: func() (string, error) { return loadOrCreateIdentity(Identity(cfg)) },
		Alone:    alone(cfg), Version: version, Protocol: protocol.Version,
		Address: ownAddress(cfg.Server), Locks: locksPlace(cfg.Lock),
	}
}

// alone says what is missing for the server to share its database with others; empty if
// nothing is.
func alone(cfg *config.Config) string {
	var missing []string
	if cfg.Datastore.URL == "" {
		missing = append(missing, "datastore.url is not set")
	}
	if cfg.Datastore.Blobs.URL == "" {
		missing = append(missing, "datastore.blobs.url is not set")
	}
	if cfg.Lock.Type != "redis" {
		missing = append(missing, "lock.type is not redis")
	}
	return strings.Join(missing, " and ")
}

// locksPlace is where locks are, for people.
func locksPlace(cfg config.Lock) string {
	if cfg.Type != "redis" {
		return cfg.Type
	}
	r := cfg.Redis
	return cmp.Or(r.URL, strings.Join(r.Cluster.Addresses, ","), r.Sentinel.Master+" of "+strings.Join(r.Sentinel.Addresses, ",")) +
		" " + r.Prefix
}

// ownAddress is where the API of this replica is, and not of others behind the same name.
func ownAddress(cfg config.Server) string {
	host, port, err := net.SplitHostPort(cfg.API.Address)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return ""
		}
	}
	return net.JoinHostPort(host, port)
}

// deadReplicas says how many of the servers that share the database have died; empty if none.
func deadReplicas(store *datastore.Store) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	replicas, err := store.Replicas(ctx)
	if err != nil {
		return "" // that the database does not answer is said anyway
	}
	return dead(replicas)
}

func dead(replicas []replica.Replica) string {
	silent := 0
	for _, r := range replicas {
		if !r.Living {
			silent++
		}
	}
	if silent == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d replicas died, or cannot reach the database, within the last hour: see holdfast get replicas", silent, len(replicas))
}

// sweepLease keeps two replicas from sweeping at once.
const sweepLease = time.Hour

// sweeps reports whether this replica is the one that sweeps the store now.
func sweeps(ctx context.Context, store *datastore.Store, logger *slog.Logger) bool {
	ours, err := store.Lease(ctx, "sweep", store.Identity(), store.Now(), sweepLease)
	if err != nil && ctx.Err() == nil {
		logger.Error("old records are not removed now", "err", err)
	}
	return ours
}

// clock is the server's own until its records are open, and then the one that all servers of
// the database agree on.
type clock struct {
	of atomic.Pointer[func() time.Time]
}

func newClock(now func() time.Time) *clock {
	c := new(clock)
	if now == nil {
		now = time.Now
	}
	c.set(now)
	return c
}

func (c *clock) set(now func() time.Time) { c.of.Store(&now) }

// Now is what it shows.
func (c *clock) Now() time.Time { return (*c.of.Load())() }
