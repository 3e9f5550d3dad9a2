package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/server/fleet"
)

func store(t *testing.T) *datastore.Store {
	t.Helper()
	keys, err := seal.NewKeyring(bytes.Repeat([]byte("k"), seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	s, err := datastore.Open(t.Context(), datastore.Options{Path: filepath.Join(t.TempDir(), "holdfast.db"), Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func save(t *testing.T, s *datastore.Store, c holdfast.ClusterRecord) holdfast.ClusterRecord {
	t.Helper()
	saved, err := s.SaveCluster(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func cluster(name, project string, phase holdfast.Phase) holdfast.ClusterRecord {
	return holdfast.ClusterRecord{Name: name, Owner: "fleet", Phase: phase, Desired: holdfast.Desired{Document: holdfast.Cluster{
		Name: name, Project: project, Environment: "prod", Provider: "aws", Labels: map[string]string{"team": project},
		Template: &holdfast.TemplateRef{Name: "eks", Version: "4.2.0"},
	}}}
}

func names(lines []holdfast.ClusterSummary) []string {
	var out []string
	for _, line := range lines {
		out = append(out, line.Name)
	}
	return out
}

// TestIndexFollowsTheStore: what is saved, renamed and deleted shows with the next question.
func TestIndexFollowsTheStore(t *testing.T) {
	t.Parallel()
	s := store(t)
	index := &fleet.Index{Source: s}
	want := func(expected ...string) {
		t.Helper()
		lines, err := index.Lines(t.Context())
		if err != nil || !slices.Equal(names(lines), expected) {
			t.Errorf("%v, %v: want %v", names(lines), err, expected)
		}
	}
	want()
	b := save(t, s, cluster("b", "payments", holdfast.PhaseActive))
	save(t, s, cluster("c", "payments", holdfast.PhaseActive))
	want("b", "c")
	before, _ := index.Lines(t.Context())
	save(t, s, cluster("a", "payments", holdfast.PhasePending))
	b.Phase = holdfast.PhaseDeleted
	save(t, s, b)
	want("a", "c")
	if before[0].Name != "b" {
		t.Error("a list that somebody may read was changed")
	}
	for i := range 600 { // more than one part of the feed
		save(t, s, cluster(fmt.Sprintf("d%03d", i), "search", holdfast.PhaseActive))
	}
	if lines, err := index.Lines(t.Context()); err != nil || len(lines) != 602 {
		t.Errorf("%d clusters, %v", len(lines), err)
	}
}

type failing struct{ fleet.Source }

func (failing) LastChange(context.Context) (int64, error) { return 0, holdfast.ErrUnavailable }

func TestIndexSaysThatTheStoreFails(t *testing.T) {
	t.Parallel()
	if _, err := (&fleet.Index{Source: failing{}}).Lines(t.Context()); err == nil {
		t.Error("no error")
	}
}

// slow answers questions for clusters when it is let to, and counts them.
type slow struct {
	fleet.Source
	asked chan struct{}
	let   chan struct{}
}

func (s slow) ClusterSummaries(ctx context.Context, f holdfast.ClusterFilter) ([]holdfast.ClusterSummary, error) {
	s.asked <- struct{}{}
	select {
	case <-s.let:
		return s.Source.ClusterSummaries(ctx, f)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestIndexReadsOnce: who asks while somebody reads gets what that reads, and whoever gives up
// keeps nobody waiting; one read is in flight.
func TestIndexReadsOnce(t *testing.T) {
	t.Parallel()
	s := store(t)
	save(t, s, cluster("a", "payments", holdfast.PhaseActive))
	source := slow{s, make(chan struct{}, 9), make(chan struct{})}
	index := &fleet.Index{Source: source}
	hasty, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := index.Lines(hasty); ended <- err }()
	<-source.asked
	waiting, stop := context.WithCancel(t.Context())
	stop()
	if _, err := index.Lines(waiting); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait gets %v", err)
	}
	found := make(chan []holdfast.ClusterSummary, 3)
	for range cap(found) {
		go func() { lines, _ := index.Lines(t.Context()); found <- lines }()
	}
	giveUp()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("who gives up gets %v", err)
	}
	<-source.asked
	close(source.let)
	for range cap(found) {
		if lines := <-found; len(lines) != 1 {
			t.Errorf("%v", names(lines))
		}
	}
	if n := len(source.asked); n != 0 {
		t.Errorf("read %d times more", n)
	}
}

func lines() []holdfast.ClusterSummary {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	line := func(name, project, provider, template string, phase holdfast.Phase) holdfast.ClusterSummary {
		return holdfast.ClusterSummary{Name: name, Project: project, Environment: "prod", Provider: provider, Template: template, Phase: phase, Labels: map[string]string{"Tier": "Gold"}, UpdatedAt: at}
	}
	failed := line("c", "search", "aws", "eks@1.0.0", holdfast.PhaseFailed)
	failed.UpdatedAt = at.Add(-time.Hour)
	waits := line("d", "search", "azure", "aks@1.0.0", holdfast.PhasePending)
	waits.Waiting = holdfast.ReasonNotApproved
	passes := line("e", "search", "azure", "aks@1.0.0", holdfast.PhasePending)
	passes.Waiting = holdfast.ReasonDependencyPending
	return []holdfast.ClusterSummary{
		line("a", "payments", "aws", "eks@1.0.0", holdfast.PhaseActive), line("b", "payments", "aws", "eks@1.1.0", holdfast.PhaseActive), failed, waits, passes,
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want string
		f    fleet.Filter
	}{
		{"[a b c d e]", fleet.Filter{}},
		{"[a b]", fleet.Filter{Projects: []string{"payments"}}},
		{"[a b c]", fleet.Filter{Provider: "aws"}},
		{"[b]", fleet.Filter{ClusterFilter: holdfast.ClusterFilter{Template: "eks@1.1.0"}}},
		{"[c]", fleet.Filter{ClusterFilter: holdfast.ClusterFilter{Template: "eks", Project: "search"}}},
		{"[d e]", fleet.Filter{ClusterFilter: holdfast.ClusterFilter{Waiting: "*"}}},
		{"[d]", fleet.Filter{ClusterFilter: holdfast.ClusterFilter{After: "c", Limit: 1}}},
		{"[b]", fleet.Filter{Search: "B gold"}},
		{"[c d]", fleet.Filter{Search: "module.x_y", Found: map[string]bool{"c": true, "d": true}}},
		{"[]", fleet.Filter{Search: "nothing"}},
	} {
		if got := fmt.Sprint(names(c.f.Select(lines()))); got != c.want {
			t.Errorf("%+v selects %s, want %s", c.f, got, c.want)
		}
	}
}

// TestOverviewCountsWhatOneMayChoose: a filter's own counts are those of its alternatives.
func TestOverviewCountsWhatOneMayChoose(t *testing.T) {
	t.Parallel()
	f := fleet.Filter{ClusterFilter: holdfast.ClusterFilter{Project: "search"}}
	o := f.Overview(lines())
	if o.Total != 5 || o.Matching != 3 {
		t.Errorf("%d of %d", o.Matching, o.Total)
	}
	if got := fmt.Sprint(o.Projects, o.Providers, o.Phases); got != "[{search 3} {payments 2}] [{azure 2} {aws 1}] [{Pending 2} {Failed 1}]" {
		t.Error(got)
	}
	if got := names(o.Waiting); !slices.Equal(got, []string{"c", "d"}) {
		t.Errorf("%v wait for a person", got)
	}
	if o := (&fleet.Filter{Projects: []string{"payments"}}).Overview(lines()); o.Total != 2 || len(o.Waiting) != 0 || len(o.Projects) != 1 {
		t.Errorf("other projects are counted: %+v", o)
	}
}
