package catalog

import (
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rootmodule"
)

// namesOfSecrets are the names of credentials that secret variables refer to, sorted.
func namesOfSecrets(secrets ...map[string]rootmodule.SecretRef) []string {
	names := make(map[string]bool)
	for _, refs := range secrets {
		for _, ref := range refs {
			if ref.Env != "" {
				names[ref.Env] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// namesInDocument are the names of credentials that a document's variables refer to with
// {secret: {env: NAME}}, sorted.
func namesInDocument(c holdfast.Cluster) []string {
	names := make(map[string]bool)
	addNames(names, c.Variables)
	return slices.Sorted(maps.Keys(names))
}

func addNames(names map[string]bool, value any) {
	switch value := value.(type) {
	case map[string]any:
		if ref, ok := value["secret"].(map[string]any); ok && len(value) == 1 {
			if name, ok := ref["env"].(string); ok {
				names[name] = true
			}
		}
		for _, below := range value {
			addNames(names, below)
		}
	case []any:
		for _, item := range value {
			addNames(names, item)
		}
	}
}
