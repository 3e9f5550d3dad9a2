package telemetry

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/forge/github"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// Metrics are what Prometheus reads. Their labels are words from fixed lists,
// never a cluster's or a person's name.
type Metrics struct {
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

// New makes metrics with nothing counted yet. The time is that of the records.
func New(now func() time.Time) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "holdfast", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "holdfast", Name: name, Help: help, Buckets: buckets,
		}, labels)
	}
	long := prometheus.ExponentialBuckets(0.05, 2, 16) // 50 ms to 27 min
	m := &Metrics{
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

// Handler answers with all metrics, in the format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// RunEnded counts the end of an attempt.
func (m *Metrics) RunEnded(kind holdfast.RunKind, status holdfast.RunStatus, reason holdfast.Reason) {
	m.runs.WithLabelValues(string(kind), string(status), string(reason)).Inc()
}

// RunClaimed adds how long a run waited for an agent.
func (m *Metrics) RunClaimed(kind holdfast.RunKind, waited time.Duration) {
	m.waits.WithLabelValues(string(kind)).Observe(waited.Seconds())
}

// Step adds how long a step of an attempt took.
func (m *Metrics) Step(name string, took time.Duration) {
	m.steps.WithLabelValues(name).Observe(took.Seconds())
}

// LockRefused counts a lock that somebody else held.
func (m *Metrics) LockRefused() { m.locks.Inc() }

// Depth says how many requests wait in a queue.
func (m *Metrics) Depth(queue string, n int) { m.depth.WithLabelValues(queue).Set(float64(n)) }

// Decided counts a decision.
func (m *Metrics) Decided(action decision.Action, reason holdfast.Reason) {
	m.decisions.WithLabelValues(string(action), string(reason)).Inc()
}

// Posted counts an attempt to post something to a code host.
func (m *Metrics) Posted(kind outgoing.PostKind, ok bool) {
	m.posts.WithLabelValues(string(kind), strconv.FormatBool(ok)).Inc()
}

// GaveUp counts what a code host refused for good.
func (m *Metrics) GaveUp(kind outgoing.PostKind) { m.givenUp.WithLabelValues(string(kind)).Inc() }

// ProviderHeld records until when runs wait for a cloud; with the zero time, none do.
func (m *Metrics) ProviderHeld(provider string, until time.Time) { m.held.hold(provider, until) }

// Delivered counts a webhook delivery, and adds how long its answer took.
func (m *Metrics) Delivered(event string, status int, took time.Duration) {
	m.deliveries.WithLabelValues(event, strconv.Itoa(status)).Inc()
	m.answers.Observe(took.Seconds())
}

// ClaimRefused counts a claim of an agent that was refused.
func (m *Metrics) ClaimRefused(why string) { m.refusals.WithLabelValues(why).Inc() }

// TokenIssued counts a token for a cloud or a secret store that a run asked for.
func (m *Metrics) TokenIssued(kind, phase string) { m.tokens.WithLabelValues(kind, phase, "").Inc() }

// TokenRefused counts a token that a run did not get.
func (m *Metrics) TokenRefused(reason string) { m.tokens.WithLabelValues("", "", reason).Inc() }

// Called counts a call to a code host.
func (m *Metrics) Called(call github.Call) {
	m.calls.WithLabelValues(call.Method, strconv.Itoa(call.Status)).Inc()
}
