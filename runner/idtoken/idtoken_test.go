package idtoken_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/aws/aws-sdk-go-v2/config"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
	"github.com/holdfast-dev/holdfast/internal/testenv/relyingparty"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/idtoken"
	"github.com/holdfast-dev/holdfast/runner/uplink"
	"github.com/holdfast-dev/holdfast/server/issuer"
	"github.com/holdfast-dev/holdfast/server/issuer/claims"
)

const (
	site     = "https://holdfast.example.com"
	planner  = "holdfast:payments:production:plan"
	planRole = "arn:aws:iam::123456789012:role/plan"
	pool     = "projects/1/locations/global/workloadIdentityPools/p/providers/x"
)

// lab is an agent's attempt at a plan, with a server that issues its tokens, and who trusts them.
type lab struct {
	*testing.T
	party *relyingparty.Party
	of    protocol.Identities

	lifetime time.Duration
	session  *uplink.Session
	dir      string
	said     lines
	secrets  lines
	asked    atomic.Int32
	answer   atomic.Int32 // a status with which the server answers instead
}

// lines are texts that were said.
type lines struct {
	mu   sync.Mutex
	list []string
}

func (l *lines) add(texts ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, texts...)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.list, "\n")
}

// Identities makes lab the issuer's configuration.
func (l *lab) Identities(holdfast.Cluster, holdfast.RunKind) (protocol.Identities, error) {
	return l.of, nil
}
func (l *lab) Origin(holdfast.Run) claims.Origin { return claims.Origin{Runner: "local"} }

