package uplink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// fill opens an outbox in dir and puts things into it.
func fill(t *testing.T, dir string, things ...string) *outbox {
	t.Helper()
	o := &outbox{dir: dir}
	if err := o.open(); err != nil {
		t.Fatal(err)
	}
	for _, thing := range things {
		name, text, _ := strings.Cut(thing, "=")
		if _, err := o.put(name, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// names of what is in a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, entry := range entries {
		out = append(out, entry.Name())
	}
	return out
}

// What was put is delivered in its order, by the next process if need be, and not twice.
func TestOutboxDeliversWhatAPredecessorLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fill(t, dir, "state=1", "log=a", "state=2") // and is killed
	if err := os.WriteFile(filepath.Join(dir, "tmp-123"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := fill(t, dir, "state=3")
	var sent []string
	o.send = func(_ context.Context, name, path string) error {
		data, err := os.ReadFile(path)
		sent = append(sent, name+"="+string(data))
		return err
	}
	o.close()
	o.run(t.Context())
	if want := []string{"state=1", "log=a", "state=2", "state=3"}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
	if left := names(t, dir); !slices.Equal(left, []string{"tmp-123"}) {
		t.Errorf("left are %q", left)
	}
	if _, err := o.put("state", strings.NewReader("4")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("put into a closed outbox: %v", err)
	}
}

// A refusal is final, is kept for a person, and does not hold up what comes after it.
func TestOutboxKeepsWhatIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := fill(t, dir, "state=1", "state=2")
	o.send = func(_ context.Context, _, path string) error {
		if strings.Contains(path, "000000-") {
			return &AnswerError{Status: http.StatusConflict, Ours: true}
		}
		return nil
	}
	var refused []string
	o.refused = func(name string, err error) { refused = append(refused, fmt.Sprint(name, ": ", Final(err))) }
	first := o.held("state")
	o.close()
	o.run(t.Context())
	if !slices.Equal(refused, []string{"state: true"}) || !slices.Equal(names(t, dir), []string{"refused-000000-state"}) {
		t.Errorf("refused %q, kept %q", refused, names(t, dir))
	}
	if <-first.done; first.err != nil { // the newest of that name, which was delivered
		t.Errorf("the second one ended with %v", first.err)
	}
	again := fill(t, dir)
	if again.last() != nil || again.next != 0 {
		t.Errorf("what was refused is delivered again: %+v", again.last())
	}
}

// While the server is out of reach nobody waits for what is on disk.
func TestOutboxSettlesWhileOutOfReach(t *testing.T) {
	t.Parallel()
	o := fill(t, t.TempDir(), "state=1", "log=a")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var tries int
	o.send = func(context.Context, string, string) error { tries++; return holdfast.ErrUnavailable }
	o.trouble = func(error) { cancel() }
	waiting := o.last()
	o.run(ctx)
	select {
	case <-waiting.settled:
	default:
		t.Error("the second parcel is waited for")
	}
	if late, err := o.put("log", strings.NewReader("b")); err != nil {
		t.Error(err)
	} else if <-late.settled; tries != 1 {
		t.Errorf("tried %d times", tries)
	}
	select {
	case <-waiting.done:
		t.Error("what is on disk counts as delivered")
	default:
	}
}

// A request that suffered on its way is sent again.
func TestOutboxSendsAgainWhatWasGarbled(t *testing.T) {
	t.Parallel()
	o := fill(t, t.TempDir(), "log=a")
	tries := 0
	o.send = func(context.Context, string, string) error {
		if tries++; tries == 1 {
			return &AnswerError{Status: http.StatusBadRequest, Ours: true, text: "bad request"}
		}
		return nil
	}
	o.refused = func(_ string, err error) { t.Errorf("refused: %v", err) }
	o.close()
	o.run(t.Context())
	if tries != 2 {
		t.Errorf("sent %d times", tries)
	}
}

// Only the server itself refuses for good: what a proxy answers in its place passes.
func TestFinal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"the server refuses":       {&AnswerError{Status: http.StatusForbidden, Ours: true}, true},
		"a proxy refuses":          {&AnswerError{Status: http.StatusForbidden}, false},
		"a proxy finds nothing":    {&AnswerError{Status: http.StatusNotFound}, false},
		"the server is overloaded": {&AnswerError{Status: http.StatusTooManyRequests, Ours: true}, false},
		"the server is in trouble": {&AnswerError{Status: http.StatusServiceUnavailable, Ours: true}, false},
		"nobody answers":           {holdfast.ErrUnavailable, false},
		"a file that is not there": {fmt.Errorf("send: %w", &LocalError{os.ErrNotExist}), true},
	} {
		if got := Final(test.err); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// Of what is refused again and again the newest are kept.
func TestOutboxPrunesRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := fill(t, dir)
	for i := range maxRefused + 5 {
		path := filepath.Join(dir, fmt.Sprintf("%s%06d-state", refusedPrefix, i))
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	large := filepath.Join(dir, refusedPrefix+"000001-log")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxRefusedBytes+1); err != nil {
		t.Fatal(err)
	}
	o.pruneRefused("state")
	o.pruneRefused("log")
	left := names(t, dir)
	if len(left) != maxRefused+1 || !slices.Contains(left, refusedPrefix+"000024-state") || slices.Contains(left, refusedPrefix+"000000-state") {
		t.Errorf("left are %q", left)
	}
	if !slices.Contains(left, refusedPrefix+"000001-log") {
		t.Error("the newest is gone, as it is large")
	}
}

// An attempt does not learn the id of its own lock, and reads that of others.
func TestHideOwnLockID(t *testing.T) {
	t.Parallel()
	var s stateRelay
	s.asks("mine")
	for info, want := range map[string]string{
		`{"ID":"mine","Who":"us"}`:   `{"ID":"held-by-this-run","Who":"us"}`,
		`{"ID":"theirs","Who":"un"}`: `{"ID":"theirs","Who":"un"}`,
		`{"Who":"us"}`:               `{"Who":"us"}`,
	} {
		if got := s.hideOwn(info); got != want {
			t.Errorf("hideOwn(%s) = %s, want %s", info, got, want)
		}
	}
	for i := range maxAsked {
		s.asks(fmt.Sprint("other ", i))
	}
	if got := s.hideOwn(`{"ID":"last of many"}`); strings.Contains(got, "last of many") {
		t.Errorf("beyond what is remembered an id is shown: %s", got)
	}
}
