// Which engine has written a state.

package engine

import (
	"encoding/json"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// WriterOf returns the engine that has evidently written a state, and what shows that;
// empty if nothing does, or if it has no resources. The engines' states differ in where
// providers come from by default.
func WriterOf(document []byte) (engine, why string) {
	var state struct {
		Version   string `json:"terraform_version"`
		Resources []struct {
			Provider string `json:"provider"`
		} `json:"resources"`
	}
	if json.Unmarshal(document, &state) != nil || len(state.Resources) == 0 {
		return "", ""
	}
	if v, err := version.NewVersion(state.Version); err == nil && v.Core().LessThan(firstTofu) {
		return modulecode.Terraform, "its version is " + state.Version
	}
	for _, registry := range []struct{ host, Binary string }{
		{"registry.opentofu.org", modulecode.Tofu}, {"registry.terraform.io", modulecode.Terraform},
	} {
		for _, resource := range state.Resources {
			if strings.Contains(resource.Provider, `["`+registry.host+`/`) {
				return registry.Binary, "its providers are from " + registry.host
			}
		}
	}
	return "", ""
}
