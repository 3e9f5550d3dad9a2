package secrets_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/redact"
	"github.com/holdfast-dev/holdfast/runner/secrets"
)

// rootModule is a folder that says where secret variables are.
func rootModule(t *testing.T, refs map[string]rootmodule.SecretRef) string {
	t.Helper()
	data, err := json.Marshal(refs)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, rootmodule.SecretFile), string(data))
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What a variable gets comes from what the assignment brings or allows, and from
// nowhere else.
func TestTake(t *testing.T) {
	t.Parallel()
	allowed, other := t.TempDir(), t.TempDir()
	write(t, filepath.Join(allowed, "token"), "from-the-file\r\n")
	write(t, filepath.Join(allowed, "empty"), "\n")
	write(t, filepath.Join(allowed, "large"), strings.Repeat("x", 64<<10+1))
	write(t, filepath.Join(allowed, "binary"), "a\x00b")
	write(t, filepath.Join(other, "token"), "out-of-reach")
	for name, target := range map[string]string{"out": filepath.Join(other, "token"), "in": "token"} {
		if err := os.Symlink(target, filepath.Join(allowed, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(allowed, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(dir, name string) rootmodule.SecretRef {
		return rootmodule.SecretRef{File: filepath.Join(dir, name)}
	}
	for name, test := range map[string]struct {
		ref  rootmodule.SecretRef
		want string
		err  string // in the error
	}{
		"a credential":            {rootmodule.SecretRef{Env: "TOKEN"}, "from-the-credentials", ""},
		"the agent's environment": {rootmodule.SecretRef{Env: "AGENT_TOKEN"}, "", "no environment variable AGENT_TOKEN"},
		"a file":                  {file(allowed, "token"), "from-the-file", ""},
		"a link in the folder":    {file(allowed, "in"), "from-the-file", ""},
		"a link that leads out":   {file(allowed, "out"), "", "not in any of the run's secret folders"},
		"another folder":          {file(other, "token"), "", "not in any of the run's secret folders"},
		"no such file elsewhere":  {file(other, "nothing"), "", "not in any of the run's secret folders"},
		"a way out":               {file(allowed, "../"+filepath.Base(other)+"/token"), "", "not in any of the run's secret folders"},
		"no such file":            {file(allowed, "nothing"), "", "no such file"},
		"an empty value":          {file(allowed, "empty"), "", "the value is empty"},
		"a large value":           {file(allowed, "large"), "", "more than 65536 bytes"},
		"no text":                 {file(allowed, "binary"), "", "not text"},
		"a pipe":                  {file(allowed, "pipe"), "", "not a regular file"},
		"a store that is unknown": {rootmodule.SecretRef{Store: "vault", Key: "a"}, "", "vault"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redactor := redact.New(nil)
			r := secrets.Resolver{
				Assignment: protocol.Assignment{
					FingerprintKey: make([]byte, 32),
					AssignedEnv: protocol.AssignedEnv{
						Env: map[string]string{"TOKEN": "from-the-credentials"}, SecretDirs: []string{allowed},
					},
				},
				Env: map[string]string{"AGENT_TOKEN": "the-agents-own"}, Dir: t.TempDir(), Redactor: redactor, Say: t.Logf,
			}
			found, err := r.Take(t.Context(), rootModule(t, map[string]rootmodule.SecretRef{"secret": test.ref}))
			if test.err == "" {
				if err != nil || found.Values["secret"] != test.want || found.Prints["secret"] == "" {
					t.Fatalf("Take() = %v, %v, want %q", found.Values, err, test.want)
				}
				if text := redactor.String("the value is " + test.want); strings.Contains(text, test.want) {
					t.Errorf("the value is shown: %s", text)
				}
				return
			}
			var failed *failure.Error
			if !errors.As(err, &failed) || failed.Cause != holdfast.CauseSecretUnavailable || !strings.Contains(err.Error(), test.err) || failed.Hint == "" {
				t.Errorf("Take() = %v, want %q with a hint", err, test.err)
			}
			if strings.Contains(err.Error(), "out-of-reach") || len(found.Values) > 0 {
				t.Errorf("values are in %v, %v", found, err)
			}
		})
	}
}

// A credential without a value fails the run before its engine starts, whoever needs it.
func TestMissingCredential(t *testing.T) {
	t.Parallel()
	for name, refs := range map[string]map[string]rootmodule.SecretRef{
		"for the engine":  nil,
		"for a variable":  {"a": {Env: "TOKEN"}},
		"not for another": {"a": {Env: "OTHER"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := secrets.Resolver{
				Assignment: protocol.Assignment{AssignedEnv: protocol.AssignedEnv{
					Env: map[string]string{"OTHER": "a-value-of-its-own"}, Missing: []string{"TOKEN"},
				}},
				Dir: t.TempDir(), Redactor: redact.New(nil), Say: t.Logf,
			}
			_, err := r.Take(t.Context(), rootModule(t, refs))
			var failed *failure.Error
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), "TOKEN could not be read") || !strings.Contains(failed.Hint, "credentials[].secrets.TOKEN") {
				t.Errorf("Take() = %v, %+v", err, failed)
			}
		})
	}
}

// A credential without a value that other clusters' secret variables refer to is not needed.
func TestMissingCredentialOfOthers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ref rootmodule.SecretRef
		err string
	}{
		"of others": {rootmodule.SecretRef{Env: "OTHER"}, ""},
		"its own":   {rootmodule.SecretRef{Env: "TOKEN"}, "the credential TOKEN could not be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := secrets.Resolver{
				Assignment: protocol.Assignment{AssignedEnv: protocol.AssignedEnv{
					Env: map[string]string{"OTHER": "a-value-of-its-own"}, Missing: []string{"TOKEN"}, Referenced: []string{"TOKEN"},
				}},
				Dir: t.TempDir(), Redactor: redact.New(nil), Say: t.Logf,
			}
			_, err := r.Take(t.Context(), rootModule(t, map[string]rootmodule.SecretRef{"a": tc.ref}))
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("Take() = %v, want %q", err, tc.err)
			}
		})
	}
}

