package attempt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/initcache"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// TestFilesOfTheMachine: files are found where the engine finds them, in each mode, and
// named alike by attempts in other folders.
func TestFilesOfTheMachine(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	job, prepared := filepath.Join(data, "job"), filepath.Join(data, "prepared")
	write(job, "what is reviewed")
	hash, err := folders.Sum(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	fetched := filepath.Join(prepared, initcache.Modules, "far")
	write(filepath.Join(fetched, "main.tf"), `locals { a = file("${path.module}/link") }`)
	if err := os.Symlink(job, filepath.Join(fetched, "link")); err != nil {
		t.Fatal(err)
	}
	for _, s := range starters(t) {
		for _, agent := range []string{"agent", "agent-plan"} {
			of := ofMode(s, nil)
			of.work = filepath.Join(data, agent, "attempt", "work")
			of.bundle = filepath.Join(of.work, "bundle")
			of.root = filepath.Join(of.bundle, "infra", "x")
			of.prepared.Dir = prepared
			up, err := filepath.Rel(of.seen(of.root), job)
			if err != nil {
				t.Fatal(err)
			}
			home, err := filepath.Rel(of.view().Home, job)
			if err != nil {
				t.Fatal(err)
			}
			write(filepath.Join(of.root, "t.tpl"), `${file("`+job+`")}`)
			for name, c := range map[string]struct{ expression, want string }{
				"relative":             {`file("${path.module}/` + up + `")`, up},
				"from where it starts": {`file("${path.cwd}/` + up + `")`, up},
				"from its home":        {`file("~/` + home + `")`, "~/" + home},
				"by a template":        {`templatefile("${path.module}/t.tpl", {})`, job},
				"in the workspace":     {`file("${path.module}/../../t.tpl")`, ""},
			} {
				write(filepath.Join(of.root, "main.tf"), "locals { a = "+c.expression+" }\n")
				want := map[string]string{c.want: hash}
				if c.want == "" {
					want = map[string]string{}
				}
				got, err := of.filesRead(t.Context(), of.root, ".")
				if diff := gocmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("%s, %s: %v (-want +got):\n%s", s.Mode(), name, err, diff)
				}
			}
			link := ".terraform/modules/far"
			got, err := of.filesRead(t.Context(), fetched, link)
			if diff := gocmp.Diff(map[string]string{link + "/link": hash}, got); err != nil || diff != "" {
				t.Errorf("%s, a link of a fetched module: %v (-want +got):\n%s", s.Mode(), err, diff)
			}
		}
	}
}

// TestCodeThatCannotBeRead: code beyond bounds ends a run, and is named as the repository
// calls it.
func TestCodeThatCannotBeRead(t *testing.T) {
	t.Parallel()
	of := ofMode(nil, nil)
	of.work = t.TempDir()
	of.bundle = filepath.Join(of.work, "bundle")
	of.root, of.a.Dir = filepath.Join(of.bundle, "infra", "x"), "infra/x"
	if err := os.MkdirAll(of.root, 0o700); err != nil {
		t.Fatal(err)
	}
	code := "locals { a = " + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + " }"
	if err := os.WriteFile(filepath.Join(of.root, "main.tf"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	_, known, err := of.moduleCode(t.Context(), nil)
	failed := new(failure.Error)
	if known || !errors.As(err, &failed) || failed.Cause != holdfast.CauseInvalidConfiguration || !strings.Contains(err.Error(), "infra/x/main.tf: line 1: expressions are nested") || failed.Hint == "" {
		t.Errorf("known: %t, %v", known, err)
	}
}

// TestCodeOfOneModule: to read the code of a module, no other one is looked at, of which there
// may be dozens: not even one that is not where it should be.
func TestCodeOfOneModule(t *testing.T) {
	t.Parallel()
	of := ofMode(nil, nil)
	of.work = t.TempDir()
	of.bundle = filepath.Join(of.work, "bundle")
	of.root = of.bundle
	list := filepath.Join(of.root, dataDir, initcache.Modules, modulecode.InstalledFile)
	for _, err := range []error{
		os.MkdirAll(filepath.Dir(list), 0o700),
		os.WriteFile(filepath.Join(of.root, "main.tf"), []byte("locals { a = var.b }\n"), 0o600),
		os.WriteFile(list, []byte(`{"Modules": [{"Key": "", "Dir": "."}, {"Key": "far", "Dir": "../../far"}]}`), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	code, known, err := of.moduleCode(t.Context(), nil)
	if err != nil || !known || len(code.Locals["a"]) != 1 {
		t.Errorf("the root module is known: %t, %+v, %v", known, code, err)
	}
	if _, known, err := of.moduleCode(t.Context(), []string{"far"}); err != nil || known {
		t.Errorf("a module that is not in the bundle is known: %t, %v", known, err)
	}
}

// TestCodeThatNamesADevice: an attempt whose code names what never answers goes on, and
// one that has ended waits for nothing.
func TestCodeThatNamesADevice(t *testing.T) {
	t.Parallel()
	of := ofMode(nil, nil)
	of.work = t.TempDir()
	of.bundle = filepath.Join(of.work, "bundle")
	of.root = of.bundle
	pipe := filepath.Join(t.TempDir(), "pipe")
	code := `locals { a = [for i in [] : "${file("/dev/ptmx")} ${file("` + pipe + `")} ${templatefile("/proc/self/environ", {})}"] }`
	for _, err := range []error{
		syscall.Mkfifo(pipe, 0o600), os.MkdirAll(of.root, 0o700),
		os.WriteFile(filepath.Join(of.root, "main.tf"), []byte(code), 0o600),
		os.Symlink(pipe, filepath.Join(of.root, "link.tofu")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0) // which is silent
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	of.engine.Name = modulecode.Terraform
	got, err := of.filesRead(t.Context(), of.root, ".")
	if err != nil || len(got) != 3 {
		t.Errorf("%v, %v", got, err)
	}
	of.engine.Name = modulecode.Tofu
	if _, err := of.filesRead(t.Context(), of.root, "."); err == nil {
		t.Error("a link to a pipe is read as code")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cancel(over)
	if _, _, err := of.moduleCode(ctx, nil); !errors.Is(err, over) {
		t.Errorf("after its end: %v", err)
	}
}
