package relyingparty

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// AWS is the part of STS that needs no credential. Its trust is by audience and subject alone.
type AWS struct {
	*Party
	Trust map[string]string // subjects by role ARN
	Life  time.Duration     // of each session; zero: as it was asked for

	mu       sync.Mutex
	sessions []string // durations and names of sessions
	living   map[string]Session
}

// Session is a role that was assumed.
type Session struct {
	Role, Name    string
	Secret, Token string
	Expires       time.Time
}

// Session returns the session of an access key.
func (a *AWS) Session(accessKey string) (Session, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.living[accessKey]
	return s, ok
}

var awsSession = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)

// Sessions returns "ROLE SESSION SECONDS" of each session.
func (a *AWS) Sessions() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.sessions)
}

func (a *AWS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fail := func(status int, code, text string) {
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>`, code, text)
	}
	f, ok := form(w, r, "Action", "Version", "RoleArn", "RoleSessionName", "WebIdentityToken")
	if !ok {
		return
	}
	seconds := 3600
	if text := f.Get("DurationSeconds"); text != "" {
		seconds, _ = strconv.Atoi(text)
	}
	if f.Get("Action") != "AssumeRoleWithWebIdentity" || f.Get("Version") != "2011-06-15" ||
		!awsSession.MatchString(f.Get("RoleSessionName")) || seconds < 900 || seconds > 43200 {
		fail(http.StatusBadRequest, "ValidationError", "not valid")
		return
	}
	claims, err := a.Verify(r.Context(), "sts.amazonaws.com", f.Get("WebIdentityToken"))
	switch {
	case err != nil:
		fail(http.StatusBadRequest, "InvalidIdentityToken", "token")
		return
	case a.Trust[f.Get("RoleArn")] != claims.Subject():
		fail(http.StatusForbidden, "AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity")
		return
	}
	life := time.Duration(seconds) * time.Second
	if a.Life > 0 {
		life = a.Life
	}
	key, session := "ASIA"+rand.Text()[:16], Session{
		Role: f.Get("RoleArn"), Name: f.Get("RoleSessionName"), Secret: rand.Text(), Token: "session of " + claims.Subject(), Expires: time.Now().Add(life),
	}
	a.mu.Lock()
	a.sessions = append(a.sessions, fmt.Sprintf("%s %s %d", session.Role, session.Name, seconds))
	if a.living == nil {
		a.living = map[string]Session{}
	}
	a.living[key] = session
	a.mu.Unlock()
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
<SubjectFromWebIdentityToken>%s</SubjectFromWebIdentityToken><Audience>sts.amazonaws.com</Audience>
<AssumedRoleUser><Arn>%s</Arn><AssumedRoleId>AROA:session</AssumedRoleId></AssumedRoleUser>
<Credentials><SessionToken>%[4]s</SessionToken><SecretAccessKey>%[5]s</SecretAccessKey><Expiration>%[3]s</Expiration><AccessKeyId>%[6]s</AccessKeyId></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
		claims.Subject(), session.Role, session.Expires.UTC().Format(time.RFC3339), session.Token, session.Secret, key)
}

// Google is its token service and the part of IAM that impersonates. Access is granted to
// subjects.
type Google struct {
	*Party
	Provider string // projects/N/locations/global/workloadIdentityPools/P/providers/X
	// Accounts are the subjects that may be a service account.
	Accounts map[string]string
	Life     time.Duration // of each token; zero: an hour

	mu     sync.Mutex
	tokens map[string]grant
	count  map[string]int // of tokens, by whom they are of
}

// grant is whom a token is of.
type grant struct {
	principal string
	expires   time.Time
}

const federated = "federated-"

// grant makes a token.
func (g *Google) grant(text, principal string) (token string, life time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tokens == nil {
		g.tokens, g.count = map[string]grant{}, map[string]int{}
	}
	if life = g.Life; life == 0 {
		life = time.Hour
	}
	if g.count[text]++; g.count[text] > 1 {
		text += fmt.Sprintf("-%d", g.count[text])
	}
	g.tokens[text] = grant{principal, time.Now().Add(life)}
	return text, life
}

// Principal is whom a token is of that has not ended: a service account, or a subject.
func (g *Google) Principal(token string) (string, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of, ok := g.tokens[token]
	return of.principal, ok && time.Now().Before(of.expires)
}

// Tokens is how many tokens were made.
func (g *Google) Tokens() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.tokens)
}

// Revoke ends all tokens.
func (g *Google) Revoke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.tokens)
}

func (g *Google) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/v1/token" {
		g.exchange(w, r)
		return
	}
	account, ok := strings.CutPrefix(r.URL.Path, "/v1/projects/-/serviceAccounts/")
	account, generates := strings.CutSuffix(account, ":generateAccessToken")
	subject, is := g.Principal(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	switch {
	case !ok || !generates || r.Method != http.MethodPost:
		http.Error(w, `{"error":{"code":404}}`, http.StatusNotFound)
	case !is || g.Accounts[account] != subject:
		http.Error(w, `{"error":{"code":403,"status":"PERMISSION_DENIED"}}`, http.StatusForbidden)
	default:
		token, life := g.grant(account+"-for-"+subject, account)
		_ = json.NewEncoder(w).Encode(map[string]string{"accessToken": token, "expireTime": time.Now().Add(life).UTC().Format(time.RFC3339)})
	}
}

func (g *Google) exchange(w http.ResponseWriter, r *http.Request) {
	f, ok := form(w, r, "grant_type", "audience", "subject_token", "subject_token_type", "requested_token_type")
	if !ok {
		return
	}
	for name, want := range map[string]string{
		"grant_type":           "urn:ietf:params:oauth:grant-type:token-exchange",
		"audience":             "//iam.googleapis.com/" + g.Provider,
		"subject_token_type":   "urn:ietf:params:oauth:token-type:jwt",
		"requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
	} {
		if f.Get(name) != want {
			http.Error(w, fmt.Sprintf(`{"error":"invalid_request","error_description":"%s"}`, name), http.StatusBadRequest)
			return
		}
	}
	claims, err := g.Verify(r.Context(), "https://iam.googleapis.com/"+g.Provider, f.Get("subject_token"))
	if err != nil || len(claims.Subject()) > 127 {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	token, life := g.grant(federated+claims.Subject(), claims.Subject())
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": token, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
		"token_type": "Bearer", "expires_in": int(life.Seconds()),
	})
}

// Azure is the token endpoint of one tenant. Federated credentials match issuer and subject
// exactly.
type Azure struct {
	*Party
	Tenant string
	Apps   map[string]string // subjects by client id
	Base   string            // where it is served; for discovery
}

func (a *Azure) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	tenant := a.Base + "/" + a.Tenant
	switch r.URL.Path {
	case "/" + a.Tenant + "/v2.0/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]string{
			"issuer": tenant + "/v2.0", "token_endpoint": tenant + "/oauth2/v2.0/token", "authorization_endpoint": tenant + "/oauth2/v2.0/authorize",
		})
		return
	case "/" + a.Tenant + "/oauth2/v2.0/token":
	default:
		http.Error(w, `{"error":"invalid_request"}`, http.StatusNotFound)
		return
	}
	f, ok := form(w, r, "grant_type", "client_id", "client_assertion", "client_assertion_type", "scope")
	if !ok {
		return
	}
	claims, err := a.Verify(r.Context(), "api://AzureADTokenExchange", f.Get("client_assertion"))
	if err != nil || f.Get("grant_type") != "client_credentials" ||
		f.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" || a.Apps[f.Get("client_id")] != claims.Subject() {
		http.Error(w, `{"error":"invalid_client","error_description":"AADSTS70021: No matching federated identity record found"}`, http.StatusUnauthorized)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"token_type": "Bearer", "expires_in": 3600, "ext_expires_in": 3600, "access_token": "access of " + claims.Subject(),
	})
}
