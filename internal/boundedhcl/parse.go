package boundedhcl

import (
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
)

// large is the size of a text, in bytes, beyond which one is parsed at a time: its tokens
// take a hundred times as much memory while it is parsed.
const large = 1 << 20

var oneAtATime sync.Mutex //nolint:gochecknoglobals // memory is that of the process

func hold(src []byte) (release func()) {
	if len(src) <= large {
		return func() {}
	}
	oneAtATime.Lock()
	return oneAtATime.Unlock
}

// File is a file that was parsed.
type File struct {
	*hcl.File
	Tokens int
}

// ParseFile parses a file of code: in JSON if its name ends in .json. An Excess says that
// it is not parsed; the diagnostics what is wrong with it, in which case the file has what
// could be read.
func ParseFile(data []byte, name string) (File, hcl.Diagnostics, error) {
	defer hold(data)()
	if strings.HasSuffix(name, ".json") {
		tokens, err := admitJSON(data)
		if err != nil {
			return File{}, nil, err
		}
		file, diags := hcljson.Parse(data, name)
		return File{file, tokens}, diags, nil
	}
	tokens, err := config.admit(data, hcl.InitialPos)
	if err != nil {
		return File{}, nil, err
	}
	file, diags := hclsyntax.ParseConfig(data, name, hcl.InitialPos)
	return File{file, tokens}, diags, nil
}

// ParseExpression parses an expression.
func ParseExpression(text string) (hclsyntax.Expression, hcl.Diagnostics, error) {
	src := []byte(text)
	defer hold(src)()
	if _, err := expression.admit(src, hcl.InitialPos); err != nil {
		return nil, nil, err
	}
	expr, diags := hclsyntax.ParseExpression(src, "", hcl.InitialPos)
	return expr, diags, nil
}

// ParseTemplate parses a text in which there can be expressions.
func ParseTemplate(text string) (hclsyntax.Expression, hcl.Diagnostics, error) {
	src := []byte(text)
	defer hold(src)()
	if _, err := template.admit(src, hcl.InitialPos); err != nil {
		return nil, nil, err
	}
	expr, diags := hclsyntax.ParseTemplate(src, "", hcl.InitialPos)
	return expr, diags, nil
}
