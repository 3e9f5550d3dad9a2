package reconciler

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// forbidden holds a document to what its repository and path may define.
func (r *Reconciler) forbidden(repo string, doc document.Document, stateLocation string) holdfast.Faults {
	if err := r.opts.Allow(repo, doc.Cluster, stateLocation); err != nil {
		return holdfast.Faults{doc.Fault(
			err.Error(), "bind it under repositories[].allow in holdfast.yaml, or move the cluster", "metadata", "name",
		)}
	}
	if r.opts.Limits == nil {
		return nil
	}
	_, most := r.opts.Limits(doc.Cluster)
	if key, bound := doc.Cluster.Limits.Beyond(most); key != "" {
		return holdfast.Faults{doc.Fault(
			fmt.Sprintf("spec.limits.%s is more than this cluster may have, which is %s", key, bound),
			"ask for less, or allow it under runs.limits.max."+key+" in holdfast.yaml, for all or under runs.limits.overrides", "spec", "limits", key,
		)}
	}
	return nil
}
