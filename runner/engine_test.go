package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) { o.Engines.Dirs = []string{dir} })
	requires := func(constraint string) map[string]string {
		return map[string]string{"root/main.tf": fmt.Sprintf("terraform {\n  required_version = %q\n}\n", constraint)}
	}
	for name, c := range map[string]struct {
		files              map[string]string
		engine             holdfast.EngineRef
		pinName, pin, want string
		fault              holdfast.Reason
		words              []string // of what is wrong, and what to do
	}{
		"nothing said":                     {want: "tofu 1.10.2"},
		"the cluster's name":               {engine: holdfast.EngineRef{Name: "terraform"}, want: "terraform 1.11.4"},
		"the cluster's constraint":         {engine: holdfast.EngineRef{Name: "terraform", Version: "~> 1.9.0"}, want: "terraform 1.9.8"},
		"a constraint without a name":      {engine: holdfast.EngineRef{Version: "1.9.8"}, want: "terraform 1.9.8"},
		"a prerelease must be named":       {engine: holdfast.EngineRef{Name: "terraform", Version: "1.12.0-beta1"}, want: "terraform 1.12.0-beta1"},
		"the code's constraint":            {files: requires("~> 1.5.0"), want: "terraform 1.5.7"},
		"cluster and code":                 {files: requires("< 1.11"), engine: holdfast.EngineRef{Name: "terraform", Version: ">= 1.6"}, want: "terraform 1.9.8"},
		"a version file of terraform":      {files: map[string]string{"root/.terraform-version": "1.5.7\n"}, want: "terraform 1.5.7"},
		"a version file of tofu above":     {files: map[string]string{".opentofu-version": "1.8.1", "root/main.tf": ""}, want: "tofu 1.8.1"},
		"a version file of asdf":           {files: map[string]string{"root/.tool-versions": "terraform 1.9.8\n"}, want: "terraform 1.9.8"},
		"a strategy in a version file":     {files: map[string]string{"root/.terraform-version": "latest-allowed", "root/main.tf": "terraform {\n  required_version = \"< 1.10\"\n}\n"}, want: "terraform 1.9.8"},
		"the cluster wins over the file":   {files: map[string]string{"root/.terraform-version": "1.5.7"}, engine: holdfast.EngineRef{Name: "terraform", Version: "1.9.8"}, want: "terraform 1.9.8"},
		"files that only tofu reads":       {files: map[string]string{"root/main.tofu": ""}, want: "tofu 1.10.2"},
		"the last applied version is kept": {pinName: "terraform", pin: "1.9.8", want: "terraform 1.9.8"},
		"until its constraint changes":     {pinName: "terraform", pin: "1.9.8", engine: holdfast.EngineRef{Name: "terraform", Version: ">= 1.10"}, want: "terraform 1.11.4"},
		"or it is gone":                    {pinName: "terraform", pin: "1.9.9", want: "terraform 1.11.4"},
		"or the engine is another":         {pinName: "terraform", pin: "1.9.8", engine: holdfast.EngineRef{Name: "tofu"}, want: "tofu 1.10.2"},
		"Terraform's constraint":           {engine: holdfast.EngineRef{Version: "~> 1.5.7"}, want: "terraform 1.5.7"},
		"Terraform's constraint in code":   {files: requires("< 1.6"), want: "terraform 1.5.7"},
		"a name that only looks like code": {files: map[string]string{"root/x.tofutest.hcl": "", "root/a.tofu.bak": "", "root/main.tf": ""}, pinName: "terraform", pin: "1.9.8", want: "terraform 1.9.8"},
		"both engines' version files":      {files: map[string]string{"root/.terraform-version": "1.9.8", "root/.opentofu-version": "1.8.1", "root/main.tf": ""}, pinName: "tofu", pin: "1.10.2", want: "tofu 1.8.1"},
		"nothing fits":                     {engine: holdfast.EngineRef{Name: "tofu", Version: "~> 2.0"}, fault: "NoEngine", words: []string{"tofu 1.10.2", "terraform 1.11.4"}},
		"not a constraint":                 {engine: holdfast.EngineRef{Name: "tofu", Version: "newest"}, fault: "InvalidConfiguration"},
		"not an engine":                    {engine: holdfast.EngineRef{Name: "pulumi"}, fault: "InvalidConfiguration"},
		"cluster and code exclude each one": {
			files: requires("< 1.6"), engine: holdfast.EngineRef{Name: "terraform", Version: ">= 1.6"}, fault: "InvalidConfiguration",
			words: []string{`">= 1.6" (the cluster's engine.version)`, `"< 1.6" (required_version)`, "change spec.engine.version"},
		},
		"exact versions exclude each other": {
			files: requires("= 1.9.8"), engine: holdfast.EngineRef{Version: "1.11.4"}, fault: "InvalidConfiguration",
			words: []string{`"1.11.4" (the cluster's engine.version)`, `"= 1.9.8" (required_version)`},
		},
		"tofu before it began": {
			files: requires("~> 1.5.7"), engine: holdfast.EngineRef{Name: "tofu"}, fault: "InvalidConfiguration",
			words: []string{"OpenTofu begins at 1.6.0", "set spec.engine.name to terraform"},
		},
		// The engine that applied last is another only by name.
		"no constraint moves it to tofu": {
			files: requires("~> 1.8.0"), pinName: "terraform", pin: "1.9.8", fault: "NoEngine",
			words: []string{"terraform \"~> 1.8.0\" (required_version)", "last applied with terraform 1.9.8", "set spec.engine.name to tofu to continue with tofu 1.8.1"},
		},
		"no constraint moves it to terraform": {
			files: requires("~> 1.9.0"), pinName: "tofu", pin: "1.10.2", fault: "NoEngine",
			words: []string{"tofu \"~> 1.9.0\"", "set spec.engine.name to terraform to continue with terraform 1.9.8"},
		},
		"no constraint of Terraform's moves it": {
			files: requires("~> 1.5.7"), pinName: "tofu", pin: "1.10.2", fault: "InvalidConfiguration",
			words: []string{"no version of tofu", "last applied with tofu 1.10.2", "set spec.engine.name to terraform"},
		},
		"no file moves it": {
			files: map[string]string{"root/x.tofu": "", "root/main.tf": ""}, pinName: "terraform", pin: "1.9.8", fault: "InvalidConfiguration",
			words: []string{"last applied with terraform 1.9.8", "x.tofu is read by tofu only", "spec.engine.name to tofu to change", "terraform to keep"},
		},
		"no version file moves it": {
			files: map[string]string{"root/.terraform-version": "1.9.8", "root/main.tf": ""}, pinName: "tofu", pin: "1.10.2", fault: "InvalidConfiguration",
			words: []string{"a version file asks for terraform 1.9.8", "spec.engine.name to terraform to change"},
		},
		"the name keeps it beside a file": {
			files:  map[string]string{"root/x.tofu": "", "root/main.tf": ""},
			engine: holdfast.EngineRef{Name: "terraform"}, pinName: "terraform", pin: "1.9.8", want: "terraform 1.9.8",
		},
		"a newer one of the same kind": {files: requires(">= 1.10"), pinName: "terraform", pin: "1.9.8", want: "terraform 1.11.4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.files == nil {
				c.files = map[string]string{"root/main.tf": ""}
			}
			s := newMemorySession(c.files)
			s.state = "http://127.0.0.1:1/x"
			a := engineAssignment("run-"+strings.NewReplacer(" ", "-", "'", "").Replace(name), holdfast.RunPlan)
			a.Dir, a.Engine, a.PinName, a.PinVersion = "root", c.engine, c.pinName, c.pin
			got := e.Execute(t.Context(), a, s)
			if c.fault != "" {
				wantStatus(t, got, holdfast.RunErrored, c.fault, s)
				for _, word := range c.words {
					if text := got.Failure.Summary + "\n" + got.Failure.Hint; !strings.Contains(text, word) {
						t.Errorf("no %q in %q", word, text)
					}
				}
				if got.Failure.Transient {
					t.Error("it would be tried again")
				}
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
	e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) { o.Engines.Dirs = []string{dir} })
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
