package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/jsontree"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

// maxModules bounds how deep modules are nested.
const maxModules = 1_000

// survey is the first look at a plan: what is marked as secret anywhere in it,
// and what the state held that it was made from.
type survey struct {
	secrets   []string
	resources ResourceList
	outputs   []holdfast.Output

	version   string
	errored   bool
	variables map[string]any  // given values, by name
	sensitive map[string]bool // variables that the configuration marks
	code      code

	compared    bool                      // the following are wanted
	changes     map[objectKey]bool        // objects that change
	changesRead bool                      // all of them are known
	changed     map[string]bool           // addresses of which the current object changes
	prior       map[objectKey]priorObject // what these were
}

func (v *survey) read(s stream) error {
	v.variables, v.sensitive = map[string]any{}, map[string]bool{}
	v.changed, v.changes, v.prior = map[string]bool{}, map[objectKey]bool{}, map[objectKey]priorObject{}
	err := s.object(func(key string) error {
		switch key {
		case "format_version":
			return s.value(&v.version)
		case "errored":
			return s.value(&v.errored)
		case "resource_changes":
			err := s.list(func() error { return v.change(s, false) })
			v.changesRead = true
			return err
		case "resource_drift":
			return s.list(func() error { return v.change(s, true) })
		case "deferred_changes":
			return s.list(func() error { return v.deferred(s) })
		case "output_changes":
			return s.object(func(string) error { return v.outputChange(s) })
		case "action_invocations":
			return s.list(func() error { return v.invocation(s) })
		case "planned_values":
			return v.values(s, false)
		case "prior_state":
			return s.object(func(key string) error {
				if key == "values" {
					return v.values(s, true)
				}
				return s.skip()
			})
		case "variables":
			return v.variable(s)
		case "configuration":
			return v.configuration(s)
		default:
			return s.skip()
		}
	})
	if err != nil {
		return err
	}
	return v.end()
}

// end looks at the variables and checks what kind of document it was.
func (v *survey) end() error {
	for name, value := range v.variables {
		if v.sensitive[name] || redact.Name(name) {
			v.collect(value, true)
		}
	}
	v.variables = nil
	slices.Sort(v.secrets)
	v.secrets = slices.Compact(v.secrets)
	slices.SortFunc(v.outputs, func(a, b holdfast.Output) int { return strings.Compare(a.Name, b.Name) })
	switch {
	case !strings.HasPrefix(v.version, "0.") && !strings.HasPrefix(v.version, "1."):
		return fmt.Errorf("format version %q of the plan JSON is not one of 0.x and 1.x", v.version)
	case v.errored:
		return errors.New("the engine could not finish the plan")
	}
	return nil
}

func (v *survey) collect(value, marks any) {
	if jsontree.AnyTrue(marks) {
		v.secrets = redact.Collect(v.secrets, value, marks)
	}
	if len(v.secrets) > 4096 && len(v.secrets) == cap(v.secrets) { // the same secret is marked in several places
		slices.Sort(v.secrets)
		v.secrets = slices.Compact(v.secrets)
	}
}

func (v *survey) marked(change any) {
	v.collect(jsontree.Field(change, "before"), jsontree.Field(change, "before_sensitive"))
	v.collect(jsontree.Field(change, "after"), jsontree.Field(change, "after_sensitive"))
}

// change reads one change of a resource, or of what has drifted.
func (v *survey) change(s stream, drift bool) error {
	var rc struct {
		Address  string          `json:"address"`
		Mode     string          `json:"mode"`
		Type     string          `json:"type"`
		Provider string          `json:"provider_name"`
		Deposed  string          `json:"deposed"`
		Previous string          `json:"previous_address"`
		Change   json.RawMessage `json:"change"`
	}
	if err := s.value(&rc); err != nil {
		return err
	}
	var change any
	if len(rc.Change) > 0 {
		if err := jsontree.Decode(rc.Change, &change); err != nil {
			return err
		}
	}
	v.marked(change)
	actions, _ := jsontree.Field(change, "actions").([]any)
	if changes := len(actions) > 0 && actions[0] != "no-op" && actions[0] != "read"; rc.Mode == "managed" && !drift {
		v.changed[rc.Address] = v.changed[rc.Address] || changes && rc.Deposed == ""
		if v.compared && (changes || rc.Previous != "" || jsontree.Field(change, "importing") != nil) {
			v.changes[objectKey{rc.Address, rc.Deposed}] = true
		}
	}
	if drift && rc.Mode == "managed" && len(actions) == 1 && actions[0] == "delete" {
		v.resources.Add(holdfast.Resource{
			Address: rc.Address, Type: rc.Type, Provider: rc.Provider,
			ID: unlessSensitive(jsontree.Field(jsontree.Field(change, "before"), "id"), jsontree.Field(change, "before_sensitive")),
		}, true) // what is there now counts more
	}
	return nil
}

func (v *survey) deferred(s stream) error {
	var deferred any
	err := s.value(&deferred)
	v.marked(jsontree.Field(jsontree.Field(deferred, "resource_change"), "change"))
	return err
}

