package policy

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/plandoc"
)

// FromDocument makes an input of a plan document, which has the changes of a plan and neither
// sensitive values, nor what the plan leaves as it is, nor what the engine says besides. A
// policy that asks for a sensitive value, or for one of the parts that are not there, is
// undecided. That an unchanged resource is missing cannot be noticed.
func FromDocument(doc plandoc.Document, about Context) (Input, error) {
	changes := make([]any, 0, len(doc.Resources))
	for _, r := range doc.Resources {
		change, err := storedChange(r.Actions, r.Before, r.After)
		if err != nil {
			return Input{}, fmt.Errorf("read %s: %w", r.Address, err)
		}
		change["replace_paths"] = storedPaths(r.Replace)
		if r.Importing != nil {
			change["importing"] = map[string]any{"id": Hidden{}}
		}
		item := map[string]any{
			"address": r.Address, "mode": "managed", "type": r.Type, "name": resourceName(r.Address),
			"provider_name": r.Provider, "change": change,
		}
		for key, text := range map[string]string{"previous_address": r.Previous, "action_reason": r.Reason, "deposed": r.Deposed} {
			if text != "" {
				item[key] = text
			}
		}
		changes = append(changes, item)
	}
	outputs := map[string]any{}
	for _, o := range doc.Outputs {
		change, err := storedChange(o.Actions, o.Before, o.After)
		if err != nil {
			return Input{}, fmt.Errorf("read output %s: %w", o.Name, err)
		}
		outputs[o.Name] = change
	}
	plan := map[string]any{"resource_changes": changes, "output_changes": outputs}
	for _, key := range []string{"format_version", "terraform_version", "planned_values", "prior_state", "configuration", "variables", "resource_drift", "relevant_attributes", "checks", "errored", "complete", "applyable", "timestamp"} {
		plan[key] = Hidden{}
	}
	return newInput(plan, about)
}

// storedChange is a change as engines print it.
func storedChange(actions []string, before, after plandoc.Value) (map[string]any, error) {
	list := make([]any, len(actions))
	for i, action := range actions {
		list[i] = action
	}
	change := map[string]any{"actions": list}
	for name, value := range map[string]plandoc.Value{"before": before, "after": after} {
		tree, err := value.Tree()
		if err != nil {
			return nil, err
		}
		shown, unknown, sensitive := divide(tree)
		change[name] = shown
		change[name+"_sensitive"] = orFalse(sensitive)
		if name == "after" {
			change["after_unknown"] = orFalse(unknown)
		}
	}
	return change, nil
}

func orFalse(v any) any {
	if v == nil {
		return false
	}
	return v
}

// divide takes the marks out of a tree: what is shown, with Hidden for what is not, and where
// something is unknown or sensitive, nil if nothing is. What is unknown is not in what is
// shown.
func divide(tree any) (shown, unknown, sensitive any) {
	switch v := tree.(type) {
	case plandoc.Mark:
		if v.Unknown {
			unknown = true
		}
		if v.HMAC != "" {
			return Hidden{}, unknown, true
		}
		return nil, unknown, nil
	case map[string]any:
		s, u, h := map[string]any{}, map[string]any{}, map[string]any{}
		for key, child := range v {
			one, two, three := divide(child)
			if mark, ok := child.(plandoc.Mark); !ok || mark.HMAC != "" {
				s[key] = one
			}
			if two != nil {
				u[key] = two
			}
			if three != nil {
				h[key] = three
			}
		}
		return s, notEmpty(u), notEmpty(h)
	case []any:
		s, u, h := make([]any, len(v)), make([]any, len(v)), make([]any, len(v))
		anyUnknown, anySensitive := false, false
		for i, child := range v {
			one, two, three := divide(child)
			s[i], u[i], h[i] = one, orFalse(two), orFalse(three)
			anyUnknown, anySensitive = anyUnknown || two != nil, anySensitive || three != nil
		}
		if anyUnknown {
			unknown = u
		}
		if anySensitive {
			sensitive = h
		}
		return s, unknown, sensitive
	default:
		return tree, nil, nil
	}
}

func notEmpty(m map[string]any) any {
	if len(m) == 0 {
		return nil
	}
	return m
}

// storedPaths are paths as engines print them: node_pool[0].size is ["node_pool", 0, "size"].
func storedPaths(paths []string) []any {
	out := make([]any, 0, len(paths))
	for _, path := range paths {
		parts := []any{}
		for path != "" {
			switch {
			case strings.HasPrefix(path, "["):
				end := strings.Index(path, "]")
				var step any
				dec := json.NewDecoder(strings.NewReader(path[1:]))
				dec.UseNumber()
				if dec.Decode(&step) == nil {
					end = int(dec.InputOffset()) + 1
				}
				if end < 0 {
					end = len(path) - 1
				}
				parts, path = append(parts, step), strings.TrimPrefix(path[end:], "]")
			case strings.HasPrefix(path, "."):
				path = path[1:]
			default:
				end := strings.IndexAny(path, ".[")
				if end < 0 {
					end = len(path)
				}
				parts, path = append(parts, path[:end]), path[end:]
			}
		}
		out = append(out, parts)
	}
	return out
}

// resourceName is the name in an address: this of module.a.aws_eks_cluster.this["x"].
func resourceName(address string) string {
	if strings.HasSuffix(address, "]") {
		if i := strings.LastIndex(address, "["); i >= 0 { // a key with a bracket in it makes a longer name
			address = address[:i]
		}
	}
	return address[strings.LastIndex(address, ".")+1:]
}
