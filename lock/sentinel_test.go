package lock_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/redisserver"
	"github.com/holdfast-dev/holdfast/lock"
)

// of is where the master of a group is.
func of(group *redisserver.Group) lock.Server {
	return lock.Server{
		Sentinel: lock.Sentinel{
			Master: redisserver.MasterName, Addresses: redisserver.Addrs(group.Sentinels...), Password: group.Sentinels[0].Password(),
		},
		Password: group.Master.Password(),
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	group := redisserver.StartGroup(t)
	conform(t, func(t testing.TB) both {
		return openRedis(t, lock.Options{Server: of(group), Prefix: t.Name() + ":", Timeout: time.Minute})
	})
}

// A master that is replaced while it lives hands its locks over. Connections to it,
// which is a replica now, are given up.
func TestFailoverOfALivingMaster(t *testing.T) {
	t.Parallel()
	group := redisserver.StartGroup(t)
	l := openRedis(t, lock.Options{Server: of(group), Timeout: time.Minute})
	topics := subscribe(t, l)
	awaitTopic(t, l, topics, "before")
	mustAcquire(t, l, "state", "run-1/1", time.Hour)
	group.Replica.Await("EXISTS holdfast:lock:state", ":1")
	stop := load(t, l)
	group.Sentinels[0].Await("SENTINEL FAILOVER "+redisserver.MasterName, "+OK")
	group.Replica.Await("INFO replication", "role:master")
	group.Master.Await("INFO replication", "role:slave")
	eventually(t, "the new master confirms the lock", func() bool {
		return l.Renew(t.Context(), "state", "run-1/1", time.Hour) == nil
	})
	stop()
	mustAcquire(t, l, "another", "run-1/1", time.Hour)
	if answer := group.Replica.Ask("EXISTS holdfast:lock:another"); answer != ":1" {
		t.Errorf("the new master answers %q for a new lock", answer)
	}
	for len(topics) > 0 {
		<-topics
	}
	awaitTopic(t, l, topics, "after")
}

// The master dies before a lock has reached the replica, which is promoted: the lock is
// lost, its owner is told, and somebody else may have it. That both believe to have it
// until then is why the records decide. A lock that had reached the replica stays.
func TestFailoverLosesWhatWasNotReplicated(t *testing.T) {
	t.Parallel()
	group := redisserver.StartGroup(t)
	l := openRedis(t, lock.Options{Server: of(group), Timeout: time.Minute})
	topics := subscribe(t, l)
	awaitTopic(t, l, topics, "before")
	mustAcquire(t, l, "kept", "run-1/1", time.Hour)
	group.Replica.Await("EXISTS holdfast:lock:kept", ":1")
	stop := load(t, l)

	group.Replica.Pause()
	group.Master.Ask("CLIENT KILL TYPE replica") // otherwise what it is sent waits for it in its socket
	mustAcquire(t, l, "lost", "run-2/1", time.Hour)
	group.Master.Stop()
	group.Replica.Resume()

	eventually(t, "the replica was promoted", func() bool {
		return l.Acquire(t.Context(), "lost", "run-3/1", time.Hour) == nil
	})
	if err := l.Renew(t.Context(), "lost", "run-2/1", time.Hour); !errors.Is(err, holdfast.ErrLockLost) {
		t.Errorf("Renew of the lost lock = %v, want ErrLockLost", err)
	}
	if err := l.Renew(t.Context(), "kept", "run-1/1", time.Hour); err != nil {
		t.Errorf("Renew of the lock that had reached the replica = %v", err)
	}
	stop()
	for len(topics) > 0 {
		<-topics
	}
	awaitTopic(t, l, topics, "after")
	eventually(t, "everything works again", func() bool { return l.Check(t.Context()) == nil })
}

// load takes and lets go locks until stop is called, and fails the test for an error
// that does not say that Redis is unavailable or that somebody else has the lock.
func load(t *testing.T, l both) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 4 {
		owner := fmt.Sprintf("run-%d/1", 100+i)
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(50 * time.Millisecond):
				}
				err := l.Acquire(t.Context(), "busy", owner, time.Minute)
				if err == nil {
					err = l.Renew(t.Context(), "busy", owner, time.Minute)
				}
				if err == nil || errors.Is(err, holdfast.ErrLockLost) {
					err = l.Release(t.Context(), "busy", owner)
				}
				if err != nil && t.Context().Err() == nil && !errors.Is(err, holdfast.ErrUnavailable) && !errors.Is(err, holdfast.ErrLocked) {
					t.Errorf("under load: %v", err)
				}
			}
		})
	}
	return sync.OnceFunc(func() { close(done); wg.Wait() })
}

// A Redis that stands still for longer than a lease, in the two ways that there are:
// the lease ends meanwhile, and its owner is told as soon as Redis answers.
func TestRedisStandsStillForLongerThanALease(t *testing.T) {
	t.Parallel()
	for name, still := range map[string]struct{ pause, resume func(*redisserver.Server) }{
		"stopped": {(*redisserver.Server).Pause, (*redisserver.Server).Resume},
		"paused": {
			func(s *redisserver.Server) { s.Do("CLIENT PAUSE 600000 WRITE") },
			func(s *redisserver.Server) { s.Do("CLIENT UNPAUSE") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redisserver.Start(t)
			patient := newRedis(t, server, "")
			l := openRedis(t, lock.Options{Server: at(server), Timeout: 100 * time.Millisecond})
			stop := load(t, l)
			defer stop()
			const lease = 300 * time.Millisecond
			mustAcquire(t, patient, "state", "run-1/1", lease)
			still.pause(server)
			if err := l.Renew(t.Context(), "state", "run-1/1", lease); !errors.Is(err, holdfast.ErrUnavailable) {
				t.Errorf("Renew = %v, want ErrUnavailable", err)
			}
			<-time.After(lease)
			still.resume(server)
			// What was sent before is still executed, or not: what it prolonged ends, too.
			eventually(t, "somebody else has it", func() bool {
				return patient.Acquire(t.Context(), "state", "run-2/1", time.Hour) == nil
			})
			if err := patient.Renew(t.Context(), "state", "run-1/1", lease); !errors.Is(err, holdfast.ErrLockLost) {
				t.Errorf("Renew afterwards = %v, want ErrLockLost", err)
			}
		})
	}
}

// With min-replicas-to-write a master that was cut off grants nothing.
func TestMasterWithoutReplicas(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	server.Do("CONFIG SET min-replicas-to-write 1")
	l := newRedis(t, server, "")
	if err := l.Acquire(t.Context(), "state", "run-1/1", time.Minute); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Acquire = %v, want ErrUnavailable", err)
	}
	server.Do("CONFIG SET min-replicas-to-write 0")
	mustAcquire(t, l, "state", "run-1/1", time.Minute)
}
