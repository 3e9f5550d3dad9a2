package runner

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/holdfast-dev/holdfast"
)

// checkWriter refuses an engine that nobody has named for a state that the other
// one has written: a cluster that is taken over from elsewhere would be converted
// by its first apply. Of a cluster that was applied here, and of a state of
// Holdfast's own, it is known who wrote it.
func (t *attempt) checkWriter() error {
	if t.a.OwnState || t.a.Exact || t.a.Engine.Name != "" || t.a.PinName != "" {
		return nil
	}
	wrote, why := writerOf(t.pulled)
	if wrote == "" || wrote == t.engine.name {
		return nil
	}
	return &attemptError{
		cause: holdfast.CauseInvalidConfiguration,
		err:   fmt.Errorf("the state was written by %s (%s), and nothing says that %s shall take it over", wrote, why, t.engine.name),
		hint:  fmt.Sprintf("set spec.engine.name to %s to keep the engine, or to %s to change it", wrote, t.engine.name),
	}
}

// writerOf returns the engine that has evidently written a state, and what says
// so; empty if nothing does. The engines' states differ in where providers come
// from by default.
func writerOf(document []byte) (engine, why string) {
	var state struct {
		Version   string `json:"terraform_version"`
		Resources []struct {
			Provider string `json:"provider"`
		} `json:"resources"`
	}
	if json.Unmarshal(document, &state) != nil {
		return "", ""
	}
	if v, err := version.NewVersion(state.Version); err == nil && v.Core().LessThan(firstTofu) {
		return engineTerraform, "its version is " + state.Version
	}
	for _, registry := range []struct{ host, engine string }{
		{"registry.opentofu.org", engineTofu}, {"registry.terraform.io", engineTerraform},
	} {
		for _, resource := range state.Resources {
			if strings.Contains(resource.Provider, `["`+registry.host+`/`) {
				return registry.engine, "its providers are from " + registry.host
			}
		}
	}
	return "", ""
}
