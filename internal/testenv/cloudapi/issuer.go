package cloudapi

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/relyingparty"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server/issuer"
	"github.com/holdfast-dev/holdfast/server/issuer/claims"
)

// Site is the URL of the issuer.
const Site = "https://holdfast.example.com"

// Issuer is Holdfast's issuer, with its keys in memory, and who trusts it.
type Issuer struct {
	*issuer.Issuer
	Party *relyingparty.Party
}

// NewIssuer returns one that lasts for a test.
func NewIssuer(t testing.TB) Issuer {
	t.Helper()
	i, err := issuer.New(t.Context(), issuer.Options{
		URL: Site, Store: &keys{}, Runs: noRuns{}, Times: issuer.Times{Token: time.Hour, Rotate: 90 * 24 * time.Hour, Announce: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	return Issuer{i, relyingparty.New(t, Site, i)}
}

// Token makes tokens of a runner.
func (i Issuer) Token(runner string) func(ctx context.Context, audience string) (string, error) {
	return func(ctx context.Context, audience string) (string, error) {
		token, err := i.IssueRunner(ctx, claims.Origin{Repository: "acme/platform", Ref: "refs/heads/main", Runner: runner}, audience)
		return token.Token, err
	}
}

// keys are what an issuer has on record.
type keys struct {
	mu     sync.Mutex
	record holdfast.Issuer
}

func (k *keys) Issuer(context.Context) (holdfast.Issuer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	record := k.record
	record.Now, record.Keys = time.Now(), append([]holdfast.IssuerKey(nil), k.record.Keys...)
	return record, nil
}

func (k *keys) SaveIssuer(_ context.Context, _, is holdfast.Issuer) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	is.Keys = k.record.Keys
	k.record = is
	return nil
}

func (k *keys) AddIssuerKey(_ context.Context, key holdfast.IssuerKey) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.record.Keys = append(k.record.Keys, key)
	return nil
}

func (k *keys) RemoveIssuerKey(context.Context, int64) error { return nil }

// noRuns has no tokens for runs.
type noRuns struct{}

func (noRuns) Identities(holdfast.Cluster, holdfast.RunKind) (protocol.Identities, error) {
	return protocol.Identities{}, nil
}

func (noRuns) Origin(holdfast.Run) claims.Origin { return claims.Origin{} }
