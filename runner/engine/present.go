// Whether a state shows that its backend exists.

package engine

import (
	"encoding/json"
	"strings"

	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// Present reports whether a state that was read shows that its backend exists, and that
// init has nothing to add to a lock file for it: it does so for providers of which only
// the state has resources.
func Present(state, lock []byte) bool {
	var found struct {
		Lineage   string `json:"lineage"` // empty: there is none, and this stands in for it
		Resources []struct {
			Provider string `json:"provider"`
		} `json:"resources"`
	}
	if json.Unmarshal(state, &found) != nil || found.Lineage == "" {
		return false
	}
	locked := modulecode.LockedProviders(lock)
	for _, resource := range found.Resources {
		_, source, _ := strings.Cut(resource.Provider, `provider["`)
		source, _, _ = strings.Cut(source, `"]`)
		if _, ok := locked[source]; !ok && !strings.HasPrefix(source, builtinProviders) {
			return false
		}
	}
	return true
}

// builtinProviders are part of the engine.
const builtinProviders = "terraform.io/builtin/"
