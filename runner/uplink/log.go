package uplink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	logSegment     = 1 << 20 // bytes of one file of the spool
	logPending     = 16      // segments that wait for the server; then the middle is dropped
	logKept        = 2       // delivered segments that are kept, for a server that lost its end
	logBatch       = 64 << 10
	logMaxChunk    = 256 << 10
	logBatchDelay  = 200 * time.Millisecond
	logMaxRefusals = 30 // answers in a row that bring the log no further

	logSuffix  = ".seg"
	logPosFile = "pos"
)

// logSpool is an attempt's log on its way to the server: files of a bounded size on
// disk, of which one goroutine (run) sends the oldest. Write never waits and never
// fails; while the server is unavailable for long, the middle of what waits is dropped
// and a line says so. The server's offsets count the bytes that it gets, so what is
// dropped leaves no hole. It is safe for concurrent use.
type logSpool struct {
	dir string

	mu       sync.Mutex
	segments []*logSeg // oldest first; the last one is written
	file     *os.File  // the last segment; nil before the first write
	head     int       // index of the segment being sent
	headAt   int64     // offset, for the server, of the head's first byte
	headPos  int64     // bytes of the head that the server has
	filler   int64     // bytes that the server lost and that are no longer here
	failed   int64     // bytes that could not be written here
	dropped  int64     // bytes that the newest marker stands for
	marker   *logSeg
	nextSeq  int
	lost     bool // not all that was written here has come, or comes, to the server
	closed   bool
	wake     chan struct{} // of one
}

type logSeg struct {
	seq  int
	size int64
}

func (l *logSpool) path(seq int) string {
	return filepath.Join(l.dir, fmt.Sprintf("%010d%s", seq, logSuffix))
}

// open makes the folder and takes up what an earlier process left in it.
func (l *logSpool) open() error {
	l.wake = make(chan struct{}, 1)
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	for _, entry := range entries { // sorted by name, and so by number
		seq, err := strconv.Atoi(strings.TrimSuffix(entry.Name(), logSuffix))
		info, errInfo := entry.Info()
		if err != nil || errInfo != nil {
			continue
		}
		l.segments = append(l.segments, &logSeg{seq: seq, size: info.Size()})
		l.nextSeq = max(l.nextSeq, seq+1)
	}
	var seq int
	raw, _ := os.ReadFile(filepath.Join(l.dir, logPosFile))
	if _, err := fmt.Sscan(string(raw), &seq, &l.headAt); err != nil {
		return nil // the head is the first one ever
	}
	for l.head = 0; l.head < len(l.segments)-1 && l.segments[l.head].seq < seq; l.head++ {
	}
	return nil
}

// Write keeps p; what cannot be kept is counted and reported in the log later.
func (l *logSpool) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return len(p), nil
	}
	for rest := p; len(rest) > 0; {
		n, err := l.append(rest)
		if err != nil {
			l.failed += int64(len(rest) - n)
			l.lost = true
			break
		}
		rest = rest[n:]
	}
	l.signal()
	return len(p), nil
}

// append writes as much of p as the newest segment has room for.
func (l *logSpool) append(p []byte) (int, error) {
	if l.file == nil || l.segments[len(l.segments)-1].size >= logSegment {
		if err := l.rotate(); err != nil {
			return 0, err
		}
	}
	last := l.segments[len(l.segments)-1]
	if l.failed > 0 {
		n, err := fmt.Fprintf(l.file, "\n[holdfast: %d bytes of the log could not be kept on the agent's disk]\n", l.failed)
		last.size += int64(n)
		if err != nil {
			return 0, err
		}
		l.failed = 0
	}
	n, err := l.file.Write(p[:min(len(p), max(1, logSegment-int(last.size)))])
	last.size += int64(n)
	return n, err
}

func (l *logSpool) rotate() error {
	file, err := os.OpenFile(l.path(l.nextSeq), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file = file
	l.segments = append(l.segments, &logSeg{seq: l.nextSeq})
	l.nextSeq++
	if len(l.segments)-l.head > logPending {
		l.dropMiddle()
	}
	return nil
}

// dropMiddle makes room by one segment between the oldest that waits and the
// newest: the first time it becomes a marker, later ones go altogether.
func (l *logSpool) dropMiddle() {
	l.lost = true
	at := slices.Index(l.segments, l.marker)
	if at > l.head && at+1 < len(l.segments)-1 {
		gone := l.segments[at+1]
		l.dropped += gone.size
		_ = os.Remove(l.path(gone.seq))
		l.segments = slices.Delete(l.segments, at+1, at+2)
	} else {
		l.marker = l.segments[l.head+logPending/2]
		l.dropped = l.marker.size
	}
	text := fmt.Sprintf("\n[holdfast: %d bytes of the log were left out here: the server was out of reach for too long]\n", l.dropped)
	if err := os.WriteFile(l.path(l.marker.seq), []byte(text), 0o600); err == nil {
		l.marker.size = int64(len(text))
	} else {
		l.marker.size = 0
	}
}

// close says that nothing more is written: run ends when all is sent.
func (l *logSpool) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	if l.file != nil {
		_ = l.file.Close()
	}
	l.signal()
}

// lossy reports whether the server's log is another than what was written here, so that
// its offsets are others.
func (l *logSpool) lossy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

