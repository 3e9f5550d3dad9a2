package telemetry_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/serve/telemetry"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	m := telemetry.New(time.Now)
	m.RunEnded(holdfast.RunApply, holdfast.RunApplied, "")
	m.RunClaimed(holdfast.RunPlan, 2*time.Second)
	m.Step("plan", time.Second)
	m.LockRefused()
	m.Depth("requests", 3)
	m.Decided(decision.ActionPlan, holdfast.ReasonUnreviewed)
	m.Posted(outgoing.PostComment, true)
	m.GaveUp(outgoing.PostStatus)
	m.Delivered("push", http.StatusOK, time.Millisecond)

	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body := answer.Body.String()
	for _, want := range []string{
		`holdfast_attempts_total{kind="apply",reason="",status="applied"} 1`,
		`holdfast_queue_wait_seconds_sum{kind="plan"} 2`,
		`holdfast_step_duration_seconds_count{step="plan"} 1`,
		`holdfast_lock_refusals_total 1`,
		`holdfast_queue_depth{queue="requests"} 3`,
		`holdfast_decisions_total{action="plan",reason="Unreviewed"} 1`,
		`holdfast_posts_total{kind="comment",ok="true"} 1`,
		`holdfast_posts_given_up_total{kind="status"} 1`,
		`holdfast_deliveries_total{event="push",status="200"} 1`,
		`holdfast_delivery_duration_seconds_count 1`,
		`process_resident_memory_bytes`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
}

// TestTraces sends spans to a collector and looks at what it gets: one trace,
// from the delivery on.
func TestTraces(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	spans := make(map[string]*traces.Span)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err != nil || proto.Unmarshal(body, &request) != nil || r.URL.Path != "/v1/traces" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					spans[span.Name] = span
				}
			}
		}
	}))
	defer server.Close()

	tr, err := telemetry.OpenTracer(context.Background(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	const sender = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	delivery := tr.Delivered(holdfast.SourceRequest{Repo: "acme/clusters", TraceParent: sender})
	now := time.Now()
	run := tr.Span(delivery.TraceParent, "run", now, now.Add(time.Second), map[string]string{"cluster": "prod-eu"}, nil)
	tr.Span(run, "plan", now, now.Add(time.Second), nil, io.ErrUnexpectedEOF)
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}

	mu.Lock()
	defer mu.Unlock()
	if len(spans) != 3 {
		t.Fatalf("the collector got %d spans, want 3", len(spans))
	}
	for child, parent := range map[string]string{"run": "delivery", "plan": "run"} {
		if string(spans[child].ParentSpanId) != string(spans[parent].SpanId) {
			t.Errorf("%s is not a child of %s", child, parent)
		}
	}
	for name, span := range spans {
		if string(span.TraceId) != string(spans["delivery"].TraceId) || span.TraceId[0] != 0x0a {
			t.Errorf("%s is in another trace than the sender's", name)
		}
	}
	if took := spans["run"].EndTimeUnixNano - spans["run"].StartTimeUnixNano; took != uint64(time.Second) {
		t.Errorf("run took %d ns, want a second", took)
	}
	if spans["plan"].Status.GetMessage() != io.ErrUnexpectedEOF.Error() {
		t.Errorf("plan has the status %v, want its error", spans["plan"].Status)
	}
}
