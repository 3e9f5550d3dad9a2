package pages

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/console"
)

const (
	// markEvery is the distance, in lines, between two lines whose offset an index knows.
	markEvery = 200
	// lineMost is how many bytes of a line are shown.
	lineMost = 2000
	// logsMost is how many indexes are kept.
	logsMost = 64
)

// painted are the sequences by which engines colour what they print.
var painted = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// errEnough ends the reading of a log of which no more is needed.
var errEnough = errors.New("enough was read")

// scanner splits a log, which comes in pieces, into lines, and keeps lineMost bytes of
// each: a line may be as long as the log.
type scanner struct {
	each func(text []byte, size int) bool // false: enough
	line []byte
	size int // of the line so far, without its end
	done bool
}

func (s *scanner) Write(data []byte) (int, error) {
	rest := data
	for !s.done {
		at := bytes.IndexByte(rest, '\n')
		part := rest
		if at >= 0 {
			part = rest[:at]
		}
		s.line = append(s.line, part[:min(len(part), lineMost-len(s.line))]...)
		s.size += len(part)
		if at < 0 {
			return len(data), nil
		}
		rest = rest[at+1:]
		s.flush()
	}
	return 0, errEnough
}

func (s *scanner) flush() {
	s.done = !s.each(s.line, s.size)
	s.line, s.size = s.line[:0], 0
}

// end gives back what is after the last end of a line.
func (s *scanner) end() {
	if !s.done && s.size > 0 {
		s.flush()
	}
}

// logs keeps an index for each log that was looked at lately.
type logs struct {
	mu   sync.Mutex // guards the following
	kept map[logKey]*logIndex
	used []logKey // the least lately used first
}

type logKey struct {
	run     string
	attempt int
}

func newLogs() *logs { return &logs{kept: map[logKey]*logIndex{}} }

// current returns the index of a log, of all that the log has now.
func (l *logs) current(of logOf) (*logIndex, error) {
	index := l.of(logKey{of.run, of.attempt})
	return index, index.catchUp(of)
}

func (l *logs) of(key logKey) *logIndex {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.used, key); i >= 0 {
		l.used = slices.Delete(l.used, i, i+1)
	}
	l.used = append(l.used, key)
	if l.kept[key] == nil {
		l.kept[key] = &logIndex{marks: []int64{0}}
	}
	if len(l.used) > logsMost {
		delete(l.kept, l.used[0])
		l.used = slices.Delete(l.used, 0, 1)
	}
	return l.kept[key]
}

// logIndex knows where the lines of a log begin.
type logIndex struct {
	mu    sync.Mutex // guards the following
	marks []int64    // where every markEvery-th line begins
	whole int        // lines that have ended
	next  int64      // where the line after these begins
	size  int64      // of all that was seen
}

// extent is the number of lines and of bytes; a line that has not ended counts.
func (x *logIndex) extent() (lines int, size int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.size > x.next {
		return x.whole + 1, x.size
	}
	return x.whole, x.size
}

// catchUp reads what was added to the log since the last time.
func (x *logIndex) catchUp(of logOf) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	at := x.next
	s := &scanner{}
	s.each = func(_ []byte, size int) bool {
		at += int64(size) + 1
		x.whole++
		x.next = at
		if x.whole%markEvery == 0 {
			x.marks = append(x.marks, at)
		}
		return true
	}
	err := of.pour(x.next, s) // what has not ended yet is read again the next time
	x.size = x.next + int64(s.size)
	return err
}

// lines returns at most n lines from the line first on.
func (x *logIndex) lines(of logOf, first, n int) ([]console.LogLine, error) {
	x.mu.Lock()
	mark := min((first-1)/markEvery, len(x.marks)-1)
	offset := x.marks[mark]
	x.mu.Unlock()
	at := mark * markEvery
	var out []console.LogLine
	s := &scanner{}
	s.each = func(text []byte, size int) bool {
		at++
		if at >= first {
			text = trimmed(text)
			out = append(out, console.LogLine{Number: at, Text: string(text), More: max(0, size-lineMost)})
		}
		return len(out) < n
	}
	err := of.read(offset, s)
	return out, err
}

// find returns the numbers of the lines that have a text, one more than hitsMost at most.
func (x *logIndex) find(of logOf, search string) ([]int, error) {
	want := strings.ToLower(search)
	var hits []int
	at := 0
	s := &scanner{}
	s.each = func(text []byte, _ int) bool {
		at++
		if bytes.IndexByte(text, 0x1b) >= 0 {
			text = painted.ReplaceAll(text, nil)
		}
		if strings.Contains(strings.ToLower(string(text)), want) {
			hits = append(hits, at)
		}
		return len(hits) <= hitsMost
	}
	err := of.read(0, s)
	return hits, err
}

// trimmed is a line without a carriage return at its end, and without half a character.
func trimmed(text []byte) []byte {
	text = bytes.TrimSuffix(text, []byte("\r"))
	if len(text) < lineMost {
		return text
	}
	for i := 1; i <= 3 && i <= len(text); i++ {
		if c := text[len(text)-i]; c >= 0xc0 {
			return text[:len(text)-i]
		} else if c < 0x80 {
			break
		}
	}
	return text
}
