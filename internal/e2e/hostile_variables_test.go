package e2e_test

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// safe is a template whose variables are secret, and which prints them, with
// outputs that mean something.
func safe() files {
	return files{
		"safe/template.yaml": `apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: safe}
spec:
  providers:
    demo:
      modules:
        - name: safe
          source: ./modules/safe
          inputs: {password: "${var.db_password}", key: "${var.api_key}", pem: "${var.signing_pem}"}
  variables:
    type: object
    required: [db_password, api_key, signing_pem]
    properties:
      db_password: {type: string, writeOnly: true}
      api_key: {type: string, writeOnly: true}
      signing_pem: {type: string, writeOnly: true}
  outputs:
    endpoint: {value: "${module.safe.endpoint}", means: endpoint}
    nodes: {value: "${module.safe.nodes}", means: nodeCount}
    kubeconfig: {value: "${module.safe.kubeconfig}", means: kubeconfig, sensitive: true}
`,
		"safe/modules/safe/main.tf": `variable "password" { type = string }
variable "key" { type = string }
variable "pem" { type = string }

resource "terraform_data" "safe" {
  input = { url = "postgres://app:${var.password}@db/app", pem = var.pem }

  provisioner "local-exec" {
    command = "echo 'password ${nonsensitive(var.password)}'; echo 'key ${nonsensitive(base64encode(var.key))}' >&2"
  }
}

output "endpoint" { value = "https://10.0.0.1:6443" }
output "nodes" { value = 3 }
output "kubeconfig" {
  value     = "token ${var.key}"
  sensitive = true
}
`,
	}
}

// The values of secret variables stand in the environment of the run, in a file
// and in a secret store. The engine gets them, nobody else does: they are in no
// log, comment or answer, and in no file of the server or the agent.
func TestSecretVariables(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	secrets := []string{"password-of-the-database", "key-that-a-store-has", "MIIEsigningkey0123456789"}
	w.write("db-password", secrets[0], 0o600)
	w.write("given/signing.pem", "-----BEGIN KEY-----\n"+secrets[2]+"\n-----END KEY-----\n", 0o644)
	w.write("vault", "#!/bin/sh\n[ \"$VAULT_TOKEN $2\" = 'token-of-the-vault prod/api' ] && tr a-z n-za-m <\""+w.path("vaulted")+"\"\n", 0o755)
	w.write("vaulted", rot13(secrets[1])+"\n", 0o644)
	w.write("vault-token", "token-of-the-vault", 0o600)
	w.set(settings{"telemetry.logLevel": "debug", "credentials": []any{map[string]any{
		"project": "shop",
		"secrets": map[string]any{
			"DB_PASSWORD": map[string]any{"file": "db-password"}, "VAULT_TOKEN": map[string]any{"file": "vault-token"},
		},
		"secretDirs": []string{w.path("given")},
		"stores":     map[string]any{"vault": map[string]any{"command": []string{w.path("vault"), "get", "{key}"}}},
	}}})
	w.fleet().commit(safe())
	w.start()

	pr := w.fleet().open(document("alpha", "template: {path: ../safe}", "provider: demo", "variables:",
		"  db_password: {secret: {env: DB_PASSWORD}}", "  api_key: {secret: {store: vault, key: prod/api}}",
		"  signing_pem: {secret: {file: "+w.path("given/signing.pem")+"}}"))
	pr.untilPlanned("1 to create")
	pr.merge()
	pr.untilApplied("1 created")
	rec := w.record("alpha")
	if a := rec.Applied; a.Endpoint != "https://10.0.0.1:6443" || a.NodeCount != 3 || a.Kubeconfig != "kubeconfig" {
		t.Errorf("the outputs mean %+v", a)
	}

	missing := w.fleet().open(document("beta", "template: {path: ../safe}", "provider: demo", "variables:",
		"  db_password: {secret: {env: HOME}}", "  api_key: {secret: {store: vault, key: prod/other}}",
		"  signing_pem: {secret: {file: "+w.path("vault-token")+"}}"))
	w.fleet().untilStatus(missing.head, holdfast.ContextPlan, holdfast.StatusFailure)
	missing.untilComment("the run's credentials have no environment variable HOME", "is not in any of the run's secret folders", "store vault has no answer for prod/other")
	w.untilIdle()

	seen := w.everythingSaid()
	printed := seen["log "+w.newest("alpha", holdfast.RunApply).ID]
	if !strings.Contains(printed, "password (sensitive value)") || !strings.Contains(printed, "key (sensitive value)") { // otherwise the test proves nothing
		t.Errorf("the apply did not print what it knows:\n%.4000s", printed)
	}
	if code := w.stop(); code != 0 { // what is in memory goes to disk
		t.Errorf("the server ended with code %d", code)
	}
	for name, text := range w.everyFile() {
		seen["file "+name] = text
	}
	for place, text := range seen {
		for _, secret := range append(secrets, "token-of-the-vault") {
			if strings.Contains(text, secret) {
				t.Errorf("%s has a secret: %s", place, secret)
			}
		}
	}
	if _, err := os.Stat(w.path("given/signing.pem")); err != nil {
		t.Error(err)
	}
}

func rot13(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' {
			return 'a' + (c-'a'+13)%26
		}
		return c
	}, text)
}
