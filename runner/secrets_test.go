package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/runner"
)

// secretRun is a plan with the fake engine of a root module that has one secret
// variable, x.
type secretRun struct {
	ref    string // JSON of where x is
	file   string // of all of holdfast_secrets.json; empty: {"x": ref}
	change func(*protocol.Assignment)

	timeout time.Duration // of a store
}

// plan returns the result, and the value that the engine got.
func (r secretRun) plan(t *testing.T) (protocol.Result, *memorySession, string) {
	t.Helper()
	e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) {
		o.Secrets.Timeout, o.Engines.Env["PATH"] = r.timeout, "/usr/bin:/bin"
	})
	seen := filepath.Join(t.TempDir(), "env")
	if r.file == "" {
		r.file = `{"x": ` + r.ref + `}`
	}
	s := newMemorySession(map[string]string{"main.tf": "", "fake": "plan env " + seen + "\n", rootmodule.SecretFile: r.file})
	a := engineAssignment("run-1", holdfast.RunPlan)
	if r.change != nil {
		r.change(&a)
	}
	result := e.Execute(t.Context(), a, s)
	env, _ := os.ReadFile(seen)
	_, value, _ := strings.Cut("\n"+string(env), "\nTF_VAR_x=")
	value, _, _ = strings.Cut(value, "\n")
	return result, s, value
}

func store(script string) func(*protocol.Assignment) {
	return func(a *protocol.Assignment) {
		a.SecretStores = map[string][]string{"vault": {"sh", "-c", script, "get", "{key}"}}
	}
}

const fromVault = `{"store": "vault", "key": "prod/db"}`

