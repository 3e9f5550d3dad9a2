package telemetry

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/replica"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// Counter counts what the store has; *datastore.Store is one.
type Counter interface {
	CountClusters(ctx context.Context, filter holdfast.ClusterFilter) (int, error)
	Replicas(ctx context.Context) ([]replica.Replica, error)
}

// Watch adds what is counted in the store whenever the metrics are read. A fleet
// changes less often than that, and a replica sees what the others do.
func (m *Metrics) Watch(store Counter, logger *slog.Logger) {
	m.registry.MustRegister(&fleetCollector{
		store: store, logger: logger,
		phases: prometheus.NewDesc("holdfast_clusters", "Clusters by phase.", []string{"phase"}, nil),
		drift: prometheus.NewDesc("holdfast_clusters_by_drift",
			"Clusters, without those that are gone, by what their last drift check found.", []string{"status"}, nil),
		replicas: prometheus.NewDesc("holdfast_replicas",
			"Servers that share the database, living ones and those that died within the last hour.", []string{"state"}, nil),
	})
}

// countTime bounds what a scrape waits for the store.
const countTime = 5 * time.Second

type fleetCollector struct {
	store    Counter
	logger   *slog.Logger
	phases   *prometheus.Desc
	drift    *prometheus.Desc
	replicas *prometheus.Desc
}

func (f *fleetCollector) Describe(out chan<- *prometheus.Desc) {
	out <- f.phases
	out <- f.drift
	out <- f.replicas
}

var phases = []holdfast.Phase{
	holdfast.PhasePending, holdfast.PhaseProvisioning, holdfast.PhaseConfiguring, holdfast.PhaseActive,
	holdfast.PhaseUpdating, holdfast.PhaseDeleting, holdfast.PhaseDeleted, holdfast.PhaseFailed,
}

// Collect counts. If the store does not answer, these series are missing from
// the scrape, and the others are not.
func (f *fleetCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countTime)
	defer cancel()
	var counted []prometheus.Metric
	count := func(desc *prometheus.Desc, label string, filter holdfast.ClusterFilter) (int, error) {
		n, err := f.store.CountClusters(ctx, filter)
		if err == nil {
			counted = append(counted, prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), label))
		}
		return n, err
	}
	err := func() error {
		for _, phase := range phases {
			if _, err := count(f.phases, string(phase), holdfast.ClusterFilter{Phase: phase}); err != nil {
				return err
			}
		}
		unchecked, err := f.store.CountClusters(ctx, holdfast.ClusterFilter{})
		if err != nil {
			return err
		}
		for _, status := range []holdfast.DriftStatus{holdfast.DriftNone, holdfast.DriftFound, holdfast.DriftFailed} {
			n, err := count(f.drift, string(status), holdfast.ClusterFilter{Drift: status})
			if err != nil {
				return err
			}
			unchecked -= n
		}
		counted = append(counted, prometheus.MustNewConstMetric(f.drift, prometheus.GaugeValue, float64(max(unchecked, 0)), "unchecked"))
		replicas, err := f.store.Replicas(ctx)
		states := map[string]int{"living": 0, "dead": 0}
		for _, r := range replicas {
			if r.Living {
				states["living"]++
			} else {
				states["dead"]++
			}
		}
		for state, n := range states {
			counted = append(counted, prometheus.MustNewConstMetric(f.replicas, prometheus.GaugeValue, float64(n), state))
		}
		return err
	}()
	if err != nil {
		f.logger.Error("clusters were not counted", "err", err)
		return
	}
	for _, m := range counted {
		out <- m
	}
}

// WatchAgents adds the living agents, whenever the metrics are read.
func (m *Metrics) WatchAgents(heard func() []protocol.AgentStatus) {
	m.registry.MustRegister(&agentCollector{heard: heard, desc: prometheus.NewDesc("holdfast_agents",
		"Living agents that get runs, by a kind of runs that they execute and how they isolate engines.", []string{"kind", "isolation"}, nil)})
}

type agentCollector struct {
	heard func() []protocol.AgentStatus
	desc  *prometheus.Desc
}

func (a *agentCollector) Describe(out chan<- *prometheus.Desc) { out <- a.desc }

// Collect has a series for each kind, also where nobody executes it.
func (a *agentCollector) Collect(out chan<- prometheus.Metric) {
	heard := a.heard()
	for _, kind := range holdfast.AgentKinds() {
		counts := map[string]int{}
		for _, agent := range heard {
			if agent.Living && agent.Refused == "" && slices.Contains(agent.Kinds, kind) {
				counts[isolationLabel(agent.Isolation)]++
			}
		}
		if len(counts) == 0 {
			counts[protocol.IsolationUnavailable] = 0
		}
		for isolation, n := range counts {
			out <- prometheus.MustNewConstMetric(a.desc, prometheus.GaugeValue, float64(n), string(kind), isolation)
		}
	}
}

// isolationLabel is an agent's word for its mode, if it is one of ours.
func isolationLabel(mode string) string {
	switch {
	case mode == "":
		return protocol.IsolationNone
	case mode == protocol.IsolationUnavailable:
		return mode
	case slices.Contains(sandbox.Modes(), sandbox.Mode(mode)):
		return mode
	default:
		return "other"
	}
}

// heldProviders are those whose runs wait for their cloud. A provider that is no longer
// held has no series.
type heldProviders struct {
	desc *prometheus.Desc
	now  func() time.Time

	mu    sync.Mutex
	until map[string]time.Time
}

func newHeldProviders(now func() time.Time) *heldProviders {
	return &heldProviders{
		desc: prometheus.NewDesc("holdfast_provider_held_until_timestamp_seconds",
			"Until when runs of a throttled or failing cloud are paused; absent if none are.", []string{"provider"}, nil),
		now: now, until: make(map[string]time.Time),
	}
}

// hold is for a while, or, with the zero time, no longer.
func (h *heldProviders) hold(provider string, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until.IsZero() {
		delete(h.until, provider)
		return
	}
	h.until[provider] = until
}

func (h *heldProviders) Describe(out chan<- *prometheus.Desc) { out <- h.desc }

func (h *heldProviders) Collect(out chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	for provider, until := range h.until {
		if !until.After(now) {
			delete(h.until, provider)
			continue
		}
		out <- prometheus.MustNewConstMetric(h.desc, prometheus.GaugeValue, float64(until.Unix()), provider)
	}
}