func newLab(t *testing.T, of protocol.Identities, lifetime time.Duration) *lab {
	t.Helper()
	l := &lab{T: t, of: of, lifetime: lifetime, dir: t.TempDir()}
	keys, err := seal.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := datastore.Open(t.Context(), datastore.Options{Path: filepath.Join(t.TempDir(), "holdfast.db"), Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	signer, err := issuer.New(t.Context(), issuer.Options{
		URL: site, Store: store, Runs: l, Times: issuer.Times{Token: lifetime, Rotate: 90 * 24 * time.Hour, Announce: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.party = relyingparty.New(t, site, signer)
	run := holdfast.Run{ID: "run-1", Cluster: "prod-eu", Kind: holdfast.RunPlan}
	run.Document.Project, run.Document.Environment, run.Attempt, run.Fence = "payments", "production", 1, 7
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.asked.Add(1)
		var req protocol.TokenRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.Fence != 7 || r.URL.Path != "/agent/v1/runs/run-1/attempts/1/tokens" ||
			r.Header.Get("Authorization") != "Bearer of the run" {
			t.Errorf("%s %s %+v: %v", r.Method, r.URL, req, err)
		}
		token, err := signer.Issue(r.Context(), run, req.Audience)
		status := int(l.answer.Load())
		if err != nil {
			status = http.StatusForbidden
		}
		if status != 0 {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": "refused"})
			return
		}
		_ = json.NewEncoder(w).Encode(token)
	}))
	t.Cleanup(server.Close)
	l.openSession(server.URL, run)
	return l
}

func (l *lab) openSession(server string, run holdfast.Run) {
	l.Helper()
	client, err := uplink.NewClient(server, uplink.Token("of the agent"), "")
	if err != nil {
		l.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	folder := &uplink.Folder{Dir: l.TempDir(), Process: "p", Client: client, Logger: logger, Now: time.Now}
	if err := folder.Make(); err != nil {
		l.Fatal(err)
	}
	l.session, err = folder.Open(uplink.Claimed{AttemptRef: run.Ref(), Token: "of the run", Kind: run.Kind, Lease: time.Minute}, logger)
	if err != nil {
		l.Fatal(err)
	}
	endpoint, err := uplink.NewStateEndpoint(logger)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(endpoint.Close)
	endpoint.Admit(l.session)
	l.Cleanup(func() { endpoint.Dismiss(l.session) })
}

func (l *lab) options() idtoken.Options {
	return idtoken.Options{
		Identities: l.of, Source: l.session, Redact: l.secrets.add,
		Files: idtoken.Files{
			Dir: l.dir, Show: func(file *os.File) error { return file.Chmod(0o400) },
			Seen: func(path string) string { return path },
		},
		Say:    func(format string, args ...any) { l.said.add(fmt.Sprintf(format, args...)) },
		Logger: slog.New(slog.DiscardHandler),
	}
}

// open returns the environment that an engine gets.
func (l *lab) open() (*idtoken.Keeper, map[string]string) {
	l.Helper()
	k, err := idtoken.Open(l.Context(), l.options())
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { k.Close(context.Background()) })
	env := make(map[string]string)
	k.Environment(env, l.options().Files.Seen)
	return k, env
}

// setenv makes the test's process an engine's.
func setenv(t *testing.T, env map[string]string) {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
}

func (l *lab) read(path string) string {
	l.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		l.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o400 {
		l.Errorf("%s has mode %v, want 0400", path, info.Mode())
	}
	return string(data)
}

func ofAWS() protocol.Identities {
	return protocol.Identities{AWS: &protocol.AWSIdentity{
		RoleARN: planRole, SessionName: "holdfast-payments-production-plan", Region: "eu-central-1", Audience: "sts.amazonaws.com",
	}}
}

func TestAWSByItsSDK(t *testing.T) {
	for name, test := range map[string]struct {
		trust, want string
	}{
		"a role that trusts plans":   {planner, planRole + " holdfast-payments-production-plan 3600"},
		"a role that trusts applies": {"holdfast:payments:production:apply", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, ofAWS(), time.Hour)
			sts := &relyingparty.AWS{Party: l.party, Trust: map[string]string{planRole: test.trust}}
			server := httptest.NewServer(sts)
			defer server.Close()
			_, env := l.open()
			setenv(t, env)
			t.Setenv("AWS_ENDPOINT_URL_STS", server.URL)
			t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			t.Setenv("HOME", t.TempDir())
			cfg, err := config.LoadDefaultConfig(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			credentials, err := cfg.Credentials.Retrieve(t.Context())
			if got := strings.Join(sts.Sessions(), "\n"); got != test.want || (err == nil) != (test.want != "") {
				t.Fatalf("sessions = %q, %v, want %q", got, err, test.want)
			}
			if err == nil && credentials.SessionToken != "session of "+planner {
				t.Errorf("session = %q", credentials.SessionToken)
			}
			if cfg.Region != "eu-central-1" {
				t.Errorf("region = %q", cfg.Region)
			}
		})
	}
}

func TestGoogleByItsSDK(t *testing.T) {
	l := newLab(t, protocol.Identities{GCP: &protocol.GCPIdentity{
		Provider: pool, ServiceAccount: "plan@p.iam.gserviceaccount.com", Audience: "https://iam.googleapis.com/" + pool,
	}}, time.Hour)
	stand := &relyingparty.Google{Party: l.party, Provider: pool, Accounts: map[string]string{
		"plan@p.iam.gserviceaccount.com": planner, "apply@p.iam.gserviceaccount.com": "holdfast:payments:production:apply",
	}}
	server := httptest.NewTLSServer(stand)
	defer server.Close()
	_, env := l.open()
	setenv(t, env)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client()
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, &http.Client{Transport: rerouted{to: at.Host, next: client.Transport, hosts: map[string]bool{
		"sts.googleapis.com": true, "iamcredentials.googleapis.com": true,
	}}})
	found, err := google.FindDefaultCredentials(ctx, "https://www.googleapis.com/auth/cloud-platform")
	if err != nil {
		t.Fatal(err)
	}
	token, err := found.TokenSource.Token()
	if err != nil || token.AccessToken != "plan@p.iam.gserviceaccount.com-for-"+planner {
		t.Fatalf("token = %+v, %v", token, err)
	}
	other := strings.Replace(string(found.JSON), "plan@p", "apply@p", 1)
	refused, err := google.CredentialsFromJSON(ctx, []byte(other), "https://www.googleapis.com/auth/cloud-platform")
	if err != nil {
		t.Fatal(err)
	}
	if token, err := refused.TokenSource.Token(); err == nil {
		t.Errorf("a plan is the service account of applies: %+v", token)
	}
}

