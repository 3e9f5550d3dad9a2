package console

import "time"

// ClusterView is all of one cluster.
type ClusterView struct {
	Name      string
	Phase     State
	Summary   []Fact // in a line below the name
	Alerts    []Alert
	Change    string // address of the form that changes it; empty: nobody may
	Acts      []Act
	Tab       string // what the lower part shows
	Tabs      []Option
	Time      []TimeStep // conditions
	Facts     []Fact     // of the document
	Applied   []Fact
	Family    Family
	Drift     DriftView
	Resources ResourceList
	Outputs   []Output
	Runs      RunList
	History   []Moment
	Audit     []AuditRow
	Variables []Attribute
}

func (ClusterView) page() string { return "cluster" }

// TimeStep is a condition of a cluster.
type TimeStep struct {
	State State
	What  string
	Why   string
	Since time.Time
}

// Family is what a cluster depends on, and what depends on it.
type Family struct {
	Parents, Dependents []Node
	Self                string
}

// Node is a cluster in a graph.
type Node struct {
	Name, Href string
	State      State
	Depth      int
}

// DriftView is what the last check found.
type DriftView struct {
	State     State
	CheckedAt time.Time
	Due       time.Time
	RunHref   string
	Summary   string
	Changes   []Change
}

// ResourceList are resources that match a search.
type ResourceList struct {
	Query string
	Items []ResourceRow
	Pager Pager
}

// ResourceRow is a resource.
type ResourceRow struct {
	Address, Type, ID string
	RunHref           string
	ChangedAt         time.Time
}

// Output is an output value.
type Output struct {
	Name, Value string
	Secret      bool
	Omitted     int64
}

// Attribute is a value with its path.
type Attribute struct{ Path, Value string }

// RunList are runs.
type RunList struct {
	Items []RunRow
	Pager Pager
}

// RunRow is a run in a list.
type RunRow struct {
	ID, Href             string
	Kind                 string
	Cluster, ClusterHref string
	State                State
	Why                  string
	Counts               []CountPill
	PullRequest          Link
	Revision             string
	Agent                string
	CreatedAt            time.Time
	Took                 string
}

// Moment is a change of a phase or a condition.
type Moment struct {
	State    State
	What     string
	Why      string
	RunHref  string
	At       time.Time
	IsPhase  bool
	From, To string
}

// AuditRow is a line of the audit trail.
type AuditRow struct {
	At             time.Time
	Actor, Action  string
	Object, Detail string
	Href           string
}
