package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
)

// TestSecretSources states which folders and stores a run gets: those of its
// project, its environment and its phase, and nobody else's.
func TestSecretSources(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("holdfast.yaml", "/etc", []byte(`
credentials:
  - secretDirs: [/run/all]
    stores: {vault: {command: [vault, "{key}"]}}
  - project: payments
    environment: prod*
    secretDirs: [/run/payments, /run/all]
  - project: payments
    phase: apply
    secretDirs: [/run/applies]
    stores:
      vault: {command: [payments-vault, "{key}"]}
      other: {command: [other, "{key}"]}
  - {project: shop, secretDirs: [/run/shop], stores: {shop: {command: [shop, "{key}"]}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	type sources struct {
		Dirs   []string
		Stores map[string][]string
	}
	vault := []string{"vault", "{key}"}
	for _, test := range []struct {
		project, environment string
		kind                 holdfast.RunKind
		want                 sources
	}{
		{"payments", "production", holdfast.RunPlan, sources{[]string{"/run/all", "/run/payments"}, map[string][]string{"vault": vault}}},
		{"payments", "staging", holdfast.RunDrift, sources{[]string{"/run/all"}, map[string][]string{"vault": vault}}},
		{"payments", "production", holdfast.RunDestroy, sources{
			[]string{"/run/all", "/run/payments", "/run/applies"},
			map[string][]string{"vault": {"payments-vault", "{key}"}, "other": {"other", "{key}"}},
		}},
		{"shop", "production", holdfast.RunApply, sources{
			[]string{"/run/all", "/run/shop"}, map[string][]string{"vault": vault, "shop": {"shop", "{key}"}},
		}},
	} {
		dirs, stores := secretSources(cfg)(holdfast.Cluster{Project: test.project, Environment: test.environment}, test.kind)
		if diff := cmp.Diff(test.want, sources{dirs, stores}); diff != "" {
			t.Errorf("%s of %s/%s (-want +got):\n%s", test.kind, test.project, test.environment, diff)
		}
	}
	none, err := config.Parse("holdfast.yaml", "/etc", nil)
	if err != nil {
		t.Fatal(err)
	}
	if dirs, stores := secretSources(none)(holdfast.Cluster{}, holdfast.RunPlan); dirs != nil || stores != nil {
		t.Errorf("without an entry: %v, %v", dirs, stores)
	}
}

// TestLimits states what the engine of a cluster may use: what is said for all,
// unless entries that match say something else.
func TestLimits(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("holdfast.yaml", "/etc", []byte(`
runs:
  limits:
    cpu: 2
    overrides:
      - {project: payments, memory: 8GiB}
      - {cluster: "big-*", processes: 4096, cpu: 3.5}
`))
	if err != nil {
		t.Fatal(err)
	}
	of := limits(cfg)
	for _, test := range []struct {
		project, cluster string
		want             holdfast.RunLimits
	}{
		{"shop", "small", holdfast.RunLimits{Memory: 4 << 30, Processes: 1024, CPU: 2}},
		{"payments", "small", holdfast.RunLimits{Memory: 8 << 30, Processes: 1024, CPU: 2}},
		{"payments", "big-eu", holdfast.RunLimits{Memory: 8 << 30, Processes: 4096, CPU: 3.5}},
	} {
		if got := of(holdfast.Cluster{Project: test.project, Name: test.cluster}); got != test.want {
			t.Errorf("limits of %s/%s are %+v, want %+v", test.project, test.cluster, got, test.want)
		}
	}
}
