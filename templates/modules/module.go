package modules

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/boundedhcl"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/semver"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// Module is what is read of the engine's code in one folder. It is immutable.
type Module struct {
	Files     int
	Calls     []Call
	patterns  []string                  // of local sources that depend on values, "*" in place of each
	sources   []hcl.Expression          // that patterns are made of
	locals    map[string]hcl.Expression // of which sources are made
	Variables map[string]Variable
	Outputs   map[string]bool
	names     []string        // of the files
	backends  []*Backend      // of all files
	reads     []string        // outside the folder, from the folder, by file() and the like
	rootReads []string        // the same from the root module's folder
	Faults    holdfast.Faults // in the order of the files
	tokens    int             // of all files

	tofu, terraform *Module // what each of them reads; nil if that is all
}

// As returns the module as an engine reads it: OpenTofu reads x.tofu in place of x.tf, and
// Terraform reads no .tofu. With any other name, such as an empty one, all files count.
func (m *Module) As(engine string) *Module {
	switch {
	case engine == "tofu" && m.tofu != nil:
		return m.tofu
	case engine == "terraform" && m.terraform != nil:
		return m.terraform
	default:
		return m
	}
}

// Call is a module block whose source is literal.
type Call struct {
	name, Source, Version string
	File                  string
	Line, Column          int
}

// Variable is what a module says of one of its variables.
type Variable struct {
	kind     string   // string, number, bool, list, map or any
	Full     cty.Type // the constraint, with optional attributes; any where it cannot be read
	Required bool
	Nullable bool
	Hidden   bool   // it is declared sensitive
	File     string // where it is declared, with Line
	Line     int
}

// Unset returns the variables that have no default, by name. It is empty where the engine
// merges several declarations of one: override files, and OpenTofu's own.
func (m *Module) Unset() []string {
	for _, file := range m.names {
		if isTofu(file) || overrides(file) {
			return nil
		}
	}
	var names []string
	for name, v := range m.Variables {
		if v.Required {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func isCode(name string) bool {
	for _, suffix := range []string{".tf", ".tf.json", ".tofu", ".tofu.json"} {
		if strings.HasSuffix(name, suffix) && !strings.HasPrefix(name, ".") {
			return true
		}
	}
	return false
}

func newModule() *Module {
	return &Module{Variables: map[string]Variable{}, Outputs: map[string]bool{}, locals: map[string]hcl.Expression{}}
}

// read takes in one file of code.
func (m *Module) read(file string, data []byte) {
	m.Files++
	m.names = append(m.names, file)
	f, diags, err := boundedhcl.ParseFile(data, file)
	if err != nil {
		m.Faults = append(m.Faults, excess(file, err))
		return
	}
	if diags.HasErrors() {
		m.diagnose(file, diags)
		return
	}
	if m.tokens += f.Tokens; m.tokens > maxModuleTokens {
		m.Faults = append(m.Faults, holdfast.Fault{
			File: file, Message: fmt.Sprintf("code of the folder has more than %d tokens, with this file", maxModuleTokens), Hint: codeHint,
		})
		return
	}
	m.reading(f.Body)
	content, _, diags := f.Body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "module", LabelNames: []string{"name"}},
		{Type: "variable", LabelNames: []string{"name"}},
		{Type: "output", LabelNames: []string{"name"}},
		{Type: "terraform"},
		{Type: "locals"},
	}})
	m.diagnose(file, diags)
	if content == nil {
		return
	}
	for _, block := range content.Blocks {
		switch block.Type {
		case "module":
			m.call(file, block)
		case "variable":
			m.variable(file, block)
		case "output":
			m.Outputs[block.Labels[0]] = true
		case "terraform":
			m.settings(file, data, block)
		case "locals":
			values, _ := block.Body.JustAttributes()
			for name, a := range values {
				m.locals[name] = a.Expr
			}
		}
	}
}

// excess is the fault of a file whose code is more than is parsed.
func excess(file string, err error) holdfast.Fault {
	fault := holdfast.Fault{File: file, Message: err.Error()}
	var much *boundedhcl.Excess
	if errors.As(err, &much) {
		fault.Line, fault.Message = much.Line, much.What
	}
	return fault
}

