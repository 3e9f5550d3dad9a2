package console

import "time"

// Frame is what all pages have around them.
type Frame struct {
	Title   string
	Here    string // the entry of the navigation that is current, by its Key
	Self    string // the address of this very page, with its query
	Theme   string // light or dark; empty: as the system has it
	Now     time.Time
	Who     Who
	Nav     []NavItem
	Crumbs  []Link
	Version string
	Alone   bool   // without navigation: signing in, errors before it
	Stream  bool   // changes are followed
	Seen    int64  // the number of the newest change when it was made
	Form    string // what forms must have that change something; empty: nothing
	Said    *Alert // what came of the form that was sent from this page; nil: none was
}

// Who is the person, or the token, that a page is shown to.
type Who struct {
	Name string
	Role string
}

// NavItem is an entry of the navigation.
type NavItem struct {
	Key, Label, Icon, Href string
	Count                  int  // shown if it is not zero
	Urgent                 bool // the count needs somebody
	Below                  bool // after the line
}

// Link leads somewhere. Without Href it is only a text.
type Link struct {
	Text, Href string
}

// State is a word with its mark.
type State struct {
	Word string
	Icon string
	Tone string // ok, info, warn, bad, violet; empty: grey
	Spin bool   // work that runs now
}

// Option is one choice of a filter, or the number of what is in a state, which leads to
// its list.
type Option struct {
	Label string
	Count int
	Href  string
	On    bool
}

// Filter is a menu of options of which one may be chosen.
type Filter struct {
	Label   string // such as Environment
	Value   string // what is chosen; empty: any
	Clear   string // address without it
	Options []Option
}

// Action is the one thing that helps.
type Action struct {
	Label, Href string
}

// Alert is trouble that says why, and what helps.
type Alert struct {
	Tone    string // bad, warn, info or ok
	Title   string
	Why     string
	Hint    string
	Command string // of holdfast
	Output  string // of an engine
	Items   []string
	Action  Action
	Acts    []Act
}

// Fact is a name with its value.
type Fact struct {
	Name  string
	Value string
	Href  string
	Mono  bool
	At    time.Time // in place of Value
	Tags  []string
}

// Pager leads to other parts of a list.
type Pager struct {
	First, Next string // addresses; empty: this is the first, or the last one
	Shown       int
	Noun        string
}
