// What a root module asks of init and of the choice of an engine.

package modulecode

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast/internal/boundedhcl"
	"github.com/holdfast-dev/holdfast/runner/jsontree"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

// Root is what a root module and the local modules that it calls ask of init and of the
// choice of an engine, read from the code without running it. What cannot be parsed is
// left out: the engine will report that better.
type Root struct {
	Requires    []string     // version constraints of the root's required_version
	Tofu        string       // a file that only tofu reads, empty if there is none
	Backend     string       // type of the root's backend, "cloud", or empty
	BareBackend bool         // the backend block has no arguments
	BackendText string       // type and arguments of the backend; empty if not all of them are constants
	Files       []string     // names of the root's code
	blocks      []stateBlock // of all of the root's code
	Fetched     bool         // there are modules that init fetches
	Unpinned    bool         // a fetched module's version can move, of those that this code calls
	Opaque      bool         // there is code that could not be read in full
	Dynamic     bool         // a module's source or version depends on values
	Plugins     bool         // init may take providers from the root module's own folder
	Whole       bool         // init may read, or execute, anything in the bundle
	Ephemeral   bool         // a variable is: its value is in no plan file
	Needs       []string     // all that init's result depends on, sorted
	Secrets     []string     // values given to secret variables
	Unread      error        // why a file that may have more of them was not read; nil: all were
	Sensitive   []string     // names of the secret variables, sorted
}

// maxModules bounds how many local modules are read: a cycle of calls is an
// error that the engine reports.
const maxModules = 1000

// ownPlugins is the folder of a root module that engines take providers from, unless
// their configuration says where these come from.
const ownPlugins = "terraform.d/plugins"

type moduleReader struct {
	ctx       context.Context //nolint:containedctx // of one call
	root      string
	bundle    string
	engine    string // empty: either
	module    Root
	needs     map[string]bool
	seen      map[string]bool
	sensitive map[string]bool
}

// Read reads the root module in dir, and what it calls inside the bundle, as
// code for an engine; empty: for the one that would be chosen for it. Once ctx is done
// it reads no other file, and the Root is opaque.
func Read(ctx context.Context, dir, bundle, engine string) Root {
	r := &moduleReader{ctx: ctx, root: dir, bundle: bundle, engine: engine, needs: map[string]bool{}, seen: map[string]bool{}, sensitive: map[string]bool{}}
	r.read(dir, "")
	r.module.Plugins = exists(dir, ownPlugins)
	r.module.Whole = r.module.Whole || r.readsMore()
	if b := r.module.stateBlockFor(engine); b.kind != "" {
		r.module.Backend, r.module.BareBackend, r.module.BackendText = b.kind, b.bare, b.text
		if b.kind != "cloud" {
			r.needs["backend "+b.kind] = true
		}
	}
	for need := range r.needs {
		r.module.Needs = append(r.module.Needs, need)
	}
	slices.Sort(r.module.Needs)
	r.module.Sensitive = slices.Sorted(maps.Keys(r.sensitive))
	given, err := secretVariables(ctx, dir, r.sensitive)
	r.module.Secrets, r.module.Unread = append(r.module.Secrets, given...), err
	return r.module
}

var moduleSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
	{Type: "terraform"},
	{Type: "module", LabelNames: []string{"name"}},
	{Type: "provider", LabelNames: []string{"name"}},
	{Type: "variable", LabelNames: []string{"name"}},
	{Type: "resource", LabelNames: []string{"type", "name"}},
	{Type: "data", LabelNames: []string{"type", "name"}},
	{Type: "ephemeral", LabelNames: []string{"type", "name"}},
	{Type: "import"},
	{Type: "removed"},
	{Type: "check", LabelNames: []string{"name"}},
	{Type: "action", LabelNames: []string{"type", "name"}},
	{Type: "locals"},
	{Type: "output", LabelNames: []string{"name"}},
	{Type: "moved"},
}}

// read reads the module in dir, which the module at path calls.
func (r *moduleReader) read(dir, path string) {
	if len(r.seen) >= maxModules {
		r.module.Opaque = true
	}
	called := path + "\x00" + dir // a call can be overridden
	if r.module.Opaque || r.seen[called] {
		return
	}
	r.seen[called] = true
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var names []string
	for _, entry := range entries {
		if name := entry.Name(); !entry.IsDir() && !strings.HasPrefix(name, ".") && IsFile(name) {
			names = append(names, name)
		}
	}
	if path == "" {
		r.module.Files = names
		if at := slices.IndexFunc(names, isTofuCode); at >= 0 {
			r.module.Tofu = names[at]
			r.engine = cmp.Or(r.engine, Tofu)
		}
	}
	for _, name := range names {
		if r.ctx.Err() != nil {
			r.module.Opaque = true
			return
		}
		used := UsedBy(r.engine, name, names)
		if !used && path != "" {
			continue
		}
		file, err := parse(r.ctx, filepath.Join(dir, name))
		r.module.Opaque = r.module.Opaque || used && err != nil
		if file == nil || file.Body == nil {
			continue
		}
		content, rest, _ := file.Body.PartialContent(moduleSchema)
		if content == nil {
			continue
		}
		r.module.Whole = r.module.Whole || used && !lists(moduleSchema, file.Body, rest)
		for _, block := range content.Blocks {
			if used || block.Type == "terraform" {
				r.block(file, block, place{dir, name, path}, used)
			}
		}
	}
}