// rerouted sends what is for some hosts to another one.
type rerouted struct {
	hosts map[string]bool
	to    string
	next  http.RoundTripper
}

func (r rerouted) RoundTrip(req *http.Request) (*http.Response, error) {
	if !r.hosts[req.URL.Host] {
		return nil, fmt.Errorf("unexpected host %s", req.URL.Host)
	}
	req = req.Clone(req.Context())
	req.URL.Host = r.to
	return r.next.RoundTrip(req)
}

const (
	tenant   = "11111111-1111-1111-1111-111111111111"
	clientID = "22222222-2222-2222-2222-222222222222"
)

func ofAzure() protocol.Identities {
	return protocol.Identities{Azure: &protocol.AzureIdentity{
		TenantID: tenant, ClientID: clientID, SubscriptionID: "33333333-3333-3333-3333-333333333333", Audience: "api://AzureADTokenExchange",
	}}
}

func TestAzureByItsSDK(t *testing.T) {
	l := newLab(t, ofAzure(), time.Hour)
	stand := &relyingparty.Azure{Party: l.party, Tenant: tenant, Apps: map[string]string{clientID: planner}}
	server := httptest.NewTLSServer(stand)
	defer server.Close()
	stand.Base = server.URL
	_, env := l.open()
	setenv(t, env)
	credential, err := azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
		DisableInstanceDiscovery: true,
		ClientOptions: azcore.ClientOptions{
			Cloud: cloud.Configuration{ActiveDirectoryAuthorityHost: server.URL}, Transport: server.Client(),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	token, err := credential.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{"https://management.azure.com/.default"}})
	if err != nil || token.Token != "access of "+planner {
		t.Fatalf("token = %+v, %v", token, err)
	}
}

