package config

import (
	"time"
)

// Issuer makes the server an issuer of tokens.
type Issuer struct {
	URL      string        `yaml:"url" doc:"Such as https://holdfast.example.com: https, without a port and without a slash at its end. Clouds fetch <url>/.well-known/openid-configuration and <url>/.well-known/jwks.json, which the public listener serves. It is recorded with the first token and cannot be changed after that, see replaces. Left out: no tokens are issued."`
	Lifetime time.Duration `yaml:"lifetime" default:"1h" doc:"How long a token is valid. Agents renew tokens at half of it. 10s to 24h."`
	Rotate   time.Duration `yaml:"rotate" default:"2160h" doc:"How long a key signs tokens before the next one does. 0s: forever."`
	Announce time.Duration `yaml:"announce" default:"168h" doc:"How long a key is published before it signs. At least 1h, and less than rotate. If a cloud has a copy of the keys, such as Google's JWKS files, upload a new one within this time."`
	Replaces string        `yaml:"replaces" doc:"The former url, to change it after tokens were issued: every cloud must trust the new one first."`
}

// AWS is a role that runs assume with a token.
type AWS struct {
	RoleARN     string `yaml:"roleARN" doc:"The role, such as arn:aws:iam::123456789012:role/holdfast-plan."`
	SessionName string `yaml:"sessionName" doc:"The name of the session in CloudTrail. Left out: holdfast-PROJECT-ENVIRONMENT-PHASE, at most 64 characters of it."`
	Region      string `yaml:"region" doc:"AWS_REGION. Left out: not set."`
	SessionTags bool   `yaml:"sessionTags" doc:"Tokens name session tags: holdfast:project, holdfast:environment, holdfast:cluster and holdfast:phase. The role's trust policy must allow sts:TagSession."`
	Audience    string `yaml:"audience" doc:"Left out: sts.amazonaws.com."`
}

// GCP is a workload identity of Google Cloud.
type GCP struct {
	Provider       string `yaml:"workloadIdentityProvider" doc:"projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER."`
	ServiceAccount string `yaml:"serviceAccount" doc:"The e-mail address of a service account to impersonate. Left out: access is granted to the subject itself."`
	Audience       string `yaml:"audience" doc:"Left out: https://iam.googleapis.com/ and the name of the provider, which it accepts if its allowed audiences are empty."`
}

// Azure is an application, or a managed identity, with a federated credential.
type Azure struct {
	TenantID       string `yaml:"tenantID" doc:"The directory (tenant) of the application."`
	ClientID       string `yaml:"clientID" doc:"The application (client) id."`
	SubscriptionID string `yaml:"subscriptionID" doc:"Left out: as in the code."`
	Audience       string `yaml:"audience" doc:"Left out: api://AzureADTokenExchange."`
}

// Vault is a role of the auth method jwt of Vault or OpenBao.
type Vault struct {
	Address   string `yaml:"address" doc:"Such as https://vault.example.com:8200."`
	Role      string `yaml:"role" doc:"The role of the auth method."`
	Mount     string `yaml:"mount" doc:"The path of the auth method. Left out: jwt."`
	Namespace string `yaml:"namespace" doc:"Left out: none."`
	Audience  string `yaml:"audience" doc:"One of the role's bound_audiences. Left out: the address."`
}

// keyless are the variables of what is known without a stored credential, for each kind: those
// that Holdfast sets, and those that would go before them or contradict them.
var keyless = []struct {
	kind  string
	given func(c Credential) bool
	sets  []string
	rival []string
}{
	{
		"aws", func(c Credential) bool { return c.AWS != AWS{} },
		[]string{"AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_SESSION_NAME"},
		[]string{
			"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_PROFILE",
			"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
		},
	},
	{
		"gcp", func(c Credential) bool { return c.GCP != GCP{} },
		[]string{"GOOGLE_APPLICATION_CREDENTIALS"},
		[]string{"GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON", "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_BACKEND_CREDENTIALS"},
	},
	{
		"azure", func(c Credential) bool { return c.Azure != Azure{} },
		[]string{
			"ARM_USE_OIDC", "ARM_TENANT_ID", "ARM_CLIENT_ID", "ARM_OIDC_REQUEST_URL", "ARM_OIDC_REQUEST_TOKEN",
			"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE",
		},
		[]string{
			"ARM_CLIENT_SECRET", "ARM_CLIENT_SECRET_FILE_PATH", "ARM_CLIENT_CERTIFICATE", "ARM_CLIENT_CERTIFICATE_PATH", "ARM_USE_MSI",
			"ARM_OIDC_TOKEN", "ARM_OIDC_TOKEN_FILE_PATH", "ARM_ACCESS_KEY", "ARM_SAS_TOKEN",
			"AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_USERNAME", "AZURE_PASSWORD",
		},
	},
	{
		"vault", func(c Credential) bool { return c.Vault != Vault{} },
		[]string{"VAULT_TOKEN", "VAULT_ADDR"},
		[]string{"VAULT_TOKEN_FILE", "TERRAFORM_VAULT_AUTH_JWT", "VAULT_AGENT_ADDR"},
	},
}

// KeylessVariables are the variables that the engine of a run with an identity of that kind
// (aws, gcp, azure or vault) must not get from elsewhere.
func KeylessVariables(kind string) []string {
	for _, k := range keyless {
		if k.kind == kind {
			return append(append([]string{}, k.sets...), k.rival...)
		}
	}
	return nil
}
