package plan_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/reviewed"
)

// failing has a resource that is created, one whose creation fails as long as a
// file is missing, and one whose replacement fails after its destruction.
const failing = `
resource "terraform_data" "first" {
  input = "a"
}

resource "terraform_data" "second" {
  input = terraform_data.first.output
  lifecycle {
    precondition {
      condition     = fileexists("${path.module}/flag-${terraform_data.first.output}")
      error_message = "There is no flag."
    }
  }
}

resource "terraform_data" "third" {
  triggers_replace = "VERSION"
  input            = terraform_data.second.output
}

output "second" {
  value = terraform_data.second.output
}
`

// TestSubsetOfAnEngine lets a real apply fail in the middle.
func TestSubsetOfAnEngine(t *testing.T) {
	t.Parallel()

	e := newEngine(t)
	e.write("main.tf", "resource \"terraform_data\" \"third\" {\n  triggers_replace = \"1\"\n}\n")
	e.run("init", "-input=false", "-no-color")
	e.run("apply", "-input=false", "-no-color", "-auto-approve")

	e.write("main.tf", strings.Replace(failing, "VERSION", "2", 1))
	shown := e.plan()
	if again := e.plan(); again.Digest() != shown.Digest() {
		t.Errorf("planned twice: %s", strings.Join(reviewed.Differences(again, shown), "\n"))
	}
	if out, err := e.command("apply", "-input=false", "-no-color", "plan").CombinedOutput(); err == nil {
		t.Fatalf("the apply did not fail:\n%s", out)
	}

	e.write("flag-a", "")
	rest := e.plan()
	if len(rest.Resources) == 0 || len(rest.Resources) >= len(shown.Resources) {
		t.Fatalf("%d of %d changes remain", len(rest.Resources), len(shown.Resources))
	}
	if !reviewed.Remains(rest, shown) {
		t.Errorf("what remains is not a subset: %s", strings.Join(reviewed.Differences(rest, shown), "\n"))
	}
	if rest.Digest() == shown.Digest() {
		t.Error("what remains has the fingerprint of the whole")
	}

	e.write("main.tf", strings.Replace(failing, "VERSION", "3", 1))
	if other := e.plan(); reviewed.Remains(other, shown) {
		t.Error("a plan of other code is a subset")
	}
}

// testEngine runs a real engine in a folder.
type testEngine struct {
	t    *testing.T
	path string
	dir  string
}

func newEngine(t *testing.T) *testEngine {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an engine")
	}
	path, err := exec.LookPath("terraform")
	if err != nil {
		path, err = exec.LookPath("tofu")
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("neither terraform nor tofu is on the PATH")
		}
		t.Skip("neither terraform nor tofu is on the PATH")
	}
	return &testEngine{t: t, path: path, dir: t.TempDir()}
}

func (e *testEngine) write(name, content string) {
	e.t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, name), []byte(content), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

func (e *testEngine) command(args ...string) *exec.Cmd {
	cmd := exec.Command(e.path, args...)
	cmd.Dir = e.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + e.dir, "CHECKPOINT_DISABLE=1", "GOGC=400", "TF_IN_AUTOMATION=1"}
	return cmd
}

func (e *testEngine) run(args ...string) []byte {
	e.t.Helper()
	out, err := e.command(args...).Output()
	if err != nil {
		e.t.Fatalf("%s: %v\n%s", args[0], err, out)
	}
	return out
}

func (e *testEngine) plan() plandoc.Document {
	e.t.Helper()
	e.run("plan", "-input=false", "-no-color", "-out=plan")
	found, err := plan.Read(bytes.NewReader(e.run("show", "-json", "plan")), plan.Options{Key: printKey})
	if err != nil {
		e.t.Fatal(err)
	}
	return found.Document
}
