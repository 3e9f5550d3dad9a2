package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/serve/telemetry"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/replica"
)

// countedFleet has clusters by phase and by drift.
type countedFleet struct {
	phases map[holdfast.Phase]int
	drift  map[holdfast.DriftStatus]int
	all    int
	broken error
}

func (f *countedFleet) CountClusters(_ context.Context, filter holdfast.ClusterFilter) (int, error) {
	switch {
	case f.broken != nil:
		return 0, f.broken
	case filter.Phase != "":
		return f.phases[filter.Phase], nil
	case filter.Drift != "":
		return f.drift[filter.Drift], nil
	default:
		return f.all, nil
	}
}

func (f *countedFleet) Replicas(context.Context) ([]replica.Replica, error) {
	return []replica.Replica{{Living: true}, {Living: true}, {}}, f.broken
}

func TestFleetMetrics(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	m := telemetry.New(func() time.Time { return clock })
	f := &countedFleet{
		phases: map[holdfast.Phase]int{holdfast.PhaseActive: 7, holdfast.PhaseDeleted: 2},
		drift:  map[holdfast.DriftStatus]int{holdfast.DriftFound: 1, holdfast.DriftNone: 4}, all: 8,
	}
	m.Watch(f, slog.New(slog.DiscardHandler))
	m.ProviderHeld("aws", clock.Add(time.Minute))
	m.ProviderHeld("google", clock.Add(2*time.Minute))
	m.ProviderHeld("azurerm", clock.Add(time.Minute))
	m.ProviderHeld("azurerm", time.Time{})

	scrape := func() string {
		t.Helper()
		answer := httptest.NewRecorder()
		m.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if answer.Code != http.StatusOK {
			t.Fatalf("/metrics = %d %s", answer.Code, answer.Body)
		}
		return answer.Body.String()
	}
	is := func(body string, wanted bool, lines ...string) {
		t.Helper()
		for _, line := range lines {
			if strings.Contains(body, line) != wanted {
				t.Errorf("/metrics has %s: %t, want %t", line, !wanted, wanted)
			}
		}
	}
	body := scrape()
	is(body, true,
		`holdfast_clusters{phase="Active"} 7`, `holdfast_clusters{phase="Deleted"} 2`, `holdfast_clusters{phase="Failed"} 0`,
		`holdfast_clusters_by_drift{status="drifted"} 1`, `holdfast_clusters_by_drift{status="none"} 4`,
		`holdfast_clusters_by_drift{status="failed"} 0`, `holdfast_clusters_by_drift{status="unchecked"} 3`,
		`holdfast_provider_held_until_timestamp_seconds{provider="aws"} 1.77236646e+09`, `{provider="google"} 1.77236652e+09`)
	is(body, false, "azurerm")

	clock = clock.Add(time.Minute)
	body = scrape()
	is(body, false, `provider="aws"`)
	is(body, true, `provider="google"`)

	f.broken = errors.New("database is locked")
	body = scrape()
	is(body, false, "holdfast_clusters")
	is(body, true, "process_resident_memory_bytes")
}

func TestAgentMetric(t *testing.T) {
	t.Parallel()
	m := telemetry.New(time.Now)
	m.WatchAgents(func() []protocol.AgentStatus {
		return []protocol.AgentStatus{
			{ID: "a", Living: true, Kinds: []holdfast.RunKind{"plan"}, Isolation: "slots"},
			{ID: "b", Living: true, Kinds: []holdfast.RunKind{"plan"}, Isolation: "slots"},
			{ID: "c", Living: true, Kinds: []holdfast.RunKind{"plan"}, Isolation: "made up"},
			{ID: "d", Kinds: []holdfast.RunKind{"apply"}, Isolation: "slots"},
			{ID: "e", Living: true, Kinds: []holdfast.RunKind{"apply"}, Isolation: "none", Refused: "isolation none is weaker"},
			{ID: "f", Living: true, Kinds: []holdfast.RunKind{"drift"}, Isolation: "unavailable"},
		}
	})
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var got []string
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "holdfast_agents{") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := []string{
		`holdfast_agents{isolation="other",kind="plan"} 1`, `holdfast_agents{isolation="slots",kind="plan"} 2`,
		`holdfast_agents{isolation="unavailable",kind="apply"} 0`, `holdfast_agents{isolation="unavailable",kind="destroy"} 0`,
		`holdfast_agents{isolation="unavailable",kind="drift"} 1`,
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("/metrics has %q, want %q", got, want)
	}
}
