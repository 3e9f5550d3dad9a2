package terragrunt

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Versions is the major version whose command line this is.
const Versions = "~> 1.0"

// Command makes the command lines of one unit. Its paths are as the sandbox has them.
type Command struct {
	Program   string // Terragrunt itself
	Engine    string // of Terraform or OpenTofu; it is asked for its version at most
	Unit      string // folder of the terragrunt.hcl
	Downloads string // folder in which the root module is made; nothing else is in it
}

// Locate prints where the root module is made, and copies its source there.
func (c Command) Locate() []string { return []string{"info", "print"} }

// Make writes the generated files there. Terragrunt does so before it executes a command,
// which is its own version here.
func (c Command) Make() []string { return []string{"exec", "--", c.Program, "--version"} }

// Render prints the configuration as JSON, with all of it evaluated.
func (c Command) Render() []string { return []string{"render", "--format", "json"} }

// Environment makes an engine's environment Terragrunt's: what others set for Terragrunt
// would lead it elsewhere, and it must not see a state.
func (c Command) Environment(env map[string]string) {
	for name := range maps.Clone(env) {
		if strings.HasPrefix(name, "TG_") || strings.HasPrefix(name, "TERRAGRUNT_") || strings.HasPrefix(name, "TF_HTTP_") {
			delete(env, name)
		}
	}
	env["TG_WORKING_DIR"], env["TG_DOWNLOAD_DIR"] = c.Unit, c.Downloads
	if c.Engine != "" {
		env["TG_TF_PATH"] = c.Engine
	}
	env["TG_NON_INTERACTIVE"], env["TG_NO_COLOR"], env["TG_NO_TIPS"] = "true", "true", "true"
	env["TG_LOG_FORMAT"], env["TG_NO_AUTO_PROVIDER_CACHE_DIR"] = "key-value", "true"
}

// Module returns which folder below Downloads holds all that was copied, and which folder
// in that is the root module, by the answer to Locate.
func (c Command) Module(answer []byte) (made, root string, err error) {
	var info struct {
		WorkingDir string `json:"working_dir"`
	}
	if err := json.Unmarshal(answer, &info); err != nil {
		return "", "", fmt.Errorf("read the answer of terragrunt info print: %w", err)
	}
	below, ok := strings.CutPrefix(path.Clean(info.WorkingDir), path.Clean(c.Downloads)+"/")
	parts := strings.Split(below, "/")
	if !ok || len(parts) < 2 {
		return "", "", fmt.Errorf("terragrunt made the root module in %q, and not in the folder that it was given", info.WorkingDir)
	}
	// Two folders: of the unit's path, and of the address of its source.
	return path.Join(parts[:2]...), path.Join(parts[2:]...), nil
}

// Rendered is the part of a configuration that reaches the engine other than by files.
type Rendered struct {
	// Inputs are the values of variables, as the environment gives them to engines.
	Inputs map[string]string
	// Nulls are the inputs that are null, sorted.
	Nulls []string
	// Backend is the type of the remote state, empty if there is none.
	Backend string
	// Engine is the constraint of the engine's version, empty if there is none.
	Engine string
}

// ReadRendered reads the answer to Render.
func ReadRendered(answer []byte) (Rendered, error) {
	var config struct {
		Inputs map[string]any `json:"inputs"`
		Remote *struct {
			Backend string `json:"backend"`
		} `json:"remote_state"`
		Engine string `json:"terraform_version_constraint"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(answer)))
	decoder.UseNumber()
	if err := decoder.Decode(&config); err != nil {
		return Rendered{}, fmt.Errorf("read the answer of terragrunt render: %w", err)
	}
	r := Rendered{Inputs: map[string]string{}, Engine: config.Engine}
	if config.Remote != nil {
		r.Backend = config.Remote.Backend
	}
	for _, name := range slices.Sorted(maps.Keys(config.Inputs)) {
		switch value := config.Inputs[name].(type) {
		case nil:
			r.Nulls = append(r.Nulls, name)
		case string:
			r.Inputs[name] = value
		default:
			escaped, err := literally(value, 0)
			if err != nil {
				return Rendered{}, fmt.Errorf("input %s: %w", name, err)
			}
			text, err := json.Marshal(escaped)
			if err != nil {
				return Rendered{}, fmt.Errorf("input %s: %w", name, err)
			}
			r.Inputs[name] = string(text)
		}
	}
	return r, nil
}

// maxDepth bounds how deep an input is nested. Terragrunt refuses deeper ones.
const maxDepth = 100

var errTooDeep = fmt.Errorf("nested deeper than %d", maxDepth)

// literally escapes what the engines, which read a value that is not a text as an
// expression, would take for a template.
func literally(value any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	var err error
	switch v := value.(type) {
	case string:
		return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(v), nil
	case []any:
		list := make([]any, len(v))
		for i := range v {
			if list[i], err = literally(v[i], depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for key := range v {
			if object[key], err = literally(v[key], depth+1); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return value, nil
}

// NullsFile is the file of the root module that has the inputs that are null: no
// environment can say so.
const NullsFile = "holdfast_null_inputs.auto.tfvars.json"

// NullValues is what NullsFile has, nil if no input is null.
func (r Rendered) NullValues() []byte {
	if len(r.Nulls) == 0 {
		return nil
	}
	values := map[string]any{}
	for _, name := range r.Nulls {
		values[name] = nil
	}
	data, _ := json.Marshal(values) // of names alone
	return data
}

// ErrElsewhere is of a unit whose state Terragrunt keeps elsewhere than its configuration
// said before.
var ErrElsewhere = errors.New("terragrunt keeps the state elsewhere than the repository's configuration says")
