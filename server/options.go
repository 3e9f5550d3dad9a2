package server

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/server/launchdesk"
	"github.com/holdfast-dev/holdfast/server/session"
)

// Options are what a Server needs.
type Options struct {
	API      API
	Agents   Agents
	Webhooks http.Handler // mounted at /webhooks/ of the public listener; nil: there are none
	Listen   Listeners
	Health   Health
	Limits   Limits
	Audit    Auditor // puts what was refused on record; nil: it is only logged
	System   System
}

// API is what the API's listener needs. All are required unless noted.
type API struct {
	Records    Records
	Artefacts  Artefacts
	Commander  Commander
	Registry   Registry
	Rescuer    Rescuer // states that could not be saved; nil: the API has no routes for them
	Local      Local   // comments and statuses of the local forge; nil: there is none
	Posts      Posts   // what was posted on other forges; nil: not shown
	Runners    Runners
	Deliveries Deliveries // nil: the API has no list of webhooks
	Proposer   Proposer   // nil: the API has no route for proposals
	Asked      Requesters // who asked for which pull request, and cannot approve it; nil: nobody is recorded
	Tokens     []Token    // of people and tools; none, and no Login: the API refuses everybody
	Login      Login

	// Hosts are the names, besides localhost, under which the API is reached. Where
	// it listens on loopback only, /readyz and /metrics answer under no other name.
	Hosts []string
}

// Login is what it takes to log in. Its zero value means that nobody can.
type Login struct {
	Sessions session.Store  // nil: there are no sessions
	Lists    SessionLists   // of the same; nil: the API has no routes for sessions and tokens
	People   session.People // nil: sessions are for tokens of the configuration alone
	Tokens   PersonalTokens // nil: the API has no routes for sessions and tokens
	Key      []byte         // secret, the same for all replicas
	Times    session.Times
	// Pages are those of the identity provider, below session.LoginPath, which begin
	// sessions; nil: there are none.
	Pages    func(sessions *session.Sessions) http.Handler
	Provider string       // the identity provider's name; empty: there is none
	Show     session.Show // the login page; nil: that of the console
}

// Agents is what the listeners of agents need. All are required unless noted.
type Agents struct {
	Dispatcher Dispatcher
	Registry   Registry
	Runs       AttemptRecords
	Blobs      Blobs
	States     States
	Tokens     []AgentToken     // for claims; none: no agent gets a run by one
	Keys       Keys             // for claims of agents that have keys instead
	Tickets    Tickets          // of what runners launch; nil: none does
	Launches   *launchdesk.Desk // for those who launch elsewhere; nil: nobody may
	Refused    func(why string) // counts refused claims: token, key, agent, kind, taken, isolation, protocol, ticket or second; nil counts nothing
	Issuer     Issuer           // of tokens for clouds, whose documents the public listener serves; nil: there is none
}

// Health is what /readyz and /metrics answer with.
type Health struct {
	// Ready returns what the server still waits for, in words; none means
	// ready. Nil means always ready. It must not block.
	Ready func() []string
	// Lacking returns what is wrong and keeps the server from nothing, in words, such
	// as that there is no agent for some runs. Nil: nothing ever. It must not block.
	Lacking func() []string
	Metrics http.Handler // mounted at /metrics of the API listener; nil: there are none
}

// Limits bound what peers send and how long they take. A zero means the default.
type Limits struct {
	Artefact int64 // bytes of one artefact, besides protocol.ArtefactLimit; 1 GiB
	State    int64 // bytes of one state; 512 MiB
	// Patience is for a body or, with agents, for the next piece of one; 30 s. A header has
	// a third of it, and at least 10 s if Patience is as long.
	Patience    time.Duration
	CommandWait time.Duration // for a command's outcome to be known; 30 s
	Drain       time.Duration // for open requests to end when a listener closes; 10 s
}

// System is what the server is part of.
type System struct {
	Version string           // shown by the API
	Logger  *slog.Logger     // nil discards
	Now     func() time.Time // nil means time.Now
}

// Listeners are where a Server listens.
type Listeners struct {
	Public Listener // off if it has no Address
	API    Listener // off if it has no Address
	Agents Listener // off if it has no Address
	Socket Socket   // the agents' listener on this machine; off if it has no Path
}

// Listener is a TCP address that a server listens on.
type Listener struct {
	Address string      // host:port; port 0 takes any that is free
	TLS     *tls.Config // nil: plain HTTP, for a loopback address or behind a proxy
}

// Socket is a Unix socket that a server listens on. It is made with mode 0600,
// or 0660 if it is shared.
type Socket struct {
	Path string // its folder must exist and be reachable for the agent's user
	// ChangeOwner gives the socket to UID and GID, those of an agent that runs
	// as another user. It takes root.
	ChangeOwner bool
	Shared      bool // with the members of the group GID: mode 0660
	UID, GID    int
}

func (o *Options) setDefaults() {
	for _, size := range []struct {
		of    *int64
		bytes int64
	}{{&o.Limits.Artefact, 1 << 30}, {&o.Limits.State, 512 << 20}} {
		if *size.of == 0 {
			*size.of = size.bytes
		}
	}
	for _, wait := range []struct {
		of   *time.Duration
		time time.Duration
	}{{&o.Limits.Patience, 30 * time.Second}, {&o.Limits.CommandWait, 30 * time.Second}, {&o.Limits.Drain, 10 * time.Second}} {
		if *wait.of == 0 {
			*wait.of = wait.time
		}
	}
	if o.Health.Ready == nil {
		o.Health.Ready = func() []string { return nil }
	}
	if o.Health.Lacking == nil {
		o.Health.Lacking = func() []string { return nil }
	}
	if o.System.Logger == nil {
		o.System.Logger = slog.New(slog.DiscardHandler)
	}
	if o.System.Now == nil {
		o.System.Now = time.Now
	}
}
