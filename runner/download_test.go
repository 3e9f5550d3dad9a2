package runner_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner"
)

// releases serves terraform 1.9.9 as a mirror does. Its binary answers version,
// and fails in all else.
func releases(t *testing.T, corrupt bool) (url string, downloads, lists *atomic.Int32) {
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
	downloads, lists = &atomic.Int32{}, &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/terraform", "/terraform/":
			lists.Add(1)
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
	return server.URL, downloads, lists
}

// TestEngineDownload: what is not installed is fetched from the mirror, once,
// and only kept if it is what it should be.
func TestEngineDownload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version        string
		fault          holdfast.Reason
		corrupt, exact bool
		validation     string
		name, requires string // terraform; none
		path           string // of the mirror's address
		passes, listed bool   // it is tried again; the releases are asked for
		words          []string
	}{
		"the exact last applied version": {version: "1.9.9", exact: true, validation: "sha", fault: "EngineFailed"},
		"no such last applied version":   {version: "1.7.0", exact: true, validation: "sha", fault: "DownloadFailed"},

		"an exact version":            {version: "1.9.9", validation: "sha", fault: "EngineFailed"}, // by the downloaded engine
		"an exact version in a range": {version: "1.9.9", requires: ">= 1.0", validation: "sha", fault: "EngineFailed"},
		"a constraint":                {version: "~> 1.8", validation: "sha", fault: "EngineFailed", listed: true},
		"Terraform's constraint":      {version: "< 1.6, >= 1.5", name: "any", validation: "sha", fault: "DownloadFailed", listed: true, words: []string{"terraform", "no release fits: the newest of 2 is 1.9.9"}},
		"no such release": {
			version: "~> 3.0", validation: "sha", fault: "DownloadFailed", listed: true,
			words: []string{"no release fits: the newest of 2 is 1.9.9", "installed: terraform 1.2.3", "change the constraint"},
		},
		"no such exact release": {
			version: "1.7.0", validation: "sha", fault: "DownloadFailed",
			words: []string{"terraform 1.7.0", "404 Not Found", "/terraform/1.7.0/", "installed: terraform 1.2.3"},
		},
		"no mirror at its address": {
			version: "~> 1.8", validation: "sha", path: "/wrong", fault: "DownloadFailed",
			words: []string{"/wrong/terraform: 404 Not Found", "engines.terraformMirror"},
		},
		"no mirror at all": {
			version: "~> 1.8", validation: "sha", path: "://", fault: "DownloadFailed", passes: true,
			words: []string{"connection refused", "installed: terraform 1.2.3"},
		},
		"a contradiction":            {version: ">= 1.9", requires: "< 1.8", validation: "sha", path: "://", fault: "InvalidConfiguration", words: []string{`"< 1.8" (required_version)`}},
		"a corrupt archive":          {version: "1.9.9", validation: "sha", corrupt: true, fault: "DownloadFailed", passes: true},
		"signatures are the default": {version: "1.9.9", fault: "DownloadFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, downloads, lists := releases(t, c.corrupt)
			if url += c.path; c.path == "://" {
				url = "http://127.0.0.1:1" // where nothing listens
			}
			work, old := "", t.TempDir()
			installEngine(t, filepath.Join(old, "terraform", "1.2.3"), "terraform")
			e, _ := newExecutor(t, func(o *runner.ExecutorOptions) {
				o.Engines.Download, o.Engines.TerraformMirror, o.Engines.Validation, work = true, url, c.validation, o.WorkDir
				o.Engines.Dirs = []string{old}
				o.Engines.Env["PATH"] = "/nowhere:/bin:/usr/bin"
			})
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					code := ""
					if c.requires != "" {
						code = fmt.Sprintf("terraform {\n  required_version = %q\n}\n", c.requires)
					}
					s := newMemorySession(map[string]string{"main.tf": code})
					s.state = "http://127.0.0.1:1/x"
					a := engineAssignment(fmt.Sprintf("run-%d", i), holdfast.RunPlan)
					a.Engine = holdfast.EngineRef{Name: "terraform", Version: c.version}
					if c.name != "" {
						a.Engine.Name = ""
					}
					if c.exact {
						a.Engine = holdfast.EngineRef{Name: "tofu", Version: "~> 1.10"}
						a.Exact, a.PinName, a.PinVersion = true, "terraform", c.version
					}
					got := e.Execute(t.Context(), a, s)
					// Where the vendor's key is out of reach, that may pass.
					if got.Reason != c.fault || c.validation != "" && got.Failure.Transient != c.passes {
						t.Errorf("got %s, passes %v: %s, want %s\n%s", got.Reason, got.Failure.Transient, got.Detail, c.fault, s.logged())
					}
					for _, word := range c.words {
						if text := got.Failure.Summary + "\n" + got.Failure.Hint; !strings.Contains(text, word) {
							t.Errorf("no %q in %q", word, text)
						}
					}
				})
			}
			wg.Wait()
			left, _ := filepath.Glob(filepath.Join(work, "engines", "*", "*", "terraform"))
			if kept := len(left) == 1; kept != (c.fault == "EngineFailed") {
				t.Errorf("engines: %v", left)
			}
			if asked := lists.Load() > 0; asked != c.listed {
				t.Errorf("releases were asked for %d times", lists.Load())
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
