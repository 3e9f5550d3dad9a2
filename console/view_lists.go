package console

import "time"

// QueueView is what runs, what waits, and who executes it.
type QueueView struct {
	Running  []RunRow
	Waiting  []QueuedRow
	Recent   RunList
	Agents   []AgentRow
	Runners  []RunnerRow
	NoAccess string // why agents are not shown
	Filters  []Option
	Pager    Pager
}

func (QueueView) page() string { return "queue" }

// QueuedRow is a run that waits for an agent.
type QueuedRow struct {
	Position             int
	Kind, Href           string
	Cluster, ClusterHref string
	Project, Runner      string
	Ahead                string
	Held                 string // why it waits besides its turn
	Since                time.Time
}

// AgentRow is an agent.
type AgentRow struct {
	ID, Runner, Host  string
	State             State
	Kinds             string
	Isolation         State
	Refused           string
	Version, Platform string
	Slots             string
	Runs              []Link
	SeenAt            time.Time
}

// RunnerRow is a runner.
type RunnerRow struct {
	Name, Type           string
	Agents, Environments int
	State                State
	Why                  string
}

// DriftListView are clusters that are not as they were applied.
type DriftListView struct {
	Items   []DriftRow
	Shown   int
	Drifted int
	Failed  int
	Clean   int
	Never   int
	Options []Option
	Pager   Pager
}

func (DriftListView) page() string { return "drift" }

// DriftRow is a cluster that has drifted.
type DriftRow struct {
	Cluster, Href        string
	Project, Environment string
	State                State
	What                 string
	Causes               []string
	Policy               string
	Since, CheckedAt     time.Time
	Issue                string
}

// TemplatesView are templates and who uses them.
type TemplatesView struct {
	Items    []TemplateRow
	NoAccess string
}

func (TemplatesView) page() string { return "templates" }

// TemplateRow is a template in the list.
type TemplateRow struct {
	Name, Href, Repo string
	Newest           string
	Versions         int
	Users, Behind    int
	Proposed         int
	Trouble          string
}

// TemplateView is one template.
type TemplateView struct {
	Name     string
	Facts    []Fact
	Alerts   []Alert
	Versions []VersionRow
	Users    []UserRow
	More     int
}

func (TemplateView) page() string { return "template" }

// VersionRow is a version of a template.
type VersionRow struct {
	Version, Tag, Revision string
	Clusters, Share        int // share of all users, in percent
	Href                   string
	Trouble                string
}

// UserRow is a cluster that uses a template.
type UserRow struct {
	Cluster, Href    string
	Version, Applied string
	Behind           int
	Next             string
	Proposal         Link
	Trouble          string
}

// AuditView is the audit trail.
type AuditView struct {
	Object   string
	Items    []AuditRow
	Pager    Pager
	NoAccess string
}

func (AuditView) page() string { return "audit" }

// SettingsView is who one is, and how the server is set up.
type SettingsView struct {
	Who         []Fact
	Server      []Fact
	Replicas    []ReplicaRow
	Suspensions []SuspensionRow
	Themes      []Option
}

func (SettingsView) page() string { return "settings" }

// ReplicaRow is a server that has the database.
type ReplicaRow struct {
	Name, Version, Leads string
	State                State
	HeartbeatAt          time.Time
}

// SuspensionRow is what is suspended.
type SuspensionRow struct {
	What, Href, By, Reason string
	At                     time.Time
}

// LoginView asks for a token, or for the identity provider.
type LoginView struct {
	Next     string
	Failed   string // why it did not work
	Provider string // name of the identity provider; empty: there is none
	Insecure bool   // the browser would refuse the cookie
	Code     string // begins a session without a token, once somebody confirms it; empty: there is none
}

func (LoginView) page() string { return "login" }

// ProblemView says what did not work.
type ProblemView struct {
	Status  int
	Title   string
	Detail  string
	Hint    string
	Command string
	Back    Link
}

func (ProblemView) page() string { return "problem" }

// DeliveriesView are webhooks that were taken in.
type DeliveriesView struct {
	NoAccess string
	Items    []DeliveryRow
	Pager    Pager
}

func (DeliveriesView) page() string { return "deliveries" }

// DeliveryRow is one of them.
type DeliveryRow struct {
	At                 time.Time
	Event, Repo, About string
	State              State
	Result, ID, Took   string
}