// askAsAzurerm asks as hashicorp/go-azure-sdk does for ARM_OIDC_REQUEST_URL: it adds its audience
// if the address has none.
func askAsAzurerm(ctx context.Context, address, credential string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	if query := req.URL.Query(); query.Get("audience") == "" {
		query.Set("audience", "api://AzureADTokenExchange")
		req.URL.RawQuery = query.Encode()
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Authorization", "Bearer "+credential)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := ownclient.Client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, "", err
	}
	var answer struct {
		Count *int    `json:"count"`
		Value *string `json:"value"`
	}
	if res.StatusCode/100 != 2 {
		return res.StatusCode, string(body), nil
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Value == nil {
		return 0, "", fmt.Errorf("answer %s: %w", body, errors.Join(err, errors.New("no value")))
	}
	return res.StatusCode, *answer.Value, nil
}

func TestAzureAsAzurermAsks(t *testing.T) {
	t.Parallel()
	l := newLab(t, ofAzure(), time.Hour)
	k, env := l.open()
	address, credential := env["ARM_OIDC_REQUEST_URL"], env["ARM_OIDC_REQUEST_TOKEN"]
	for name, want := range map[string]string{"ARM_USE_OIDC": "true", "ARM_TENANT_ID": tenant, "ARM_CLIENT_ID": clientID, "ARM_SUBSCRIPTION_ID": "33333333-3333-3333-3333-333333333333"} {
		if env[name] != want {
			t.Errorf("%s = %q, want %q", name, env[name], want)
		}
	}
	bare, _, _ := strings.Cut(address, "?")
	for name, ask := range map[string]struct {
		address, credential string
		want                int
	}{
		"as it is":           {address, credential, 200},
		"without audience":   {bare, credential, 200},
		"another audience":   {bare + "?audience=sts.amazonaws.com", credential, 403},
		"another credential": {address, credential + "x", 401},
		"another attempt":    {address, strings.Replace(credential, "run-1-1", "run-2-1", 1), 401},
		"no credential":      {address, "", 401},
		"the state's":        {strings.Replace(bare, "/token", "/state", 1), credential, 401},
	} {
		status, token, err := askAsAzurerm(t.Context(), ask.address, ask.credential)
		if err != nil || status != ask.want {
			t.Errorf("%s: %d %s %v, want %d", name, status, token, err, ask.want)
			continue
		}
		if status != http.StatusOK {
			continue
		}
		if got, err := l.party.Verify(t.Context(), "api://AzureADTokenExchange", token); err != nil || got.Subject() != planner {
			t.Errorf("%s: token of %q, %v", name, got.Subject(), err)
		}
	}
	if !strings.Contains(l.secrets.String(), credential) {
		t.Error("the credential of the address is not redacted")
	}
	k.Close(t.Context())
}

func ofVault() protocol.Identities {
	return protocol.Identities{Vault: &protocol.VaultIdentity{Role: "plan", Mount: "jwt", Namespace: "team", Audience: "https://vault.example.com"}}
}

func TestVault(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		subject   string
		renewable bool
		wantCause holdfast.Reason
		wantSaid  string
	}{
		"renewed":        {subject: planner, renewable: true},
		"not renewable":  {subject: planner, wantSaid: "cannot be renewed"},
		"role of others": {subject: "holdfast:payments:production:apply", wantCause: holdfast.CauseSecretUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, ofVault(), time.Hour)
			vault := &relyingparty.Vault{
				Party: l.party, Namespace: "team", Mount: "jwt", Audience: "https://vault.example.com",
				Roles: map[string]string{"plan": test.subject}, Lease: 2, Renewable: test.renewable,
			}
			server := httptest.NewServer(vault)
			defer server.Close()
			l.of.Vault.Address = server.URL
			k, err := idtoken.Open(t.Context(), l.options())
			if test.wantCause != "" {
				var failed *failure.Error
				if !errors.As(err, &failed) || failed.Cause != test.wantCause || failed.Transient || len(vault.Living()) != 0 {
					t.Errorf("Open() = %v", err)
				}
				return
			} else if err != nil {
				t.Fatal(err)
			}
			env := make(map[string]string)
			k.Environment(env, l.options().Files.Seen)
			token := env["VAULT_TOKEN"]
			if env["VAULT_ADDR"] != server.URL || env["VAULT_NAMESPACE"] != "team" || !strings.Contains(l.secrets.String(), token) || token == "" {
				t.Errorf("environment = %v", env)
			}
			if test.renewable {
				eventually(t, "a renewal", func() bool { return vault.Living()[token] > 0 })
			}
			k.Close(t.Context())
			if got := vault.Ended(); len(got) != 1 || got[0] != token || !strings.Contains(l.said.String(), test.wantSaid) {
				t.Errorf("ended = %v, said %q, want %q", got, l.said.String(), test.wantSaid)
			}
		})
	}
}

