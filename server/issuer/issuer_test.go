package issuer_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/internal/testenv/relyingparty"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server/issuer"
	"github.com/holdfast-dev/holdfast/server/issuer/claims"
)

const (
	site = "https://holdfast.example.com"
	day  = 24 * time.Hour
)

// clock is that of the records.
type clock struct{ now atomic.Int64 }

func (c *clock) time() time.Time         { return time.Unix(0, c.now.Load()) }
func (c *clock) advance(d time.Duration) { c.now.Add(int64(d)) }

func newClock() *clock {
	c := &clock{}
	c.now.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func openStore(t *testing.T, c *clock) *datastore.Store {
	t.Helper()
	keys, err := seal.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := datastore.Open(t.Context(), datastore.Options{
		Path: filepath.Join(t.TempDir(), "holdfast.db"), Keys: keys, Now: c.time,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// awsRuns may have tokens for AWS: each phase.
type awsRuns struct{ tags bool }

func (r awsRuns) Identities(_ holdfast.Cluster, kind holdfast.RunKind) (protocol.Identities, error) {
	return protocol.Identities{AWS: &protocol.AWSIdentity{
		RoleARN: "arn:" + claims.PhaseOf(kind), Audience: "sts.amazonaws.com", SessionTags: r.tags,
	}}, nil
}

func (awsRuns) Origin(holdfast.Run) claims.Origin {
	return claims.Origin{Repository: "acme/clusters", Ref: "refs/heads/main", Runner: "local"}
}

func options(store issuer.Store) issuer.Options {
	return issuer.Options{
		URL: site, Store: store, Runs: awsRuns{},
		Times: issuer.Times{Token: time.Hour, Rotate: 90 * day, Announce: 7 * day},
	}
}

func newIssuer(t *testing.T, opts issuer.Options) *issuer.Issuer {
	t.Helper()
	i, err := issuer.New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func planOf(project string) holdfast.Run {
	run := holdfast.Run{ID: "run-1", Cluster: "prod-eu", Kind: holdfast.RunPlan}
	run.Document.Project, run.Document.Environment, run.Attempt = project, "production", 1
	return run
}

func issue(t *testing.T, i *issuer.Issuer, run holdfast.Run) string {
	t.Helper()
	token, err := i.Issue(t.Context(), run, "sts.amazonaws.com")
	if err != nil {
		t.Fatal(err)
	}
	return token.Token
}

// A token of the server itself has every claim that mappings may name, and the subject of its
// runner; it is put on record as others are.
func TestTokenOfARunner(t *testing.T) {
	t.Parallel()
	c := newClock()
	opts := options(openStore(t, c))
	var issued []issuer.Issued
	opts.Issued = func(_ context.Context, token issuer.Issued) { issued = append(issued, token) }
	i := newIssuer(t, opts)
	party := relyingparty.New(t, site, i)
	party.Now = c.time
	const audience = "https://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x"
	token, err := i.IssueRunner(t.Context(), claims.Origin{Repository: "acme/platform", Ref: "refs/heads/main", Runner: "eu"}, audience)
	if err != nil {
		t.Fatal(err)
	}
	got, err := party.Verify(t.Context(), audience, token.Token)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"sub": "holdfast:runner:eu", "phase": "runner", "runner": "eu", "repository": "acme/platform", "project": "", "environment": "",
		"cluster": "", "run": "", "attempt": float64(0),
	} {
		if is, there := got[name]; !there || is != want {
			t.Errorf("claim %s = %v, want %v", name, is, want)
		}
	}
	if len(issued) != 1 || issued[0].Kind != "runner" {
		t.Errorf("issued were %+v", issued)
	}
}

func TestTokensAreVerifiedByDiscovery(t *testing.T) {
	t.Parallel()
	c := newClock()
	opts := options(openStore(t, c))
	opts.Runs = awsRuns{tags: true}
	var issued []issuer.Issued
	opts.Issued = func(_ context.Context, token issuer.Issued) { issued = append(issued, token) }
	i := newIssuer(t, opts)
	party := relyingparty.New(t, site, i)
	party.Now = c.time
	token := issue(t, i, planOf("payments"))
	got, err := party.Verify(t.Context(), "sts.amazonaws.com", token)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"sub": "holdfast:payments:production:plan", "phase": "plan", "cluster": "prod-eu", "repository": "acme/clusters",
		"ref": "refs/heads/main", "runner": "local", "run": "run-1", "attempt": float64(1), "iss": site,
	} {
		if got[name] != want {
			t.Errorf("claim %s = %v, want %v", name, got[name], want)
		}
	}
	if tags, _ := json.Marshal(got["https://aws.amazon.com/tags"]); !strings.Contains(string(tags), `"holdfast:phase":["plan"]`) {
		t.Errorf("session tags = %s", tags)
	}
	for name, verify := range map[string]func() (relyingparty.Claims, error){
		"another audience": func() (relyingparty.Claims, error) { return party.Verify(t.Context(), "https://vault", token) },
		"a changed claim": func() (relyingparty.Claims, error) {
			parts := strings.Split(token, ".")
			other := strings.Split(issue(t, i, planOf("billing")), ".")
			return party.Verify(t.Context(), "sts.amazonaws.com", parts[0]+"."+other[1]+"."+parts[2])
		},
		"its end": func() (relyingparty.Claims, error) {
			late := relyingparty.New(t, site, i)
			late.Now = func() time.Time { return c.time().Add(time.Hour + time.Second) }
			return late.Verify(t.Context(), "sts.amazonaws.com", token)
		},
	} {
		if _, err := verify(); err == nil {
			t.Errorf("token with %s was verified", name)
		}
	}
	if len(issued) != 2 || issued[0].Kind != "aws" || issued[0].Subject != "holdfast:payments:production:plan" || issued[0].ID != got["jti"] {
		t.Errorf("issued = %+v", issued)
	}
}

func TestPhaseIsThatOfTheRecord(t *testing.T) {
	t.Parallel()
	c := newClock()
	i := newIssuer(t, options(openStore(t, c)))
	party := relyingparty.New(t, site, i)
	party.Now = c.time
	for kind, want := range map[holdfast.RunKind]string{
		holdfast.RunDrift: "holdfast:payments:production:plan", holdfast.RunDestroy: "holdfast:payments:production:apply",
	} {
		run := planOf("payments")
		run.Kind = kind
		got, err := party.Verify(t.Context(), "sts.amazonaws.com", issue(t, i, run))
		if err != nil || got.Subject() != want {
			t.Errorf("%s: subject = %q, %v, want %q", kind, got.Subject(), err, want)
		}
	}
}

func TestOtherAudiencesAreRefused(t *testing.T) {
	t.Parallel()
	opts := options(openStore(t, newClock()))
	var refused []string
	opts.Refused = func(why string) { refused = append(refused, why) }
	i := newIssuer(t, opts)
	for _, audience := range []string{"", "https://other.example.com", "sts.amazonaws.com "} {
		if _, err := i.Issue(t.Context(), planOf("payments"), audience); !errors.Is(err, holdfast.ErrForbidden) {
			t.Errorf("Issue(%q) = %v, want ErrForbidden", audience, err)
		}
	}
	if diff := cmp.Diff([]string{"audience", "audience", "audience"}, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

// get returns a document and its head.
func get(t *testing.T, i *issuer.Issuer, path string) (string, http.Header) {
	t.Helper()
	rec := httptest.NewRecorder()
	i.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	if rec.Code != http.StatusOK {
		t.Fatalf("GET %s = %d %s", path, rec.Code, rec.Body)
	}
	return rec.Body.String(), rec.Header()
}

// kids are the names of the published keys.
func kids(t *testing.T, i *issuer.Issuer) (names []string) {
	t.Helper()
	body, _ := get(t, i, "/.well-known/jwks.json")
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal([]byte(body), &set); err != nil {
		t.Fatal(err)
	}
	for _, key := range set.Keys {
		if key["kty"] != "RSA" || key["alg"] != "RS256" || key["use"] != "sig" || key["n"] == "" || key["e"] != "AQAB" || len(key) != 6 {
			t.Errorf("key = %v", key)
		}
		names = append(names, key["kid"])
	}
	return names
}

func kidOf(t *testing.T, token string) string {
	t.Helper()
	var head struct{ Kid string }
	decodePart(t, token, 0, &head)
	return head.Kid
}

func TestKeysRotateWhileTokensLive(t *testing.T) {
	t.Parallel()
	c := newClock()
	store := openStore(t, c)
	a, b := newIssuer(t, options(store)), newIssuer(t, options(store))
	party := relyingparty.New(t, site, b) // tokens of one replica, keys of the other
	party.Now = c.time
	refresh := func() {
		t.Helper()
		for _, i := range []*issuer.Issuer{a, b} {
			if err := i.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(kids(t, a), kids(t, b)); diff != "" {
			t.Errorf("replicas have other keys (-a +b):\n%s", diff)
		}
	}
	refresh()
	first := kids(t, a)
	if len(first) != 1 {
		t.Fatalf("keys = %v, want one", first)
	}
	c.advance(90*day - 7*day - time.Second)
	refresh()
	if got := kids(t, a); len(got) != 1 {
		t.Errorf("keys before the next is to be announced = %v, want one", got)
	}
	c.advance(2 * time.Second)
	refresh()
	both := kids(t, a)
	if len(both) != 2 || both[0] != first[0] {
		t.Fatalf("keys once the next is announced = %v", both)
	}
	c.advance(7*day - time.Minute)
	refresh()
	old := issue(t, a, planOf("payments"))
	if kidOf(t, old) != both[0] {
		t.Error("a key has signed before its time")
	}
	c.advance(2 * time.Minute)
	refresh()
	fresh := issue(t, a, planOf("payments"))
	if kidOf(t, fresh) != both[1] {
		t.Error("the next key does not sign when it is its time")
	}
	for name, token := range map[string]string{"of before": old, "of after": fresh} {
		if _, err := party.Verify(t.Context(), "sts.amazonaws.com", token); err != nil {
			t.Errorf("token %s the rotation: %v", name, err)
		}
	}
	c.advance(day)
	refresh()
	if got := kids(t, a); len(got) != 2 {
		t.Errorf("keys a day after the rotation = %v: the former one may be in use", got)
	}
	c.advance(2 * time.Hour)
	refresh() // drops it
	refresh()
	if diff := cmp.Diff(both[1:], kids(t, b)); diff != "" {
		t.Errorf("keys after the last token of the former one has ended (-want +got):\n%s", diff)
	}
}

// TestALateKeyIsAnnouncedToo: a server that was down when a key was to be announced announces it for the
// whole time all the same.
func TestALateKeyIsAnnouncedToo(t *testing.T) {
	t.Parallel()
	c := newClock()
	store := openStore(t, c)
	i := newIssuer(t, options(store))
	first := kids(t, i)
	c.advance(200 * day)
	if err := i.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if token := issue(t, i, planOf("payments")); kidOf(t, token) != first[0] || len(kids(t, i)) != 2 {
		t.Error("a key signs that nobody can have read")
	}
}

func TestKeysAreMadeOnce(t *testing.T) {
	t.Parallel()
	store := openStore(t, newClock())
	issuers := make([]*issuer.Issuer, 6)
	var starts sync.WaitGroup
	for n := range issuers {
		starts.Go(func() {
			var err error
			if issuers[n], err = issuer.New(t.Context(), options(store)); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	if t.Failed() {
		return
	}
	want := kids(t, issuers[0])
	for _, i := range issuers {
		if diff := cmp.Diff(want, kids(t, i)); diff != "" || len(want) != 1 {
			t.Errorf("keys of replicas that start at once differ:\n%s", diff)
		}
	}
}

// brokenStore fails while it is broken.
type brokenStore struct {
	issuer.Store
	broken atomic.Bool
}

func (s *brokenStore) Issuer(ctx context.Context) (holdfast.Issuer, error) {
	if s.broken.Load() {
		return holdfast.Issuer{}, holdfast.ErrUnavailable
	}
	return s.Store.Issuer(ctx)
}

func TestDocumentsAreServedWithoutDatabase(t *testing.T) {
	t.Parallel()
	c := newClock()
	store := &brokenStore{Store: openStore(t, c)}
	i := newIssuer(t, options(store))
	issue(t, i, planOf("payments"))
	before, _ := get(t, i, "/.well-known/jwks.json")
	store.broken.Store(true)
	if err := i.Refresh(t.Context()); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Refresh() = %v, want ErrUnavailable", err)
	}
	after, head := get(t, i, "/.well-known/jwks.json")
	if before != after || head.Get("Cache-Control") != "public, max-age=900" || head.Get("Content-Type") != "application/json" {
		t.Errorf("keys = %s with %v, want %s", after, head, before)
	}
	issue(t, i, planOf("payments"))
	for path, want := range map[string]int{"/.well-known/other": 404, "/": 404} {
		rec := httptest.NewRecorder()
		if i.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)); rec.Code != want {
			t.Errorf("GET %s = %d, want %d", path, rec.Code, want)
		}
	}
	rec := httptest.NewRecorder()
	if i.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, i.Paths()[0], http.NoBody)); rec.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST = %d, want 405", rec.Code)
	}
}

func TestURLStays(t *testing.T) {
	t.Parallel()
	store := openStore(t, newClock())
	other := options(store)
	other.URL = "https://typo.example.com"
	newIssuer(t, other) // no token was issued
	i := newIssuer(t, options(store))
	issue(t, i, planOf("payments"))

	moved := options(store)
	moved.URL = "https://new.example.com/holdfast"
	var refusal *issuer.MovedError
	if _, err := issuer.New(t.Context(), moved); !errors.As(err, &refusal) || refusal.Recorded != site {
		t.Fatalf("New() with another URL = %v, want a MovedError", err)
	}
	moved.Replaces = other.URL
	if _, err := issuer.New(t.Context(), moved); !errors.As(err, &refusal) {
		t.Fatalf("New() that replaces another URL = %v, want a MovedError", err)
	}
	moved.Replaces = site
	after := newIssuer(t, moved)
	if diff := cmp.Diff([]string{"/holdfast/.well-known/openid-configuration", "/holdfast/.well-known/jwks.json"}, after.Paths()); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	party := relyingparty.New(t, moved.URL, after)
	party.Now = newClock().time
	if _, err := party.Verify(t.Context(), "sts.amazonaws.com", issue(t, after, planOf("payments"))); err != nil {
		t.Errorf("token of the new URL: %v", err)
	}
	// A replica that still has the former one, and has issued nothing yet, must not
	// continue.
	if _, err := issuer.New(t.Context(), options(store)); !errors.As(err, &refusal) {
		t.Errorf("New() with the former URL = %v, want a MovedError", err)
	}
}

// TestAReplicaWithAnotherURL does not issue what the record does not say.
func TestAReplicaWithAnotherURL(t *testing.T) {
	t.Parallel()
	store := openStore(t, newClock())
	a := newIssuer(t, options(store))
	other := options(store)
	other.URL = "https://other.example.com"
	b := newIssuer(t, other)
	var refusal *issuer.MovedError
	if _, err := a.Issue(t.Context(), planOf("payments"), "sts.amazonaws.com"); !errors.As(err, &refusal) {
		t.Errorf("Issue() after another replica has changed the URL = %v, want a MovedError", err)
	}
	issue(t, b, planOf("payments"))
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for url, good := range map[string]bool{
		site: true, "https://example.com/a/b": true, "": false, "http://example.com": false, "https://": false,
		"https://example.com:8443": false, "https://example.com:": false, "https://example.com/": false, "https://example.com/a/": false,
		"https://u@example.com": false, "https://example.com?a=b": false, "https://example.com?": false, "https://example.com#": false,
		"https://Example.com": false, "https://example.com/a//b": false, "https://example.com/%61": false, "HTTPS://example.com": false,
	} {
		if err := issuer.CheckURL(url); (err == nil) != good {
			t.Errorf("CheckURL(%q) = %v", url, err)
		}
	}
}

func decodePart(t *testing.T, token string, part int, into any) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("token has %d parts", len(parts))
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[part])
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("part %d: %w", part, err))
	}
}
