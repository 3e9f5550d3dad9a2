package datastore_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
)

// testPages reads each list in parts of two, among them items that were made at the same
// moment, while something newer is added.
func testPages(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	for i := range 5 {
		run := newRun(i)
		run.CreatedAt = noon
		create(t, store, run)
		save(t, store, holdfast.ClusterRecord{Name: fmt.Sprint("c", i)})
		for _, repo := range []string{"a", "b"} {
			ref := holdfast.PullRequestRef{Repo: repo, Number: i + 1}
			if _, err := store.SavePullRequest(ctx, holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{PullRequestRef: ref}}); err != nil {
				t.Fatal(err)
			}
		}
		for _, cluster := range []string{"c0", "c1"} {
			old := must[[]holdfast.Resource](t)(store.Resources(ctx, holdfast.ResourceFilter{Cluster: cluster}))
			if err := store.SaveResources(ctx, cluster, append(old, holdfast.Resource{Address: fmt.Sprint("x.", i), Type: "x"})); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Audit(ctx, holdfast.AuditEntry{At: noon, Actor: "a", Action: fmt.Sprint(i), Object: "o"}); err != nil {
			t.Fatal(err)
		}
	}
	runs := pages(t, func(ctx context.Context, last holdfast.Run) ([]holdfast.Run, error) {
		return store.Runs(ctx, holdfast.RunFilter{Limit: 2, After: holdfast.RunMark{CreatedAt: last.CreatedAt, ID: last.ID}})
	}, func() { create(t, store, newRun(9)) })
	samePages(t, runs, func(r holdfast.Run) string { return r.ID }, "run-0004", "run-0003", "run-0002", "run-0001", "run-0000")

	clusters := pages(t, func(ctx context.Context, last holdfast.ClusterRecord) ([]holdfast.ClusterRecord, error) {
		return store.Clusters(ctx, holdfast.ClusterFilter{Limit: 2, After: last.Name})
	}, func() { save(t, store, holdfast.ClusterRecord{Name: "a"}) })
	samePages(t, clusters, func(c holdfast.ClusterRecord) string { return c.Name }, "c0", "c1", "c2", "c3", "c4")

	named := pages(t, func(ctx context.Context, last holdfast.ClusterSummary) ([]holdfast.ClusterSummary, error) {
		return store.ClusterSummaries(ctx, holdfast.ClusterFilter{Names: []string{"c3", "c1", "c0"}, Limit: 2, After: last.Name})
	}, func() {})
	samePages(t, named, func(c holdfast.ClusterSummary) string { return c.Name }, "c0", "c1", "c3")

	pulls := pages(t, func(ctx context.Context, last holdfast.PullRequestRecord) ([]holdfast.PullRequestRecord, error) {
		return store.PullRequests(ctx, holdfast.PullRequestFilter{Limit: 3, After: last.PullRequestRef})
	}, func() {})
	samePages(t, pulls, func(r holdfast.PullRequestRecord) string { return r.String() },
		"a#5", "b#5", "a#4", "b#4", "a#3", "b#3", "a#2", "b#2", "a#1", "b#1")

	resources := pages(t, func(ctx context.Context, last holdfast.Resource) ([]holdfast.Resource, error) {
		return store.Resources(ctx, holdfast.ResourceFilter{Limit: 3, After: holdfast.ResourceMark{Cluster: last.Cluster, Address: last.Address}})
	}, func() {})
	samePages(t, resources, func(r holdfast.Resource) string { return r.Cluster + " " + r.Address },
		"c0 x.0", "c0 x.1", "c0 x.2", "c0 x.3", "c0 x.4", "c1 x.0", "c1 x.1", "c1 x.2", "c1 x.3", "c1 x.4")

	var place int64
	trail := pages(t, func(ctx context.Context, _ holdfast.AuditEntry) (part []holdfast.AuditEntry, err error) {
		part, place, err = store.AuditPage(ctx, "o", place, 2)
		return part, err
	}, func() {})
	samePages(t, trail, func(e holdfast.AuditEntry) string { return e.Action }, "4", "3", "2", "1", "0")

	place = 0
	for _, event := range []string{"0", "1", "2", "3", "4"} {
		if err := store.AddDeliveries(t.Context(), []holdfast.Delivery{{At: time.Unix(1, 0).UTC(), Event: event, Repo: "acme/shop", Status: 200, Took: time.Second}}); err != nil {
			t.Fatal(err)
		}
	}
	deliveries := pages(t, func(ctx context.Context, _ holdfast.Delivery) (part []holdfast.Delivery, err error) {
		part, place, err = store.Deliveries(ctx, place, 2)
		return part, err
	}, func() {})
	samePages(t, deliveries, func(d holdfast.Delivery) string { return d.Event }, "4", "3", "2", "1", "0")
	if d := deliveries[0]; d.Repo != "acme/shop" || d.Status != 200 || d.Took != time.Second || !d.At.Equal(time.Unix(1, 0)) {
		t.Errorf("delivery is %+v", d)
	}
}

// pages reads a list to its end; meanwhile is called after its first part.
func pages[T any](t *testing.T, read func(ctx context.Context, last T) ([]T, error), meanwhile func()) []T {
	t.Helper()
	var all []T
	var last T
	for {
		part, err := read(t.Context(), last)
		if err != nil || len(all) > 100 {
			t.Fatalf("%d items, then %v", len(all), err)
		}
		if len(all) == 0 {
			meanwhile()
		}
		if len(part) == 0 {
			return all
		}
		all, last = append(all, part...), part[len(part)-1]
	}
}

func samePages[T any](t *testing.T, items []T, name func(T) string, want ...string) {
	t.Helper()
	var got []string
	for item := range slices.Values(items) {
		got = append(got, name(item))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}
