package config_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
)

// TestKeylessFaults: each is where it is.
func TestKeylessFaults(t *testing.T) {
	t.Parallel()
	const issuer = "server: {issuer: {url: \"https://h.example.com\"}}\n"
	for name, test := range map[string]struct {
		text string
		want []string // beginnings of lines
	}{
		"all is well": {issuer + `credentials:
  - {aws: {roleARN: "arn:aws:iam::123456789012:role/a/plan"}, phase: plan}
  - {secrets: {AWS_ACCESS_KEY_ID: {env: A}}, phase: apply}
  - {project: other, secrets: {AWS_ACCESS_KEY_ID: {env: A}}, phase: apply}
`, nil},
		"no issuer": {"credentials:\n  - aws: {roleARN: \"arn:aws:iam::123456789012:role/plan\"}\n", []string{
			"f:2:10: credentials[0].aws: needs tokens, and this server issues none (set server.issuer.url)",
		}},
		"issuers": {"server: {issuer: {url: \"https://h.example.com/\", lifetime: 1s, announce: 1m, rotate: 30s}}\n", []string{
			`f:1:24: server.issuer.url: "https://h.example.com/" must not end with a slash`,
			"f:1:60: server.issuer.lifetime: must be 10s to 24h",
			"f:1:74: server.issuer.announce: must be at least 1h",
			"f:1:86: server.issuer.rotate: must be longer than announce",
		}},
		"a port": {"server: {issuer: {url: \"https://h.example.com:8443\", replaces: \"http://x\"}}\n", []string{
			`f:1:24: server.issuer.url: "https://h.example.com:8443" must not name a port`,
			`f:1:64: server.issuer.replaces: "http://x" cannot have been a url`,
		}},
		"nobody can fetch the keys": {`server: {public: {address: ""}, issuer: {url: "https://h.example.com"}}
credentials: [{azure: {tenantID: 11111111-1111-1111-1111-111111111111, clientID: 22222222-2222-2222-2222-222222222222}}]
`, []string{"f:1:28: server.public.address: is empty"}},
		"identities": {issuer + `credentials:
  - aws: {sessionName: "a b"}
    gcp: {workloadIdentityProvider: projects/name/locations/global/workloadIdentityPools/p/providers/x, serviceAccount: plan}
    azure: {tenantID: common, clientID: 22222222-2222-2222-2222-222222222222}
    vault: {address: vault, mount: "../jwt", audience: "a b"}
`, []string{
			"f:3:10: credentials[0].aws.roleARN: is missing",
			`f:3:24: credentials[0].aws.sessionName: "a b" is not valid`,
			`f:4:37: credentials[0].gcp.workloadIdentityProvider: "projects/name`,
			`f:4:121: credentials[0].gcp.serviceAccount: "plan" is not valid`,
			`f:5:23: credentials[0].azure.tenantID: "common" is not valid`,
			`f:6:22: credentials[0].vault.address: "vault" is not the address of a Vault`,
			"f:6:12: credentials[0].vault.role: is missing",
			"f:6:56: credentials[0].vault.audience: must be one word",
		}},
		"static secrets too": {issuer + `credentials:
  - aws: {roleARN: "arn:aws:iam::123456789012:role/plan", region: eu-central-1}
    env: {AWS_REGION: x, AWS_ROLE_ARN: x}
  - {project: payments, secrets: {AWS_SECRET_ACCESS_KEY: {env: A}}}
`, []string{
			"f:4:23: credentials[0].env.AWS_REGION: is aws.region too",
			"f:4:40: credentials[0].env.AWS_ROLE_ARN: contradicts credentials[0].aws (Holdfast sets it: remove it)",
			"f:5:58: credentials[1].secrets.AWS_SECRET_ACCESS_KEY: contradicts credentials[0].aws (the engine would use it instead: keep one of them)",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("f", "/", []byte(test.text))
			said := ""
			if err != nil {
				said = err.Error()
			}
			lines := strings.Split(said, "\n")
			for _, want := range test.want {
				found := false
				for _, line := range lines {
					found = found || strings.HasPrefix(line, want)
				}
				if !found {
					t.Errorf("no fault %q in\n%s", want, said)
				}
			}
			if len(test.want) == 0 && err != nil {
				t.Error(err)
			}
		})
	}
}
