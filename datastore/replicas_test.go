package datastore_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/objects"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/replica"
)

// asReplica are the options of a server that shares a database with others.
func asReplica(t testing.TB, d postgresserver.Database, identity string) datastore.Options {
	t.Helper()
	opts := optionsOf(t, d)
	opts.Replica = datastore.Replica{
		Identity: func() (string, error) { return identity, nil },
		Version:  "1.0", Protocol: 7, Address: identity + ":8081",
	}
	return opts
}

// TestReplicasShareADatabase: servers that can join others, and are listed with them until they
// leave.
func TestReplicasShareADatabase(t *testing.T) {
	t.Parallel()
	d := postgresserver.New(t, emptyPostgres(t))
	first := must[*datastore.Store](t)(openOptions(t, asReplica(t, d, "a")))
	second := must[*datastore.Store](t)(openOptions(t, asReplica(t, d, "b")))
	create(t, first, newRun(1))
	create(t, second, newRun(2))
	if _, err := first.Run(t.Context(), newRun(2).ID); err != nil {
		t.Errorf("what the other has stored: %v", err)
	}
	replicas := must[[]replica.Replica](t)(first.Replicas(t.Context()))
	if len(replicas) != 2 || replicas[0].Identity != "a" || replicas[1].Identity != "b" {
		t.Fatalf("Replicas() = %+v", replicas)
	}
	for _, r := range replicas {
		if !r.Living || r.Version != "1.0" || r.Protocol != 7 || r.Schema < 2 || r.Address != r.Identity+":8081" || r.StartedAt.IsZero() || r.HeartbeatAt.IsZero() {
			t.Errorf("a replica = %+v", r)
		}
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if replicas := must[[]replica.Replica](t)(first.Replicas(t.Context())); len(replicas) != 1 {
		t.Errorf("after one has left: %+v", replicas)
	}
	if must[bool](t)(first.ReplicaLives(t.Context(), "b")) || !must[bool](t)(first.ReplicaLives(t.Context(), "a")) {
		t.Error("ReplicaLives() has them the wrong way round")
	}
}

// TestReplicaThatDied: it is listed for an hour.
func TestReplicaThatDied(t *testing.T) {
	t.Parallel()
	d := postgresserver.New(t, emptyPostgres(t))
	store := must[*datastore.Store](t)(openOptions(t, asReplica(t, d, "a")))
	for ago, listed := range map[time.Duration]bool{time.Minute: true, 2 * time.Hour: false} {
		name := ago.String()
		if _, err := d.Query(`INSERT INTO replicas SELECT '` + name + `', nonce, 'elsewhere', name, alone, version, protocol, schema_version, address, blobs, locks,
			started_at, heartbeat_at - ` + strconv.FormatInt(int64(ago), 10) + ` FROM replicas WHERE identity = 'a'`); err != nil {
			t.Fatal(err)
		}
		of := func(r replica.Replica) bool { return r.Identity == name && !r.Living }
		if got := slices.ContainsFunc(must[[]replica.Replica](t)(store.Replicas(t.Context())), of); got != listed {
			t.Errorf("one that died %s ago is listed: %t", ago, got)
		}
		if must[bool](t)(store.ReplicaLives(t.Context(), name)) {
			t.Errorf("one that died %s ago lives", ago)
		}
	}
}

// TestReplicasThatAreRefused: whoever cannot share a database is told why, and with whom.
func TestReplicasThatAreRefused(t *testing.T) {
	t.Parallel()
	bucket := func(o *datastore.Options) { o.Blobs = objects.Options{URL: "s3://other?region=eu-1", Dir: "x"} }
	alone := func(o *datastore.Options) { o.Replica.Alone = "lock.type is not redis" }
	for name, test := range map[string]struct {
		first, second func(o *datastore.Options)
		identity      string
		want          []string
	}{
		"a second one that must be alone":   {nil, alone, "b", []string{"only one server may use a database", "lock.type is not redis here", "configure both as replicas"}},
		"a first one that must be alone":    {alone, nil, "b", []string{"cannot share it", "lock.type is not redis there"}},
		"two that must be alone":            {alone, alone, "b", []string{"only one server may use a database"}},
		"the identity of the first one":     {nil, nil, "a", []string{"its identity is a", "data folder of its own"}},
		"blobs somewhere else":              {nil, bucket, "b", []string{"s3://other", "the same datastore.blobs.url"}},
		"another key, which writes nothing": {nil, func(o *datastore.Options) { o.Keys = testKeys(t, 'x') }, "b", []string{"another key"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := postgresserver.New(t, emptyPostgres(t))
			opts := asReplica(t, d, "a")
			if test.first != nil {
				test.first(&opts)
			}
			must[*datastore.Store](t)(openOptions(t, opts))
			opts = asReplica(t, d, test.identity)
			if test.second != nil {
				test.second(&opts)
			}
			before := must[string](t)(d.Query(`SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables WHERE relname <> 'replicas' AND relname <> 'leases'`))
			_, err := openOptions(t, opts)
			if err == nil {
				t.Fatal("Open() succeeded")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Open() = %v, want %q", err, want)
				}
			}
			if strings.Contains(name, "another key") {
				after := must[string](t)(d.Query(`SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables WHERE relname <> 'replicas' AND relname <> 'leases'`))
				if n := must[string](t)(d.Query(`SELECT COUNT(*) FROM replicas`)); before != after || n != "1" {
					t.Errorf("%s rows were written before, %s after; %s replicas", before, after, n)
				}
			} else if !errors.Is(err, holdfast.ErrLocked) {
				t.Errorf("Open() = %v, want ErrLocked", err)
			}
		})
	}
}

