package datastore

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/datastore/peers"
	"github.com/holdfast-dev/holdfast/datastore/postgres"
	"github.com/holdfast-dev/holdfast/replica"
)

// Replica is what a server is among those that may share a database. Its zero value is of a
// server that has the database for itself.
type Replica struct {
	// Identity returns a name that no other server of the database has. It is asked for once
	// the data folder is ours. Nil: another name with each start.
	Identity func() (string, error)
	// Alone is why the server shares the database with no other, as it is said to people;
	// empty: it can. SQLite is never shared.
	Alone string

	Version  string // of the program
	Protocol int    // between agents and the server
	Address  string // where people find the server; empty: unknown
	Locks    string // where locks are; they may differ, as claims are made in SQL
}

// ReplicaStore keeps which servers have the database.
type ReplicaStore struct {
	*records
	me    replica.Replica
	alone bool // it has the database for itself
}

// Identity names this server among those that share the database.
func (s *ReplicaStore) Identity() string { return s.me.Identity }

// Replicas lists the servers that have the database and those that died in it within the last
// hour, by identity.
// One that has ended in good order is not among them.
func (s *ReplicaStore) Replicas(ctx context.Context) ([]replica.Replica, error) {
	if s.db.server == nil {
		me := s.me
		me.HeartbeatAt = s.now()
		return []replica.Replica{me}, nil
	}
	peers, err := s.db.server.Peers(ctx)
	if err != nil {
		return nil, fmt.Errorf("list replicas: %w", err)
	}
	led := make(map[string][]string)
	if peers := s.peers(); peers != nil {
		if led, err = peers.Led(ctx); err != nil {
			return nil, fmt.Errorf("list replicas: %w", err)
		}
	}
	replicas := make([]replica.Replica, len(peers))
	for i, p := range peers {
		replicas[i] = replicaOf(p)
		for _, repo := range led[p.Identity] {
			if repo == "" {
				replicas[i].Schedules = true
			} else {
				replicas[i].Leads = append(replicas[i].Leads, repo)
			}
		}
	}
	return replicas, nil
}

func replicaOf(p postgres.Peer) replica.Replica {
	return replica.Replica{
		Identity: p.Identity, Name: p.Name, Address: p.Address, Version: p.Version, Protocol: p.Protocol, Schema: p.Schema,
		StartedAt: p.StartedAt, HeartbeatAt: p.HeartbeatAt, Living: p.Living,
	}
}

// ReplicaLives reports whether a server has given a sign of life lately, by the database's
// clock. What one that is dead has begun, others may take over.
func (s *ReplicaStore) ReplicaLives(ctx context.Context, identity string) (bool, error) {
	if identity == s.me.Identity {
		return true, nil
	}
	if s.db.server == nil {
		return false, nil
	}
	var lives bool
	if err := s.db.reader().row(ctx, `SELECT `+postgres.Living("?"), identity).Scan(&lives); err != nil {
		return false, fmt.Errorf("look for replica %q: %w", identity, err)
	}
	return lives, nil
}

// Peers is what this server tells others of the database, and hears of them; nil if it has
// the database for itself.
func (s *Store) Peers() *peers.Peers { return s.peers() }

func (s *ReplicaStore) peers() *peers.Peers {
	if s.db.server == nil || s.alone {
		return nil
	}
	return peers.New(s.db.server.Writers)
}

// Now is the time that all servers of the database agree on: the database's, or of SQLite
// our own.
func (s *Store) Now() time.Time { return s.now() }

// whoWeAre is what a server is called that has a database.
func (s *Store) whoWeAre(opts Options) (postgres.Server, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown machine"
	}
	me := postgres.Server{
		Place: s.home.Place(), Nonce: randomHex(8), Name: fmt.Sprintf("%s (process %d)", host, os.Getpid()),
		Alone: opts.Replica.Alone, Version: opts.Replica.Version, Protocol: opts.Replica.Protocol, Address: opts.Replica.Address,
		Blobs: opts.Blobs.URL, Locks: opts.Replica.Locks,
	}
	me.Identity = me.Nonce
	if opts.Replica.Identity != nil {
		if me.Identity, err = opts.Replica.Identity(); err != nil {
			return me, err
		}
	} else {
		me.Alone = cmp.Or(me.Alone, "it was not started as a replica")
	}
	me.Schema, err = s.db.migrations.Latest()
	return me, err
}
