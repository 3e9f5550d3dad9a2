package v1

import (
	"encoding/json"
	"regexp"

	"github.com/holdfast-dev/holdfast/rootmodule"
)

// masked stands where a value is not shown.
const masked = "(sensitive value)"

// secretName matches names of values that are shown to nobody, whoever wrote
// them down in plain text.
var secretName = regexp.MustCompile(
	`(?i)passw(or)?d|passphrase|secret|token|private_?key|credential|api_?key|access_?key|account_?key|connection_?string|kube_?config`)

func maskJSON(value json.RawMessage) json.RawMessage {
	if len(value) == 0 || string(value) == "null" {
		return value
	}
	return json.RawMessage(`"` + masked + `"`)
}

func maskMap(values map[string]any) map[string]any {
	if values == nil {
		return nil
	}
	shown := make(map[string]any, len(values))
	for key, value := range values {
		switch value.(type) {
		case nil, bool: // says nothing, as in enable_token_rotation
			shown[key] = value
		default:
			if isReference(value) {
				shown[key] = value
			} else if secretName.MatchString(key) {
				shown[key] = masked
			} else {
				shown[key] = maskValue(value)
			}
		}
	}
	return shown
}

// isReference reports whether a value refers to a secret instead of holding it:
// {secret: ...} with nothing next to it that could be a value.
func isReference(value any) bool {
	outer, _ := value.(map[string]any)
	inner, _ := outer["secret"].(map[string]any)
	if len(outer) != 1 {
		return false
	}
	var ref rootmodule.SecretRef
	known := 0
	for key, into := range map[string]*string{"env": &ref.Env, "file": &ref.File, "store": &ref.Store, "key": &ref.Key} {
		if text, ok := inner[key].(string); ok {
			*into = text
			known++
		}
	}
	return known == len(inner) && ref.Check() == nil
}

func maskValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return maskMap(value)
	case []any:
		shown := make([]any, len(value))
		for i, item := range value {
			shown[i] = maskValue(item)
		}
		return shown
	default:
		return value
	}
}
