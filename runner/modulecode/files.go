// Which files expressions read by their names.

package modulecode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast/internal/boundedhcl"
	"github.com/holdfast-dev/holdfast/runner/folders"
)

// readsFile are the functions whose first argument is the name of a file or folder.
var readsFile = []string{ //nolint:gochecknoglobals // a constant list
	"file", "filebase64", "filebase64sha256", "filebase64sha512", "fileexists", "filemd5",
	"filesha1", "filesha256", "filesha512", "fileset", "templatefile",
}

const (
	maxTemplates = 1000     // that the code of a module reads
	maxTexts     = 64 << 20 // bytes of all of them
	maxEscaped   = 16       // templates in the texts of templates
)

// Reader reads which files the code of a module reads by functions such as file.
type Reader struct {
	Engine    string // whose code it is
	Module    string // path.module
	Cwd       string // path.cwd
	Workspace string // terraform.workspace
	// Open opens a template by its name. Nil: none can be read.
	Open func(name string) (io.ReadCloser, error)
}

// FilesRead returns the names of the files that the code of the module in a folder
// reads by functions, where they are constant, as the engine is given them: relative
// to the root module. Templates among them are read as well. The error names the file
// of which not all could be read.
func (r Reader) FilesRead(ctx context.Context, folder string) ([]string, error) {
	names, err := codeIn(folder, r.Engine)
	if err != nil {
		return nil, err
	}
	workspace := cty.ObjectVal(map[string]cty.Value{"workspace": cty.StringVal(r.Workspace)})
	found := fileNames{
		ctx: ctx, open: r.Open, left: maxTexts, read: map[string]bool{},
		where: &hcl.EvalContext{Variables: map[string]cty.Value{
			"path": cty.ObjectVal(map[string]cty.Value{
				"module": cty.StringVal(r.Module), "root": cty.StringVal("."), "cwd": cty.StringVal(r.Cwd),
			}),
			"terraform": workspace, "tofu": workspace,
		}},
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		file, err := parse(ctx, filepath.Join(folder, name))
		if err == nil {
			if body, native := file.Body.(*hclsyntax.Body); native {
				err = found.expressions(body)
			} else {
				err = found.json(file.Bytes)
			}
		}
		if err == nil {
			err = found.templates()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, unnamed(err))
		}
	}
	slices.Sort(found.names)
	return slices.Compact(found.names), nil
}

// codeIn returns the names of the files in a folder that are code for an engine.
func codeIn(folder, engine string) (used []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf(".: %w", unnamed(err))
	}
	var names []string
	for _, entry := range entries {
		if name := entry.Name(); !entry.IsDir() && !strings.HasPrefix(name, ".") && IsFile(name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if UsedBy(engine, name, names) {
			used = append(used, name)
		}
	}
	return used, nil
}

// unnamed is an error without the path that a file has on this machine.
func unnamed(err error) error {
	var diags hcl.Diagnostics
	var at *os.PathError
	switch {
	case errors.As(err, &diags) && len(diags) > 0 && diags[0].Subject != nil:
		return fmt.Errorf("line %d: %s", diags[0].Subject.Start.Line, diags[0].Summary)
	case errors.As(err, &diags) && len(diags) > 0:
		return errors.New(diags[0].Summary)
	case errors.As(err, &at):
		return at.Err
	}
	return err
}

// fileNames are the names of files that code reads.
type fileNames struct {
	ctx     context.Context //nolint:containedctx // of one call
	where   *hcl.EvalContext
	open    func(name string) (io.ReadCloser, error)
	names   []string
	waiting []waiting       // to be read as templates
	read    map[string]bool // those that were, by name
	left    int             // bytes of them that may still be read
	depth   int             // of templates in texts of templates
}

// waiting is a file that is a template, or may be given to templatestring.
type waiting struct {
	name     string
	template bool
}

// expressions finds the calls in code that is not nested too deeply.
func (f *fileNames) expressions(node hclsyntax.Node) error {
	var failed error
	_ = hclsyntax.VisitAll(node, func(node hclsyntax.Node) hcl.Diagnostics {
		if failed != nil {
			return nil
		}
		switch node := node.(type) {
		case *hclsyntax.FunctionCallExpr:
			failed = f.call(node)
		case *hclsyntax.TemplateExpr:
			failed = f.template(literalIn(node)) // which templatestring may be given
		}
		return nil
	})
	return failed
}