// eventually waits for something that is sure to come.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for !is() {
		select {
		case <-t.Context().Done():
			t.Fatalf("waited for %s in vain", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestTokensAreRenewedAtHalfLife(t *testing.T) {
	t.Parallel()
	l := newLab(t, ofAWS(), 2*time.Second)
	k, env := l.open()
	file := env["AWS_WEB_IDENTITY_TOKEN_FILE"]
	first := l.read(file)
	eventually(t, "another token", func() bool { return l.read(file) != first })
	second := l.read(file)
	if _, err := l.party.Verify(t.Context(), "sts.amazonaws.com", second); err != nil {
		t.Error(err)
	}
	if secrets := l.secrets.String(); !strings.Contains(secrets, first) || !strings.Contains(secrets, second) {
		t.Error("a token is not redacted")
	}
	k.Close(t.Context())
	asked := l.asked.Load()
	if entries, err := os.ReadDir(l.dir); err != nil || len(entries) != 0 {
		t.Errorf("files after the end: %v, %v", entries, err)
	}
	if l.asked.Load() != asked {
		t.Error("a token was asked for after the end")
	}
}

// TestTokensWhileTheServerIsAway: what is there stays, and is renewed when the server is back.
func TestTokensWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	l := newLab(t, ofAWS(), 2*time.Second)
	_, env := l.open()
	file := env["AWS_WEB_IDENTITY_TOKEN_FILE"]
	first := l.read(file)
	l.answer.Store(http.StatusServiceUnavailable)
	asked := l.asked.Load()
	eventually(t, "a renewal in vain", func() bool { return l.asked.Load() > asked+1 })
	if l.read(file) != first {
		t.Error("the token went with the server")
	}
	l.answer.Store(0)
	eventually(t, "another token", func() bool { return l.read(file) != first })
}

// TestARenewalThatIsRefused: a server that was started for a moment without what it needs for it
// does not cost a long apply its token.
func TestARenewalThatIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, ofAWS(), 2*time.Second)
	_, env := l.open()
	file := env["AWS_WEB_IDENTITY_TOKEN_FILE"]
	first := l.read(file)
	l.answer.Store(http.StatusNotFound)
	eventually(t, "a word of it", func() bool { return strings.Contains(l.said.String(), "was not renewed") })
	l.answer.Store(0)
	eventually(t, "another token", func() bool { return l.read(file) != first })
	if said := l.said.String(); strings.Count(said, "not renewed") != 1 {
		t.Errorf("said %q", said)
	}
}

func TestAFencedRunGetsNoMoreTokens(t *testing.T) {
	t.Parallel()
	l := newLab(t, ofAWS(), 2*time.Second)
	k, _ := l.open()
	l.answer.Store(http.StatusConflict)
	asked := l.asked.Load()
	eventually(t, "a refusal", func() bool { return l.asked.Load() > asked })
	k.Close(t.Context()) // returns: the renewal has ended
	if l.said.String() != "" {
		t.Errorf("said %q", l.said.String())
	}
}

func TestARefusedToken(t *testing.T) {
	t.Parallel()
	l := newLab(t, ofAWS(), time.Hour)
	opts := l.options()
	opts.Identities.AWS = &protocol.AWSIdentity{Audience: "https://not.configured.example.com"}
	_, err := idtoken.Open(t.Context(), opts)
	var failed *failure.Error
	if !errors.As(err, &failed) || failed.Cause != holdfast.CauseSecretUnavailable || failed.Transient {
		t.Errorf("Open() = %v, want SecretUnavailable for good", err)
	}
	if entries, err := os.ReadDir(l.dir); err != nil || len(entries) != 0 {
		t.Errorf("files: %v, %v", entries, err)
	}
}

// TestSeenPaths: the engine has the folder elsewhere.
func TestSeenPaths(t *testing.T) {
	t.Parallel()
	of := ofAWS()
	of.GCP = &protocol.GCPIdentity{Provider: pool, Audience: "https://iam.googleapis.com/" + pool}
	l := newLab(t, of, time.Hour)
	opts := l.options()
	opts.Files.Seen = func(path string) string { return "/identity/" + filepath.Base(path) }
	k, err := idtoken.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close(t.Context())
	env := make(map[string]string)
	k.Environment(env, opts.Files.Seen)
	for name, want := range map[string]string{
		"AWS_WEB_IDENTITY_TOKEN_FILE":    "/identity/aws.token",
		"GOOGLE_APPLICATION_CREDENTIALS": "/identity/gcp.json",
	} {
		if env[name] != want {
			t.Errorf("%s = %q, want %q", name, env[name], want)
		}
	}
	if data := l.read(filepath.Join(l.dir, "gcp.json")); !bytes.Contains([]byte(data), []byte(`"file":"/identity/gcp.token"`)) || strings.Contains(data, "impersonation") {
		t.Errorf("gcp.json = %s", data)
	}
}
