package intake

import (
	"sync"
	"time"
)

// outages are the repositories that could not be fetched when they were last asked
// for. It is safe for concurrent use.
type outages struct {
	mu    sync.Mutex
	since map[string]outage // by repository
}

type outage struct {
	err error
	at  time.Time
}

// outagePatience is how long a repository that could not be fetched is not fetched
// again for the sake of a cluster: its own look is, and each attempt may take long.
const outagePatience = 30 * time.Second

func newOutages() *outages { return &outages{since: make(map[string]outage)} }

func (o *outages) begin(repo string, err error, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since[repo] = outage{err: err, at: at}
}

// end reports whether there was one.
func (o *outages) end(repo string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, was := o.since[repo]
	delete(o.since, repo)
	return was
}

// of returns what is wrong with a repository, nil if nothing is known, and reports
// whether that was found a moment ago.
func (o *outages) of(repo string, now time.Time) (fresh bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	found, ok := o.since[repo]
	return ok && now.Sub(found.at) < outagePatience, found.err
}
