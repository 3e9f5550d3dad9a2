package trace_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/trace"
)

// spans writes each span in a line, and gives it the context "of NAME".
type spans struct{ lines []string }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func (s *spans) Span(parent, name string, start, end time.Time, _ map[string]string, _ error) string {
	s.lines = append(s.lines, fmt.Sprintf("%s in %q: %s to %s", name, parent, start.Sub(noon), end.Sub(noon)))
	return "of " + name
}

// TestRun: the wait and the steps of a run follow one another within it.
func TestRun(t *testing.T) {
	t.Parallel()
	var to spans
	run := holdfast.Run{CreatedAt: noon, StartedAt: noon.Add(time.Minute), FinishedAt: noon.Add(5 * time.Minute)}
	run.TraceParent = "the delivery"
	trace.NewMemory(&to).Run(run, []protocol.Step{{Name: "init", Duration: time.Minute}, {Name: "plan", Duration: 2 * time.Minute}})
	want := []string{
		`run in "the delivery": 0s to 5m0s`,
		`queue in "of run": 0s to 1m0s`,
		`init in "of run": 1m0s to 2m0s`,
		`plan in "of run": 2m0s to 4m0s`,
	}
	if diff := cmp.Diff(want, to.lines); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	to.lines = nil
	trace.NewMemory(&to).Run(holdfast.Run{CreatedAt: noon}, nil)
	if len(to.lines) > 0 {
		t.Errorf("of a run that was never started: %s", strings.Join(to.lines, "; "))
	}
}

// TestMemory: what was last heard of something is remembered, within bounds, and
// nothing is without a Tracer.
func TestMemory(t *testing.T) {
	t.Parallel()
	m := trace.NewMemory(&spans{})
	m.Remember("fleet", 7, "first")
	m.Remember("fleet", 7, "second")
	m.Remember("fleet", 7, "")
	if got := m.Of("fleet", 7); got != "second" {
		t.Errorf("Of() = %q", got)
	}
	if got := m.Of("fleet", 0) + m.Of("other", 7); got != "" {
		t.Errorf("of others: %q", got)
	}
	for i := range 5000 {
		m.Remember("many", i, "x")
	}
	kept := 0
	for i := range 5000 {
		if m.Of("many", i) != "" {
			kept++
		}
	}
	if kept == 0 || kept > 1024 {
		t.Errorf("%d traces are remembered", kept)
	}
	none := trace.NewMemory(nil)
	none.Remember("fleet", 7, "x")
	if got := none.Of("fleet", 7) + none.Since("x", "post", noon, nil, nil); got != "" {
		t.Errorf("without a Tracer: %q", got)
	}
}
