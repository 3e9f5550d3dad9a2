// What a state holds.

package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/jsontree"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

// stateDocument is the part of an engine's state that says what is in it.
type stateDocument struct {
	Version int `json:"version"`
	Outputs map[string]struct {
		Sensitive bool            `json:"sensitive"`
		Value     json.RawMessage `json:"value"`
	} `json:"outputs"`
	Resources []struct {
		Module    string `json:"module"`
		Mode      string `json:"mode"`
		Type      string `json:"type"`
		Name      string `json:"name"`
		Provider  string `json:"provider"`
		Instances []struct {
			IndexKey   any    `json:"index_key"`
			Deposed    string `json:"deposed"`
			Attributes struct {
				ID any `json:"id"`
			} `json:"attributes"`
			Sensitive [][]struct {
				Value any `json:"value"`
			} `json:"sensitive_attributes"`
		} `json:"instances"`
	} `json:"resources"`
}

// Contents is what a state holds.
type Contents struct {
	Objects   map[string]string   // ids of managed ones that are not deposed, by address
	Outputs   []holdfast.Output   // by name
	Resources []holdfast.Resource // managed ones, by address, at most 50,000
}

// ContentsOf reads a state as the engines store it. An empty one holds nothing.
func ContentsOf(state []byte) (Contents, error) {
	var found ResourceList
	objects := map[string]string{}
	if len(bytes.TrimSpace(state)) == 0 {
		return Contents{Objects: objects, Resources: found.Sorted()}, nil
	}
	var doc stateDocument
	if err := jsontree.Decode(state, &doc); err != nil {
		return Contents{}, fmt.Errorf("read state: %w", jsontree.Error(err))
	}
	if doc.Version != 4 {
		return Contents{}, fmt.Errorf("read state: its version is %d, not 4", doc.Version)
	}
	for _, r := range doc.Resources {
		if r.Mode != "managed" {
			continue
		}
		address := r.Type + "." + r.Name
		if r.Module != "" {
			address = r.Module + "." + address
		}
		for _, instance := range r.Instances {
			id := IDOf(instance.Attributes.ID)
			for _, path := range instance.Sensitive {
				if len(path) == 0 || path[0].Value == "id" {
					id = ""
				}
			}
			if at := address + indexOf(instance.IndexKey); instance.Deposed == "" {
				objects[at] = IDOf(instance.Attributes.ID)
			}
			found.Add(holdfast.Resource{
				Address: address + indexOf(instance.IndexKey), Type: r.Type, Provider: providerSource(r.Provider), ID: id,
			}, instance.Deposed != "")
		}
	}
	c := Contents{Objects: objects, Outputs: make([]holdfast.Output, 0, len(doc.Outputs)), Resources: found.Sorted()}
	for name, output := range doc.Outputs {
		c.Outputs = append(c.Outputs, holdfast.Output{Name: name, Sensitive: output.Sensitive, Value: output.Value})
	}
	slices.SortFunc(c.Outputs, func(a, b holdfast.Output) int { return strings.Compare(a.Name, b.Name) })
	return c, nil
}

// indexOf renders the key of an instance as the engines do.
func indexOf(key any) string {
	switch k := key.(type) {
	case json.Number:
		return "[" + k.String() + "]"
	case string:
		return `["` + redact.EscapeHCL(k) + `"]`
	default:
		return ""
	}
}

// providerSource takes the source address out of a provider's address in a
// state, such as module.x.provider["registry.terraform.io/hashicorp/aws"].west.
func providerSource(address string) string {
	_, rest, ok := strings.Cut(address, `provider["`)
	if !ok {
		return strings.TrimPrefix(address, "provider.")
	}
	source, _, _ := strings.Cut(rest, `"]`)
	return source
}
