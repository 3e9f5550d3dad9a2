package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/forge/github"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// newLogger writes to w as the configuration says.
func newLogger(w io.Writer, t config.Telemetry) *slog.Logger {
	level := map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}[t.LogLevel]
	opts := &slog.HandlerOptions{Level: level}
	if t.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// metrics are what Prometheus reads. Their labels are words from fixed lists,
// never a cluster's or a person's name.
type metrics struct {
	registry   *prometheus.Registry
	runs       *prometheus.CounterVec
	waits      *prometheus.HistogramVec
	steps      *prometheus.HistogramVec
	locks      prometheus.Counter
	depth      *prometheus.GaugeVec
	decisions  *prometheus.CounterVec
	posts      *prometheus.CounterVec
	givenUp    *prometheus.CounterVec
	deliveries *prometheus.CounterVec
	answers    prometheus.Histogram
	calls      *prometheus.CounterVec
	refusals   *prometheus.CounterVec
	tokens     *prometheus.CounterVec
	held       *heldProviders
}

var _ reconciler.Metrics = (*metrics)(nil)

func newMetrics(now func() time.Time) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "holdfast", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "holdfast", Name: name, Help: help, Buckets: buckets,
		}, labels)
	}
	long := prometheus.ExponentialBuckets(0.05, 2, 16) // 50 ms to 27 min
	m := &metrics{
		registry:   prometheus.NewRegistry(),
		runs:       counter("attempts_total", "Attempts that ended, by kind, status and reason.", "kind", "status", "reason"),
		waits:      histogram("queue_wait_seconds", "Time between the creation of a run and its claim.", long, "kind"),
		steps:      histogram("step_duration_seconds", "Duration of the steps of attempts.", long, "step"),
		depth:      prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "holdfast", Name: "queue_depth", Help: "Requests that wait."}, []string{"queue"}),
		decisions:  counter("decisions_total", "Decisions by action and reason.", "action", "reason"),
		posts:      counter("posts_total", "Comments, statuses and reactions posted to a code host.", "kind", "ok"),
		givenUp:    counter("posts_given_up_total", "Comments, statuses and reactions that a code host refused for good.", "kind"),
		deliveries: counter("deliveries_total", "Webhook deliveries by event and HTTP status.", "event", "status"),
		calls:      counter("forge_calls_total", "Calls to code hosts.", "method", "status"),
		refusals:   counter("claim_refusals_total", "Claims of agents that were refused: their token was unknown, or bound to another agent or other kinds, another process had their id, or their isolation was too weak.", "reason"),
		tokens:     counter("identity_tokens_total", "Tokens for clouds and secret stores that runs asked for, by kind and phase, or by the reason why they were refused.", "kind", "phase", "refused"),
		held:       newHeldProviders(now),
		locks: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "holdfast", Name: "lock_refusals_total", Help: "Locks that somebody else held.",
		}),
		answers: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "holdfast", Name: "delivery_duration_seconds", Help: "Time between a delivery and its answer.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 3, 10),
		}),
	}
	m.registry.MustRegister(m.runs, m.waits, m.steps, m.locks, m.depth, m.decisions, m.posts, m.givenUp, m.deliveries, m.answers, m.calls, m.refusals, m.tokens, m.held,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) RunEnded(kind holdfast.RunKind, status holdfast.RunStatus, reason holdfast.Reason) {
	m.runs.WithLabelValues(string(kind), string(status), string(reason)).Inc()
}

func (m *metrics) RunClaimed(kind holdfast.RunKind, waited time.Duration) {
	m.waits.WithLabelValues(string(kind)).Observe(waited.Seconds())
}

func (m *metrics) Step(name string, took time.Duration) {
	m.steps.WithLabelValues(name).Observe(took.Seconds())
}

func (m *metrics) LockRefused() { m.locks.Inc() }

func (m *metrics) Depth(queue string, n int) { m.depth.WithLabelValues(queue).Set(float64(n)) }

func (m *metrics) Decided(action decision.Action, reason holdfast.Reason) {
	m.decisions.WithLabelValues(string(action), string(reason)).Inc()
}

func (m *metrics) Posted(kind holdfast.PostKind, ok bool) {
	m.posts.WithLabelValues(string(kind), strconv.FormatBool(ok)).Inc()
}

func (m *metrics) GaveUp(kind holdfast.PostKind) { m.givenUp.WithLabelValues(string(kind)).Inc() }

func (m *metrics) ProviderHeld(provider string, until time.Time) { m.held.hold(provider, until) }

func (m *metrics) delivered(event string, status int, took time.Duration) {
	m.deliveries.WithLabelValues(event, strconv.Itoa(status)).Inc()
	m.answers.Observe(took.Seconds())
}

func (m *metrics) claimRefused(why string) { m.refusals.WithLabelValues(why).Inc() }

func (m *metrics) called(call github.Call) {
	m.calls.WithLabelValues(call.Method, strconv.Itoa(call.Status)).Inc()
}

// tracer sends the reconciler's spans to an OpenTelemetry collector.
type tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

var _ reconciler.Tracer = (*tracer)(nil)

// newTracer exports spans to endpoint, over HTTP.
func newTracer(ctx context.Context, endpoint string) (*tracer, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("parse trace endpoint: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.JoinPath("v1/traces").String()))
	if err != nil {
		return nil, fmt.Errorf("export traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "holdfast"))),
	)
	return &tracer{provider, provider.Tracer("github.com/holdfast-dev/holdfast")}, nil
}

// close sends what is left.
func (t *tracer) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

func (t *tracer) Span(parent, name string, start, end time.Time, attributes map[string]string, err error) string {
	carrier := propagation.MapCarrier{"traceparent": parent}
	ctx := propagation.TraceContext{}.Extract(context.Background(), carrier)
	ctx, span := t.tracer.Start(ctx, name, trace.WithTimestamp(start))
	for key, value := range attributes {
		span.SetAttributes(attribute.String("holdfast."+key, value))
	}
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End(trace.WithTimestamp(end))
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// delivered makes a delivery the beginning of a trace, or a part of its
// sender's.
func (t *tracer) delivered(req holdfast.SourceRequest) holdfast.SourceRequest {
	now := time.Now()
	req.TraceParent = t.Span(req.TraceParent, "delivery", now, now, map[string]string{"repo": req.Repo}, nil)
	return req
}
