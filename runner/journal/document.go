package journal

import (
	"bytes"
	"io"
)

// document passes on a JSON object, from the first line on that begins with one.
type document struct {
	to      io.Writer
	midline bool // what was written last did not end its line
	begun   bool
}

// NewDocument returns a writer that passes to the other what an engine prints of a JSON
// object, and drops the lines before it: OpenTofu prints its warnings there, such as of
// a CLI configuration that it cannot open, and has no option that prevents it.
func NewDocument(to io.Writer) io.Writer { return &document{to: to} }

func (d *document) Write(p []byte) (int, error) {
	rest := p
	for !d.begun && len(rest) > 0 {
		if !d.midline && rest[0] == '{' {
			d.begun = true
			break
		}
		end := bytes.IndexByte(rest, '\n')
		d.midline = end < 0
		if d.midline {
			return len(p), nil
		}
		rest = rest[end+1:]
	}
	if len(rest) == 0 {
		return len(p), nil
	}
	n, err := d.to.Write(rest)
	return len(p) - len(rest) + n, err
}
