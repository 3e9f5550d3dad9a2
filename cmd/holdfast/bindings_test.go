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