func (v *survey) outputChange(s stream) error {
	var change any
	err := s.value(&change)
	v.marked(change)
	return err
}

func (v *survey) invocation(s stream) error {
	var action any
	err := s.value(&action)
	v.collect(jsontree.Field(action, "config_values"), jsontree.Field(action, "config_sensitive"))
	return err
}

// values reads the outputs and, module by module, the resources of a state.
func (v *survey) values(s stream, prior bool) error {
	return s.object(func(key string) error {
		switch key {
		case "outputs":
			return s.object(func(name string) error { return v.output(s, name, prior) })
		case "root_module":
			return v.module(s, prior, 0)
		default:
			return s.skip()
		}
	})
}

func (v *survey) output(s stream, name string, prior bool) error {
	var output struct {
		Sensitive bool            `json:"sensitive"`
		Value     json.RawMessage `json:"value"`
	}
	if err := s.value(&output); err != nil {
		return err
	}
	if output.Sensitive && len(output.Value) > 0 {
		var value any
		if err := jsontree.Decode(output.Value, &value); err != nil {
			return err
		}
		v.collect(value, true)
		output.Value = nil
	}
	if prior {
		v.outputs = append(v.outputs, holdfast.Output{Name: name, Sensitive: output.Sensitive, Value: output.Value})
	}
	return nil
}

func (v *survey) module(s stream, prior bool, depth int) error {
	if depth > maxModules {
		return errModules
	}
	return s.object(func(key string) error {
		switch key {
		case "resources":
			return s.list(func() error { return v.resource(s, prior) })
		case "child_modules":
			return s.list(func() error { return v.module(s, prior, depth+1) })
		default:
			return s.skip()
		}
	})
}

func (v *survey) resource(s stream, prior bool) error {
	var r struct {
		Address   string `json:"address"`
		Mode      string `json:"mode"`
		Type      string `json:"type"`
		Provider  string `json:"provider_name"`
		Deposed   string `json:"deposed_key"`
		Values    any    `json:"values"`
		Sensitive any    `json:"sensitive_values"`
	}
	if err := s.value(&r); err != nil {
		return err
	}
	v.collect(r.Values, r.Sensitive)
	if at := (objectKey{r.Address, r.Deposed}); prior && v.compared && r.Mode == "managed" && (v.changes[at] || !v.changesRead) {
		v.prior[at] = priorOf(r.Values, r.Sensitive)
	}
	if prior && r.Mode == "managed" {
		v.resources.Add(holdfast.Resource{
			Address: r.Address, Type: r.Type, Provider: r.Provider, ID: unlessSensitive(jsontree.Field(r.Values, "id"), r.Sensitive),
		}, r.Deposed != "")
	}
	return nil
}

func (v *survey) variable(s stream) error {
	return s.object(func(name string) error {
		var variable any
		err := s.value(&variable)
		v.variables[name] = jsontree.Field(variable, "value")
		return err
	})
}

// configuration reads which variables of the root module are sensitive, their
// defaults, and what the code refers to.
func (v *survey) configuration(s stream) error {
	return s.object(func(key string) error {
		switch key {
		case "provider_config":
			return s.object(func(key string) error { return v.code.provider(s, key) })
		case "root_module":
			v.code.root = &codeModule{}
		default:
			return s.skip()
		}
		return s.object(func(key string) error {
			if key != "variables" {
				if ok, err := v.code.root.read(s, key, 0); ok || err != nil {
					return err
				}
				return s.skip()
			}
			return s.object(func(name string) error {
				var variable any
				err := s.value(&variable)
				if jsontree.Field(variable, "sensitive") == true || redact.Name(name) {
					v.sensitive[name] = true
					v.collect(jsontree.Field(variable, "default"), true)
				}
				return err
			})
		})
	})
}

const (
	// MaxResources bounds how many resources of one state are kept.
	MaxResources = 50_000
	// maxResourceID bounds an id: some providers make a document of it.
	maxResourceID = 1 << 10
)

// ResourceList collects resources, each address once: an object that was deposed
// counts only where there is no current one.
type ResourceList struct {
	at map[string]holdfast.Resource
}

// Add adds a resource, unless there are MaxResources.
func (l *ResourceList) Add(resource holdfast.Resource, deposed bool) {
	if len(resource.ID) > maxResourceID {
		resource.ID = ""
	}
	if l.at == nil {
		l.at = map[string]holdfast.Resource{}
	}
	_, there := l.at[resource.Address]
	if there && deposed || !there && len(l.at) >= MaxResources {
		return
	}
	l.at[resource.Address] = resource
}

// Sorted returns the resources by address; never nil.
func (l *ResourceList) Sorted() []holdfast.Resource {
	list := make([]holdfast.Resource, 0, len(l.at))
	for _, address := range slices.Sorted(maps.Keys(l.at)) {
		list = append(list, l.at[address])
	}
	return list
}

// IDOf returns an id as text; empty if there is none.
func IDOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	default:
		return ""
	}
}

func unlessSensitive(id, marks any) string {
	if marks == true || jsontree.AnyTrue(jsontree.Field(marks, "id")) {
		return ""
	}
	return IDOf(id)
}
