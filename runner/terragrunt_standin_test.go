package runner_test

import (
	"crypto/sha1" //nolint:gosec // a name
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// standIn speaks the part of Terragrunt's command line that an attempt uses, as its version 1
// does, of units that have a local source, one include, inputs, generate and remote_state
// blocks. What it does not know it refuses. `make test-terragrunt` has Terragrunt itself do the same.
func standIn(args []string) error {
	if slices.Equal(args, []string{"--version"}) {
		fmt.Println("terragrunt version v1.0.0")
		return nil
	}
	for _, name := range os.Environ() {
		name, _, _ = strings.Cut(name, "=")
		known := []string{"TG_WORKING_DIR", "TG_DOWNLOAD_DIR", "TG_NON_INTERACTIVE", "TG_NO_COLOR", "TG_NO_TIPS", "TG_LOG_FORMAT", "TG_NO_AUTO_PROVIDER_CACHE_DIR"}
		if strings.HasPrefix(name, "TG_") && !slices.Contains(known, name) || strings.HasPrefix(name, "TF_HTTP_") {
			return fmt.Errorf("unexpected variable %s", name)
		}
	}
	unit, downloads := os.Getenv("TG_WORKING_DIR"), os.Getenv("TG_DOWNLOAD_DIR")
	c, err := readUnit(unit)
	if err != nil {
		return err
	}
	switch {
	case slices.Equal(args, []string{"render", "--format", "json"}):
		return json.NewEncoder(os.Stdout).Encode(c.rendered())
	case slices.Equal(args, []string{"info", "print"}):
		dir, err := c.download(unit, downloads)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(map[string]string{"download_dir": downloads, "working_dir": dir})
	case len(args) > 2 && args[0] == "exec" && args[1] == "--":
		dir, err := c.download(unit, downloads)
		if err != nil {
			return err
		}
		if err := c.generate(dir); err != nil {
			return err
		}
		cmd := exec.Command(args[2], args[3:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = unit, os.Stdout, os.Stderr
		return cmd.Run()
	}
	return fmt.Errorf("unknown command %q", args)
}

// unitConfig is a configuration, with what is included in it.
type unitConfig struct {
	source    string
	inputs    map[string]cty.Value
	generated map[string]string // by path
	remote    map[string]any
}

// readUnit reads the configuration of a unit.
func readUnit(unit string) (*unitConfig, error) {
	c := &unitConfig{inputs: map[string]cty.Value{}, generated: map[string]string{}}
	return c, c.read(unit, filepath.Join(unit, "terragrunt.hcl"), unit)
}

// read merges a file into what comes before it.
func (c *unitConfig) read(unit, name, parent string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, diags := hclsyntax.ParseConfig(data, name, hcl.InitialPos)
	if diags.HasErrors() {
		return diags
	}
	body, scope := file.Body.(*hclsyntax.Body), scopeOf(unit, parent)
	for _, block := range body.Blocks {
		if block.Type == "include" {
			path, diags := block.Body.Attributes["path"].Expr.Value(scope)
			if diags.HasErrors() {
				return diags
			}
			if err := c.read(unit, path.AsString(), filepath.Dir(path.AsString())); err != nil {
				return err
			}
		}
	}
	for key, attribute := range body.Attributes {
		value, diags := attribute.Expr.Value(scope)
		if diags.HasErrors() {
			return diags
		} else if key != "inputs" {
			return fmt.Errorf("unknown attribute %s", key)
		}
		maps.Copy(c.inputs, value.AsValueMap())
	}
	for _, block := range body.Blocks {
		if err := c.block(block, scope); err != nil {
			return err
		}
	}
	return nil
}

func (c *unitConfig) block(block *hclsyntax.Block, scope *hcl.EvalContext) error {
	values := map[string]cty.Value{}
	for key, attribute := range block.Body.Attributes {
		value, diags := attribute.Expr.Value(scope)
		if diags.HasErrors() {
			return diags
		}
		values[key] = value
	}
	switch block.Type {
	case "include":
	case "terraform":
		c.source = values["source"].AsString()
	case "generate":
		c.generated[values["path"].AsString()] = values["contents"].AsString()
	case "remote_state":
		text := fmt.Sprintf("terraform {\n  backend %q {\n", values["backend"].AsString())
		for key, value := range values["config"].AsValueMap() {
			text += fmt.Sprintf("    %s = %q\n", key, value.AsString())
		}
		c.generated[values["generate"].GetAttr("path").AsString()] = text + "  }\n}\n"
		c.remote = map[string]any{"backend": values["backend"].AsString()}
	default:
		return fmt.Errorf("unknown block %s", block.Type)
	}
	return nil
}

func scopeOf(unit, parent string) *hcl.EvalContext {
	text := func(f func(args []cty.Value) (string, error)) function.Function {
		return function.New(&function.Spec{
			VarParam: &function.Parameter{Type: cty.String}, Type: function.StaticReturnType(cty.String),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				value, err := f(args)
				return cty.StringVal(value), err
			},
		})
	}
	return &hcl.EvalContext{Functions: map[string]function.Function{
		"find_in_parent_folders": text(func(args []cty.Value) (string, error) {
			for dir := filepath.Dir(unit); dir != "/"; dir = filepath.Dir(dir) {
				name := filepath.Join(dir, args[0].AsString())
				if _, err := os.Stat(name); err == nil {
					return name, nil
				}
			}
			return "", errors.New("not found")
		}),
		"path_relative_to_include": text(func([]cty.Value) (string, error) { return filepath.Rel(parent, unit) }),
	}}
}

// download copies the source, and what is next to the configuration.
func (c *unitConfig) download(unit, downloads string) (string, error) {
	whole, module, _ := strings.Cut(c.source, "//")
	dir := filepath.Join(downloads, encoded(unit), encoded(whole))
	to := filepath.Join(dir, module)
	if whole != "" {
		if err := copyCode(filepath.Join(unit, whole), dir); err != nil {
			return "", err
		}
	}
	return to, copyCode(unit, to)
}

func encoded(text string) string {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // a name
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// copyCode copies a folder without hidden files, except for a lock file.
func copyCode(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(from, name)
		if hidden := strings.HasPrefix(d.Name(), ".") && rel != "." && d.Name() != ".terraform.lock.hcl"; err != nil || hidden {
			if hidden && d.IsDir() {
				return fs.SkipDir
			}
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o600)
	})
}

func (c *unitConfig) generate(dir string) error {
	for name, text := range c.generated {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("# Generated by Terragrunt. Sig: nIlQXj57tbuaRZEa\n"+text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// rendered is the configuration as it is printed.
func (c *unitConfig) rendered() map[string]any {
	inputs := map[string]json.RawMessage{}
	for key, value := range c.inputs {
		inputs[key], _ = ctyjson.Marshal(value, value.Type())
	}
	return map[string]any{"inputs": inputs, "remote_state": c.remote, "terraform_version_constraint": ""}
}

func init() { programs["terragrunt"] = standIn } //nolint:gochecknoinits // as the others
