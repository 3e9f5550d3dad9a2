package modulecode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/holdfast-dev/holdfast/runner/folders"
)

// Limits of code that is read without an engine. The parser recurses, and a
// stack that overflows ends the whole process: a file of a few hundred kilobytes
// of "[" would end every run of the agent.
const (
	MaxFile    = 4 << 20
	MaxNesting = 500
	maxSplats  = 10_000 // "[*]" in one file, which nest in what comes before them
)

// ErrTooDeep says that code is nested more deeply than the parser is let.
var ErrTooDeep = errors.New("nested too deeply")

var errTooLarge = fmt.Errorf("larger than %d bytes", MaxFile)

// Parse parses a file of HCL or of its JSON form. The file is nil if nothing
// of it could be read; the error is why it is not read in full.
func Parse(name string) (*hcl.File, error) {
	data, err := readFile(name)
	if err != nil {
		return nil, err
	}
	var file *hcl.File
	var diags hcl.Diagnostics
	if strings.HasSuffix(name, ".json") {
		if !json.Valid(data) { // which bounds nesting, too
			return nil, errors.New("not JSON")
		}
		file, diags = hclparse.NewParser().ParseJSON(data, name)
	} else {
		if TooDeep(data) {
			return nil, ErrTooDeep
		}
		file, diags = hclparse.NewParser().ParseHCL(data, name)
	}
	if file != nil {
		if body, ok := file.Body.(*hclsyntax.Body); ok && exceeds(body, 0) {
			return nil, ErrTooDeep
		}
	}
	if diags.HasErrors() {
		return file, diags
	}
	return file, nil
}

// readFile reads a file of at most MaxFile bytes.
func readFile(name string) ([]byte, error) {
	f, err := folders.Open(name) // a module that was fetched can have links to anything
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFile {
		return nil, errTooLarge
	}
	return data, nil
}

// TooDeep reports whether code has an expression that is nested more deeply than
// anybody writes: in brackets, by signs before a term, or by conditionals.
func TooDeep(code []byte) bool {
	tokens, _ := hclsyntax.LexConfig(code, "", hcl.InitialPos)
	return tooDeep(tokens)
}

func tooDeep(tokens hclsyntax.Tokens) bool {
	type level struct {
		block bool // a newline ends an expression here
		asked int  // conditionals in the expression
	}
	levels := []level{{block: true}}
	signs, splats := 0, 0
	for i, token := range tokens {
		top := &levels[len(levels)-1]
		switch token.Type {
		case hclsyntax.TokenOBrace:
			levels = append(levels, level{block: true})
		case hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
			hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			levels = append(levels, level{})
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			if len(levels) > 1 {
				levels = levels[:len(levels)-1]
			}
		case hclsyntax.TokenQuestion:
			top.asked++
		case hclsyntax.TokenNewline:
			if top.block {
				top.asked = 0
			}
		case hclsyntax.TokenComma:
			top.asked = 0
		case hclsyntax.TokenStar:
			if i > 0 && tokens[i-1].Type == hclsyntax.TokenOBrack {
				splats++
			}
		default: // neither deepens nor ends anything
		}
		switch token.Type {
		case hclsyntax.TokenBang, hclsyntax.TokenMinus:
			signs++
		case hclsyntax.TokenComment, hclsyntax.TokenNewline:
		default:
			signs = 0
		}
		if len(levels) > MaxNesting || top.asked > MaxNesting || signs > MaxNesting || splats > maxSplats {
			return true
		}
	}
	return false
}
