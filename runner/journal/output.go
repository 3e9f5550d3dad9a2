// Bounded excerpts and logs, and the progress of an apply.

package journal

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Excerpt keeps the beginning and the end of what is written to it, in bounded
// memory. It is safe for concurrent use.
type Excerpt struct {
	mu      sync.Mutex
	half    int
	head    []byte
	tail    []byte // at most twice half
	dropped int64
}

// NewExcerpt returns an Excerpt of at most about size bytes.
func NewExcerpt(size int) *Excerpt { return &Excerpt{half: size / 2} }

func (e *Excerpt) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(p)
	if free := e.half - len(e.head); free > 0 {
		take := min(free, len(p))
		e.head = append(e.head, p[:take]...)
		p = p[take:]
	}
	if over := len(p) - e.half; over > 0 {
		e.dropped += int64(over)
		p = p[over:]
	}
	e.tail = append(e.tail, p...)
	if len(e.tail) > 2*e.half {
		cut := len(e.tail) - e.half
		e.dropped += int64(cut)
		e.tail = append(e.tail[:0], e.tail[cut:]...)
	}
	return n, nil
}

// String returns what was kept, with a line where something was left out.
func (e *Excerpt) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dropped == 0 {
		return string(e.head) + string(e.tail)
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", e.head, e.dropped, e.tail)
}

// bounded keeps what is written to it if it is not more than limit. It takes all
// of it either way: an engine that cannot write dies.
type bounded struct {
	buf   bytes.Buffer
	limit int64
	over  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.over = b.over || int64(b.buf.Len())+int64(len(p)) > b.limit; b.over {
		b.buf = bytes.Buffer{}
		return len(p), nil
	}
	return b.buf.Write(p)
}

// NewBounded returns one that keeps at most limit bytes.
func NewBounded(limit int64) *bounded { return &bounded{limit: limit} }

// Bytes returns what was written, an error if it was too much.
func (b *bounded) Bytes() ([]byte, error) {
	if b.over {
		return nil, fmt.Errorf("more than %d bytes", b.limit)
	}
	return b.buf.Bytes(), nil
}

// LogLimiter passes on the first bytes of a log, then keeps only the end,
// which close writes after a line that says how much is missing. It is safe for
// concurrent use.
type LogLimiter struct {
	mu   sync.Mutex
	w    io.Writer
	left int64
	tail []byte // at most twice logTail
	lost int64  // what the tail could not hold
}

// NewLogLimiter returns a LogLimiter of the log w, of which size bytes are passed on.
func NewLogLimiter(w io.Writer, size int64) *LogLimiter { return &LogLimiter{w: w, left: size} }

// logTail is how much of a log's end survives its limit.
const logTail = 256 << 10

func (l *LogLimiter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	if take := min(l.left, int64(len(p))); take > 0 {
		_, _ = l.w.Write(p[:take]) // a log that cannot be kept stops no run
		l.left -= take
		p = p[take:]
	}
	if over := len(p) - logTail; over > 0 {
		l.lost += int64(over)
		p = p[over:]
	}
	l.tail = append(l.tail, p...)
	if over := len(l.tail) - logTail; len(l.tail) > 2*logTail {
		l.lost += int64(over)
		l.tail = append(l.tail[:0], l.tail[over:]...)
	}
	return n, nil
}

// Close writes what was kept of the end.
func (l *LogLimiter) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost > 0 {
		_, _ = fmt.Fprintf(l.w, "\n[%d bytes of the log left out]\n", l.lost)
	}
	_, _ = l.w.Write(l.tail)
	l.tail, l.lost = nil, 0
}

// Progress follows an apply's output and knows which resources the engine is
// at, and which it is done with. It is safe for concurrent use.
type Progress struct {
	mu     sync.Mutex
	line   []byte
	active map[string]bool
	done   []string          // "aws_vpc.main: created", in the order of its doing
	note   func(line string) // of each line that says more; nil: nobody notes it
}

// MaxCompleted bounds what is reported of what an apply had done before it failed.
const MaxCompleted = 200

