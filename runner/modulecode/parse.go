package modulecode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/holdfast-dev/holdfast/internal/boundedhcl"
	"github.com/holdfast-dev/holdfast/runner/folders"
)

// Limits of code that is read without an engine: the bytes of a file, and how deep
// expressions are nested.
const (
	MaxFile    = 4 << 20
	MaxNesting = boundedhcl.MaxDepth
)

// ErrTooDeep says that code is nested more deeply than is parsed, or is otherwise more
// than that, or takes too much to evaluate.
var ErrTooDeep = boundedhcl.ErrExcess

var errTooLarge = fmt.Errorf("larger than %d bytes", MaxFile)

// Parse parses a file of HCL or of its JSON form. The file is nil if nothing
// of it could be read; the error is why it is not read in full.
func Parse(name string) (*hcl.File, error) { return parse(context.Background(), name) }

// parse is Parse for whoever may have parsed the file before, see Remembering.
func parse(ctx context.Context, name string) (*hcl.File, error) {
	data, err := readFile(name)
	if err != nil {
		return nil, err
	}
	if known, ok := ctx.Value(memoryKey{}).(*memory); ok {
		return known.parse(name, data)
	}
	return parseCode(name, data)
}

func parseCode(name string, data []byte) (*hcl.File, error) {
	if strings.HasSuffix(name, ".json") && !json.Valid(data) {
		return nil, errors.New("not JSON")
	}
	file, diags, err := boundedhcl.ParseFile(data, name)
	if err != nil {
		return nil, err
	}
	if diags.HasErrors() {
		return file.File, diags
	}
	return file.File, nil
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
