package document

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// A backend that a cluster may name: what it must have, and the argument that
// tells clusters apart, with its default.
type backendKind struct {
	required []string
	own      string // empty: none
}

func backendKinds() map[string]backendKind {
	return map[string]backendKind{
		"s3":         {required: []string{"bucket"}, own: "key"},
		"gcs":        {required: []string{"bucket"}, own: "prefix"},
		"azurerm":    {required: []string{"storage_account_name", "container_name"}, own: "key"},
		"kubernetes": {own: "secret_suffix"},
		"http":       {required: []string{"address"}},
	}
}

// ownDefault is the default of the argument that tells clusters apart.
func ownDefault(kind, cluster string) string {
	switch kind {
	case "s3":
		return cluster + "/terraform.tfstate"
	case "azurerm":
		return cluster + ".tfstate"
	default: // gcs adds the file's name, kubernetes the workspace's
		return cluster
	}
}

// secretArgument reports whether an argument is one of those that hold credentials.
func secretArgument(name string) bool {
	switch name {
	case "access_key", "secret_key", "token", "password", "client_secret", "sas_token", "access_token",
		"credentials", "client_key", "client_private_key_pem", "client_certificate_password", "encryption_key",
		"sse_customer_key", "kms_encryption_key_value", "oidc_token", "oidc_request_token":
		return true
	}
	return false
}

func (r clusterReader) state(o *decode.Object, c *holdfast.Cluster) *holdfast.StateBackend {
	kinds := backendKinds()
	kind := o.Choice("type", "azurerm", "gcs", "http", "kubernetes", "s3")
	if !o.Has("type") {
		o.Missing("type")
	}
	state := &holdfast.StateBackend{Type: kind, Config: map[string]any{}}
	var unknown []string
	for i := 0; i+1 < len(o.Node.Content); i += 2 {
		key := o.Node.Content[i]
		switch {
		case key.Value == "type":
			continue
		case secretArgument(key.Value):
			r.Add(key, fmt.Sprintf("spec.state has %s, which is a secret", key.Value),
				"give the credential to the project and environment in holdfast.yaml")
		case !decode.IsIdentifier(key.Value):
			r.Add(key, fmt.Sprintf("spec.state has %q, which is not an argument of a backend", wording.Clip(key.Value)), "")
		}
		unknown = append(unknown, key.Value)
		state.Config[key.Value] = r.Value(o.Node.Content[i+1])
	}
	for _, key := range kinds[kind].required {
		if state.Config[key] != nil {
			continue
		}
		hint := ""
		if near := nearest.Of(key, unknown); near != "" {
			hint = fmt.Sprintf("did you mean it by %q?", near)
		}
		r.Add(o.Node, fmt.Sprintf("spec.state.%s is missing for a state in %s", key, kind), hint)
	}
	// A default made from the new name would leave the state behind.
	if own := kinds[kind].own; own != "" && c.RenamedFrom != "" && state.Config[own] == nil {
		r.Add(o.Node, fmt.Sprintf("spec.state.%s must be written for a renamed cluster: its state is where it was", own),
			fmt.Sprintf("add %s: %s", own, ownDefault(kind, c.RenamedFrom)))
	}
	return state
}

// OwnArgument returns the argument of a kind of backend that tells the states of
// clusters apart, such as key, and what it is for a cluster whose document does not
// say; two empty texts for a backend without one.
func OwnArgument(kind, cluster string) (name, value string) {
	if name = backendKinds()[kind].own; name != "" {
		value = ownDefault(kind, cluster)
	}
	return name, value
}
