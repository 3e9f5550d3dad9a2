package redact

import (
	"encoding/json"
	"slices"

	"github.com/holdfast-dev/holdfast/runner/jsontree"
)

// rawState is the part of an engine's state that says what is secret in it.
type rawState struct {
	Encrypted any `json:"encrypted_data"` // nil unless the engine has encrypted the state
	Outputs   map[string]struct {
		Value     any  `json:"value"`
		Sensitive bool `json:"sensitive"`
	} `json:"outputs"`
	Resources []struct {
		Instances []struct {
			Attributes json.RawMessage     `json:"attributes"`
			Sensitive  [][]json.RawMessage `json:"sensitive_attributes"`
		} `json:"instances"`
	} `json:"resources"`
}

// OfState returns the values of 8 characters or more that a state, as the
// engines store it, has in sensitive outputs and attributes, sorted; and whether
// it could be read, which an encrypted one cannot. Engines before Terraform 1.10
// do not mark there what is sensitive by a provider's schema.
func OfState(state []byte) (secrets []string, ok bool) {
	var raw rawState
	if len(state) == 0 {
		return nil, true
	}
	if jsontree.Decode(state, &raw) != nil || raw.Encrypted != nil {
		return nil, false
	}
	for _, output := range raw.Outputs {
		if output.Sensitive {
			secrets = Collect(secrets, output.Value, true)
		}
	}
	for _, resource := range raw.Resources {
		for _, instance := range resource.Instances {
			var attributes any
			if len(instance.Sensitive) == 0 || jsontree.Decode(instance.Attributes, &attributes) != nil {
				continue
			}
			for _, path := range instance.Sensitive {
				secrets = Collect(secrets, at(attributes, path), true)
			}
		}
	}
	slices.Sort(secrets)
	return slices.Compact(secrets), true
}

// at returns what a path leads to. Where it cannot be followed, as into a set,
// that is all that is there.
func at(value any, path []json.RawMessage) any {
	for _, raw := range path {
		var step struct {
			Value any `json:"value"`
		}
		if jsontree.Decode(raw, &step) != nil {
			return value
		}
		if index, ok := step.Value.(map[string]any); ok { // {"value": 0, "type": "number"}
			step.Value = index["value"]
		}
		next, ok := stepInto(dynamic(value), step.Value)
		if !ok {
			return value
		}
		value = next
	}
	return dynamic(value)
}

func stepInto(value, step any) (any, bool) {
	switch v := value.(type) {
	case map[string]any:
		key, ok := step.(string)
		if !ok {
			return nil, false
		}
		next, ok := v[key]
		return next, ok
	case []any:
		number, ok := step.(json.Number)
		if !ok {
			return nil, false
		}
		i, err := number.Int64()
		if err != nil || i < 0 || i >= int64(len(v)) {
			return nil, false
		}
		return v[i], true
	default:
		return nil, false
	}
}

// dynamic returns the value of an attribute whose type is stored with it.
func dynamic(value any) any {
	if m, ok := value.(map[string]any); ok && len(m) == 2 && m["type"] != nil {
		if inner, ok := m["value"]; ok {
			return inner
		}
	}
	return value
}

// Collect appends the values of 8 characters or more in value that marks, true
// or the shape of the value with true at its sensitive parts, say to be secret.
func Collect(secrets []string, value, marks any) []string {
	switch v := value.(type) {
	case string:
		if marks == true && len(v) >= minSecret {
			secrets = append(secrets, v)
		}
	case json.Number:
		if marks == true && len(v) >= minSecret {
			secrets = append(secrets, v.String())
		}
	case map[string]any:
		for key, child := range v {
			below := jsontree.Field(marks, key)
			if marks == true {
				below = true
			}
			secrets = Collect(secrets, child, below)
		}
	case []any:
		for i, child := range v {
			below := jsontree.Item(marks, i)
			if marks == true {
				below = true
			}
			secrets = Collect(secrets, child, below)
		}
	}
	return secrets
}
