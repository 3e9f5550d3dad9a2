package console

import "time"

// RunView is one run with its plan and its log.
type RunView struct {
	Title   string
	State   State
	Facts   []Fact
	Alerts  []Alert
	Acts    []Act
	Steps   []Step
	Took    string
	Plan    PlanView
	Log     LogView
	Running bool
}

func (RunView) page() string { return "run" }

// Step is a part of a run.
type Step struct {
	State State
	What  string
	Sub   string
	Time  string
	Next  bool // it has not begun
}

// PlanView is what a run would change, or has changed.
type PlanView struct {
	There    bool
	Why      string // in place of a plan
	Verdict  State  // whether it is what was reviewed
	Counts   []CountPill
	Changes  []Change
	Outputs  []Change
	Outside  []Change // what was changed outside of the engine
	Warnings []Alert
	More     int    // changes that are not shown
	MoreHref string // where all are
}

// CountPill is a number of changes of a kind.
type CountPill struct {
	Glyph, Word, Tone string
	Count             int
}

// Change is what happens to one resource.
type Change struct {
	ID      string // unique on the page
	Glyph   string
	Tone    string // add, del, violet; empty: grey
	Word    string // what the glyph means
	Address string
	Why     string
	Open    bool
	Lines   []DiffLine
	Notes   []string
}

// DiffLine is a line of a difference: of an attribute, or of a part of its value.
type DiffLine struct {
	Sign  string // + or -; empty: neither
	Path  string
	Value string
	Rest  bool // a note, not a value
}

// LogView is a part of a log.
type LogView struct {
	There    bool
	Run      string
	Attempt  int
	Attempts []Option
	First    int // number of the first line that is shown, from 1
	Lines    []LogLine
	Total    int
	Size     int64
	Live     bool   // it may grow
	Start    string // address of the first lines
	Before   string // address of the part before; empty: there is none
	After    string
	Latest   string
	Raw      string
	Query    string
	Hits     []Option // lines with what is searched for
	HitsMore bool
	Window   string // address of parts, for the script
	Empty    string // why there is none
}

// LogLine is a line of a log.
type LogLine struct {
	Number int
	Text   string
	More   int // bytes of the line that are not in Text
	Hit    bool
}

// LogWindowView is a part of a log without a page around it.
type LogWindowView struct{ Lines []LogLine }

func (LogWindowView) page() string { return "logwindow" }

// PullRequestView is a pull request, whole.
type PullRequestView struct {
	Ref       string
	Title     string
	State     State
	Facts     []Fact
	Link      string // at the code host
	Alerts    []Alert
	Acts      []Act
	Counts    []CountPill
	Summary   string
	Clusters  []PullRequestCluster
	Gates     []Gate
	Runs      RunList
	Statuses  []StatusRow
	UpdatedAt time.Time
}

func (PullRequestView) page() string { return "pullrequest" }

// PullRequestCluster is a cluster that a pull request affects, or several whose plans are
// equal.
type PullRequestCluster struct {
	ID     string
	Name   string
	Href   string
	State  State
	What   string // created, removed, sample
	Run    RunRow
	Plan   PlanView
	Open   bool
	Others []Node // clusters with an equal plan
	Alerts []Alert
}

// Gate is what has to hold before an apply.
type Gate struct {
	State State
	What  string
	Why   string
}

// StatusRow is a commit status.
type StatusRow struct {
	Context, Description string
	State                State
	NotSet               string
}

// PullRequestsView is a list of pull requests.
type PullRequestsView struct {
	States []Option
	Items  []PullRequestRow
	Pager  Pager
}

func (PullRequestsView) page() string { return "pullrequests" }

// PullRequestRow is a pull request in a list.
type PullRequestRow struct {
	Ref, Title, Href string
	Author           string
	State            State
	Clusters         int
	Why              string
	UpdatedAt        time.Time
}