func (l *logSpool) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// next returns the next chunk to send, its offset, and whether the log is at
// its end.
func (l *logSpool) next() (chunk []byte, offset int64, end bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.filler > 0 {
		return fillerText(min(l.filler, logMaxChunk)), l.headAt + l.headPos - l.filler, false, nil
	}
	for l.head < len(l.segments)-1 && l.headPos >= l.segments[l.head].size {
		l.advance()
	}
	if l.head >= len(l.segments) || l.headPos >= l.segments[l.head].size {
		return nil, 0, l.closed, nil
	}
	seg := l.segments[l.head]
	file, err := os.Open(l.path(seg.seq))
	if err != nil {
		return nil, 0, false, err
	}
	defer file.Close()
	chunk = make([]byte, min(seg.size-l.headPos, logMaxChunk))
	if _, err := file.ReadAt(chunk, l.headPos); err != nil {
		return nil, 0, false, err
	}
	return chunk, l.headAt + l.headPos, false, nil
}

// advance makes the next segment the head and lets old ones go.
func (l *logSpool) advance() {
	l.headAt += l.segments[l.head].size
	l.head++
	l.headPos = 0
	for l.head > logKept {
		_ = os.Remove(l.path(l.segments[0].seq))
		l.segments = l.segments[1:]
		l.head--
	}
	_ = WriteFile(filepath.Join(l.dir, logPosFile), fmt.Appendf(nil, "%d %d\n", l.segments[l.head].seq, l.headAt), nil)
}

// ack records that the server, which was sent n bytes at offset, expects what is at
// next. It reports whether that is progress.
func (l *logSpool) ack(offset int64, n int, next int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.filler > 0 {
		l.filler = max(0, l.filler-(next-offset)) // grows if even more is lost
		return next > offset
	}
	if next < offset {
		l.rewind(next)
		return false
	}
	// More than was sent: an earlier process sent it, or its answer was lost.
	for ahead := next - offset; ahead > 0; {
		seg := l.segments[l.head]
		step := min(ahead, seg.size-l.headPos)
		l.headPos += step
		ahead -= step
		if l.headPos < seg.size {
			continue
		}
		if l.head < len(l.segments)-1 {
			l.advance()
			continue
		}
		l.lost = l.lost || ahead > 0
		l.headAt += ahead // the server has more than there is: its count is the truth
		ahead = 0
	}
	return next > offset
}

// rewind goes back to an offset before what the server had confirmed: it has
// lost its end. What is no longer here is made up for by a filler.
func (l *logSpool) rewind(next int64) {
	at := l.headAt + l.headPos - next // bytes to go back
	for {
		if at <= l.headPos {
			l.headPos -= at
			return
		}
		if l.head == 0 {
			l.filler, l.lost = at-l.headPos, true
			l.headPos = 0
			return
		}
		at -= l.headPos
		l.head--
		l.headAt -= l.segments[l.head].size
		l.headPos = l.segments[l.head].size
	}
}

// fillerText returns exactly n bytes.
func fillerText(n int64) []byte {
	text := fmt.Appendf(nil, "\n[holdfast: %d bytes of the log were lost by the server]", n)
	if int64(len(text)) >= n {
		return []byte(strings.Repeat("\n", int(n)))
	}
	for int64(len(text)) < n {
		text = append(text, '\n')
	}
	return text
}

// run sends until the log is closed and sent, ctx is done, or send's error is
// final, which it returns. send answers the offset that the server expects next.
func (l *logSpool) run(ctx context.Context, trouble func(error), send func(ctx context.Context, offset int64, data []byte) (int64, error)) error {
	refusals := 0
	for {
		chunk, offset, end, err := l.next()
		switch {
		case err != nil:
			return fmt.Errorf("read log: %w", &LocalError{err})
		case end:
			return nil
		case chunk == nil:
			if !l.wait(ctx) {
				return nil
			}
			continue
		}
		next, err := Retry(ctx, trouble, func() (int64, error) { return send(ctx, offset, chunk) })
		if ctx.Err() != nil && err != nil && !Final(err) {
			return nil
		} else if err != nil {
			return err
		}
		if l.ack(offset, len(chunk), next) {
			refusals = 0
			continue
		}
		if refusals++; refusals > logMaxRefusals {
			return fmt.Errorf("append log at %d: %w", offset, &LocalError{errors.New("the server does not accept it")})
		}
		if !Sleep(ctx, logBatchDelay) {
			return nil
		}
	}
}

// wait returns after something was written, and a moment later so that more
// comes along; false if ctx is done.
func (l *logSpool) wait(ctx context.Context) bool {
	select {
	case <-l.wake:
	case <-ctx.Done():
		return false
	}
	delay := time.NewTimer(logBatchDelay)
	defer delay.Stop()
	for !l.batched() {
		select {
		case <-delay.C:
			return true
		case <-l.wake:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// batched reports whether there is enough to send at once.
func (l *logSpool) batched() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed || l.head < len(l.segments)-1 ||
		l.head < len(l.segments) && l.segments[l.head].size-l.headPos >= logBatch
}

// tail copies the newest part of the log to w, at most a few megabytes.
func (l *logSpool) tail(w io.Writer) error {
	l.mu.Lock()
	segments := slices.Clone(l.segments[max(0, len(l.segments)-3):])
	l.mu.Unlock()
	for _, seg := range segments {
		data, err := os.ReadFile(l.path(seg.seq))
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// Sleep waits for d and reports false if ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
