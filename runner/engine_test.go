package runner_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner"
)

// TestEngineChoice: which engine a cluster gets from those that are installed.
func TestEngineChoice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for tool, versions := range map[string][]string{
		"terraform": {"1.5.7", "1.9.8", "1.11.4", "1.12.0-beta1"}, "tofu": {"1.8.1", "1.10.2"},
	} {
		for _, version := range versions {
			installEngine(t, filepath.Join(dir, tool, version), tool)
		}
	}
	e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) { o.EngineDirs = []string{dir} })
	requires := func(constraint string) map[string]string {
		return map[string]string{"root/main.tf": fmt.Sprintf("terraform {\n  required_version = %q\n}\n", constraint)}
	}
	for name, c := range map[string]struct {
		files              map[string]string
		engine             holdfast.EngineRef
		pinName, pin, want string
		fault              string
	}{
		"nothing said":                      {want: "tofu 1.10.2"},
		"the cluster's name":                {engine: holdfast.EngineRef{Name: "terraform"}, want: "terraform 1.11.4"},
		"the cluster's constraint":          {engine: holdfast.EngineRef{Name: "terraform", Version: "~> 1.9.0"}, want: "terraform 1.9.8"},
		"a constraint without a name":       {engine: holdfast.EngineRef{Version: "1.9.8"}, want: "terraform 1.9.8"},
		"a prerelease must be named":        {engine: holdfast.EngineRef{Name: "terraform", Version: "1.12.0-beta1"}, want: "terraform 1.12.0-beta1"},
		"the code's constraint":             {files: requires("~> 1.5.0"), want: "terraform 1.5.7"},
		"cluster and code":                  {files: requires("< 1.11"), engine: holdfast.EngineRef{Name: "terraform", Version: ">= 1.6"}, want: "terraform 1.9.8"},
		"a version file of terraform":       {files: map[string]string{"root/.terraform-version": "1.5.7\n"}, want: "terraform 1.5.7"},
		"a version file of tofu above":      {files: map[string]string{".opentofu-version": "1.8.1", "root/main.tf": ""}, want: "tofu 1.8.1"},
		"a version file of asdf":            {files: map[string]string{"root/.tool-versions": "terraform 1.9.8\n"}, want: "terraform 1.9.8"},
		"a strategy in a version file":      {files: map[string]string{"root/.terraform-version": "latest-allowed", "root/main.tf": "terraform {\n  required_version = \"< 1.10\"\n}\n"}, want: "terraform 1.9.8"},
		"the cluster wins over the file":    {files: map[string]string{"root/.terraform-version": "1.5.7"}, engine: holdfast.EngineRef{Name: "terraform", Version: "1.9.8"}, want: "terraform 1.9.8"},
		"files that only tofu reads":        {files: map[string]string{"root/main.tofu": ""}, want: "tofu 1.10.2"},
		"the last applied version is kept":  {pinName: "terraform", pin: "1.9.8", want: "terraform 1.9.8"},
		"until its constraint changes":      {pinName: "terraform", pin: "1.9.8", engine: holdfast.EngineRef{Name: "terraform", Version: ">= 1.10"}, want: "terraform 1.11.4"},
		"or it is gone":                     {pinName: "terraform", pin: "1.9.9", want: "terraform 1.11.4"},
		"or the engine is another":          {pinName: "terraform", pin: "1.9.8", engine: holdfast.EngineRef{Name: "tofu"}, want: "tofu 1.10.2"},
		"nothing fits":                      {engine: holdfast.EngineRef{Name: "tofu", Version: "~> 2.0"}, fault: "NoEngine"},
		"not a constraint":                  {engine: holdfast.EngineRef{Name: "tofu", Version: "newest"}, fault: "InvalidConfiguration"},
		"not an engine":                     {engine: holdfast.EngineRef{Name: "pulumi"}, fault: "InvalidConfiguration"},
		"cluster and code exclude each one": {files: requires("< 1.6"), engine: holdfast.EngineRef{Name: "terraform", Version: ">= 1.6"}, fault: "NoEngine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.files == nil {
				c.files = map[string]string{"root/main.tf": ""}
			}
			s := newMemorySession(c.files)
			s.state = "http://127.0.0.1:1/x"
			a := engineAssignment("run-"+strings.ReplaceAll(name, " ", "-"), holdfast.RunPlan)
			a.Dir, a.Engine, a.PinName, a.PinVersion = "root", c.engine, c.pinName, c.pin
			got := e.Execute(t.Context(), a, s)
			if c.fault != "" {
				wantStatus(t, got, holdfast.RunErrored, c.fault, s)
				return
			}
			wantStatus(t, got, holdfast.RunPlanned, "", s)
			if chosen := got.EngineName + " " + got.EngineVersion; chosen != c.want {
				t.Errorf("got %s, want %s", chosen, c.want)
			}
		})
	}
	t.Cleanup(func() { // after all: no engine was started twice just to ask
		files, _ := filepath.Glob(filepath.Join(dir, "*", "*", "*.asked"))
		for _, file := range files {
			if data, _ := os.ReadFile(file); strings.Count(string(data), "\n") > 20 {
				t.Errorf("%s was asked for its version %d times", file, strings.Count(string(data), "\n"))
			}
		}
	})
}