// UsedBy reports whether the engine reads a file among others: OpenTofu reads
// x.tofu in place of x.tf, and Terraform no .tofu. An empty engine may be either.
func UsedBy(engine, name string, names []string) bool {
	switch engine {
	case Terraform:
		return !isTofuCode(name)
	case Tofu:
		return !shadowed(name, names)
	}
	return true
}

// IsFile reports whether the engines read a file of that name as code.
func IsFile(name string) bool {
	for _, suffix := range []string{".tf", ".tofu", ".tf.json", ".tofu.json"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

func (r *moduleReader) block(file *hcl.File, block *hcl.Block, at place, used bool) {
	switch block.Type {
	case "terraform":
		r.terraform(file, block.Body, at, used)
	case "module":
		r.call(file, block, at)
	case "variable":
		r.module.Ephemeral = r.module.Ephemeral || at.path == "" && BoolAttribute(block.Body, "ephemeral")
		if at.path == "" && (BoolAttribute(block.Body, "sensitive") || redact.Name(block.Labels[0])) {
			r.sensitive[block.Labels[0]] = true
			r.module.Secrets = append(r.module.Secrets, defaultSecrets(block.Body)...)
		}
	case "check":
		content, _, _ := block.Body.PartialContent(checkSchema)
		if content == nil {
			return
		}
		for _, data := range content.Blocks {
			r.provider(file, data, at)
		}
	case "locals", "output", "moved": // nothing that init goes by
	default:
		r.provider(file, block, at)
	}
}

var terraformSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{{Name: "required_version"}},
	Blocks: []hcl.BlockHeaderSchema{
		{Type: "backend", LabelNames: []string{"type"}},
		{Type: "cloud"},
		{Type: "state_store", LabelNames: []string{"type"}},
		{Type: "required_providers"},
		{Type: "provider_meta", LabelNames: []string{"provider"}},
	},
}

// terraform reads the settings. Of a file that the engine does not read only where
// it would keep the state counts: another engine might.
func (r *moduleReader) terraform(file *hcl.File, body hcl.Body, at place, used bool) {
	content, rest, _ := body.PartialContent(terraformSchema)
	if content == nil {
		return
	}
	r.module.Whole = r.module.Whole || used && !lists(terraformSchema, body, rest)
	if text := StringAttribute(content.Attributes["required_version"]); text != "" && at.path == "" && used {
		r.module.Requires = append(r.module.Requires, text)
	}
	for _, block := range content.Blocks {
		attributes, _ := block.Body.JustAttributes()
		switch {
		case block.Type == "required_providers" && !used:
		case block.Type == "required_providers":
			for name, attribute := range attributes {
				r.need(at, "required "+name, written(attribute.Expr.Range().SliceBytes(file.Bytes)))
			}
		case at.path != "" || block.Type == "provider_meta": // backends of called modules mean nothing
		case block.Type == "backend":
			r.module.blocks = append(r.module.blocks, newBackend(at.file, block))
		default:
			r.module.Whole = r.module.Whole || block.Type == "state_store" // a provider has it
			r.module.blocks = append(r.module.blocks, stateBlock{file: at.file, kind: block.Type})
		}
	}
}

// call notes a module call and reads the called module if it is local.
func (r *moduleReader) call(file *hcl.File, block *hcl.Block, at place) {
	source, fixed := textOf(file, block.Body, "source")
	version, fixedVersion := textOf(file, block.Body, "version")
	r.module.Dynamic = r.module.Dynamic || !fixed || !fixedVersion
	r.need(at, "module "+block.Labels[0], strconv.Quote(source)+strconv.Quote(version))
	if fixed && isLocal(source) {
		called := filepath.Join(at.dir, filepath.FromSlash(source))
		if rest, err := filepath.Rel(r.bundle, called); err == nil && filepath.IsLocal(rest) {
			r.read(called, strings.TrimPrefix(at.path+"."+block.Labels[0], "."))
		}
		return
	}
	r.module.Fetched = true
	if !pinnedSource(source, version) {
		r.module.Unpinned = true
	}
}

// AttributeText returns an attribute as it is written, empty if there is none.
func AttributeText(file *hcl.File, body hcl.Body, name string) string {
	content, _, _ := body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: name}}})
	if content == nil || content.Attributes[name] == nil {
		return ""
	}
	return squeeze(content.Attributes[name].Expr.Range().SliceBytes(file.Bytes))
}

// MaxLiteral bounds an expression that is evaluated: evaluation recurses.
const MaxLiteral = 64 << 10

