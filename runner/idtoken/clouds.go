// What the SDKs of clouds read.

package idtoken

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Names of files in the engine's folder.
const (
	gcpConfig  = "gcp.json"
	awsToken   = "aws.token"
	gcpToken   = "gcp.token"
	azureToken = "azure.token"
)

func (k *Keeper) set(name, value string) { k.env = append(k.env, variable{name: name, value: value}) }
func (k *Keeper) setFile(name, file string) {
	k.env = append(k.env, variable{name: name, file: file})
}

// file is the file of the token for an audience: of several identities with one audience the
// first one names it.
func (k *Keeper) file(audience, name string) string {
	if k.files[audience] == "" {
		k.files[audience] = name
	}
	return k.files[audience]
}

// layOutAWS: SDKs read the token again whenever they assume the role again.
func (k *Keeper) layOutAWS(a protocol.AWSIdentity) {
	k.set("AWS_ROLE_ARN", a.RoleARN)
	k.set("AWS_ROLE_SESSION_NAME", a.SessionName)
	k.setFile("AWS_WEB_IDENTITY_TOKEN_FILE", k.file(a.Audience, awsToken))
	if a.Region != "" {
		k.set("AWS_REGION", a.Region)
	}
}

// layOutGCP: the SDK reads the token again for each access token.
func (k *Keeper) layOutGCP(g protocol.GCPIdentity) {
	k.file(g.Audience, gcpToken)
	k.setFile("GOOGLE_APPLICATION_CREDENTIALS", gcpConfig)
}

// layOutAzure: azurerm reads a file once, when it is configured, and asks an address each time.
func (k *Keeper) layOutAzure(a protocol.AzureIdentity) {
	for _, prefix := range []string{"ARM_", "AZURE_"} {
		k.set(prefix+"TENANT_ID", a.TenantID)
		k.set(prefix+"CLIENT_ID", a.ClientID)
	}
	if a.SubscriptionID != "" {
		k.set("ARM_SUBSCRIPTION_ID", a.SubscriptionID)
	}
	k.set("ARM_USE_OIDC", "true")
	k.setFile("AZURE_FEDERATED_TOKEN_FILE", k.file(a.Audience, azureToken))
}

// setAzureRequest: the caller adds its own audience if the address has none.
func (k *Keeper) setAzureRequest(address, credential string) {
	k.set("ARM_OIDC_REQUEST_URL", address+"?audience="+url.QueryEscape(k.opts.Identities.Azure.Audience))
	k.set("ARM_OIDC_REQUEST_TOKEN", credential)
}

// answerAzure answers an engine that asks for a token: there is one audience.
func (k *Keeper) answerAzure(audience string) (string, error) {
	if ours := k.opts.Identities.Azure.Audience; audience != "" && audience != ours {
		return "", fmt.Errorf("this run has tokens for %s alone: %w", ours, holdfast.ErrForbidden)
	}
	return k.current(k.opts.Identities.Azure.Audience)
}

// writeSettings writes the files in which SDKs find where the token is.
func (k *Keeper) writeSettings() error {
	if g := k.opts.Identities.GCP; g != nil {
		return k.writeAccount(*g)
	}
	return nil
}

// externalAccount is the file of Google's "external_account" credentials.
type externalAccount struct {
	Type             string `json:"type"`
	Audience         string `json:"audience"`
	TokenType        string `json:"subject_token_type"`
	TokenURL         string `json:"token_url"`
	Impersonation    string `json:"service_account_impersonation_url,omitempty"`
	CredentialSource struct {
		File string `json:"file"`
	} `json:"credential_source"`
}

// writeAccount writes it, for the engine: the file names another one, as the engine sees it.
func (k *Keeper) writeAccount(g protocol.GCPIdentity) error {
	account := externalAccount{
		Type: "external_account", Audience: "//iam.googleapis.com/" + g.Provider,
		TokenType: "urn:ietf:params:oauth:token-type:jwt", TokenURL: "https://sts.googleapis.com/v1/token",
	}
	if g.ServiceAccount != "" {
		account.Impersonation = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/" + g.ServiceAccount + ":generateAccessToken"
	}
	account.CredentialSource.File = k.opts.Files.Seen(k.path(k.files[g.Audience]))
	data, err := json.Marshal(account)
	if err != nil {
		return fmt.Errorf("write token: %w", err)
	}
	return k.write(gcpConfig, string(data))
}