// TestEngineExact: the engine of the last applied run and no other, whatever
// cluster and code ask for.
func TestEngineExact(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for tool, versions := range map[string][]string{"terraform": {"1.5.7", "1.11.4", "1.12.0-beta1"}, "tofu": {"1.10.2"}} {
		for _, version := range versions {
			installEngine(t, filepath.Join(dir, tool, version), tool)
		}
	}
	e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) { o.EngineDirs = []string{dir} })
	for name, c := range map[string]struct {
		pinName, pin string
		fault        string // a word of what is wrong
	}{
		"installed":       {pinName: "terraform", pin: "1.5.7"},
		"a prerelease":    {pinName: "terraform", pin: "1.12.0-beta1"},
		"the other tool":  {pinName: "tofu", pin: "1.10.2"},
		"gone":            {pinName: "terraform", pin: "1.5.6", fault: "= 1.5.6"},
		"not an engine":   {pinName: "pulumi", pin: "1.0.0", fault: "pulumi"},
		"unknown":         {fault: "last applied run"},
		"not a version":   {pinName: "tofu", pin: "newest", fault: "newest"},
		"no version":      {pinName: "tofu", fault: "last applied run"},
		"not a range":     {pinName: "tofu", pin: "~> 1.10", fault: "~> 1.10"},
		"not a downgrade": {pinName: "tofu", pin: "1.10.1", fault: "1.10.2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range []holdfast.RunKind{holdfast.RunDrift, holdfast.RunPlan} {
				s := newMemorySession(map[string]string{
					"main.tf": "terraform {\n  required_version = \"> 1.10\"\n}\n", ".terraform-version": "1.11.4", ".opentofu-version": "no version",
				})
				s.state = "http://127.0.0.1:1/x"
				a := engineAssignment("run-"+strings.ReplaceAll(name, " ", "-")+string(kind), kind)
				a.Exact, a.PinName, a.PinVersion, a.Engine = true, c.pinName, c.pin, holdfast.EngineRef{Name: "terraform", Version: ">= 1.11"}
				got := e.Execute(t.Context(), a, s)
				if c.fault != "" {
					wantStatus(t, got, holdfast.RunErrored, "NoEngine", s)
					if !strings.Contains(got.Failure.Summary, c.fault) || !strings.Contains(got.Failure.Hint, "last applied") {
						t.Errorf("failure %+v", got.Failure)
					}
					continue
				}
				wantStatus(t, got, holdfast.RunPlanned, "", s)
				if got.EngineName != c.pinName || got.EngineVersion != c.pin {
					t.Errorf("got %s %s, want %s %s", got.EngineName, got.EngineVersion, c.pinName, c.pin)
				}
			}
		})
	}
}