// literal evaluates an expression that refers to nothing.
func literal(expr hcl.Expression) (cty.Value, hcl.Diagnostics) {
	if span := expr.Range(); span.End.Byte-span.Start.Byte > MaxLiteral {
		return cty.DynamicVal, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Too long"}}
	}
	value, err := Constant(expr)
	if err != nil {
		return cty.DynamicVal, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: err.Error()}}
	}
	return value, nil
}

// StringAttribute returns the text of an attribute, empty if it is not a constant.
func StringAttribute(attribute *hcl.Attribute) string {
	if attribute == nil {
		return ""
	}
	value, diags := literal(attribute.Expr)
	if diags.HasErrors() || value.IsNull() || !value.IsKnown() || value.Type() != cty.String {
		return ""
	}
	return value.AsString()
}

// BoolAttribute reports whether an attribute is the constant true.
func BoolAttribute(body hcl.Body, name string) bool {
	content, _, _ := body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: name}}})
	if content == nil || content.Attributes[name] == nil {
		return false
	}
	value, diags := literal(content.Attributes[name].Expr)
	return !diags.HasErrors() && value.IsKnown() && !value.IsNull() && value.Type() == cty.Bool && value.True()
}

// squeeze makes layout of code irrelevant.
func squeeze(code []byte) string { return string(bytes.Join(bytes.Fields(code), []byte(" "))) }

// defaultSecrets returns the values in a variable's default.
func defaultSecrets(body hcl.Body) []string {
	content, _, _ := body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "default"}}})
	if content == nil || content.Attributes["default"] == nil {
		return nil
	}
	value, diags := literal(content.Attributes["default"].Expr)
	if diags.HasErrors() {
		return nil
	}
	return appendCtyStrings(nil, value)
}

// VariableSecrets returns the values in what the environment gives a variable:
// the text itself, or the values in it if it is an expression.
func VariableSecrets(text string) []string {
	secrets := []string{text}
	if !strings.ContainsAny(text, "{[") || len(text) > MaxLiteral {
		return secrets
	}
	if expr, diags, err := boundedhcl.ParseExpression(text); err == nil && !diags.HasErrors() {
		if value, diags := literal(expr); !diags.HasErrors() {
			secrets = appendCtyStrings(secrets, value)
		}
	}
	return secrets
}

// secretVariables returns the values in dir's variable files that are given to secret
// variables, if there are any. Only the engine knows whether a variable file is valid;
// the error names files that it may read and this does not.
func secretVariables(ctx context.Context, dir string, sensitive map[string]bool) (secrets []string, err error) {
	if len(sensitive) == 0 {
		return nil, nil
	}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if ctx.Err() != nil {
			return secrets, context.Cause(ctx)
		}
		name := filepath.Join(dir, entry.Name())
		switch {
		case strings.HasSuffix(name, ".tfvars.json"):
			var values map[string]any
			data, unread := readFile(name)
			if err = cmp.Or(err, beyond(entry.Name(), unread)); unread != nil || jsontree.Decode(data, &values) != nil {
				continue
			}
			for key, value := range values {
				if sensitive[key] {
					secrets = jsontree.AppendStrings(secrets, value)
				}
			}
		case strings.HasSuffix(name, ".tfvars"):
			file, unread := parse(ctx, name)
			if err = cmp.Or(err, beyond(entry.Name(), unread)); file == nil {
				continue
			}
			attributes, _ := file.Body.JustAttributes()
			for key, attribute := range attributes {
				if value, diags := literal(attribute.Expr); sensitive[key] && !diags.HasErrors() {
					secrets = appendCtyStrings(secrets, value)
				}
			}
		}
	}
	return secrets, err
}

// beyond returns an error about a file that is beyond what is read here.
func beyond(name string, err error) error {
	if errors.Is(err, errTooLarge) || errors.Is(err, ErrTooDeep) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// appendCtyStrings appends the texts and numbers in a value.
func appendCtyStrings(list []string, value cty.Value) []string {
	_ = cty.Walk(value, func(_ cty.Path, v cty.Value) (bool, error) {
		switch {
		case !v.IsKnown() || v.IsNull():
		case v.Type() == cty.String:
			list = append(list, v.AsString())
		case v.Type() == cty.Number:
			list = append(list, numberText(v.AsBigFloat()))
		}
		return true, nil
	})
	return list
}

// numberText is how the engines write a number: without an exponent, unless it is beyond
// all that providers take.
func numberText(f *big.Float) string {
	const most = 1024 // the exponent of the largest number of 64 bits
	if exponent := f.MantExp(nil); exponent > most || exponent < -most {
		return f.Text('g', -1)
	}
	return f.Text('f', -1)
}

// The engines.
const (
	Tofu      = "tofu"
	Terraform = "terraform"
)

// VariablePrefix makes a variable's name one that the engine reads from its
// environment.
const VariablePrefix = "TF_VAR_"
