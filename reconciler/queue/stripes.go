package queue

import (
	"fmt"
	"hash/fnv"
	"sync"

	"github.com/holdfast-dev/holdfast"
)

// Stripes is a lock for each request, of which some share one. The zero value is
// unlocked.
type Stripes struct{ stripes [64]sync.Mutex }

// Lock locks what a request names.
func (s *Stripes) Lock(req holdfast.Request) (unlock func()) {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%s/%s", req.Cluster, req.PullRequest) // never fails
	m := &s.stripes[h.Sum32()%uint32(len(s.stripes))]
	m.Lock()
	return m.Unlock
}