// TestReplicasOfTwoKeysStartAtOnce: of servers that start for the first time together, one
// chooses the keys, and those with others are refused.
func TestReplicasOfTwoKeysStartAtOnce(t *testing.T) {
	t.Parallel()
	d := postgresserver.New(t, "")
	var tasks []*task
	for i, keys := range []byte{'k', 'k', 'x', 'x'} {
		opts := asReplica(t, d, string(rune('a'+i)))
		opts.Keys = testKeys(t, keys)
		tasks = append(tasks, begin(func() error { return second(openOptions(t, opts)) }))
	}
	failed := 0
	for i, k := range tasks {
		if err := k.wait(t); err != nil {
			failed++
			if !strings.Contains(err.Error(), "another key") {
				t.Errorf("server %d: %v", i, err)
			}
		}
	}
	if failed != 2 || (tasks[0].err == nil) != (tasks[1].err == nil) {
		t.Errorf("%d of 4 servers with two keys were refused", failed)
	}
}

// TestReplicasKeepTheirPosts: a server that starts ends the claims of posts that its former
// process and dead servers have left, and no other.
func TestReplicasKeepTheirPosts(t *testing.T) {
	t.Parallel()
	d, ctx := postgresserver.New(t, emptyPostgres(t)), t.Context()
	first := must[*datastore.Store](t)(openOptions(t, asReplica(t, d, "a")))
	second := must[*datastore.Store](t)(openOptions(t, asReplica(t, d, "b")))
	for _, owner := range []string{"a", "b", "dead"} {
		if err := first.Want(ctx, outgoing.Post{Key: owner, Kind: outgoing.PostIssue, Repo: "r", Body: "b"}); err != nil {
			t.Fatal(err)
		}
		if posts := must[[]outgoing.Post](t)(first.ClaimPosts(ctx, owner, noon, time.Hour/2, 1)); len(posts) != 1 {
			t.Fatalf("%s has claimed %d posts", owner, len(posts))
		}
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	again := must[*datastore.Store](t)(openOptions(t, asReplica(t, d, "b")))
	var free []string
	for _, p := range must[[]outgoing.Post](t)(again.ClaimPosts(ctx, "b", noon, time.Minute, 10)) {
		free = append(free, p.Key)
	}
	if strings.Join(free, " ") != "b dead" {
		t.Errorf("posts that can be claimed = %v, want those of b and of the dead server", free)
	}
}

// TestReplicaThatWasSilent: who was silent for longer than others wait stores nothing once a
// server has come that has the database for itself.
func TestReplicaThatWasSilent(t *testing.T) {
	t.Parallel()
	d := postgresserver.New(t, emptyPostgres(t))
	store := must[*datastore.Store](t)(openOptions(t, asReplica(t, d, "a")))
	for _, statement := range []string{
		`UPDATE replicas SET heartbeat_at = heartbeat_at - 60000000000`,
		`INSERT INTO leases (name, owner, expires_at) VALUES ('server', 'x y another machine', 9000000000000000000)`,
	} {
		if _, err := d.Query(statement); err != nil {
			t.Fatal(err)
		}
	}
	<-store.Lost()
	if err := store.CreateRun(t.Context(), newRun(1)); !errors.Is(err, holdfast.ErrLocked) {
		t.Errorf("CreateRun() = %v, want ErrLocked", err)
	}
}