// literalIn returns the text of a template that has no expressions, otherwise nothing.
func literalIn(template *hclsyntax.TemplateExpr) string {
	var text strings.Builder
	for _, part := range template.Parts {
		literal, ok := part.(*hclsyntax.LiteralValueExpr)
		if !ok || literal.Val.IsNull() || !literal.Val.IsKnown() || literal.Val.Type() != cty.String {
			return ""
		}
		text.WriteString(literal.Val.AsString())
	}
	return text.String()
}

// call notes the file that a function reads.
func (f *fileNames) call(call *hclsyntax.FunctionCallExpr) error {
	function := strings.TrimPrefix(call.Name, "core::")
	if !slices.Contains(readsFile, function) {
		return nil
	}
	arguments, err := f.constants(call)
	if err != nil || len(arguments) == 0 {
		return err
	}
	name := arguments[0]
	switch {
	case function == "fileset" && len(arguments) > 1:
		name = beforePattern(path.Join(name, arguments[1]))
	case function == "fileset": // the pattern is not known
		name = beforePattern(path.Join(name, "*"))
	case function == "templatefile", function == "file":
		f.waiting = append(f.waiting, waiting{name, function == "templatefile"})
	}
	f.names = append(f.names, name)
	return nil
}

// constants returns the first arguments of a call that are constant texts.
func (f *fileNames) constants(call *hclsyntax.FunctionCallExpr) (texts []string, err error) {
	for i, argument := range call.Args[:min(2, len(call.Args))] {
		if err := boundedhcl.Measure(argument, f.where); err != nil {
			if i == 0 {
				return nil, err
			}
			break
		}
		value, diags := argument.Value(f.where) // an error where it has a function: none is known here
		if diags.HasErrors() || value.IsNull() || !value.IsWhollyKnown() {
			break
		}
		values := []cty.Value{value}
		if call.ExpandFinal && i == len(call.Args)-1 {
			if values = nil; value.CanIterateElements() {
				values = value.AsValueSlice()
			}
		}
		for _, value := range values {
			if value.IsNull() || value.Type() != cty.String {
				return texts, nil
			}
			texts = append(texts, value.AsString())
		}
	}
	return texts, nil
}

// beforePattern returns the folder with all files that a pattern can match.
func beforePattern(pattern string) string {
	at := strings.IndexAny(pattern, `*?[{\`)
	if at < 0 {
		return path.Dir(pattern)
	}
	folder := pattern[:strings.LastIndexByte(pattern[:at], '/')+1]
	if folder == "" {
		return "."
	}
	return path.Clean(folder)
}

// json finds the calls in the keys and texts of JSON code, each of which is a template.
func (f *fileNames) json(code []byte) error {
	for tokens := json.NewDecoder(bytes.NewReader(code)); ; {
		token, err := tokens.Token()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return errors.New("not JSON")
		}
		if text, ok := token.(string); ok {
			if err := f.template(text); err != nil {
				return err
			}
		}
	}
}

// template finds the calls in a template.
func (f *fileNames) template(text string) error {
	if f.depth++; f.depth > maxEscaped {
		return ErrTooDeep
	}
	defer func() { f.depth-- }()
	if !strings.Contains(text, "file") || !strings.Contains(text, "${") && !strings.Contains(text, "%{") {
		return nil
	}
	template, _, err := boundedhcl.ParseTemplate(text)
	if err != nil {
		return err
	}
	return f.expressions(template)
}

// templates reads the templates that were named so far, and those that they name.
func (f *fileNames) templates() error {
	for len(f.waiting) > 0 {
		next := f.waiting[0]
		if f.waiting = f.waiting[1:]; f.open == nil || f.read[next.name] {
			continue
		}
		if f.ctx.Err() != nil {
			return context.Cause(f.ctx)
		}
		f.read[next.name] = true
		if len(f.read) > maxTemplates {
			return fmt.Errorf("it reads more than %d templates", maxTemplates)
		}
		text, err := f.textOf(next.name)
		if f.left -= len(text); f.left < 0 {
			return fmt.Errorf("it reads more than %d MiB of templates and texts", maxTexts>>20)
		}
		if err == nil {
			err = f.template(text)
		}
		if err != nil && next.template {
			return fmt.Errorf("template %s: %w", path.Base(next.name), err)
		}
	}
	return nil
}

// textOf returns the content of a template, nothing if there is none: the engine
// reports that.
func (f *fileNames) textOf(name string) (string, error) {
	file, err := f.open(name)
	if err != nil {
		return "", nil //nolint:nilerr // it is for the engine to say
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(folders.Reading(f.ctx, file), MaxFile+1))
	if err != nil {
		return "", nil //nolint:nilerr // as above
	}
	if len(data) > MaxFile {
		return "", errTooLarge
	}
	return string(data), nil
}
