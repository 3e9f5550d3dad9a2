package console

import (
	"fmt"
	"html/template"
	"strings"
	"time"
)

// FleetView is the list of clusters, with what needs somebody.
type FleetView struct {
	Total    int      // clusters that one may see
	Matching int      // of these, what the filters select
	Projects int      // how many projects they are of
	Filtered bool     // a filter or a search is on
	Query    string   // what is searched for
	Hidden   []Hidden // other filters, for the form of the search
	Phases   []Option
	Needs    []Need
	NeedsAll int
	Running  []RunningRun
	RunsAll  string // how many run, such as 31 or 100+
	Filters  []Filter
	Clear    string
	New      string // address of the form for a new cluster; empty: nobody may
	Clusters []ClusterRow
	Pager    Pager
	Empty    Empty
}

func (FleetView) page() string { return "fleet" }

// Hidden is a field of a form that nobody sees.
type Hidden struct{ Name, Value string }

// Empty says why there is nothing, and what to do.
type Empty struct {
	Why, Next string
	Action    Action
}

// Need is one thing that waits for a person.
type Need struct {
	ID     string // unique on the page
	State  State
	What   string
	Href   string
	Why    string
	Since  time.Time
	Action Action
}

// RunningRun is a run that runs now.
type RunningRun struct {
	ID, Cluster, Href string
	What              string
	Since             time.Time
}

// ClusterRow is a cluster in the list.
type ClusterRow struct {
	Name, Href           string
	Project, Environment string
	Provider, Region     string
	Template, Version    string
	Phase                State
	Flags                []State // suspended, invalid, drifted
	Waiting              string
	Drift                State
	UpdatedAt            time.Time
}

// bar draws how many clusters are in each phase. Each that has one is seen.
func bar(phases []Option) template.HTML {
	total := 0
	for _, p := range phases {
		total += p.Count
	}
	if total == 0 {
		return ""
	}
	const width, least, gap = 1000.0, 6.0, 3.0
	var b strings.Builder
	b.WriteString(`<svg viewBox="0 0 1000 6" preserveAspectRatio="none" aria-hidden="true">`)
	free, shown := width, 0
	for _, p := range phases {
		if p.Count > 0 {
			free -= least + gap
			shown++
		}
	}
	at := 0.0
	for _, p := range phases {
		if p.Count == 0 {
			continue
		}
		w := least + max(0, free+gap)*float64(p.Count)/float64(total)
		fmt.Fprintf(&b, `<rect class="fill-%s" x="%.1f" y="0" width="%.1f" height="6"/>`, template.HTMLEscapeString(p.Label), at, w)
		at += w + gap
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // numbers and an escaped word
}
