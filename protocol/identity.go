package protocol

import (
	"encoding/json"
	"time"
)

// Identities are the identities that an attempt's engine can prove to clouds and secret
// stores, by a token that this server has signed instead of a stored credential. Each is
// nil if there is none.
type Identities struct {
	AWS   *AWSIdentity   `json:"aws,omitempty"`
	GCP   *GCPIdentity   `json:"gcp,omitempty"`
	Azure *AzureIdentity `json:"azure,omitempty"`
	Vault *VaultIdentity `json:"vault,omitempty"`
}

// IsZero reports whether there is none.
func (i Identities) IsZero() bool { return i == Identities{} }

// Name names all that they say, for names of things that depend on it: the tokens themselves
// are others each time. It is empty if there is none.
func (i Identities) Name() string {
	if i.IsZero() {
		return ""
	}
	data, err := json.Marshal(i)
	if err != nil {
		panic(err) // texts and numbers always encode
	}
	return string(data)
}

// Audiences are for whom tokens of the identities are, by the kind of the identity: aws, gcp,
// azure or vault.
func (i Identities) Audiences() map[string]string {
	audiences := make(map[string]string)
	if i.AWS != nil {
		audiences["aws"] = i.AWS.Audience
	}
	if i.GCP != nil {
		audiences["gcp"] = i.GCP.Audience
	}
	if i.Azure != nil {
		audiences["azure"] = i.Azure.Audience
	}
	if i.Vault != nil {
		audiences["vault"] = i.Vault.Audience
	}
	return audiences
}

// AWSIdentity is a role that is assumed with a web identity.
type AWSIdentity struct {
	RoleARN     string `json:"roleARN"`
	SessionName string `json:"sessionName"`
	Region      string `json:"region,omitempty"`      // empty: nobody says
	SessionTags bool   `json:"sessionTags,omitempty"` // tokens name tags of the session
	Audience    string `json:"audience"`
}

// GCPIdentity is a workload identity.
type GCPIdentity struct {
	Provider       string `json:"provider"`                 // projects/N/locations/global/workloadIdentityPools/P/providers/X
	ServiceAccount string `json:"serviceAccount,omitempty"` // that is impersonated; empty: none
	Audience       string `json:"audience"`
}

// AzureIdentity is an application, or a managed identity, with a federated credential.
type AzureIdentity struct {
	TenantID       string `json:"tenantID"`
	ClientID       string `json:"clientID"`
	SubscriptionID string `json:"subscriptionID,omitempty"`
	Audience       string `json:"audience"`
}

// VaultIdentity is a role of Vault's auth method "jwt".
type VaultIdentity struct {
	Address   string `json:"address"`
	Role      string `json:"role"`
	Mount     string `json:"mount"`
	Namespace string `json:"namespace,omitempty"`
	Audience  string `json:"audience"`
}

// TokenRequest asks for a token of the run that is executed.
type TokenRequest struct {
	Fence    int64  `json:"fence"`
	Audience string `json:"audience"` // one of those of the assignment's Identities
}

// IdentityToken says whom a run is, for one audience.
type IdentityToken struct {
	Token string `json:"token"` // a JWT
	// Lifetime is how long it is valid from now on, in nanoseconds: clocks are not
	// compared.
	Lifetime time.Duration `json:"lifetime"`
}
