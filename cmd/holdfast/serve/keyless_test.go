package serve

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server/issuer/claims"
)

func parsed(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("holdfast.yaml", "/etc", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

const keylessConfig = `
server: {issuer: {url: "https://holdfast.example.com"}}
forges: [{name: github, token: {env: TOKEN}}]
repositories:
  - {name: clusters, forge: github, repository: acme/clusters, branch: trunk}
credentials:
  - {phase: plan, aws: {roleARN: "arn:aws:iam::123456789012:role/plan", region: eu-central-1}}
  - {phase: apply, aws: {roleARN: "arn:aws:iam::123456789012:role/apply", sessionTags: true}}
  - {project: payments, phase: apply, aws: {roleARN: "arn:aws:iam::123456789012:role/payments", sessionName: us}}
  - {project: payments, vault: {address: "https://vault.example.com/", role: r, mount: /jwt/eu/}}
  - {project: "pay*", environment: "prod*", secrets: {VAULT_TOKEN: {env: NOTHING}}}
`

func TestIdentitiesByPhase(t *testing.T) {
	t.Parallel()
	cfg := parsed(t, keylessConfig)
	payments := holdfast.Cluster{Project: "payments", Environment: "staging"}
	vault := &protocol.VaultIdentity{Address: "https://vault.example.com", Role: "r", Mount: "jwt/eu", Audience: "https://vault.example.com"}
	for name, test := range map[string]struct {
		cluster holdfast.Cluster
		kind    holdfast.RunKind
		want    protocol.Identities
	}{
		"drift of another project": {holdfast.Cluster{Project: "shop", Environment: "dev"}, holdfast.RunDrift, protocol.Identities{
			AWS: &protocol.AWSIdentity{
				RoleARN: "arn:aws:iam::123456789012:role/plan", SessionName: "holdfast-shop-dev-plan", Region: "eu-central-1", Audience: "sts.amazonaws.com",
			},
		}},
		"destroy": {payments, holdfast.RunDestroy, protocol.Identities{
			AWS:   &protocol.AWSIdentity{RoleARN: "arn:aws:iam::123456789012:role/payments", SessionName: "us", Audience: "sts.amazonaws.com"},
			Vault: vault,
		}},
	} {
		if diff := gocmp.Diff(test.want, identities(cfg, test.cluster, test.kind)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestIdentitiesThatCannotBe: what globs that are not equal have in common is known for each run.
func TestIdentitiesThatCannotBe(t *testing.T) {
	t.Parallel()
	get := credentials(parsed(t, keylessConfig), slog.New(slog.DiscardHandler))
	if _, err := get(holdfast.Cluster{Project: "payments", Environment: "staging"}, holdfast.RunPlan); err != nil {
		t.Error(err)
	}
	t.Run("static secrets too", func(t *testing.T) {
		t.Parallel()
		both := parsed(t, strings.Replace(keylessConfig, "secrets: {VAULT_TOKEN: {env: NOTHING}}", "env: {TERRAFORM_VAULT_AUTH_JWT: x}", 1))
		_, err := credentials(both, slog.New(slog.DiscardHandler))(holdfast.Cluster{Project: "payments", Environment: "production"}, holdfast.RunPlan)
		if err == nil || !strings.Contains(err.Error(), "both vault and the variable TERRAFORM_VAULT_AUTH_JWT") {
			t.Errorf("credentials = %v", err)
		}
	})
	t.Run("longer than Google takes", func(t *testing.T) {
		t.Parallel()
		cfg := parsed(t, `
server: {issuer: {url: "https://holdfast.example.com"}}
credentials: [{gcp: {workloadIdentityProvider: projects/1/locations/global/workloadIdentityPools/p/providers/x}}]
`)
		for length, good := range map[int]bool{50: true, 63: false} {
			c := holdfast.Cluster{Project: strings.Repeat("p", length), Environment: strings.Repeat("e", length)}
			if _, err := credentials(cfg, slog.New(slog.DiscardHandler))(c, holdfast.RunPlan); (err == nil) != good {
				t.Errorf("names of %d bytes: %v", length, err)
			}
		}
	})
}

func TestOriginOfRuns(t *testing.T) {
	t.Parallel()
	runs := issuedRuns{parsed(t, keylessConfig)}
	run := holdfast.Run{}
	run.Repo = "clusters"
	want := claims.Origin{Repository: "acme/clusters", Ref: "refs/heads/trunk", Runner: "local"}
	if got := runs.Origin(run); got != want {
		t.Errorf("origin = %+v, want %+v", got, want)
	}
	run.PullRequest, run.Runner = holdfast.PullRequestRef{Repo: "clusters", Number: 7}, "eu"
	want.Ref, want.Runner = "refs/pull/7", "eu"
	if got := runs.Origin(run); got != want {
		t.Errorf("origin = %+v, want %+v", got, want)
	}
}

func TestDescribeIssuer(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	DescribeIssuer(&out, parsed(t, keylessConfig))
	const want = `issuer: https://holdfast.example.com (clouds fetch https://holdfast.example.com/.well-known/openid-configuration)
credentials[0].aws: audience sts.amazonaws.com, subject holdfast:*:*:plan
credentials[1].aws: audience sts.amazonaws.com, subject holdfast:*:*:apply
credentials[2].aws: audience sts.amazonaws.com, subject holdfast:payments:*:apply
credentials[3].vault: audience https://vault.example.com, subject holdfast:payments:*:plan or holdfast:payments:*:apply
`
	if diff := gocmp.Diff(want, out.String()); diff != "" {
		t.Errorf("DescribeIssuer() (-want +got):\n%s", diff)
	}
	out.Reset()
	if DescribeIssuer(&out, parsed(t, "dataDir: x\n")); out.Len() > 0 {
		t.Errorf("without an issuer: %s", out.String())
	}
}
