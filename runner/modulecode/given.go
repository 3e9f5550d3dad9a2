// What an engine is given for the variables of a root module.

package modulecode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast/internal/boundedhcl"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/runner/planfile"
)

// Variables are the variables of a root module, as an engine reads them.
type Variables struct {
	Dir    string // of the root module
	Engine string // its name
	Module Root
	// Shown is a file of the root module as people know it; nil: as it is called.
	Shown func(file string) string
}

func (v Variables) shown(file string) string {
	if v.Shown == nil {
		return file
	}
	return v.Shown(file)
}

// Given returns what the engine was given for the variables of the root
// module, as the engines find it: in the environment, in terraform.tfvars, in
// *.auto.tfvars by name, and in the document's file, each before the ones before.
func (v Variables) Given(env map[string]string) (map[string]planfile.Variable, error) {
	given, texts, opaque := v.declared()
	var err error
	for key, text := range env {
		name, ok := strings.CutPrefix(key, VariablePrefix)
		variable, declared := given[name]
		if !ok || !declared && !opaque {
			continue
		} else if !declared {
			variable.Declared, texts[name] = true, textMode{literal: true, expression: true}
		}
		if variable.Values, err = readText(text, texts[name]); err != nil {
			return nil, fmt.Errorf("the value of variable %q in the environment: %w", name, err)
		}
		given[name] = variable
	}
	files, err := v.Files()
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if err := readVariables(filepath.Join(v.Dir, name), given, opaque); err != nil {
			return nil, fmt.Errorf("read %s: %w", v.shown(name), err)
		}
	}
	return given, nil
}

// Files returns the names of the files that have values of variables, in
// the order in which the engines read them.
func (v Variables) Files() ([]string, error) {
	entries, err := os.ReadDir(v.Dir)
	if err != nil {
		return nil, err
	}
	var files, automatic []string
	own := false
	for _, entry := range entries {
		name := entry.Name()
		own = own || name == rootmodule.VariablesFile && entry.Type().IsRegular()
		if strings.HasSuffix(name, ".auto.tfvars") || strings.HasSuffix(name, ".auto.tfvars.json") {
			automatic = append(automatic, name)
		}
	}
	for _, name := range []string{"terraform.tfvars", "terraform.tfvars.json"} {
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == name }) {
			files = append(files, name)
		}
	}
	files = append(files, automatic...)
	if own {
		files = append(files, rootmodule.VariablesFile)
	}
	return files, nil
}

// readVariables takes the values in a file in. declared: all that have one there
// are variables of the root module.
func readVariables(name string, given map[string]planfile.Variable, declared bool) error {
	file, err := Parse(name)
	if err != nil {
		return err
	}
	attributes, diags := file.Body.JustAttributes()
	if diags.HasErrors() {
		return diags
	}
	for name, attribute := range attributes {
		v := given[name]
		value, err := Constant(attribute.Expr)
		if err != nil {
			return fmt.Errorf("variable %q: %w", name, err)
		}
		v.Values, v.Declared = []cty.Value{value}, v.Declared || declared
		given[name] = v
	}
	return nil
}

// textMode is how the engines read the text that the environment gives a variable.
type textMode struct{ literal, expression bool }

// readText returns the values that a text can be read as.
func readText(text string, mode textMode) ([]cty.Value, error) {
	var values []cty.Value
	if mode.literal {
		values = append(values, cty.StringVal(text))
	}
	if mode.expression {
		if len(text) > MaxFile {
			return nil, errTooLarge
		}
		expr, diags, err := boundedhcl.ParseExpression(text)
		if err != nil {
			return nil, err
		} else if diags.HasErrors() {
			return values, nil
		}
		if value, err := Constant(expr); err == nil {
			values = append(values, value)
		} else if errors.Is(err, ErrTooDeep) {
			return nil, err
		}
	}
	return values, nil
}

var variableSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "variable", LabelNames: []string{"name"}}}}

// declared returns the variables of the root module, without values, and
// how texts for them are read: both ways where one file overrides another. opaque:
// there is code that cannot be read, in which more could be declared.
func (v Variables) declared() (declared map[string]planfile.Variable, texts map[string]textMode, opaque bool) {
	declared, texts = map[string]planfile.Variable{}, map[string]textMode{}
	for _, name := range v.Module.Files {
		if !UsedBy(v.Engine, name, v.Module.Files) {
			continue
		}
		file, err := Parse(filepath.Join(v.Dir, name))
		if err != nil || file == nil {
			opaque = true
			continue
		}
		content, _, _ := file.Body.PartialContent(variableSchema)
		for _, block := range content.Blocks {
			variable, mode := declared[block.Labels[0]], texts[block.Labels[0]]
			variable.Declared = true
			variable.Ephemeral = variable.Ephemeral || BoolAttribute(block.Body, "ephemeral")
			switch kind := AttributeText(file, block.Body, "type"); strings.Trim(kind, `"`) {
			case "", "string", "number", "bool":
				mode.literal = true
			default:
				mode.expression = true
			}
			declared[block.Labels[0]], texts[block.Labels[0]] = variable, mode
		}
	}
	return declared, texts, opaque
}