// NewProgress returns a Progress of an apply that has not begun. What the engine says
// it begins and has completed is given to note, a line each, before Write returns; nil:
// to nobody. A Progress to which these lines are written ends up the same.
func NewProgress(note func(line string)) *Progress {
	if note == nil {
		note = func(string) {}
	}
	return &Progress{active: map[string]bool{}, note: note}
}

const (
	// address is one as engines print it. A key of for_each is quoted, and may contain
	// whatever looks like other words of theirs.
	address    = `(?:[^\s"():\[\]]|\[(?:[0-9]+|"(?:[^"\\]|\\.)*")\])+(?: \(deposed object [^()]*\))?`
	beginWords = `(?:Creating|Modifying|Destroying|Importing|Still creating|Still modifying|Still destroying)\.\.\.`
	endWords   = `(Creation|Modifications|Destruction|Import) complete`
)

var (
	progressBegin = regexp.MustCompile(`^(` + address + `): ` + beginWords)
	progressEnd   = regexp.MustCompile(`^(` + address + `): ` + endWords)
	// anyBegin and anyEnd are for addresses of a form that is not known: what is not
	// followed is forgotten.
	anyBegin = regexp.MustCompile(`^(.+): ` + beginWords)
	anyEnd   = regexp.MustCompile(`^(.+): ` + endWords)
	// provisionerLine is what a provisioner prints, which may be anything.
	provisionerLine = regexp.MustCompile(`^` + address + ` \([a-z0-9_-]+\): `)
)

// maxLine is how much of a line is looked at: an address may be long.
const maxLine = 64 << 10

// completedWords are what the engine's words for a change mean once it is done.
var completedWords = map[string]string{ //nolint:gochecknoglobals // a constant table
	"Creation": "created", "Modifications": "updated", "Destruction": "destroyed", "Import": "imported",
}

func (p *Progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		piece := b
		if end >= 0 {
			piece = b[:end]
		}
		if room := maxLine - len(p.line); room > 0 {
			p.line = append(p.line, piece[:min(room, len(piece))]...)
		}
		if end < 0 {
			break
		}
		p.observe(string(p.line))
		p.line = p.line[:0]
		b = b[end+1:]
	}
	return n, nil
}

func (p *Progress) observe(line string) {
	line = strings.TrimSuffix(line, "\r")
	if provisionerLine.MatchString(line) {
		return
	}
	begin, end := progressBegin.FindStringSubmatch(line), progressEnd.FindStringSubmatch(line)
	if begin == nil && end == nil {
		begin, end = anyBegin.FindStringSubmatch(line), anyEnd.FindStringSubmatch(line)
	}
	if m := end; m != nil {
		p.note(m[0])
		delete(p.active, m[1])
		if len(p.done) < MaxCompleted {
			p.done = append(p.done, m[1]+": "+completedWords[m[2]])
		}
		return
	}
	if m := begin; m != nil && !p.active[m[1]] && len(p.active) < 10_000 {
		p.note(m[0])
		p.active[m[1]] = true
	}
}

// Addresses returns what was begun and not ended, sorted.
func (p *Progress) Addresses() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]string, 0, len(p.active))
	for address := range p.active {
		list = append(list, address)
	}
	slices.Sort(list)
	return list
}

// Completed returns what was done, in the order of its doing: the first 200.
func (p *Progress) Completed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.done)
}

// PlanText cuts the engine's rendering of a plan out of what a plan printed.
func PlanText(output string) string {
	for _, begin := range []string{
		"Note: Objects have changed outside of ",
		" used the selected providers",
		"Changes to Outputs:",
		"No changes. ",
	} {
		if at := strings.Index(output, begin); at >= 0 {
			output = output[strings.LastIndexByte(output[:at], '\n')+1:]
			break
		}
	}
	// A rule is before the end, and between what has drifted and the plan.
	for _, end := range []string{
		"\nSaved the plan to:",
		"\nNote: You didn't use the -out option",
	} {
		if at := strings.Index(output, end); at >= 0 {
			output = output[:at]
		}
	}
	return strings.TrimRight(strings.TrimSpace(output), "─ \t\r\n")
}