// TestSecretIsFound states which values the engine gets.
func TestSecretIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "plain"), "from-a-file\n", 0o600)
	// As Kubernetes mounts secrets, and through a link with an absolute target.
	if err := os.Mkdir(filepath.Join(dir, "..2026"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "..2026", "db"), "from-a-mount", 0o600)
	writeFile(t, filepath.Join(dir, "large"), strings.Repeat("x", 64<<10)+"\r\n", 0o600)
	link(t, "..2026", filepath.Join(dir, "..data"))
	link(t, "..data/db", filepath.Join(dir, "db"))
	link(t, filepath.Join(dir, "plain"), filepath.Join(dir, "absolute"))
	other := filepath.Join(t.TempDir(), "other")
	link(t, dir, other)
	dirs := func(list ...string) func(*protocol.Assignment) {
		return func(a *protocol.Assignment) { a.SecretDirs = list }
	}
	tests := map[string]struct {
		run  secretRun
		want string
	}{
		"environment": {secretRun{ref: `{"env": "X"}`, change: func(a *protocol.Assignment) {
			a.Env = map[string]string{"X": "from-env", "TF_VAR_x": "not this"}
		}}, "from-env"},
		"file":                  {secretRun{ref: ref("file", dir, "plain"), change: dirs("/nowhere", dir)}, "from-a-file"},
		"mount":                 {secretRun{ref: ref("file", dir, "db"), change: dirs(dir)}, "from-a-mount"},
		"absolute link":         {secretRun{ref: ref("file", dir, "absolute"), change: dirs(dir)}, "from-a-file"},
		"folder is a link":      {secretRun{ref: ref("file", other, "plain"), change: dirs(other)}, "from-a-file"},
		"as large as it may be": {secretRun{ref: ref("file", dir, "large"), change: dirs(dir)}, strings.Repeat("x", 64<<10)},
		"store":                 {secretRun{ref: fromVault, change: store(`printf 'of %s in %s\r\n' "$1" "$(ls | wc -l)"`)}, "of prod/db in 0"},
		"store that leaves something running": {
			secretRun{ref: fromVault, change: store(`sleep 3600 & echo went-on`)}, "went-on",
		},
		"no shell": {secretRun{ref: `{"store": "vault", "key": "a$(echo b) 'c'; d {key}"}`, change: store(`printf %s "$1"`)}, `a$(echo b) 'c'; d {key}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, s, value := tt.run.plan(t)
			wantStatus(t, got, holdfast.RunPlanned, "", s)
			if value != tt.want {
				t.Errorf("got %.100q, want %.100q", value, tt.want)
			}
		})
	}
}

func ref(kind string, elem ...string) string {
	return fmt.Sprintf(`{%q: %q}`, kind, filepath.Join(elem...))
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// TestSecretIsNotFound states that a run whose secret variable has no value never
// starts an engine, says why, and tells nothing of what it may not.
func TestSecretIsNotFound(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(outside, "key"), "forbidden-fruit", 0o600)
	for name, to := range map[string]string{
		"environ": "/proc/self/environ", "up": "../" + filepath.Base(outside) + "/key", "outside": outside, "loop": "loop", "gone": "nothing",
	} {
		link(t, to, filepath.Join(dir, name))
	}
	writeFile(t, filepath.Join(dir, "empty"), "\n", 0o600)
	writeFile(t, filepath.Join(dir, "binary"), "\xff\xfe\x00binary", 0o600)
	writeFile(t, filepath.Join(dir, "nul"), "forbidden\x00fruit", 0o600)
	writeFile(t, filepath.Join(dir, "large"), strings.Repeat("x", 64<<10+3), 0o600)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := func(a *protocol.Assignment) { a.SecretDirs = []string{dir} }
	program := filepath.Join(t.TempDir(), "vault")
	writeFile(t, program, "#!/bin/sh\necho forbidden-fruit\n", 0o700)
	if err := os.Chmod(program, 0o777); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		run       secretRun
		transient bool
		want      []string // in the failure
	}{
		"not in the environment": {
			secretRun{ref: `{"env": "HOME"}`}, false, // the agent's own has it
			[]string{"secret variable x: the run's credentials have no environment variable HOME", "credentials[].secrets in holdfast.yaml", "the phase plan"},
		},
		"without a value": {
			secretRun{ref: `{"env": "P2"}`, change: func(a *protocol.Assignment) { a.Missing = []string{"P2"} }},
			false,
			[]string{"secret variable x: {secret: {env: P2}}: the credential P2 could not be read", "credentials[].secrets.P2"},
		},
		"another without a value": {
			secretRun{ref: `{"env": "X"}`, change: func(a *protocol.Assignment) { a.Env, a.Missing = map[string]string{"X": "x"}, []string{"AWS_TOKEN"} }},
			false,
			[]string{"credential AWS_TOKEN could not be read"},
		},
		"empty in the environment": {
			secretRun{ref: `{"env": "X"}`, change: func(a *protocol.Assignment) { a.Env = map[string]string{"X": ""} }}, false, []string{"the value is empty"},
		},
		"no folders": {secretRun{ref: ref("file", dir, "plain")}, false, []string{"is not in any of the run's secret folders", "credentials[].secretDirs"}},
		"outside":    {secretRun{ref: ref("file", outside, "key"), change: files}, false, []string{"not in any of the run's secret folders"}},
		"the same for what is not there": {
			secretRun{ref: ref("file", outside, "nothing"), change: files}, false, []string{"not in any of the run's secret folders"},
		},
		"dots":   {secretRun{ref: `{"file": "` + dir + "/../" + filepath.Base(outside) + `/key"}`, change: files}, false, []string{"not in any of the run's secret folders"}},
		"prefix": {secretRun{ref: `{"file": "` + dir + `x/key"}`, change: files}, false, []string{"not in any of the run's secret folders"}},
		"the root folder is ignored": {
			secretRun{ref: ref("file", outside, "key"), change: func(a *protocol.Assignment) { a.SecretDirs = []string{"/", "", "."} }},
			false,
			[]string{"not in any of the run's secret folders"},
		},
		"the agent's environment": {secretRun{ref: ref("file", dir, "environ"), change: files}, false, []string{"not in any of the run's secret folders"}},
		"link up":                 {secretRun{ref: ref("file", dir, "up"), change: files}, false, []string{"not in any of the run's secret folders"}},
		"through a folder":        {secretRun{ref: ref("file", dir, "outside", "key"), change: files}, false, []string{"not in any of the run's secret folders"}},
		"loop":                    {secretRun{ref: ref("file", dir, "loop"), change: files}, false, []string{"read file"}},
		"dangling":                {secretRun{ref: ref("file", dir, "gone"), change: files}, false, []string{"no such file"}},
		"folder":                  {secretRun{ref: ref("file", dir), change: files}, false, []string{"not in any of the run's secret folders"}},
		"pipe":                    {secretRun{ref: ref("file", dir, "pipe"), change: files}, false, []string{"it is not a regular file"}},
		"empty file":              {secretRun{ref: ref("file", dir, "empty"), change: files}, false, []string{"the value is empty"}},
		"binary file":             {secretRun{ref: ref("file", dir, "binary"), change: files}, false, []string{"the value is not text", "base64"}},
		"NUL":                     {secretRun{ref: ref("file", dir, "nul"), change: files}, false, []string{"the value is not text"}},
		"large file":              {secretRun{ref: ref("file", dir, "large"), change: files}, false, []string{"more than"}},

		"no store": {secretRun{ref: fromVault}, false, []string{"the run's credentials have no store vault", "credentials[].stores"}},
		"everybody's program": {secretRun{ref: fromVault, change: func(a *protocol.Assignment) {
			a.SecretStores = map[string][]string{"vault": {program, "{key}"}}
		}}, false, []string{"everybody can write to it", "chmod o-w"}},
		"no such program": {secretRun{ref: fromVault, change: func(a *protocol.Assignment) {
			a.SecretStores = map[string][]string{"vault": {"no-such-vault", "{key}"}}
		}}, false, []string{"there is no program no-such-vault on the agent's PATH"}},
		"relative program": {secretRun{ref: fromVault, change: func(a *protocol.Assignment) {
			a.SecretStores = map[string][]string{"vault": {"./vault", "{key}"}}
		}}, false, []string{"a name or an absolute path"}},
		"it is not allowed to": {
			secretRun{ref: fromVault, change: store("echo 'Code: 403. permission denied' >&2; exit 2")},
			false,
			[]string{"store vault has no answer for prod/db: exit status 2", "Code: 403. permission denied"},
		},
		"out of reach":      {secretRun{ref: fromVault, change: store("echo 'dial tcp 10.0.0.1:8200: connect: connection refused' >&2; exit 2")}, true, []string{"connection refused"}},
		"killed":            {secretRun{ref: fromVault, change: store("kill -9 $$")}, true, []string{"killed by signal 9"}},
		"hangs":             {secretRun{ref: fromVault, change: store("exec sleep 3600"), timeout: time.Second}, true, []string{"no answer for prod/db within 1s"}},
		"hangs hard":        {secretRun{ref: fromVault, change: store("trap '' INT TERM; sleep 3600; sleep 3600"), timeout: time.Second}, true, []string{"no answer for prod/db within 1s"}},
		"floods":            {secretRun{ref: fromVault, change: store("exec cat /dev/zero")}, false, []string{"it printed more than 65536 bytes"}},
		"floods its errors": {secretRun{ref: fromVault, change: store("head -c 100000000 /dev/zero >&2; exit 3")}, false, []string{"exit status 3"}},
		"prints nothing":    {secretRun{ref: fromVault, change: store("echo")}, false, []string{"the value is empty"}},
		"prints no text":    {secretRun{ref: fromVault, change: store(`printf 'forbidden\000fruit'`)}, false, []string{"the value is not text"}},
		"fails and tells the value": {
			secretRun{ref: fromVault, change: store("echo forbidden-fruit; echo 'got forbidden-fruit, and lost it' >&2; exit 1")},
			false,
			[]string{"got (sensitive value), and lost it"},
		},
		"tells the run's credentials": {secretRun{ref: fromVault, change: func(a *protocol.Assignment) {
			store("echo token $VAULT_TOKEN >&2; exit 1")(a)
			a.Env, a.Secrets = map[string]string{"VAULT_TOKEN": "forbidden-fruit"}, []string{"VAULT_TOKEN"}
		}}, false, []string{"token (sensitive value)"}},
		"several": {
			secretRun{file: `{"b": {"env": "B"}, "a": ` + fromVault + `, "c": {"env": "C"}}`, change: store("echo connection refused >&2; exit 1")},
			false,
			[]string{"secret variable b: the run's credentials have no environment variable B (and 2 more have no value)", "secret variable a: store vault", "secret variable c:"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, s, value := tt.run.plan(t)
			wantStatus(t, got, holdfast.RunErrored, "SecretUnavailable", s)
			text := fmt.Sprintf("%+v", *got.Failure)
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in %s", want, text)
				}
			}
			if got.Failure.Transient != tt.transient || got.Failure.Step != "prepare" || value != "" {
				t.Errorf("transient %v at %s, the engine got %q", got.Failure.Transient, got.Failure.Step, value)
			}
			for _, told := range []string{text, s.logged(), got.Detail} {
				if strings.Contains(told, "forbidden-fruit") {
					t.Errorf("a secret was told: %s", told)
				}
			}
			if len(text) > 12<<10 {
				t.Errorf("%d bytes are told", len(text))
			}
		})
	}
}

// TestSecretFileIsRefused states that a file is not used at all if something in
// it is not as it must be, and that no literal in it is repeated.
func TestSecretFileIsRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 2000)
	for name, file := range map[string]string{
		"no JSON":             `forbidden-fruit`,
		"cut off":             `{"x": {"env"`,
		"a list":              `[]`,
		"a literal":           `{"x": "forbidden-fruit"}`,
		"unknown key":         `{"x": {"value": "forbidden-fruit"}}`,
		"nothing said":        `{"x": {}}`,
		"null":                `{"x": null}`,
		"two said":            `{"x": {"env": "X", "file": "/forbidden-fruit"}}`,
		"key without a store": `{"x": {"env": "X", "key": "forbidden-fruit"}}`,
		"store without a key": `{"x": {"store": "vault"}}`,
		"literal as name":     `{"x": {"env": "forbidden-fruit!"}}`,
		"name with =":         `{"x": {"env": "A=forbidden-fruit"}}`,
		"relative file":       `{"x": {"file": "forbidden-fruit"}}`,
		"file with a newline": `{"x": {"file": "/a\nforbidden-fruit"}}`,
		"variable with =":     `{"x=y": {"env": "X"}}`,
		"variable with line":  `{"x\nPATH": {"env": "X"}}`,
		"variable with NUL":   `{"x\u0000": {"env": "X"}}`,
		"variable with space": `{"x y": {"env": "X"}}`,
		"variable empty":      `{"": {"env": "X"}}`,
		"variable digit":      `{"1x": {"env": "X"}}`,
		"store with a slash":  `{"x": {"store": "a/b", "key": "k"}}`,
		"key is an option":    `{"x": {"store": "vault", "key": "-address=http://forbidden-fruit"}}`,
		"key is a file":       `{"x": {"store": "vault", "key": "@/etc/forbidden-fruit"}}`,
		"key is a file's URL": `{"x": {"store": "vault", "key": "File:///etc/forbidden-fruit"}}`,
		"key with dots":       `{"x": {"store": "vault", "key": "prod/../../forbidden-fruit"}}`,
		"key with a newline":  `{"x": {"store": "vault", "key": "a\nforbidden-fruit"}}`,
		"key with a space":    `{"x": {"store": "vault", "key": " -forbidden-fruit"}}`,
		"key too long":        `{"x": {"store": "vault", "key": "` + long + `"}}`,
		"more than one":       `{"x": {"env": "X"}}{"y": "forbidden-fruit"}`,
		"too large":           `{"x": {"env": "X"}}` + strings.Repeat(" ", 2<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Whatever it refers to has a value: it is the file that is refused.
			got, s, _ := secretRun{file: file, change: func(a *protocol.Assignment) {
				store("echo value")(a)
				a.Env = map[string]string{"X": "value"}
			}}.plan(t)
			wantStatus(t, got, holdfast.RunErrored, "SecretUnavailable", s)
			if want := "read " + rootmodule.SecretFile + ": "; !strings.Contains(got.Failure.Summary, want) {
				t.Errorf("%q is not in %+v", want, *got.Failure)
			}
			if text := fmt.Sprintf("%+v%s", *got.Failure, s.logged()); strings.Contains(text, "forbidden-fruit") || strings.Contains(text, long) {
				t.Errorf("it repeats what it must not: %s", text)
			}
		})
	}
}

// Names like those of the engine's own variables are a variable's all the same.
func TestSecretNamesAreVariables(t *testing.T) {
	t.Parallel()
	e, _ := engineExecutor(t, nil)
	seen := filepath.Join(t.TempDir(), "env")
	s := newMemorySession(map[string]string{
		"fake": "plan env " + seen + "\n", rootmodule.SecretFile: `{"PATH": {"env": "X"}, "LD_PRELOAD": {"env": "X"}, "with-dash": {"env": "X"}}`,
	})
	a := engineAssignment("run-1", holdfast.RunPlan)
	a.Env = map[string]string{"X": "the-value"}
	got := e.Execute(t.Context(), a, s)
	wantStatus(t, got, holdfast.RunPlanned, "", s)
	env, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	lines := "\n" + string(env)
	for _, line := range []string{"TF_VAR_PATH=the-value", "TF_VAR_LD_PRELOAD=the-value"} {
		if !strings.Contains(lines, "\n"+line+"\n") {
			t.Errorf("no %s in %s", line, lines)
		}
	}
	if strings.Contains(lines, "\nPATH=the-value") || strings.Contains(lines, "\nLD_PRELOAD=") {
		t.Errorf("a variable became another one: %s", lines)
	}
}

// TestSecretsStop states that a run that is stopped while a store is asked ends
// as such, and leaves no process behind.
func TestSecretsStop(t *testing.T) {
	t.Parallel()
	work := ""
	e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) { work, o.Engines.Env["PATH"] = o.WorkDir, "/usr/bin:/bin" })
	asked := filepath.Join(t.TempDir(), "asked")
	s := newMemorySession(map[string]string{rootmodule.SecretFile: `{"x": ` + fromVault + `}`})
	a := engineAssignment("run-1", holdfast.RunPlan)
	store(`echo $$ >` + asked + `.tmp; mv ` + asked + `.tmp ` + asked + `; exec sleep 3600`)(&a)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	done := make(chan protocol.Result)
	go func() { done <- e.Execute(ctx, a, s) }()
	pid := strings.TrimSpace(untilFile(t, asked))
	cancel(&runner.StopError{Reason: holdfast.ReasonCanceled})
	got := <-done
	wantStatus(t, got, holdfast.RunCanceled, holdfast.ReasonCanceled, s)
	if _, err := os.Stat("/proc/" + pid + "/exe"); err == nil {
		t.Errorf("process %s lives", pid)
	}
	if left, _ := os.ReadDir(filepath.Join(work, "workspaces")); len(left) > 0 {
		t.Errorf("a workspace is left: %v", left)
	}
}