// reading notes the files outside of the folder that functions read, where the
// code says them in so many words: "${path.module}/../shared.yaml".
func (m *Module) reading(body hcl.Body) {
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		return
	}
	here := cty.StringVal(".")
	scope := &hcl.EvalContext{Variables: map[string]cty.Value{
		"path": cty.ObjectVal(map[string]cty.Value{"module": here, "root": here, "cwd": here}),
	}}
	_ = hclsyntax.VisitAll(native, func(node hclsyntax.Node) hcl.Diagnostics {
		call, ok := node.(*hclsyntax.FunctionCallExpr)
		if !ok || len(call.Args) == 0 || !readsFile(call.Name) {
			return nil
		}
		inModule := false
		for _, traversal := range call.Args[0].Variables() {
			if len(traversal) == 2 {
				attr, _ := traversal[1].(hcl.TraverseAttr)
				inModule = inModule || attr.Name == "module"
			}
		}
		v, ok := constant(call.Args[0], scope)
		if !ok || v.Type() != cty.String {
			return nil
		}
		name := path.Clean(v.AsString())
		switch {
		case !strings.HasPrefix(name, "../"):
		case inModule:
			m.reads = append(m.reads, name)
		default: // relative paths start where the engine runs
			m.rootReads = append(m.rootReads, name)
		}
		return nil
	})
}

func readsFile(function string) bool {
	return function == "templatefile" || strings.HasPrefix(function, "file")
}

func (m *Module) diagnose(file string, diags hcl.Diagnostics) {
	for _, d := range diags {
		if d.Severity != hcl.DiagError || len(m.Faults) >= decode.MaxFaults {
			continue
		}
		fault := holdfast.Fault{File: file, Message: strings.TrimSuffix(d.Summary, "."), Hint: d.Detail}
		if d.Subject != nil {
			fault.Line, fault.Column = d.Subject.Start.Line, d.Subject.Start.Column
		}
		m.Faults = append(m.Faults, fault)
	}
}

func attributes(body hcl.Body, names ...string) hcl.Attributes {
	schema := &hcl.BodySchema{}
	for _, name := range names {
		schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: name})
	}
	content, _, _ := body.PartialContent(schema)
	if content == nil {
		return nil
	}
	return content.Attributes
}

// literalText evaluates an attribute that must not depend on anything.
func literalText(a *hcl.Attribute) (string, bool) {
	if a == nil {
		return "", false
	}
	v, ok := constant(a.Expr, nil)
	if !ok || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}

func (m *Module) call(file string, block *hcl.Block) {
	attrs := attributes(block.Body, "source", "version")
	source, ok := literalText(attrs["source"])
	if !ok || strings.HasSuffix(file, ".json") && boundedhcl.IsTemplate(source) { // OpenTofu evaluates it with the cluster's values
		if a := attrs["source"]; a != nil {
			m.sources = append(m.sources, a.Expr)
		}
		return
	}
	version, _ := literalText(attrs["version"])
	at := attrs["source"].Expr.Range().Start
	m.Calls = append(m.Calls, Call{
		name: block.Labels[0], Source: source, Version: version,
		File: file, Line: at.Line, Column: at.Column,
	})
}

func (m *Module) variable(file string, block *hcl.Block) {
	attrs := attributes(block.Body, "type", "default", "nullable", "sensitive")
	v := Variable{kind: "any", Full: cty.DynamicPseudoType, Required: attrs["default"] == nil, Nullable: true, File: file, Line: block.DefRange.Start.Line}
	if t := attrs["type"]; t != nil {
		if expr := typeOf(t.Expr); expr != nil {
			v.kind, v.Full = typeKind(expr), fullType(expr)
		}
	}
	if n := attrs["nullable"]; n != nil {
		value, ok := constant(n.Expr, nil)
		v.Nullable = !ok || !value.RawEquals(cty.False)
	}
	if s := attrs["sensitive"]; s != nil {
		value, ok := constant(s.Expr, nil)
		v.Hidden = ok && value.RawEquals(cty.True)
	}
	m.Variables[block.Labels[0]] = v
}

// typeOf returns a type constraint in the native language, in which JSON has it as a
// text. It is nil for one that cannot be read, and for one whose defaults take too much to
// evaluate.
func typeOf(expr hcl.Expression) hclsyntax.Expression {
	native, ok := expr.(hclsyntax.Expression)
	if !ok {
		text, ok := constant(expr, nil)
		if !ok || text.Type() != cty.String {
			return nil
		}
		parsed, diags, err := boundedhcl.ParseExpression(text.AsString())
		if err != nil || diags.HasErrors() {
			return nil
		}
		native = parsed
	}
	if boundedhcl.Measure(native, nil) != nil {
		return nil
	}
	return native
}

