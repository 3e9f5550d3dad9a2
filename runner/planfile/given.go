package planfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// Variable is what an engine was given for a variable of the root module.
type Variable struct {
	// Values are the values as which what it was given can be read; empty: it was given
	// none, and has its default.
	Values []cty.Value
	// Declared: the root module has it. What is given to others is left out of
	// plans.
	Declared bool
	// Ephemeral ones are not in plans either, except for their names.
	Ephemeral bool
}

// CheckVariables compares the values in the plan with those that were given. They
// are compared as they are encoded, and never quoted.
func (p *Plan) CheckVariables(given map[string]Variable) error {
	for _, name := range slices.Sorted(maps.Keys(p.variables)) {
		variable := given[name]
		if len(variable.Values) == 0 || variable.Ephemeral {
			return fmt.Errorf("the plan file has a value of variable %q, which was given none", name)
		}
		same := false
		for _, value := range variable.Values {
			want, err := msgpack.Marshal(value, cty.DynamicPseudoType)
			if err != nil {
				return fmt.Errorf("encode the value of variable %q: %w", name, err)
			}
			same = same || bytes.Equal(want, p.variables[name])
		}
		if !same {
			return fmt.Errorf("the plan file has another value of variable %q than the run was given", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		v := given[name]
		if _, there := p.variables[name]; !there && v.Declared && !v.Ephemeral && len(v.Values) > 0 {
			return fmt.Errorf("the plan file lacks the value of variable %q", name)
		}
	}
	for _, name := range p.applyTime {
		if !given[name].Ephemeral {
			return fmt.Errorf("the plan file leaves the value of variable %q to the apply", name)
		}
	}
	return nil
}

// Backend is where an engine keeps the state.
type Backend struct {
	Type      string
	Config    []byte // JSON, as the engine has stored it in .terraform/terraform.tfstate
	Workspace string
}

// ReadBackend reads the backend from .terraform/terraform.tfstate as init has left
// it. Without such a file, or a backend in it, it is the local one without
// arguments.
func ReadBackend(settings []byte) (Backend, error) {
	var stored struct {
		Backend *struct {
			Type   string          `json:"type"`
			Config json.RawMessage `json:"config"`
		} `json:"backend"`
	}
	if len(settings) > 0 {
		if err := json.Unmarshal(settings, &stored); err != nil {
			return Backend{}, fmt.Errorf("read the backend's settings: %w", err)
		}
	}
	if stored.Backend == nil {
		return Backend{Type: "local", Config: []byte(`{"path":null,"workspace_dir":null}`), Workspace: "default"}, nil
	}
	return Backend{Type: stored.Backend.Type, Config: stored.Backend.Config, Workspace: "default"}, nil
}

// CheckBackend compares the backend in the plan with that of the run. Its settings
// are never quoted: they can have credentials.
func (p *Plan) CheckBackend(want Backend) error {
	if p.backend.kind != want.Type {
		return fmt.Errorf("the plan file has a backend of type %q, the run has %q", p.backend.kind, want.Type)
	}
	if p.backend.workspace != want.Workspace {
		return fmt.Errorf("the plan file is of the workspace %q, the run of %q", p.backend.workspace, want.Workspace)
	}
	kind, err := ctyjson.ImpliedType(want.Config)
	if err != nil {
		return errors.New("the backend's settings cannot be read")
	}
	config, err := ctyjson.Unmarshal(want.Config, kind)
	if err != nil {
		return errors.New("the backend's settings cannot be read")
	}
	// An engine encodes by the backend's schema: objects and maps, and lists, sets and
	// tuples, are encoded alike.
	encoded, err := msgpack.Marshal(config, config.Type())
	if err != nil {
		return fmt.Errorf("encode the backend's settings: %w", err)
	}
	if !bytes.Equal(encoded, p.backend.config) {
		return fmt.Errorf("the plan file has other settings of the backend %q than the run", want.Type)
	}
	return nil
}

// CheckMode compares what kind of plan it is.
func (p *Plan) CheckMode(destroy bool) error {
	want := uint64(modeNormal)
	if destroy {
		want = modeDestroy
	}
	if p.mode != want {
		return errors.New("the plan file is of another kind of plan (normal, destroy or refresh-only) than the run asked for")
	}
	return nil
}
