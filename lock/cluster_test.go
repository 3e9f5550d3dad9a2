package lock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/redisserver"
	"github.com/holdfast-dev/holdfast/lock"
)

func in(nodes []*redisserver.Server) lock.Server {
	return lock.Server{Cluster: redisserver.Addrs(nodes...), Password: nodes[0].Password()}
}

// Locks are on all nodes, hints reach subscribers of any.
func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := redisserver.StartCluster(t)
	t.Run("", func(t *testing.T) {
		conform(t, func(t testing.TB) both {
			return openRedis(t, lock.Options{Server: in(nodes), Prefix: t.Name() + ":", Timeout: time.Minute})
		})
	})
	first := in(nodes)
	first.Cluster = first.Cluster[:1]
	l := openRedis(t, lock.Options{Server: first, Timeout: time.Minute})
	for i := range 30 {
		mustAcquire(t, l, fmt.Sprint("state-", i), "run-1/1", time.Hour)
	}
	for _, node := range nodes {
		if node.Ask("DBSIZE") == ":0" {
			t.Errorf("the node at %s has no locks", node.Addr())
		}
	}

	// Whatever waits for a node that is gone does not wait for a minute.
	l = openRedis(t, lock.Options{Server: first, Timeout: 10 * time.Second})
	mustAcquire(t, l, "state-0", "run-1/1", time.Hour)
	nodes[2].Stop()
	lost, held := 0, 0
	for i := range 30 {
		switch err := l.Renew(t.Context(), fmt.Sprint("state-", i), "run-1/1", time.Hour); {
		case err == nil:
			held++
		case errors.Is(err, holdfast.ErrUnavailable):
			lost++
		default:
			t.Errorf("Renew with a node gone = %v, want ErrUnavailable", err)
		}
	}
	if lost == 0 || held+lost != 30 {
		t.Errorf("with a node gone %d locks are held and %d cannot be confirmed, want some", held, lost)
	}
}
