package v1

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/replica"
)

// Agent is what the server knows about an agent.
type Agent struct {
	ID        string             `json:"id"`
	Runner    string             `json:"runner,omitempty"`    // The runner that it belongs to.
	Living    bool               `json:"living"`              // It contacted the server recently, or waits for a run.
	Kinds     []holdfast.RunKind `json:"kinds"`               // The kinds of runs that it executes.
	Projects  []string           `json:"projects,omitempty"`  // It executes only runs of these projects; absent: all.
	Isolation string             `json:"isolation,omitempty"` // How it isolates engines; "none" if it must not, "unavailable" if nothing that it may use works. Absent counts as "none".
	Refused   string             `json:"refused,omitempty"`   // Why it gets no runs; absent: it gets runs.
	Platform  string             `json:"platform,omitempty"`  // GOOS_GOARCH.
	Host      string             `json:"host,omitempty"`
	Version   string             `json:"version,omitempty"`
	Slots     int                `json:"slots,omitempty"` // Attempts at once; absent: not known.
	Since     time.Time          `json:"since"`           // When this process of it first contacted this server.
	SeenAt    time.Time          `json:"seenAt"`          // When it last contacted the server.
	Runs      []string           `json:"runs,omitempty"`  // The runs that it executes.
}

// AgentOf returns what the API says of an agent.
func AgentOf(a protocol.AgentStatus) Agent {
	if a.Kinds == nil {
		a.Kinds = []holdfast.RunKind{} // null surprises clients
	}
	return Agent(a)
}

// Replica is a server that uses the database, alone or with others.
type Replica struct {
	Identity    string    `json:"identity"` // Names it in leases, and its agents.
	Name        string    `json:"name"`     // Machine and process.
	Address     string    `json:"address,omitempty"`
	Version     string    `json:"version"`
	Protocol    int       `json:"protocol"` // That it speaks with agents.
	Schema      int64     `json:"schema"`   // Of the database, that it knows.
	StartedAt   time.Time `json:"startedAt"`
	HeartbeatAt time.Time `json:"heartbeatAt"` // Its last sign of life. Times are of the database's clock.
	Living      bool      `json:"living"`      // That was recent.

	Leads     []string `json:"leads,omitempty"`     // The repositories that it leads. A server without others leads all, and lists none.
	Schedules bool     `json:"schedules,omitempty"` // It leads the work that belongs to no repository: the schedule of drift checks, silent attempts.
}

// ReplicaOf returns what the API says of a replica.
func ReplicaOf(r replica.Replica) Replica { return Replica(r) }

