package replica

import "time"

// Replica is a server that has a database, alone or with others.
type Replica struct {
	Identity string // names it in leases, and its agents
	Name     string // machine and process, for people
	Address  string // where people find it; empty: unknown
	Version  string // of the program
	Protocol int    // that it speaks with agents
	Schema   int64  // of the database, that it knows

	StartedAt   time.Time // by the database's clock
	HeartbeatAt time.Time // its last sign of life, by the same
	Living      bool      // that was recent

	Leads     []string // repositories, by name; of a server without others none is listed
	Schedules bool     // it leads what belongs to no repository: drift checks, silent attempts
}