// fullType reads a type constraint. Where it cannot be read, the engine says so.
func fullType(expr hclsyntax.Expression) cty.Type {
	switch hcl.ExprAsKeyword(expr) {
	case "list": // as they were once written
		return cty.List(cty.DynamicPseudoType)
	case "map":
		return cty.Map(cty.DynamicPseudoType)
	}
	t, _, diags := typeexpr.TypeConstraintWithDefaults(expr)
	if diags.HasErrors() {
		return cty.DynamicPseudoType
	}
	return t
}

func typeKind(expr hclsyntax.Expression) string {
	word := hcl.ExprAsKeyword(expr)
	if call, diags := hcl.ExprCall(expr); !diags.HasErrors() {
		word = call.Name
	}
	switch word {
	case "string", "number", "bool":
		return word
	case "list", "set", "tuple":
		return "list"
	case "map", "object":
		return "map"
	}
	return "any"
}

// Fits says what a value for the variable must be, "" if it is that: the
// engine converts between the primitive types where the text allows it.
func (v Variable) Fits(value any) string {
	text, isText := value.(string)
	_, isBool := value.(bool)
	_, isList := value.([]any)
	_, isMap := value.(map[string]any)
	primitive := !isList && !isMap
	if value == nil {
		return ""
	}
	ok := true
	switch v.kind {
	case "string":
		ok = primitive
	case "number":
		_, err := cty.ParseNumberVal(text)
		ok = primitive && !isBool && (!isText || err == nil)
	case "bool":
		ok = isBool || text == "true" || text == "false"
	case "list":
		ok = isList
	case "map":
		ok = isMap
	}
	if ok {
		return ""
	}
	return "a " + v.kind
}

func (m *Module) settings(file string, data []byte, block *hcl.Block) {
	content, _, _ := block.Body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "backend", LabelNames: []string{"type"}},
		{Type: "cloud"},
		{Type: "state_store", LabelNames: []string{"type"}},
	}})
	if content == nil {
		return
	}
	for _, b := range content.Blocks {
		kind := b.Type
		if b.Type == "backend" {
			kind = b.Labels[0]
		}
		found := &Backend{
			Kind: kind, Attributes: map[string]any{}, Unread: map[string]string{}, File: file, Line: b.DefRange.Start.Line,
			Code: codeOf(b, data),
		}
		found.read(b.Body, kind, data)
		m.backends = append(m.backends, found)
	}
}

// IsLocal reports whether a module source is a folder next to the caller.
func IsLocal(source string) bool {
	return strings.HasPrefix(source, "./") || strings.HasPrefix(source, "../") || source == "." || source == ".."
}

// Within joins a relative path to a folder of the tree, and reports false if it
// leaves the tree.
func Within(dir, relative string) (string, bool) {
	joined := path.Join(dir, relative)
	if path.IsAbs(relative) || joined == ".." || strings.HasPrefix(joined, "../") {
		return "", false
	}
	return joined, true
}

// Pinned says why a source from elsewhere can change under the same words, ""
// if it cannot.
func Pinned(source, version string) (problem, hint string) {
	switch {
	case strings.HasPrefix(source, "git::"), strings.HasPrefix(source, "git@"),
		strings.HasPrefix(source, "github.com/"), strings.HasPrefix(source, "bitbucket.org/"):
		_, query, _ := strings.Cut(source, "?")
		for pair := range strings.SplitSeq(query, "&") {
			ref, ok := strings.CutPrefix(pair, "ref=")
			if !ok || ref == "" {
				continue
			}
			if plain, err := url.QueryUnescape(ref); err == nil {
				ref = plain
			}
			if name := strings.ToUpper(ref); name == "HEAD" || strings.HasPrefix(name, "REFS/HEADS/") {
				return "names the branch " + wording.Clip(ref) + ", which moves", "write a tag or a commit after ?ref="
			}
			return "", ""
		}
		return "names no revision", "add ?ref= with a tag or a commit"
	case strings.Contains(source, "::"), strings.Contains(source, "://"):
		return "cannot be pinned", "use a local folder, a Git repository with ?ref=, or a registry module with version"
	case strings.HasPrefix(source, "/"), strings.HasPrefix(source, "~"):
		return "is a path of one machine", "write a path that starts with ./ or ../"
	}
	if n := strings.Count(source, "/"); n < 2 {
		return "is not a module source", "a local one starts with ./ or ../"
	}
	if !semver.IsExact(version) {
		return "has the version " + strconv.Quote(wording.Clip(version)), "write the exact version of a registry module"
	}
	return "", ""
}
