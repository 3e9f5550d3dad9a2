package document

import (
	"encoding/json"
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
)

// runner reads what a cluster asks of the runner of its environment; nil if it asks nothing.
// Whether that is allowed, and what a Pod template may say, the runner knows.
func (r clusterReader) runner(o *decode.Object) *holdfast.ClusterRunner {
	if o.Node == nil {
		o.Done()
		return nil
	}
	ask := &holdfast.ClusterRunner{
		Resources: o.Child("resources").RunLimits("leave it out for that of the runner"), ServiceAccount: o.Text("serviceAccount"),
	}
	if n := o.Get("podTemplate"); n != nil {
		if n.Kind != yaml.MappingNode {
			r.Add(n, fmt.Sprintf("%s must be a mapping, not %s", o.Label("podTemplate"), decode.Describe(n)), "a PodTemplateSpec of Kubernetes")
		} else if text, err := json.Marshal(r.Value(n)); err != nil {
			r.Add(n, o.Label("podTemplate")+" cannot be written as JSON", "")
		} else {
			ask.PodTemplate = text
		}
	}
	o.Done()
	return ask
}
