package templates_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates"
)

func TestSecrets(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		line string
		want rootmodule.SecretRef
		hint string
		at   string
	}{
		"environment":  {line: "{secret: {env: DB_PASSWORD}}", want: rootmodule.SecretRef{Env: "DB_PASSWORD"}},
		"file":         {line: "{secret: {file: /run/secrets/db}}", want: rootmodule.SecretRef{File: "/run/secrets/db"}},
		"store":        {line: "{secret: {store: vault, key: prod/db}}", want: rootmodule.SecretRef{Store: "vault", Key: "prod/db"}},
		"literal":      {line: "hunter2", at: "11:18"},
		"number":       {line: "4711", at: "11:18"},
		"list":         {line: "[hunter2]", at: "11:18"},
		"nothing":      {line: "", at: "11:17"},
		"mapping":      {line: "{password: hunter2}", at: "11:18"},
		"bare":         {line: "{secret: hunter2}", at: "11:18"},
		"misspelled":   {line: "{secret: {evn: hunter2}}", hint: ` (did you mean "env"?)`, at: "11:28"},
		"other key":    {line: "{secret: {hunter2: x}}", hint: " (one of env, file, key, store)", at: "11:28"},
		"two ways":     {line: "{secret: {env: A, file: /hunter2}}", hint: " (exactly one of env, file and store)", at: "11:27"},
		"bad name":     {line: "{secret: {env: hunter-2}}", hint: " (env is the name of an environment variable)", at: "11:33"},
		"number, env":  {line: "{secret: {env: 4711}}", hint: " (env is a text)", at: "11:33"},
		"relative":     {line: "{secret: {file: hunter2}}", hint: " (file is an absolute path, such as /run/secrets/db)", at: "11:34"},
		"without key":  {line: "{secret: {store: vault}}", hint: " (a store needs a key: {secret: {store: vault, key: prod/db}})", at: "11:27"},
		"lonely key":   {line: "{secret: {env: A, key: hunter2}}", hint: " (a key is only valid with a store)", at: "11:36"},
		"and more":     {line: "{secret: {env: A}, other: hunter2}", at: "11:18"},
		"option":       {line: "{secret: {store: vault, key: -hunter2}}", hint: " (the key begins with a letter, a digit, /, . or _, and does not end with a space)", at: "11:47"},
		"dots":         {line: "{secret: {store: vault, key: a/../hunter2}}", hint: " (the key must not have .. in it)", at: "11:47"},
		"control":      {line: "{secret: {file: \"/a\\nhunter2\"}}", hint: " (file is an absolute path, such as /run/secrets/db)", at: "11:34"},
		"strange name": {line: "{secret: {store: \"a b\", key: hunter2}}", hint: " (store is the name of a secret store, such as vault)", at: "11:35"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := clusterWith(t, "node_count: 3", "db_password: "+tc.line)
			if tc.want != (rootmodule.SecretRef{}) {
				root := resolve(t, tree(richFiles()), doc)
				checkSecret(t, root, tc.want)
				return
			}
			faults := resolveFaults(t, tree(richFiles()), doc)
			wantFaults(t, faults, "c/c.yaml:"+tc.at+": db_password is secret: say where its value is, such as {secret: {env: DB_PASSWORD}}"+tc.hint)
			if text := faults.Error(); strings.Contains(text, "unter2") || strings.Contains(text, "4711") {
				t.Errorf("the secret is in the fault: %s", text)
			}
		})
	}
}

func checkSecret(t *testing.T, root *templates.Root, want rootmodule.SecretRef) {
	t.Helper()
	refs := map[string]rootmodule.SecretRef{"db_password": want}
	if diff := cmp.Diff(refs, root.Secrets); diff != "" {
		t.Error(diff)
	}
	files := filesOf(root)
	var written map[string]rootmodule.SecretRef
	if err := json.Unmarshal([]byte(files[rootmodule.SecretFile]), &written); err != nil || !maps.Equal(written, refs) {
		t.Errorf("%s is %q: %v", rootmodule.SecretFile, files[rootmodule.SecretFile], err)
	}
	if strings.Contains(files["holdfast.auto.tfvars.json"], "db_password") || root.Variables["db_password"] != nil {
		t.Error("the secret is among the variables")
	}
	if !strings.Contains(files["main.tf"], "variable \"db_password\" {\n  type      = string\n  default   = null\n  sensitive = true\n}\n") {
		t.Errorf("main.tf:\n%s", files["main.tf"])
	}
	if plain := resolve(t, tree(richFiles()), clusterWith(t)); plain.Digest.Equal(root.Digest) || plain.Secrets != nil || filesOf(plain)[rootmodule.SecretFile] != "" {
		t.Error("a cluster without the secret has it")
	}
}

// TestSecretsOfTheTemplate: required ones are satisfied by a reference, and
// defaults are references.
func TestSecretsOfTheTemplate(t *testing.T) {
	t.Parallel()

	text := strings.Replace(richTemplate, "required: [node_count]", "required: [node_count, db_password]", 1)
	text = strings.Replace(text, "minLength: 12, writeOnly: true", "minLength: 12, writeOnly: true, default: {secret: {env: A}}", 1)
	root := resolve(t, tree(with(richFiles(), "t/template.yaml", text)), clusterWith(t))
	if diff := cmp.Diff(map[string]rootmodule.SecretRef{"db_password": {Env: "A"}}, root.Secrets); diff != "" {
		t.Error(diff)
	}
	if main := filesOf(root)["main.tf"]; !strings.Contains(main, "variable \"db_password\" {\n  type      = string\n  sensitive = true\n}\n") {
		t.Errorf("main.tf:\n%s", main)
	}
	byProvider := strings.Replace(text, "defaults: {instance_type: m7i.large}", "defaults: {instance_type: m7i.large, db_password: {secret: {env: B}}}", 1)
	root = resolve(t, tree(with(richFiles(), "t/template.yaml", byProvider)), clusterWith(t))
	if diff := cmp.Diff(map[string]rootmodule.SecretRef{"db_password": {Env: "B"}}, root.Secrets); diff != "" {
		t.Error(diff)
	}
	missing := strings.Replace(text, ", default: {secret: {env: A}}", "", 1)
	wantFaults(t, resolveFaults(t, tree(with(richFiles(), "t/template.yaml", missing)), clusterWith(t)),
		"c/c.yaml:9:3: spec.variables has no db_password (the template requires it)")
	wantFaults(t, resolveFaults(t, tree(richFiles()), clusterWith(t, "node_count: 3", "instance_type: {secret: {env: A}}")),
		"c/c.yaml:11:20: variable instance_type is not secret: its value is written here (the template makes a variable secret by writeOnly: true)")
}
