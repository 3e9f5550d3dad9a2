package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// Server says who wants a database.
type Server struct {
	// Identity is a name that no other server of the database has.
	Identity string
	// Place is a name of the data folder on this machine that no other folder has while the
	// machine is up, and that one server at most has at a time. Empty: unknown. The process
	// that had the database in our place is dead.
	Place string
	// Name is for people: which process of which machine.
	Name string
	// Nonce is new with each start.
	Nonce string
	// Alone is why the server can have the database only for itself; empty: it can share it.
	Alone string

	Version  string // of the program
	Protocol int    // between agents and the server
	Schema   int64  // that the program knows
	Address  string // where people find it; empty: unknown
	Blobs    string // the bucket: the same for all who share a database
	Locks    string // where locks are
}

// owner is what a server that is alone is called in its lease.
func (s Server) owner() string { return strings.Join([]string{s.Place, s.Nonce, s.Name}, " ") }

// Peer is a server that has, or had, a database.
type Peer struct {
	Server
	StartedAt, HeartbeatAt time.Time // by the database's clock
	Living                 bool      // it has given a sign of life lately
}

const peerColumns = `identity, nonce, place, name, alone, version, protocol, schema_version, address, blobs, locks, started_at, heartbeat_at,
	heartbeat_at > ` + clock + ` - $1::bigint`

// Peers lists the servers that have a database and those that died in it lately, by identity.
func (p *Pools) Peers(ctx context.Context) ([]Peer, error) {
	peers, err := peersOf(ctx, p.Readers)
	return peers, Explained(err)
}

func peersOf(ctx context.Context, q interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
},
) (peers []Peer, err error) {
	rows, err := q.QueryContext(ctx, `SELECT `+peerColumns+` FROM replicas WHERE heartbeat_at > `+clock+` - $2::bigint ORDER BY identity`,
		int64(leaseTime), int64(deadKnown))
	if err != nil {
		return nil, fmt.Errorf("list the servers of the database: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var r Peer
		var started, heartbeat int64
		err := rows.Scan(&r.Identity, &r.Nonce, &r.Place, &r.Name, &r.Alone, &r.Version, &r.Protocol, &r.Schema, &r.Address, &r.Blobs, &r.Locks,
			&started, &heartbeat, &r.Living)
		if err != nil {
			return nil, fmt.Errorf("read a server of the database: %w", err)
		}
		r.StartedAt, r.HeartbeatAt = time.Unix(0, started).UTC(), time.Unix(0, heartbeat).UTC()
		peers = append(peers, r)
	}
	return peers, rows.Err()
}

// Living is a condition of SQL for a column with the identity of a server that lives, by the
// database's clock.
func Living(column string) string {
	return fmt.Sprintf(`EXISTS (SELECT 1 FROM replicas AS living WHERE living.identity = %s AND living.heartbeat_at > %s - %d)`, column, clock, int64(leaseTime))
}

// Clause is the time of the database in SQL, moved by a parameter in nanoseconds.
const Clause = `(` + clock + ` + ?)`
