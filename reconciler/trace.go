package reconciler

import (
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Tracer records spans. Its methods must not block.
type Tracer interface {
	// Span records something that took from start to end, as a child of parent
	// (W3C trace context; empty begins a trace), and returns its own context.
	Span(parent, name string, start, end time.Time, attributes map[string]string, err error) string
}

// tracer remembers, for what people look at, the trace of what was last heard
// of it, so that plans, applies and posts appear under the delivery that caused
// them.
type tracer struct {
	to Tracer // nil: nothing is traced

	mu     sync.Mutex
	recent map[sourceKey]string
}

// tracesKept bounds the traces that are remembered. What is forgotten begins a
// trace of its own.
const tracesKept = 1024

func (t *tracer) remember(key sourceKey, context string) {
	if t.to == nil || context == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.recent) >= tracesKept {
		clear(t.recent)
	}
	key.known = false
	t.recent[key] = context
}

func (t *tracer) of(repo string, number int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recent[sourceKey{repo: repo, number: number}]
}

// since records a span that ends now.
func (t *tracer) since(parent, name string, start time.Time, attributes map[string]string, err error) string {
	if t.to == nil {
		return ""
	}
	return t.to.Span(parent, name, start, time.Now(), attributes, err)
}

// run records an attempt that has ended, with its steps.
func (t *tracer) run(run holdfast.Run, steps []holdfast.Step) {
	if t.to == nil || run.StartedAt.IsZero() {
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
	parent := t.to.Span(run.TraceParent, "run", run.CreatedAt, end, attributes, nil)
	t.to.Span(parent, "queue", run.CreatedAt, run.StartedAt, nil, nil)
	at := run.StartedAt
	for _, step := range steps {
		t.to.Span(parent, step.Name, at, at.Add(step.Duration), nil, nil)
		at = at.Add(step.Duration)
	}
}
