package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner"
)

// numbered writes count lines of 100 bytes, numbered from first on.
func numbered(w io.Writer, first, count int) {
	for i := first; i < first+count; i++ {
		_, _ = fmt.Fprintf(w, "%09d %s\n", i, strings.Repeat("x", 89))
	}
}

func TestLogHasNoGapAndNothingTwice(t *testing.T) {
	t.Parallel()
	const lines = 30_000
	tests := map[string]func(f *fakeServer, call int, w http.ResponseWriter, r *http.Request) bool{
		"answers get lost": func(f *fakeServer, call int, _ http.ResponseWriter, r *http.Request) bool {
			if call%3 == 0 { // taken, and the answer lost
				f.attempt(discard{}, r, "run-1", []string{"logs"}, "token-run-1", f.body)
				panic(http.ErrAbortHandler)
			}
			return false
		},
		"takes half of it": func(f *fakeServer, call int, w http.ResponseWriter, r *http.Request) bool {
			if call%2 == 0 {
				return false
			}
			f.attempt(w, r, "run-1", []string{"logs"}, "token-run-1", f.body[:len(f.body)/2])
			return true
		},
		"loses its end": func(f *fakeServer, call int, _ http.ResponseWriter, _ *http.Request) bool {
			if call == 3 || call == 6 {
				f.set(func() { f.logs["run-1"] = f.logs["run-1"][:max(0, len(f.logs["run-1"])-300_000)] })
			}
			return false
		},
		"is away in between": func(_ *fakeServer, call int, w http.ResponseWriter, _ *http.Request) bool {
			if call >= 2 && call <= 4 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return true
			}
			return false
		},
	}
	for name, meddle := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newFakeServer(t)
			calls := 0
			server.onLog = func(w http.ResponseWriter, r *http.Request) bool {
				calls++
				return meddle(server, calls, w, r)
			}
			withSession(t, server, t.TempDir(), assignment("run-1", holdfast.RunPlan), func(_ context.Context, s runner.Session) {
				numbered(s.Log(), 0, lines)
			})
			var want bytes.Buffer
			numbered(&want, 0, lines)
			if !bytes.Equal(server.logs["run-1"], want.Bytes()) {
				t.Errorf("the log has %d bytes, want %d, or they differ", len(server.logs["run-1"]), want.Len())
			}
		})
	}
}

func TestLongLogWithoutAServerLosesItsMiddle(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes a long log")
	}
	const lines = 400_000 // 40 MB
	server := newFakeServer(t)
	withSession(t, server, t.TempDir(), assignment("run-1", holdfast.RunPlan), func(_ context.Context, s runner.Session) {
		server.set(func() { server.down = true })
		numbered(s.Log(), 0, lines)
		server.set(func() { server.down = false })
	})
	got := string(server.logs["run-1"])
	if len(got) > 17<<20 || len(got) < 14<<20 {
		t.Errorf("the log has %d bytes", len(got))
	}
	before, rest, _ := strings.Cut(got, "\n[holdfast: ")
	marker, after, ok := strings.Cut(rest, "]\n")
	if !ok || strings.Contains(after, "[holdfast") {
		t.Fatalf("marker = %q, or there are several", marker)
	}
	dropped, _ := strconv.Atoi(marker[:strings.IndexByte(marker, ' ')])
	if total := len(before) + dropped + len(after); total != lines*100 {
		t.Errorf("%d bytes before, %d left out, %d after: %d in all, want %d", len(before), dropped, len(after), total, lines*100)
	}
	if !strings.HasPrefix(before, "000000000 ") || !strings.HasPrefix(after[len(after)-100:], fmt.Sprintf("%09d ", lines-1)) {
		t.Error("the beginning or the end is missing")
	}
}

func TestLogThatTheServerHasLostForGoodIsFilled(t *testing.T) {
	t.Parallel()
	const lines = 60_000 // 6 MB: more than is kept of what was delivered
	server := newFakeServer(t)
	withSession(t, server, t.TempDir(), assignment("run-1", holdfast.RunPlan), func(_ context.Context, s runner.Session) {
		numbered(s.Log(), 0, lines)
		server.until(t, "the log is there", func() bool { return len(server.logs["run-1"]) == lines*100 })
		server.set(func() { server.logs["run-1"] = server.logs["run-1"][:1000] })
		numbered(s.Log(), lines, 1)
	})
	got := string(server.logs["run-1"])
	if len(got) != (lines+1)*100 {
		t.Errorf("the log has %d bytes", len(got))
	}
	if !strings.Contains(got, "bytes of the log were lost by the server]") || !strings.HasPrefix(got[len(got)-100:], fmt.Sprintf("%09d ", lines)) {
		t.Error("the filler or the end is missing")
	}
}

func TestLogThatTheServerNeverTakesStopsNothing(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	server.onLog = func(w http.ResponseWriter, _ *http.Request) bool {
		refuse(w, http.StatusRequestEntityTooLarge, "too much")
		return true
	}
	withSession(t, server, t.TempDir(), assignment("run-1", holdfast.RunPlan), func(_ context.Context, s runner.Session) {
		numbered(s.Log(), 0, 10)
	})
}

// discard is an answer that is lost.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}
