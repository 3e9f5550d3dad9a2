package terragrunt

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/boundedhcl"
	"github.com/holdfast-dev/holdfast/templates/modules"
)

// ConfigFile is the file that makes a folder a unit.
const ConfigFile = "terragrunt.hcl"

// Bounds of a unit. They are far above what people write.
const (
	maxConfigs = 100     // configuration files of one unit
	maxConfig  = 4 << 20 // bytes of one
)

// Unit is what a unit's configuration says.
type Unit struct {
	Dir    string
	Files  []string // files outside of Dir that are read, or looked for, sorted
	Source Source
	State  *State // nil: no remote_state

	// Ordered: a dependencies block names units that go first. Protected: prevent_destroy is
	// set. Both are for the cluster's document to say.
	Ordered, Protected *Place
}

// Place is where something is written.
type Place struct {
	File         string
	Line, Column int
}

// Fault is a fault at that place.
func (p Place) Fault(message, hint string) holdfast.Fault {
	return holdfast.Fault{File: p.File, Line: p.Line, Column: p.Column, Message: message, Hint: hint}
}

// Source is where the module of a unit is.
type Source struct {
	Place

	// Dir is the module's folder in the tree: the unit's own if nothing else is written.
	Dir string
	// Address is a source outside of the tree; empty: it is Dir.
	Address string
}

// State is the remote_state block.
type State struct {
	Place

	Backend string
	File    string            // that Terragrunt writes the backend into
	Config  map[string]any    // arguments whose values are known
	Unread  map[string]string // the expressions of all others
}

// Is reports whether a folder has the configuration of a unit: a terragrunt.hcl that says
// more than which versions are wanted.
func Is(tree holdfast.Tree, dir string) (bool, error) {
	data, why, err := readConfig(tree, path.Join(dir, ConfigFile))
	if err != nil || data == nil {
		return why != "", err
	}
	file, _, err := boundedhcl.ParseFile(data, path.Join(dir, ConfigFile))
	if err != nil || file.File == nil {
		return true, nil //nolint:nilerr // Read says what is wrong with it
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return true, nil
	}
	for name := range body.Attributes {
		if !strings.HasSuffix(name, "_version_constraint") {
			return true, nil
		}
	}
	return len(body.Blocks) > 0, nil
}

// reader reads one unit.
type reader struct {
	tree    holdfast.Tree
	unit    *Unit
	sought  map[string]bool // files that are read or looked for
	configs map[reading]*config
	faults  holdfast.Faults
}

// reading is a file as the configuration of what is in a folder, which its relative paths are of:
// that of the unit, or one that read_terragrunt_config reads as if it were a unit's.
type reading struct{ file, dir string }

// config is one file of the configuration.
type config struct {
	reading

	code   []byte
	body   *hclsyntax.Body
	locals map[string]hclsyntax.Expression
	parent map[string]string // names of its includes, to the folders of their files
}

// Read reads the unit in a folder. What of it cannot be held to is a fault. An error is
// the tree's.
func Read(tree holdfast.Tree, dir string) (*Unit, holdfast.Faults, error) {
	r := &reader{
		tree: tree, unit: &Unit{Dir: dir, Source: Source{Dir: dir}},
		sought: map[string]bool{}, configs: map[reading]*config{},
	}
	own, err := r.config(reading{path.Join(dir, ConfigFile), dir})
	if err != nil {
		return nil, nil, err
	}
	if own == nil {
		return r.unit, r.faults, nil
	}
	included, err := r.includes(own)
	if err != nil {
		return nil, nil, err
	}
	if err := r.take(slices.Concat([]*config{own}, included)); err != nil {
		return nil, nil, err
	}
	r.readSource(own, included)
	r.readState(own, included)
	for name := range r.sought {
		if path.Dir(name) != dir && !strings.HasPrefix(name, dir+"/") {
			r.unit.Files = append(r.unit.Files, name)
		}
	}
	slices.Sort(r.unit.Files)
	return r.unit, r.faults, nil
}

// take takes in configurations, and what they read.
func (r *reader) take(configs []*config) error {
	for _, c := range configs {
		r.check(c)
		if err := r.follow(c); err != nil {
			return err
		}
	}
	return nil
}

// config reads a configuration file, nil if it is not there or cannot be read.
func (r *reader) config(of reading) (*config, error) {
	if known, ok := r.configs[of]; ok {
		return known, nil
	}
	name := of.file
	r.sought[name] = true
	data, why, err := readConfig(r.tree, name)
	if why != "" {
		r.faults = append(r.faults, holdfast.Fault{File: name, Message: "file " + why})
	}
	if err != nil || data == nil {
		return nil, err
	}
	if len(r.configs) >= maxConfigs {
		r.faults = append(r.faults, holdfast.Fault{File: name, Message: fmt.Sprintf("the unit is made of more than %d files", maxConfigs)})
		return nil, nil
	}
	r.configs[of] = nil
	if len(data) > maxConfig {
		r.faults = append(r.faults, holdfast.Fault{File: name, Message: fmt.Sprintf("it is larger than %d bytes", maxConfig)})
		return nil, nil
	}
	file, diags, err := boundedhcl.ParseFile(data, name)
	if err != nil {
		r.faults = append(r.faults, holdfast.Fault{File: name, Message: err.Error()})
		return nil, nil
	}
	if diags.HasErrors() {
		r.faults = append(r.faults, syntaxFault(name, diags))
		return nil, nil
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return nil, nil
	}
	c := &config{reading: of, code: data, body: body, locals: map[string]hclsyntax.Expression{}, parent: map[string]string{}}
	for _, block := range body.Blocks {
		if block.Type == "locals" {
			for key, attribute := range block.Body.Attributes {
				c.locals[key] = attribute.Expr
			}
		}
	}
	r.configs[of] = c
	return c, nil
}