// AuditEntry is one line of the audit trail.
type AuditEntry struct {
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`  // A person, the name of a token, or "holdfast".
	Action string    `json:"action"` // Such as "run.cancel", or "cluster.suspend" and "cluster.resume".
	Object string    `json:"object"` // A cluster, a run, a pull request.
	Detail string    `json:"detail,omitempty"`
	Origin string    `json:"origin,omitempty"` // The origin: an address, and the credential that was used.
}

// AuditEntryOf returns what the API says of an entry.
func AuditEntryOf(e holdfast.AuditEntry) AuditEntry { return AuditEntry(e) }

// Version says which server this is.
type Version struct {
	Version string    `json:"version"`
	Time    time.Time `json:"time"` // What time it is at the server.
}

// Caller is the caller of the API and its rights.
type Caller struct {
	Name     string   `json:"name"`               // As in the audit trail.
	Role     string   `json:"role"`               // The strongest in any project: viewer, operator, approver or admin.
	Projects []string `json:"projects,omitempty"` // Whose clusters they see; absent: all.
	Roles    []Grant  `json:"roles,omitempty"`    // By project.
	Via      string   `json:"via"`                // The credential: token, of the configuration; personal, created by a person; session.
	ID       string   `json:"id"`                 // The name of the token of the configuration, the ID of the personal token or of the session.
	Person   *Person  `json:"person,omitempty"`   // Absent: a token of the configuration, which belongs to no person.
	// FormToken must be sent with changes in a session, as the header X-CSRF-Token.
	FormToken string `json:"formToken,omitempty"`
}

// Grant is a role in a project.
type Grant struct {
	Project string `json:"project"` // "*": in all of them.
	Role    string `json:"role"`
}

// Person says who somebody is.
type Person struct {
	Issuer  string `json:"issuer"`  // The issuer of OpenID Connect tokens, or "forge:" and a code host's name.
	Subject string `json:"subject"` // Who it is there.
}

// CallerOf returns what the API says of who asks.
func CallerOf(who access.Principal, formToken string) Caller {
	caller := Caller{Name: who.Name, Role: string(who.Grants.Highest()), Via: string(who.Via), ID: who.ID, FormToken: formToken}
	caller.Projects, _ = who.Grants.Projects(access.Viewer)
	for _, project := range slices.Sorted(maps.Keys(who.Grants)) {
		caller.Roles = append(caller.Roles, Grant{Project: project, Role: string(who.Grants[project])})
	}
	if !who.Person.IsZero() {
		caller.Person = &Person{Issuer: who.Person.Issuer, Subject: who.Person.Subject}
	}
	return caller
}

// ReasonInfo explains a reason why something waits, was refused or failed.
type ReasonInfo struct {
	Reason    holdfast.Reason `json:"reason"`
	Words     string          `json:"words"` // A clause about the cluster, the pull request or the run.
	Effect    holdfast.Effect `json:"effect"`
	Commands  []holdfast.Verb `json:"commands,omitempty"`    // The commands that help, best first.
	Does      string          `json:"does,omitempty"`        // What the first command does.
	Hint      string          `json:"hint,omitempty"`        // What else to do.
	Who       string          `json:"who,omitempty"`         // Who may act; absent: nobody has to.
	Line      string          `json:"commandLine,omitempty"` // The command line that helps, with CLUSTER for its name.
	Cause     bool            `json:"cause,omitempty"`       // Attempts fail because of it.
	Transient string          `json:"transient,omitempty"`   // Of a cause: when it is retried; absent: never.
}

// ReasonOf returns what the API says of a reason.
func ReasonOf(r holdfast.Reason) ReasonInfo {
	info := r.Info()
	return ReasonInfo{
		Reason: r, Words: info.Words, Effect: info.Effect, Commands: info.Next, Does: info.Does, Hint: info.Hint, Who: info.Who, Line: r.Command(""),
		Cause: r.IsCause(), Transient: info.Transient,
	}
}

// Event says that a cluster, a run or a pull request has changed, was created, or was
// deleted. Read the object for its current state.
type Event struct {
	Kind    holdfast.ChangeKind `json:"kind"`
	Name    string              `json:"name"`              // Of a pull request: repo#number.
	Cluster string              `json:"cluster,omitempty"` // Of a cluster and of a run.
	Deleted bool                `json:"deleted,omitempty"`
}

// EventOf returns what the API says of a change.
func EventOf(c holdfast.Change) Event {
	return Event{Kind: c.Kind, Name: c.Name, Cluster: c.Cluster, Deleted: c.Deleted}
}

// Readiness is the answer of /readyz.
type Readiness struct {
	Ready    bool         `json:"ready"`
	Reasons  []string     `json:"reasons,omitempty"`  // What it waits for.
	Warnings []string     `json:"warnings,omitempty"` // What is wrong although it is ready.
	Agents   []AgentCount `json:"agents,omitempty"`   // The living ones.
}

// AgentCount says how many living agents are alike.
type AgentCount struct {
	Kinds     []holdfast.RunKind `json:"kinds"`     // The kinds of runs that they execute.
	Isolation string             `json:"isolation"` // How they isolate engines.
	Count     int                `json:"count"`
}
