package holdfast

import "time"

// Protocol is the version of what agents and the server say to each other.
const Protocol = 1

// Replica is a server that has a database, alone or with others.
type Replica struct {
	Identity string // names it in leases, and its agents
	Name     string // process and machine, for people
	Address  string // where people find it; empty: unknown
	Version  string // of the program
	Protocol int    // that it speaks with agents
	Schema   int64  // of the database, that it knows
	// StartedAt and HeartbeatAt are times of the database's clock.
	StartedAt, HeartbeatAt time.Time
	Living                 bool // it has given a sign of life lately
}
