package intake

import (
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// marks are what an Intake remembers of repositories in memory, each by the
// repository's name: after a restart all of them are taken in again. It is safe for
// concurrent use.
type marks struct {
	// progress is sent when a repository was taken in for the first time, or could
	// not be fetched.
	progress *queue.Broadcast

	mu       sync.Mutex
	ready    map[string]bool            // was taken in once
	once     map[string]bool            // was taken in once, by this replica or another one, since this process runs
	resumed  map[string]bool            // all its clusters on record were asked for once
	recheck  map[string]map[string]bool // clusters to look at again with each head
	added    map[string]map[string]bool // those of them that others have asked for during the look at a head
	retagged map[string]catalog.TagSet  // tags that have moved since it was looked at
	relook   map[string]bool            // is looked at again although its head has not moved
	rejudged map[string]bool            // policies have moved since its open pull requests were asked for
	former   map[string]map[string]bool // names that its documents continue, when it was last taken in
	behind   map[string]bool            // another replica has taken in another head meanwhile
	tallies  map[string]*tally          // of those that were not taken in yet
	terms    map[string]int             // how often this replica has begun to lead it
}

func newMarks() *marks {
	return &marks{
		progress: queue.NewBroadcast(), ready: make(map[string]bool), once: make(map[string]bool), resumed: make(map[string]bool),
		recheck: make(map[string]map[string]bool), added: make(map[string]map[string]bool),
		former:   make(map[string]map[string]bool),
		retagged: make(map[string]catalog.TagSet), relook: make(map[string]bool), behind: make(map[string]bool),
		rejudged: make(map[string]bool),
		tallies:  make(map[string]*tally), terms: make(map[string]int),
	}
}

func (m *marks) isReady(repo string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ready[repo]
}

func (m *marks) markReady(repo string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready[repo] {
		m.ready[repo], m.once[repo] = true, true
		delete(m.tallies, repo)
		m.progress.Send()
	}
}

// begin notes that the clusters of a repository are looked at from now on, and counted by t
// if that was never done.
func (m *marks) begin(repo string, t *tally) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.added, repo)
	if !m.ready[repo] {
		m.tallies[repo] = t
	}
}

// hasBegun reports whether clusters of a repository were looked at, or are just now.
func (m *marks) hasBegun(repo string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ready[repo] || m.tallies[repo] != nil
}

// tallyOf is how far the first reading of a repository is, in words; empty if that is not
// known.
func (m *marks) tallyOf(repo string) string {
	m.mu.Lock()
	t := m.tallies[repo]
	m.mu.Unlock()
	if t == nil {
		return ""
	}
	return t.String()
}

// wasReady reports whether a repository was taken in once since this process runs, by
// whatever replica: while another one takes over it is as good as before.
func (m *marks) wasReady(repo string, elsewhere func(repo string) bool) bool {
	taken := elsewhere(repo)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.once[repo] = m.once[repo] || taken
	return m.once[repo]
}

// forget forgets what is remembered of a repository: another replica has led it meanwhile.
func (m *marks) forget(repo string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, flags := range []map[string]bool{m.ready, m.resumed, m.relook, m.behind, m.rejudged} {
		delete(flags, repo)
	}
	for _, names := range []map[string]map[string]bool{m.recheck, m.added, m.former} {
		delete(names, repo)
	}
	delete(m.retagged, repo)
	delete(m.tallies, repo)
	m.terms[repo]++
}

// term counts how often this replica has begun to lead a repository.
func (m *marks) term(repo string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.terms[repo]
}

// Forgotten is what other repositories have had looked at again in one.
type Forgotten struct {
	Relook, Behind bool
	Recheck        []string // clusters
}

// handOver returns, and forgets, what others have had looked at again in a repository that this
// replica does not lead.
func (m *marks) handOver(repo string) Forgotten {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := Forgotten{Relook: m.relook[repo], Behind: m.behind[repo], Recheck: slices.Sorted(maps.Keys(m.recheck[repo]))}
	delete(m.relook, repo)
	delete(m.behind, repo)
	delete(m.recheck, repo)
	delete(m.added, repo)
	delete(m.retagged, repo) // its leader sees the tags, too
	return f
}

// recheckIn are the clusters of a repository to look at again with each head.
func (m *marks) recheckIn(repo string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.recheck[repo]))
}

// setRecheck replaces them with those that a head leaves to be looked at again. What others
// have asked for since that was begun stays: it may have been looked at before.
func (m *marks) setRecheck(repo string, clusters map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := maps.Clone(m.added[repo])
	if all == nil {
		all = make(map[string]bool, len(clusters))
	}
	maps.Copy(all, clusters)
	m.recheck[repo] = all
}

func (m *marks) addRecheck(repo, cluster string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, marked := range []map[string]map[string]bool{m.recheck, m.added} {
		if marked[repo] == nil {
			marked[repo] = make(map[string]bool)
		}
		marked[repo][cluster] = true
	}
}

// setFormer notes which names the documents of a repository continue, and returns, sorted,
// those that they did not, or do no longer.
func (m *marks) setFormer(repo string, now map[string]bool) (changed []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.former[repo]
	m.former[repo] = now
	for name := range now {
		if !was[name] {
			changed = append(changed, name)
		}
	}
	for name := range was {
		if !now[name] {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed
}

// addRetagged asks for another look at a repository for tags that have moved.
func (m *marks) addRetagged(repo string, tags catalog.TagSet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.retagged[repo] == nil {
		m.retagged[repo] = make(catalog.TagSet)
	}
	maps.Copy(m.retagged[repo], tags)
}

// takeRetagged returns the tags that a repository is to be looked at again for,
// and forgets them; nil if there are none.
func (m *marks) takeRetagged(repo string) catalog.TagSet {
	m.mu.Lock()
	defer m.mu.Unlock()
	tags := m.retagged[repo]
	delete(m.retagged, repo)
	return tags
}

// setResumed notes that all clusters of a repository on record are asked for.
func (m *marks) setResumed(repo string) { m.set(m.resumed, repo) }

func (m *marks) isResumed(repo string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resumed[repo]
}

func (m *marks) setRelook(repo string)       { m.set(m.relook, repo) }
func (m *marks) takeRelook(repo string) bool { return m.take(m.relook, repo) }
func (m *marks) setBehind(repo string)       { m.set(m.behind, repo) }
func (m *marks) takeBehind(repo string) bool { return m.take(m.behind, repo) }

func (m *marks) set(flags map[string]bool, repo string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	flags[repo] = true
}

// take returns what was set for a repository in flags, and clears it.
func (m *marks) take(flags map[string]bool, repo string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	set := flags[repo]
	delete(flags, repo)
	return set
}
