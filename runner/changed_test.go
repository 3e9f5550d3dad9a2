package runner_test

import (
	"bytes"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

func lockFile(versions map[string]string, hash string) string {
	var b strings.Builder
	for source, version := range versions {
		b.WriteString("provider \"" + source + "\" {\n  version = \"" + version + "\"\n  hashes = [\"" + hash + "\"]\n}\n")
	}
	return b.String()
}

// TestInputChangesAreReported: what differs between the input that was reviewed and
// the one that is there is said in words, as far as it is known.
func TestInputChangesAreReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, version := range []string{"1.9.8", "1.11.4"} {
		installEngine(t, filepath.Join(dir, "terraform", version), "terraform")
	}
	newOne := func() *runner.Executor {
		e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) { o.Engines.Dirs = []string{dir} })
		return e
	}
	e := newOne()
	aws := map[string]string{"registry.terraform.io/hashicorp/aws": "5.1.0", "registry.terraform.io/hashicorp/time": "0.9.0"}
	base := map[string]string{"main.tf": `module "m" { source = "example.com/m/x" }`, ".terraform.lock.hcl": lockFile(aws, "h1:a"), "fetched/m.tf": "one"}
	old := newMemorySession(base)
	old.state = "http://127.0.0.1:1/x"
	planned := e.Execute(t.Context(), engineAssignment("run-1", holdfast.RunPlan), old)
	wantStatus(t, planned, holdfast.RunPlanned, "", old)

	const before = "the input is not what was reviewed in run run-1: "
	for name, c := range map[string]struct {
		change   map[string]string
		assign   func(a *protocol.Assignment)
		executor *runner.Executor
		forgot   bool
		want     string
	}{
		"the code": {
			assign: func(a *protocol.Assignment) { a.SourceDigest = holdfast.DigestOf([]byte("other source")) },
			want:   before + "the cluster's code or variables have changed",
		},
		"the engine": {
			assign: func(a *protocol.Assignment) { a.Engine.Version = "1.9.8" },
			want:   before + "the engine is terraform 1.9.8, it was terraform 1.11.4",
		},
		"the providers": {
			change: map[string]string{".terraform.lock.hcl": lockFile(map[string]string{
				"registry.terraform.io/hashicorp/aws": "5.2.0", "registry.opentofu.org/hashicorp/local": "2.5.0",
			}, "h1:a")},
			want: before + "provider hashicorp/local 2.5.0 is new; provider hashicorp/aws is 5.2.0, it was 5.1.0; provider hashicorp/time 0.9.0 is gone",
		},
		"the providers' checksums": {
			change: map[string]string{".terraform.lock.hcl": lockFile(aws, "h1:b")},
			want:   before + "the provider lock file has other constraints or checksums for the same versions",
		},
		"a lock file that cannot be read": {
			change: map[string]string{".terraform.lock.hcl": strings.Repeat("[", 1<<16)},
			want:   before + "provider hashicorp/aws 5.1.0 is gone; provider hashicorp/time 0.9.0 is gone",
		},
		"a fetched module": {
			change: map[string]string{"fetched/m.tf": "two"}, executor: newOne(),
			want: before + "module fetched has changed: its source is not pinned to a version or a commit",
		},
		"nobody knows": {
			assign: func(a *protocol.Assignment) { a.SourceDigest = holdfast.DigestOf([]byte("other source")) }, forgot: true,
			want: "the input is not what was reviewed: the code, its modules, the provider versions or the engine differ from those of run run-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := maps.Clone(base)
			maps.Copy(files, c.change)
			s := newMemorySession(files)
			s.state = "http://127.0.0.1:1/x"
			if !c.forgot {
				s.stored = map[string]map[string][]byte{"run-1": old.artefacts}
			}
			a := engineAssignment("run-"+strings.ReplaceAll(name, " ", "-"), holdfast.RunApply)
			a.Reviews = review("run-1", planned)
			if c.assign != nil {
				c.assign(&a)
			}
			if c.executor == nil {
				c.executor = e
			}
			got := c.executor.Execute(t.Context(), a, s)
			wantStatus(t, got, holdfast.RunPlanned, holdfast.ReasonPlanChanged, s)
			if got.Detail != c.want {
				t.Errorf("got  %q\nwant %q", got.Detail, c.want)
			}
		})
	}
}

// TestPlanChangesAreReported: with the summary of the reviewed run, what differs
// between two plans of the same input is named.
func TestPlanChangesAreReported(t *testing.T) {
	t.Parallel()
	e, _ := engineExecutor(t, nil)
	s := newMemorySession(map[string]string{"main.tf": ""})
	s.state = "http://127.0.0.1:1/x"
	planned := e.Execute(t.Context(), engineAssignment("run-1", holdfast.RunPlan), s)
	wantStatus(t, planned, holdfast.RunPlanned, "", s)

	reviewed := plandoc.Document{Version: 1, Resources: []plandoc.Resource{{
		Address: "terraform_data.x", Type: "terraform_data", Actions: []string{"update"},
	}}}
	var encoded bytes.Buffer
	if err := reviewed.Encode(&encoded); err != nil {
		t.Fatal(err)
	}
	a := engineAssignment("run-2", holdfast.RunApply)
	a.Reviews = review("run-1", planned)
	a.Reviews[0].PlanDigest = reviewed.Digest()
	s.stored = map[string]map[string][]byte{"run-1": {protocol.ArtefactDocument: encoded.Bytes()}}
	got := e.Execute(t.Context(), a, s)
	wantStatus(t, got, holdfast.RunPlanned, holdfast.ReasonPlanChanged, s)
	if want := "the plan differs from the reviewed one of run run-1: terraform_data.x: to be created now, was to be updated"; got.Detail != want {
		t.Errorf("got  %q\nwant %q", got.Detail, want)
	}

	a.Run, s.stored = "run-3", nil
	got = e.Execute(t.Context(), a, s)
	if want := "the infrastructure or what the plan reads has changed since"; !strings.HasSuffix(got.Detail, want) {
		t.Errorf("got  %q\nwant %q", got.Detail, want)
	}
}
