package trace

import (
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Tracer records spans. Its methods must not block.
type Tracer interface {
	// Span records something that took from start to end, as a child of parent
	// (W3C trace context; empty begins a trace), and returns its own context.
	Span(parent, name string, start, end time.Time, attributes map[string]string, err error) string
}

// Memory remembers, for what people look at, the trace of what was last heard
// of it, so that plans, applies and posts appear under the delivery that caused
// them.
type Memory struct {
	to Tracer // nil: nothing is traced

	mu     sync.Mutex
	recent map[subject]string
}

// subject is what people look at: a repository, or one of its pull requests.
type subject struct {
	repo   string
	number int
}

// NewMemory returns a Memory that traces to a Tracer; nil: nothing is traced.
func NewMemory(to Tracer) *Memory { return &Memory{to: to, recent: make(map[subject]string)} }

// tracesKept bounds the traces that are remembered. What is forgotten begins its own
// trace.
const tracesKept = 1024

// Remember notes the trace of what was heard of something.
func (m *Memory) Remember(repo string, number int, context string) {
	if m.to == nil || context == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.recent) >= tracesKept {
		clear(m.recent)
	}
	m.recent[subject{repo, number}] = context
}

// Of returns the trace of what was last heard of something; empty if none is known.
func (m *Memory) Of(repo string, number int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.recent[subject{repo, number}]
}

// Since records a span that ends now.
func (m *Memory) Since(parent, name string, start time.Time, attributes map[string]string, err error) string {
	if m.to == nil {
		return ""
	}
	return m.to.Span(parent, name, start, time.Now(), attributes, err)
}

// Run records an attempt that has ended, with its steps.
func (m *Memory) Run(run holdfast.Run, steps []protocol.Step) {
	if m.to == nil || run.StartedAt.IsZero() {
		return
	}
	end := run.FinishedAt
	if end.IsZero() {
		end = time.Now()
	}
	attributes := map[string]string{
		"run": run.ID, "cluster": run.Cluster, "kind": string(run.Kind),
		"status": string(run.Status), "reason": string(run.Reason),
	}
	parent := m.to.Span(run.TraceParent, "run", run.CreatedAt, end, attributes, nil)
	m.to.Span(parent, "queue", run.CreatedAt, run.StartedAt, nil, nil)
	at := run.StartedAt
	for _, step := range steps {
		m.to.Span(parent, step.Name, at, at.Add(step.Duration), nil, nil)
		at = at.Add(step.Duration)
	}
}
