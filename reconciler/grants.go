package reconciler

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// granted is what the engine of a cluster's runs may use.
func (g Grants) granted(c holdfast.Cluster) holdfast.RunLimits {
	granted, _ := g.Limits(c)
	return granted
}

// required are the conditions of an apply that clusters have whatever their documents say:
// those of holdfast.yaml, and because of their policies.
func (g Grants) required(byPolicies func(holdfast.Cluster) []string) func(holdfast.Cluster) ([]string, holdfast.GateTerms) {
	return func(c holdfast.Cluster) (names []string, terms holdfast.GateTerms) {
		for _, least := range g.Gates {
			if least.Scope.Has(c) {
				names, terms = append(names, least.Requires...), terms.With(least.Terms)
			}
		}
		return append(names, byPolicies(c)...), terms
	}
}

// forbidden holds a document to what its repository and path may define.
func (g Grants) forbidden(repo string, doc document.Document, stateLocation string) holdfast.Faults {
	if err := g.Allow(repo, doc.Cluster, stateLocation); err != nil {
		return holdfast.Faults{doc.Fault(
			err.Error(), "bind it under repositories[].allow in holdfast.yaml, or move the cluster", "metadata", "name",
		)}
	}
	_, most := g.Limits(doc.Cluster)
	if key, bound := doc.Cluster.Limits.Beyond(most); key != "" {
		return holdfast.Faults{doc.Fault(
			fmt.Sprintf("spec.limits.%s is more than this cluster may have, which is %s", key, bound),
			"ask for less, or allow it under runs.limits.max."+key+" in holdfast.yaml, for all or under runs.limits.overrides", "spec", "limits", key,
		)}
	}
	return nil
}