// releases serves terraform 1.9.9 as a mirror does. Its binary answers version,
// and fails in all else.
func releases(t *testing.T, corrupt bool) (url string, downloads *atomic.Int32) {
	t.Helper()
	var archive bytes.Buffer
	zw := zip.NewWriter(&archive)
	f, err := zw.Create("terraform")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, "#!/bin/sh\n[ \"$1\" = version ] && echo '{\"terraform_version\": \"1.9.9\"}' && exit\necho 'Error: a fake' >&2; exit 1\n")
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("terraform_1.9.9_%s_%s.zip", runtime.GOOS, runtime.GOARCH)
	sums := fmt.Sprintf("%x  %s\n", sha256.Sum256(archive.Bytes()), name)
	downloads = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/terraform", "/terraform/":
			fmt.Fprint(w, `<a href="/terraform/1.9.9/">terraform_1.9.9</a> <a href="/terraform/1.8.0/">terraform_1.8.0</a>`)
		case "/terraform/1.9.9/" + name:
			downloads.Add(1)
			if corrupt {
				_, _ = w.Write(archive.Bytes()[:archive.Len()/2])
				return
			}
			_, _ = w.Write(archive.Bytes())
		case "/terraform/1.9.9/terraform_1.9.9_SHA256SUMS":
			fmt.Fprint(w, sums)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, downloads
}

// TestEngineDownload: what is not installed is fetched from the mirror, once,
// and only kept if it is what it should be.
func TestEngineDownload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version, fault string
		corrupt, exact bool
		validation     string
	}{
		"the exact last applied version": {version: "1.9.9", exact: true, validation: "sha", fault: "EngineFailed"},
		"no such last applied version":   {version: "1.7.0", exact: true, validation: "sha", fault: "DownloadFailed"},

		"an exact version":           {version: "1.9.9", validation: "sha", fault: "EngineFailed"}, // by the downloaded engine
		"a constraint":               {version: "~> 1.8", validation: "sha", fault: "EngineFailed"},
		"no such release":            {version: "~> 3.0", validation: "sha", fault: "DownloadFailed"},
		"no such exact release":      {version: "1.7.0", validation: "sha", fault: "DownloadFailed"},
		"a corrupt archive":          {version: "1.9.9", validation: "sha", corrupt: true, fault: "DownloadFailed"},
		"signatures are the default": {version: "1.9.9", fault: "DownloadFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, downloads := releases(t, c.corrupt)
			work := ""
			e, _ := newExecutor(t, func(o *runner.ExecutorOptions) {
				o.Download, o.TerraformMirror, o.Validation, work = true, url, c.validation, o.WorkDir
				o.Env["PATH"] = "/nowhere:/bin:/usr/bin"
			})
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					s := newMemorySession(map[string]string{"main.tf": ""})
					s.state = "http://127.0.0.1:1/x"
					a := engineAssignment(fmt.Sprintf("run-%d", i), holdfast.RunPlan)
					a.Engine = holdfast.EngineRef{Name: "terraform", Version: c.version}
					if c.exact {
						a.Engine = holdfast.EngineRef{Name: "tofu", Version: "~> 1.10"}
						a.Exact, a.PinName, a.PinVersion = true, "terraform", c.version
					}
					got := e.Execute(t.Context(), a, s)
					if got.Reason != c.fault {
						t.Errorf("got %s: %s, want %s\n%s", got.Reason, got.Detail, c.fault, s.logged())
					}
				})
			}
			wg.Wait()
			left, _ := filepath.Glob(filepath.Join(work, "engines", "*", "*", "terraform"))
			if kept := len(left) == 1; kept != (c.fault == "EngineFailed") {
				t.Errorf("engines: %v", left)
			}
			if c.fault == "EngineFailed" && downloads.Load() != 1 {
				t.Errorf("%d downloads, want 1", downloads.Load())
			}
			if temporary, _ := filepath.Glob(filepath.Join(work, "engines", "tmp-*")); len(temporary) > 0 {
				t.Errorf("left: %v", temporary)
			}
		})
	}
}
