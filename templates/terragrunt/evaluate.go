package terragrunt

import (
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Bounds of what is evaluated.
const (
	maxText  = 4096 // bytes of a text
	maxSteps = 1000 // of one expression, locals included
)

// top stands for the folder that the tree is in, at the beginning of an absolute path.
const top = "\x00"

// texts evaluates expressions to texts, as far as they have constants, locals and paths in
// them.
type texts struct {
	*reader

	in    *config
	steps int
	busy  map[string]bool // locals that are being evaluated
}

// textOf returns the text of an expression, and false if only Terragrunt knows it, or it
// would be another one wherever the tree is.
func (r *reader) textOf(c *config, expr hclsyntax.Expression) (string, bool) {
	text, ok := (&texts{reader: r, in: c, busy: map[string]bool{}}).of(expr)
	return text, ok && !strings.Contains(text, top)
}

// pathFrom returns the path in the tree that an expression names, which is relative to a
// folder, and false if only Terragrunt knows it or it leaves the tree.
func (r *reader) pathFrom(c *config, base string, expr hclsyntax.Expression) (string, bool) {
	text, ok := (&texts{reader: r, in: c, busy: map[string]bool{}}).of(expr)
	if !ok {
		return "", false
	}
	return inTree(base, text)
}

// inTree is pathFrom for a text.
func inTree(base, text string) (string, bool) {
	whole, absolute := strings.CutPrefix(text, top)
	switch {
	case strings.Contains(whole, top), text == "":
		return "", false
	case absolute:
		whole = path.Join(".", whole)
	case path.IsAbs(text):
		return "", false
	default:
		whole = path.Join(base, text)
	}
	if whole == ".." || strings.HasPrefix(whole, "../") {
		return "", false
	}
	return whole, true
}

func (t *texts) of(expr hclsyntax.Expression) (string, bool) {
	if t.steps++; t.steps > maxSteps {
		return "", false
	}
	switch e := expr.(type) {
	case *hclsyntax.LiteralValueExpr:
		if e.Val.IsNull() || e.Val.Type() != cty.String {
			return "", false
		}
		return e.Val.AsString(), true
	case *hclsyntax.TemplateExpr:
		var text strings.Builder
		for _, part := range e.Parts {
			piece, ok := t.of(part)
			if text.WriteString(piece); !ok || text.Len() > maxText {
				return "", false
			}
		}
		return text.String(), true
	case *hclsyntax.TemplateWrapExpr:
		return t.of(e.Wrapped)
	case *hclsyntax.ParenthesesExpr:
		return t.of(e.Expression)
	case *hclsyntax.ScopeTraversalExpr:
		return t.local(e.Traversal)
	case *hclsyntax.FunctionCallExpr:
		return t.call(e)
	}
	return "", false
}

// local is the value of local.NAME.
func (t *texts) local(at hcl.Traversal) (string, bool) {
	if len(at) != 2 || at.RootName() != "local" {
		return "", false
	}
	name, ok := at[1].(hcl.TraverseAttr)
	if !ok || t.busy[name.Name] || t.in.locals[name.Name] == nil {
		return "", false
	}
	t.busy[name.Name] = true
	defer delete(t.busy, name.Name)
	return t.of(t.in.locals[name.Name])
}

// call is the value of a function that tells a path.
func (t *texts) call(e *hclsyntax.FunctionCallExpr) (string, bool) {
	var args []string
	for _, arg := range e.Args {
		text, ok := t.of(arg)
		if !ok {
			return "", false
		}
		args = append(args, text)
	}
	label := ""
	if len(args) > 0 {
		label = args[0]
	}
	parent, included := t.in.parent[label]
	switch e.Name {
	case "dirname":
		return path.Dir(label), len(args) == 1
	case "basename":
		return path.Base(label), len(args) == 1
	case "get_terragrunt_dir":
		return absolute(t.in.dir), len(args) == 0
	case "get_original_terragrunt_dir":
		return absolute(t.unit.Dir), len(args) == 0
	case "get_parent_terragrunt_dir":
		return absolute(parent), included
	case "path_relative_to_include":
		return relative(parent, t.in.dir), included
	case "path_relative_from_include":
		return relative(t.in.dir, parent), included
	case "find_in_parent_folders":
		return t.find(args)
	}
	return "", false
}

// find is the value of find_in_parent_folders: the nearest file, or folder, of that name
// above the folder whose configuration it is.
func (t *texts) find(args []string) (string, bool) {
	name := ConfigFile
	if len(args) > 0 {
		name = args[0]
	}
	if len(args) > 2 || path.IsAbs(name) || strings.Contains(name, top) {
		return "", false
	}
	for dir := t.in.dir; dir != "."; {
		dir = path.Dir(dir)
		candidate := path.Join(dir, name)
		if strings.HasPrefix(candidate, "../") {
			break
		}
		t.sought[candidate] = true
		if _, err := t.tree.Hash(candidate); err == nil {
			return absolute(candidate), true
		}
	}
	if len(args) == 2 {
		return args[1], true
	}
	return "", false
}

func absolute(dir string) string { return top + "/" + strings.TrimPrefix(dir, "./") }

// relative is the path from one folder to another one.
func relative(from, to string) string {
	var a, b []string
	if from != "." {
		a = strings.Split(from, "/")
	}
	if to != "." {
		b = strings.Split(to, "/")
	}
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	steps := strings.Repeat("../", len(a)) + strings.Join(b, "/")
	if steps = strings.TrimSuffix(steps, "/"); steps == "" {
		return "."
	}
	return steps
}
