package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/planfile"
)

// givenVariables returns what the engine was given for the variables of the root
// module, as the engines find it: in the environment, in terraform.tfvars, in
// *.auto.tfvars by name, and in the document's file, each before the ones before.
func (t *space) givenVariables(env map[string]string) (map[string]planfile.Variable, error) {
	given, texts, opaque := t.declaredVariables()
	var err error
	for key, text := range env {
		name, ok := strings.CutPrefix(key, modulecode.VariablePrefix)
		v, declared := given[name]
		if !ok || !declared && !opaque {
			continue
		} else if !declared {
			v.Declared, texts[name] = true, textMode{literal: true, expression: true}
		}
		if v.Values, err = readText(text, texts[name]); err != nil {
			return nil, fmt.Errorf("the value of variable %q in the environment: %w", name, err)
		}
		given[name] = v
	}
	files, err := t.variableFiles()
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if err := readVariables(filepath.Join(t.root, name), given, opaque); err != nil {
			return nil, fmt.Errorf("read %s: %w", t.inRepository(name), err)
		}
	}
	return given, nil
}

// variableFiles returns the names of the files that have values of variables, in
// the order in which the engines read them.
func (t *space) variableFiles() ([]string, error) {
	entries, err := os.ReadDir(t.root)
	if err != nil {
		return nil, err
	}
	var files, automatic []string
	own := false
	for _, entry := range entries {
		name := entry.Name()
		own = own || name == holdfast.VariablesFile && entry.Type().IsRegular()
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
		files = append(files, holdfast.VariablesFile)
	}
	return files, nil
}

// readVariables takes the values in a file in. declared: all that have one there
// are variables of the root module.
func readVariables(name string, given map[string]planfile.Variable, declared bool) error {
	file, err := modulecode.Parse(name)
	if err != nil {
		return err
	}
	attributes, diags := file.Body.JustAttributes()
	if diags.HasErrors() {
		return diags
	}
	for name, attribute := range attributes {
		v := given[name]
		value, err := constant(attribute.Expr, file.Bytes)
		if err != nil {
			return fmt.Errorf("variable %q: %w", name, err)
		}
		v.Values, v.Declared = []cty.Value{value}, v.Declared || declared
		given[name] = v
	}
	return nil
}

// constant evaluates an expression that refers to nothing. In a long one there
// are few operators, as evaluation recurses over them.
func constant(expr hcl.Expression, code []byte) (cty.Value, error) {
	const maxOperators = 1000
	_, native := expr.(hclsyntax.Expression)
	if span := expr.Range(); native && span.End.Byte-span.Start.Byte > modulecode.MaxLiteral {
		tokens, _ := hclsyntax.LexExpression(span.SliceBytes(code), "", hcl.InitialPos)
		operators := 0
		for _, token := range tokens {
			switch token.Type {
			case hclsyntax.TokenPlus, hclsyntax.TokenMinus, hclsyntax.TokenStar, hclsyntax.TokenSlash, hclsyntax.TokenPercent,
				hclsyntax.TokenAnd, hclsyntax.TokenOr, hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual,
				hclsyntax.TokenLessThan, hclsyntax.TokenLessThanEq, hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq:
				operators++
			default:
			}
		}
		if operators > maxOperators {
			return cty.NilVal, modulecode.ErrTooDeep
		}
	}
	return modulecode.Constant(expr)
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
		if len(text) > modulecode.MaxFile || modulecode.TooDeep([]byte(text)) {
			return nil, modulecode.ErrTooDeep
		}
		expr, diags := hclsyntax.ParseExpression([]byte(text), "variable", hcl.InitialPos)
		if diags.HasErrors() {
			return values, nil
		}
		if value, err := constant(expr, []byte(text)); err == nil {
			values = append(values, value)
		} else if errors.Is(err, modulecode.ErrTooDeep) {
			return nil, err
		}
	}
	return values, nil
}

var variableSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "variable", LabelNames: []string{"name"}}}}

// declaredVariables returns the variables of the root module, without values, and
// how texts for them are read: both ways where one file overrides another. opaque:
// there is code that cannot be read, in which more could be declared.
func (t *space) declaredVariables() (declared map[string]planfile.Variable, texts map[string]textMode, opaque bool) {
	declared, texts = map[string]planfile.Variable{}, map[string]textMode{}
	for _, name := range t.module.Files {
		if !modulecode.UsedBy(t.engine.Name, name, t.module.Files) {
			continue
		}
		file, err := modulecode.Parse(filepath.Join(t.root, name))
		if err != nil || file == nil {
			opaque = true
			continue
		}
		content, _, _ := file.Body.PartialContent(variableSchema)
		for _, block := range content.Blocks {
			v, mode := declared[block.Labels[0]], texts[block.Labels[0]]
			v.Declared = true
			v.Ephemeral = v.Ephemeral || modulecode.BoolAttribute(block.Body, "ephemeral")
			switch kind := modulecode.AttributeText(file, block.Body, "type"); strings.Trim(kind, `"`) {
			case "", "string", "number", "bool":
				mode.literal = true
			default:
				mode.expression = true
			}
			declared[block.Labels[0]], texts[block.Labels[0]] = v, mode
		}
	}
	return declared, texts, opaque
}
