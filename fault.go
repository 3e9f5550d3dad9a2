package holdfast

import (
	"fmt"
	"strings"
)

// Fault is one thing wrong with a file that a person wrote.
type Fault struct {
	File    string `json:"file"`              // path in the repository
	Line    int    `json:"line,omitempty"`    // 1-based; 0 means the whole file
	Column  int    `json:"column,omitempty"`  // 1-based; 0 means the whole line
	Cluster string `json:"cluster,omitempty"` // the cluster that cannot be planned; empty if unknown
	Message string `json:"message"`           // what is wrong, with the value
	Hint    string `json:"hint,omitempty"`    // what to do about it
}

// Error returns "file:line:column: message (hint)".
func (f Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.Position() + ": " + f.Message)
	if f.Hint != "" {
		fmt.Fprintf(&b, " (%s)", f.Hint)
	}
	return b.String()
}

// Position returns "file:line:column" as far as it is known.
func (f Fault) Position() string {
	switch {
	case f.Line == 0:
		return f.File
	case f.Column == 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	}
}

// Faults are all that is wrong with some files, in order of position. As an
// error it prints one fault a line.
type Faults []Fault

// Error returns one fault a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Err returns f as an error, nil if there is no fault.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}
