// Files that are read several times are parsed once.

package modulecode

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/hashicorp/hcl/v2"
)

// parsedBytes bounds the code that is kept parsed in one context, and parsedFiles how many
// files: parsed, code takes some thirty times as much memory.
const parsedBytes, parsedFiles = 256 << 10, 500

// Remembering returns a context in which a file that has not changed is parsed once. An
// attempt reads the same code for its backend, for its engine and for its plan.
func Remembering(ctx context.Context) context.Context {
	return context.WithValue(ctx, memoryKey{}, &memory{files: make(map[string]parsedFile)})
}

type memoryKey struct{}

// memory keeps parsed files. Nobody changes these. It is safe for concurrent use.
type memory struct {
	mu    sync.Mutex
	files map[string]parsedFile // by name
	bytes int                   // of their code
}

// parsedFile is what came of code.
type parsedFile struct {
	sum  [sha256.Size]byte // of the code
	size int
	file *hcl.File
	err  error
}

// parse parses a file, or finds it parsed: whatever is at its name now, it is the same code.
func (m *memory) parse(name string, code []byte) (*hcl.File, error) {
	sum := sha256.Sum256(code)
	m.mu.Lock()
	found, ok := m.files[name]
	m.mu.Unlock()
	if ok && found.sum == sum {
		return found.file, found.err
	}
	file, err := parseCode(name, code)
	m.mu.Lock()
	defer m.mu.Unlock()
	found = m.files[name] // zero, or what the file was before
	if left := parsedBytes - m.bytes + found.size; len(code) <= left && (ok || len(m.files) < parsedFiles) {
		m.files[name] = parsedFile{sum, len(code), file, err}
		m.bytes += len(code) - found.size
	}
	return file, err
}
