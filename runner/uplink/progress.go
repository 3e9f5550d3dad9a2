// What an apply has begun and completed, on disk.

package uplink

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/durable"
	"github.com/holdfast-dev/holdfast/runner/journal"
)

const (
	maxProgress  = 64 << 20 // bytes of the file
	progressHead = "progress of an apply, boot "
	progressEnd  = "end of the engine"
)

// progress keeps what the engine says its apply begins and has completed, for a
// successor that brings the attempt to its end: unlike the log, which leaves out its
// middle and forgets what the server has, it is whole, or known not to be. A line is in
// the page cache when note returns, which outlives a killed agent. It may not outlive
// the machine: the first line says in which life of it the file was written. The last one
// says that the engine had ended: what an agent has not read of its engine ends with it.
// It is safe for concurrent use.
type progress struct {
	path   string
	logger *slog.Logger

	mu    sync.Mutex
	begun bool
	file  *os.File // nil: none has begun, or what was to be kept was lost
	size  int
}

// begin makes the file of an apply that begins now; later calls do nothing.
func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun {
		return
	}
	p.begun = true
	file, err := os.OpenFile(p.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		p.logger.Warn("progress of the apply is not kept", "err", err)
		return
	}
	p.file = file
	p.append(progressHead + durable.Boot())
}

// note keeps a line.
func (p *progress) note(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.append(line)
}

// append writes a line. If it cannot, the file goes: one that is not there is not whole.
// Callers hold mu.
func (p *progress) append(line string) {
	if p.file == nil {
		return
	}
	n, err := p.file.WriteString(line + "\n")
	if p.size += n; err == nil && p.size > maxProgress {
		err = fmt.Errorf("more than %d bytes", maxProgress)
	}
	if err == nil {
		return
	}
	p.logger.Warn("progress of the apply is no longer kept", "err", errors.Join(err, os.Remove(p.path)))
	_ = p.file.Close()
	p.file = nil
}

// close ends the file.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		_ = p.file.Close()
		p.file = nil
	}
}

// read returns what a predecessor has kept, nil if that cannot be read; an error if it
// may not be all.
func (p *progress) read() (*journal.Progress, error) {
	data, err := os.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	head, lines, ok := bytes.Cut(data, []byte("\n"))
	switch {
	case !ok, len(lines) > 0 && lines[len(lines)-1] != '\n':
		return nil, errors.New("its last line was cut off")
	case string(head) != progressHead+durable.Boot():
		return nil, errors.New("the machine was started again since")
	}
	lines, ended := bytes.CutSuffix(lines, []byte(progressEnd+"\n"))
	under := journal.NewProgress(nil)
	if _, err = under.Write(lines); err == nil && !ended {
		err = errors.New("the engine may have said more than its agent had read")
	}
	return under, err
}
