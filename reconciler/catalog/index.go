package catalog

import (
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/location"
)

// catalogIndex tells for all catalogs of a repository which clusters may have to
// do with something. It may name more than are concerned, never fewer, as long
// as they are resolved.
type catalogIndex struct {
	mu      sync.Mutex
	readers map[string]map[string]bool // folder → names whose digest has ever depended on it
	located map[string]map[string]bool // state location → names that have ever had it
}

func newCatalogIndex() *catalogIndex {
	return &catalogIndex{readers: make(map[string]map[string]bool), located: make(map[string]map[string]bool)}
}

func (x *catalogIndex) add(name string, res *Resolution) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, dir := range res.reads {
		note(x.readers, dir, name)
	}
	if res.Location != "" && !holdfast.OwnState(res.Location) { // those are distinguished by their names
		note(x.located, location.Written(res.Location), name)
	}
}

func note(index map[string]map[string]bool, key, name string) {
	if index[key] == nil {
		index[key] = make(map[string]bool)
	}
	index[key][name] = true
}

// reading adds the names that may depend on a touched folder to names.
func (x *catalogIndex) reading(touched, names map[string]bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for dir := range touched {
		maps.Copy(names, x.readers[dir])
	}
}

// at returns the names that may have a state location, sorted.
func (x *catalogIndex) at(state string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Sorted(maps.Keys(x.located[location.Written(state)]))
}