// Someone at a laptop has the variables in the environment, which goes before the file.
func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "token"), "from-the-file")
	redactor := redact.New(nil)
	r := secrets.Resolver{
		Opts: secrets.Options{Open: true}, Redactor: redactor, Dir: t.TempDir(), Say: t.Logf,
		Env: map[string]string{"TF_VAR_given": "given-by-hand", "TOKEN": "from-the-environment"},
	}
	found, err := r.Take(t.Context(), rootModule(t, map[string]rootmodule.SecretRef{
		"given": {Store: "vault", Key: "a"}, "env": {Env: "TOKEN"}, "file": {File: filepath.Join(dir, "token")},
	}))
	if err != nil || len(found.Values) != 2 || found.Values["env"] != "from-the-environment" || found.Values["file"] != "from-the-file" {
		t.Errorf("Take() = %v, %v", found.Values, err)
	}
	if text := redactor.String("given-by-hand"); text == "given-by-hand" {
		t.Error("what was given by hand is shown")
	}
}

// What the file may say is bounded, and read strictly.
func TestSecretFile(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON": "{", "unknown key": `{"a": {"env": "A", "value": "x"}}`, "two places": `{"a": {"env": "A", "file": "/b"}}`,
		"a name of no variable": `{"a b": {"env": "A"}}`, "more behind it": `{"a": {"env": "A"}}{}`,
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, rootmodule.SecretFile), text)
		r := secrets.Resolver{
			Assignment: protocol.Assignment{AssignedEnv: protocol.AssignedEnv{Env: map[string]string{"A": "a-value"}}},
			Dir:        t.TempDir(), Redactor: redact.New(nil), Say: t.Logf,
		}
		if found, err := r.Take(context.Background(), dir); err == nil {
			t.Errorf("%s: found %v", name, found.Values)
		}
	}
	r := secrets.Resolver{Dir: t.TempDir(), Redactor: redact.New(nil), Say: t.Logf}
	if found, err := r.Take(t.Context(), t.TempDir()); err != nil || len(found.Values) > 0 {
		t.Errorf("without the file: %v, %v", found, err)
	}
}