func syntaxFault(name string, diags hcl.Diagnostics) holdfast.Fault {
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			fault := holdfast.Fault{File: name, Message: d.Summary, Hint: d.Detail}
			if d.Subject != nil {
				fault.Line, fault.Column = d.Subject.Start.Line, d.Subject.Start.Column
			}
			return fault
		}
	}
	return holdfast.Fault{File: name, Message: "cannot be parsed"}
}

// readConfig reads a file, nil if there is none. why says of one that is there why it is
// not read.
func readConfig(tree holdfast.Tree, name string) (data []byte, why string, err error) {
	data, err = tree.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if why, refused := modules.Refused(err); refused {
		return nil, why, nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", name, err)
	}
	return data, "", nil
}

// includes reads the files that a configuration includes.
func (r *reader) includes(c *config) ([]*config, error) {
	var list []*config
	for _, block := range c.body.Blocks {
		if block.Type != "include" {
			continue
		}
		at := placeOf(c.file, block.DefRange())
		attribute := block.Body.Attributes["path"]
		if attribute == nil {
			r.faults = append(r.faults, at.Fault("the include has no path", ""))
			continue
		}
		name, ok := r.pathFrom(c, c.dir, attribute.Expr)
		if !ok {
			r.faults = append(r.faults, placeOf(c.file, attribute.Expr.Range()).Fault(
				"which file is included is only known to Terragrunt", pathHint))
			continue
		}
		label := ""
		if len(block.Labels) > 0 {
			label = block.Labels[0]
		}
		c.parent[label] = path.Dir(name)
		found, err := r.config(reading{name, c.dir})
		if err != nil {
			return nil, err
		}
		if found == nil {
			if !slices.ContainsFunc(r.faults, func(f holdfast.Fault) bool { return f.File == name }) {
				r.faults = append(r.faults, placeOf(c.file, attribute.Expr.Range()).Fault("there is no file "+name, ""))
			}
			continue
		}
		if _, again := found.parent[""]; !again {
			found.parent[""] = path.Dir(name)
		}
		list = append(list, found)
	}
	return list, nil
}

const pathHint = "write a path that starts with ./ or ../, or one with find_in_parent_folders, get_terragrunt_dir or get_parent_terragrunt_dir"

// follow looks through the functions in a configuration that read other files: those that
// are in the tree are part of the unit.
func (r *reader) follow(c *config) error {
	var read, looked []reading
	_ = hclsyntax.VisitAll(c.body, func(node hclsyntax.Node) hcl.Diagnostics {
		call, ok := node.(*hclsyntax.FunctionCallExpr)
		if !ok || len(call.Args) == 0 {
			return nil
		}
		expr, base := call.Args[0], c.dir
		switch {
		case call.Name == "find_in_parent_folders":
			expr = call
		case slices.Contains(ofLanguage, call.Name):
			base = path.Dir(c.file)
		case !slices.Contains(ofTerragrunt, call.Name):
			return nil
		}
		name, ok := r.pathFrom(c, base, expr)
		switch {
		case !ok:
		case call.Name == "read_terragrunt_config":
			read = append(read, reading{name, path.Dir(name)})
		case call.Name == "find_in_parent_folders" && strings.HasSuffix(name, ".hcl"):
			looked = append(looked, reading{name, path.Dir(name)})
		default:
			r.sought[name] = true
		}
		return nil
	})
	for _, of := range read {
		if err := r.readAsUnit(of); err != nil {
			return err
		}
	}
	for _, of := range looked { // most probably to be read, by a name that is only known to Terragrunt
		if r.knows(of.file) {
			continue
		}
		if err := r.readAsUnit(of); err != nil {
			return err
		}
	}
	return nil
}

// readAsUnit takes in a file that Terragrunt reads as the configuration of a unit in its
// folder, with what that includes.
func (r *reader) readAsUnit(of reading) error {
	_, known := r.configs[of]
	found, err := r.config(of)
	if known || found == nil || err != nil {
		return err
	}
	included, err := r.includes(found)
	if err != nil {
		return err
	}
	return r.take(append([]*config{found}, included...))
}

// knows reports whether a file was read as the configuration of anything.
func (r *reader) knows(file string) bool {
	for of := range r.configs {
		if of.file == file {
			return true
		}
	}
	return false
}

// Functions whose first argument is the name of a file that is read. For Terragrunt's own
// functions, a relative name starts at the folder that is configured; for those that Terraform has
// as well, at the folder of the file that calls them.
var (
	ofTerragrunt = []string{"read_terragrunt_config", "read_tfvars_file", "sops_decrypt_file"} //nolint:gochecknoglobals // a constant list
	ofLanguage   = []string{                                                                   //nolint:gochecknoglobals // a constant list
		"file", "filebase64", "templatefile", "fileexists", "filemd5", "filesha1", "filesha256", "filesha512", "filebase64sha256", "filebase64sha512",
	}
)

func placeOf(file string, at hcl.Range) Place {
	return Place{File: file, Line: at.Start.Line, Column: at.Start.Column}
}

// sortedAttributes are the attributes of a body by name.
func sortedAttributes(body *hclsyntax.Body) []*hclsyntax.Attribute {
	var list []*hclsyntax.Attribute
	for _, name := range slices.Sorted(maps.Keys(body.Attributes)) {
		list = append(list, body.Attributes[name])
	}
	return list
}
