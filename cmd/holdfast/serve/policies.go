package serve

import (
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/reconciler/policies"
)

// gateMinimums are what holdfast.yaml asks of applies.
func gateMinimums(cfg *config.Config) (out []reconciler.GateMinimum) {
	for _, g := range cfg.Gates {
		least := reconciler.GateMinimum{Scope: policies.Scope{Projects: g.Projects, Environments: g.Environments}}
		least.Requires, least.Terms = g.Terms()
		out = append(out, least)
	}
	return out
}

// policyGrants are the policies that holdfast.yaml binds.
func policyGrants(cfg *config.Config) reconciler.PolicyGrants {
	branches := make(map[string]string)
	for _, r := range cfg.Repositories {
		branches[r.Name] = r.Branch
	}
	var out reconciler.PolicyGrants
	for _, set := range cfg.Policies.Sets {
		out.Sets = append(out.Sets, policies.Set{
			Name: set.Name, Repo: set.Repository, Branch: branches[set.Repository], Dir: set.Path, Version: set.Version,
			Scope: policies.Scope{Projects: set.Projects, Environments: set.Environments},
		})
	}
	if shipped := cfg.Policies.Shipped; shipped.Enabled {
		out.Shipped = &policies.Scope{Projects: shipped.Projects, Environments: shipped.Environments}
	}
	return out
}
