package terragrunt

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast/templates/modules"
	"github.com/holdfast-dev/holdfast/templates/semver"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// found is a block in one of the configuration's files.
type found struct {
	in    *config
	block *hclsyntax.Block
}

// one returns the block of a type that counts: the unit's own, otherwise that of an
// included file. Which one counts of two that are included depends on how they are
// merged.
func (r *reader) one(own *config, included []*config, kind string, has func(*hclsyntax.Block) bool) (found, bool) {
	var list []found
	for i, c := range append([]*config{own}, included...) {
		for _, block := range c.body.Blocks {
			if block.Type == kind && has(block) {
				list = append(list, found{c, block})
			}
		}
		if i == 0 && len(list) > 0 {
			break
		}
	}
	if len(list) == 0 {
		return found{}, false
	}
	if len(list) > 1 {
		r.faults = append(r.faults, placeOf(list[1].in.file, list[1].block.DefRange()).Fault(
			"another "+kind+" block is in "+list[0].in.file, "write the one that counts in "+ConfigFile))
	}
	return list[0], true
}

// readSource notes where the unit's module is.
func (r *reader) readSource(own *config, included []*config) {
	of, ok := r.one(own, included, "terraform", func(b *hclsyntax.Block) bool { return b.Body.Attributes["source"] != nil })
	if !ok {
		return
	}
	expr := of.block.Body.Attributes["source"].Expr
	r.unit.Source.Place = placeOf(of.in.file, expr.Range())
	text, ok := (&texts{reader: r, in: of.in, busy: map[string]bool{}}).of(expr)
	if !ok {
		r.faults = append(r.faults, r.unit.Source.Fault("the source is only known to Terragrunt", pathHint+"; or an address without functions"))
		return
	}
	if !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, top) {
		r.unit.Source.Address = text
		r.checkAddress(text)
		return
	}
	text, _, _ = strings.Cut(text, "?")
	dir, ok := inTree(r.unit.Dir, text)
	if !ok {
		r.faults = append(r.faults, r.unit.Source.Fault("the source leaves the repository", ""))
		return
	}
	r.unit.Source.Dir = path.Clean(dir)
}

// checkAddress refuses the address of a module that could mean another one later.
func (r *reader) checkAddress(address string) {
	problem, hint := modules.Pinned(address, "")
	if rest, registry := strings.CutPrefix(address, "tfr://"); registry {
		problem, hint = "names no version", "add ?version= with an exact version"
		_, query, _ := strings.Cut(rest, "?")
		if values, err := url.ParseQuery(query); err == nil && semver.IsExact(values.Get("version")) {
			problem = ""
		}
	}
	if problem != "" {
		r.faults = append(r.faults, r.unit.Source.Fault(fmt.Sprintf("source %q %s", wording.Clip(address), problem), hint))
	}
}

// readState notes where the unit's state is.
func (r *reader) readState(own *config, included []*config) {
	of, ok := r.one(own, included, "remote_state", func(*hclsyntax.Block) bool { return true })
	if !ok {
		return
	}
	at := placeOf(of.in.file, of.block.DefRange())
	state := &State{Place: at, Config: map[string]any{}, Unread: map[string]string{}}
	attributes := of.block.Body.Attributes
	if backend := attributes["backend"]; backend != nil {
		state.Backend, _ = r.textOf(of.in, backend.Expr)
	}
	if state.Backend == "" {
		r.faults = append(r.faults, at.Fault("remote_state names no backend", `write it as a text, such as backend = "s3"`))
		return
	}
	state.File = r.generated(of.in, attributes["generate"])
	if state.File == "" {
		r.faults = append(r.faults, at.Fault("remote_state has no generate with the path of a file",
			`write generate = { path = "backend.tf", if_exists = "overwrite_terragrunt" }: init is given no other arguments`))
		return
	}
	config := attributes["config"]
	if config != nil {
		object, ok := config.Expr.(*hclsyntax.ObjectConsExpr)
		if !ok {
			r.faults = append(r.faults, placeOf(of.in.file, config.Expr.Range()).Fault(
				"where the state is, is only known to Terragrunt", "write config as { … } with an argument in each line"))
			return
		}
		r.arguments(state, of.in, "", object)
	}
	if kept, _ := state.Config["path"].(string); state.Backend == "local" && !path.IsAbs(kept) {
		r.faults = append(r.faults, at.Fault("a local backend keeps the state in a workspace that is thrown away",
			"remove the block: the state is kept by Holdfast then; or use another backend"))
	}
	r.unit.State = state
}

// generated is the file that a generate attribute names, empty if there is none.
func (r *reader) generated(c *config, attribute *hclsyntax.Attribute) string {
	if attribute == nil {
		return ""
	}
	object, ok := attribute.Expr.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return ""
	}
	for _, item := range object.Items {
		if keyOf(item) == "path" {
			name, _ := r.textOf(c, item.ValueExpr)
			return name
		}
	}
	return ""
}

// arguments notes the arguments of a backend: what is not known as it is written.
func (r *reader) arguments(state *State, c *config, prefix string, object *hclsyntax.ObjectConsExpr) {
	for _, item := range object.Items {
		name := keyOf(item)
		if name == "" {
			state.Unread[prefix+"(computed)"] = words(item.KeyExpr.Range().SliceBytes(c.code))
			continue
		}
		if inner, ok := item.ValueExpr.(*hclsyntax.ObjectConsExpr); ok && prefix == "" {
			r.arguments(state, c, name+".", inner)
			continue
		}
		if text, ok := r.textOf(c, item.ValueExpr); ok {
			state.Config[prefix+name] = text
			continue
		}
		code := words(item.ValueExpr.Range().SliceBytes(c.code))
		if literal, ok := item.ValueExpr.(*hclsyntax.LiteralValueExpr); ok && !literal.Val.IsNull() && literal.Val.Type() != cty.String {
			state.Config[prefix+name] = code
			continue
		}
		state.Unread[prefix+name] = code
	}
}

// keyOf is the name of an argument, empty if it is computed.
func keyOf(item hclsyntax.ObjectConsItem) string {
	key, ok := item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr)
	if !ok {
		return ""
	}
	if name := hcl.ExprAsKeyword(key.Wrapped); name != "" {
		return name
	}
	template, ok := key.Wrapped.(*hclsyntax.TemplateExpr)
	if !ok || !template.IsStringLiteral() {
		return ""
	}
	name, _ := (&texts{}).of(template)
	return name
}
