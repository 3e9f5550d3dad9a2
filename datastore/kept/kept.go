package kept

import (
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast"
)

// MaxBytes bounds what is kept, by the size of the records as JSON. Decoded they take about
// twice as much.
const MaxBytes = 16 << 20

// PullRequests are decoded records. The zero value is empty. It is safe for concurrent use.
type PullRequests struct {
	mu sync.Mutex
	// Those that were used lately, and those that were before that: what is not used while
	// half of the bound is filled is forgotten. It takes no list of what was used when.
	lately, before map[holdfast.PullRequestRef]entry
	bytes          int // of lately
}

// entry is a record that is kept. Nobody changes it.
type entry struct {
	mark   string
	record holdfast.PullRequestRecord
	bytes  int
}

// Last returns a copy of the record that is kept of a pull request, with the mark of what it
// was decoded from; an empty mark, if nothing is kept. Whoever changes the copy, or what is in its
// lists, changes nobody else's; only what is in a cluster's document is everybody's.
func (p *PullRequests) Last(ref holdfast.PullRequestRef) (mark string, record holdfast.PullRequestRecord) {
	e := p.last(ref)
	return e.mark, copyOf(e.record)
}

func (p *PullRequests) last(ref holdfast.PullRequestRef) entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.lately[ref]; ok {
		return e
	}
	e, ok := p.before[ref]
	if ok {
		p.put(ref, e)
	}
	return e
}

// Keep keeps a copy of a record that was decoded from what has the mark, in place of the one
// that is kept of its pull request. One that is larger than half of the bound is not kept.
func (p *PullRequests) Keep(ref holdfast.PullRequestRef, mark string, record holdfast.PullRequestRecord, bytes int) {
	record = copyOf(record)
	clip(record)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put(ref, entry{mark, record, bytes})
}

func (p *PullRequests) put(ref holdfast.PullRequestRef, e entry) {
	p.bytes -= p.lately[ref].bytes
	delete(p.lately, ref)
	delete(p.before, ref)
	if e.bytes > MaxBytes/2 {
		return
	}
	if p.lately == nil || p.bytes+e.bytes > MaxBytes/2 {
		p.before, p.lately, p.bytes = p.lately, make(map[holdfast.PullRequestRef]entry), 0
	}
	p.lately[ref] = e
	p.bytes += e.bytes
}

// copyOf returns a record with its own lists.
func copyOf(r holdfast.PullRequestRecord) holdfast.PullRequestRecord {
	r.Verdicts, r.Approvals, r.Unshown = slices.Clone(r.Verdicts), slices.Clone(r.Approvals), slices.Clone(r.Unshown)
	r.Clusters, r.Faults, r.Settings = slices.Clone(r.Clusters), slices.Clone(r.Faults), slices.Clone(r.Settings)
	return r
}

// clip takes the room behind the lists that all copies of a record share: what is appended to
// one is then written elsewhere.
func clip(r holdfast.PullRequestRecord) {
	for i := range r.Approvals {
		a := &r.Approvals[i]
		a.Runs, a.Clusters = slices.Clip(a.Runs), slices.Clip(a.Clusters)
	}
	for i := range r.Clusters {
		d := &r.Clusters[i].Document
		d.DependsOn, d.Drift.Ignore = slices.Clip(d.DependsOn), slices.Clip(d.Drift.Ignore)
		d.Apply.Requires, d.Apply.Windows, d.Apply.Terms.Costs = slices.Clip(d.Apply.Requires), slices.Clip(d.Apply.Windows), slices.Clip(d.Apply.Terms.Costs)
	}
}
