package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/engine"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// machine is a folder with programs that answer as engines of these versions do.
// A version that is empty does not answer.
func machine(t *testing.T, engines ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, e := range engines {
		name, version, _ := strings.Cut(e, " ")
		script := fmt.Sprintf("#!/bin/sh\necho '{\"terraform_version\":%q,\"platform\":\"linux_amd64\"}'\n", version)
		if version == "" {
			script = "#!/bin/sh\nkill -KILL $$\n"
		}
		path := filepath.Join(dir, name)
		if version != "" {
			path = filepath.Join(dir, version, name)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil { //nolint:gosec // it is started
			t.Fatal(err)
		}
	}
	return dir
}

// The engine that wrote a state is another one only if the document names it.
func TestChoose(t *testing.T) {
	t.Parallel()
	everything := []string{"terraform 1.9.8", "terraform 1.11.4", "tofu 1.9.0", "tofu 1.10.1"}
	pinned := func(name, version string) protocol.EngineChoice {
		return protocol.EngineChoice{PinName: name, PinVersion: version}
	}
	named := func(c protocol.EngineChoice, name, version string) protocol.EngineChoice {
		c.Engine = holdfast.EngineRef{Name: name, Version: version}
		return c
	}
	exact := func(c protocol.EngineChoice) protocol.EngineChoice { c.Exact = true; return c }
	code := func(requires ...string) modulecode.Root { return modulecode.Root{Requires: requires} }
	for name, test := range map[string]struct {
		installed []string
		choice    protocol.EngineChoice
		code      modulecode.Root
		file      string // a version file: its name and text
		want      string // the engine
		cause     holdfast.Reason
		words     string // in the error or its hint
	}{
		"tofu goes first":            {everything, protocol.EngineChoice{}, code(), "", "tofu 1.10.1", "", ""},
		"the code's constraint":      {everything, protocol.EngineChoice{}, code("~> 1.9.0"), "", "tofu 1.9.0", "", ""},
		"only terraform fits":        {everything, protocol.EngineChoice{}, code("~> 1.11.0"), "", "terraform 1.11.4", "", ""},
		"a version file":             {everything, protocol.EngineChoice{}, code(), ".terraform-version 1.9.8", "terraform 1.9.8", "", ""},
		"code of tofu":               {everything, protocol.EngineChoice{}, modulecode.Root{Tofu: "main.tofu"}, "", "tofu 1.10.1", "", ""},
		"the document":               {everything, named(protocol.EngineChoice{}, "terraform", "~> 1.9.0"), code(), "", "terraform 1.9.8", "", ""},
		"document and code":          {everything, named(protocol.EngineChoice{}, "terraform", "~> 1.9"), code("< 1.10"), "", "terraform 1.9.8", "", ""},
		"the last one stays":         {everything, pinned("terraform", "1.9.8"), code(), "", "terraform 1.9.8", "", ""},
		"until it no longer fits":    {everything, pinned("terraform", "1.9.8"), code(">= 1.10"), "", "terraform 1.11.4", "", ""},
		"or is gone":                 {everything[1:], pinned("terraform", "1.9.8"), code(), "", "terraform 1.11.4", "", ""},
		"never another engine":       {everything[2:], pinned("terraform", "1.9.8"), code(), "", "", holdfast.CauseNoEngine, "set spec.engine.name to tofu"},
		"unless the document names":  {everything, named(pinned("terraform", "1.9.8"), "tofu", ""), code(), "", "tofu 1.10.1", "", ""},
		"not by a version file":      {everything, pinned("tofu", "1.9.0"), code(), ".terraform-version 1.9.8", "", holdfast.CauseInvalidConfiguration, "set spec.engine.name to terraform"},
		"not by code":                {everything, pinned("terraform", "1.9.8"), modulecode.Root{Tofu: "a.tofu"}, "", "", holdfast.CauseInvalidConfiguration, "a.tofu is read by tofu only"},
		"a destroy takes its own":    {everything, exact(named(pinned("terraform", "1.9.8"), "tofu", "1.10.1")), code("> 1.10"), "", "terraform 1.9.8", "", ""},
		"or none":                    {everything[1:], exact(pinned("terraform", "1.9.8")), code(), "", "", holdfast.CauseNoEngine, "the engine that the cluster was last applied with"},
		"what can never fit":         {everything, named(protocol.EngineChoice{}, "tofu", "~> 1.5.0"), code(), "", "", holdfast.CauseInvalidConfiguration, "set spec.engine.name to terraform"},
		"a contradiction":            {everything, named(protocol.EngineChoice{}, "", "~> 1.9.0"), code("~> 1.10.0"), "", "", holdfast.CauseInvalidConfiguration, "required_version"},
		"one that gives no answer":   {[]string{"tofu", "terraform 1.11.4"}, protocol.EngineChoice{}, code(), "", "", holdfast.CauseNoEngine, "does not report its version"},
		"a prerelease is not chosen": {[]string{"tofu 1.11.0-beta1", "tofu 1.9.0"}, protocol.EngineChoice{}, code(), "", "tofu 1.9.0", "", ""},
		"nothing is installed":       {nil, protocol.EngineChoice{}, code(), "", "", holdfast.CauseNoEngine, "none is installed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if file, text, ok := strings.Cut(test.file, " "); ok {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			store := engine.NewStore(engine.Options{
				Sources: engine.Sources{Dirs: []string{machine(t, test.installed...)}}, Dir: t.TempDir(),
				Env: map[string]string{"PATH": ""}, Logger: slog.New(slog.DiscardHandler),
			})
			var found engine.Binary
			wish, err := engine.WishOf(protocol.Assignment{EngineChoice: test.choice}, test.code, dir, dir)
			if err == nil {
				found, err = store.Choose(t.Context(), wish)
			}
			if test.cause == "" {
				if got := found.Name + " " + found.Version; err != nil || got != test.want {
					t.Errorf("got %s, %v, want %s", got, err, test.want)
				}
				return
			}
			var failed *failure.Error
			if !errors.As(engine.Fault(err, test.choice.Exact), &failed) || failed.Cause != test.cause ||
				!strings.Contains(failed.Error()+" "+failed.Hint, test.words) {
				t.Errorf("got %s %s, %v (%+v), want %s with %q", found.Name, found.Version, err, failed, test.cause, test.words)
			}
		})
	}
}

// What is not a version, or not the name of an engine, is refused with these words.
func TestWishOfNonsense(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for words, choice := range map[string]protocol.EngineChoice{
		`engine "pulumi"`:                 {Engine: holdfast.EngineRef{Name: "pulumi"}},
		"the cluster's engine.version":    {Engine: holdfast.EngineRef{Version: "newest"}},
		"engine of the last applied run:": {Exact: true, PinName: "terraform", PinVersion: "?"},
	} {
		if _, err := engine.WishOf(protocol.Assignment{EngineChoice: choice}, modulecode.Root{}, dir, dir); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("WishOf(%+v) = %v, want %q", choice, err, words)
		}
	}
}

// An engine takes a good part of a plan's time to report its version: attempts that start at
// once ask it once.
func TestVersionIsAskedOnce(t *testing.T) {
	t.Parallel()
	dir := machine(t, "terraform 1.11.4")
	asked := filepath.Join(dir, "asked")
	script := fmt.Sprintf("#!/bin/sh\necho asked >>%s\nwhile ! test -e %s/answer; do /bin/sleep 0.01; done\n"+
		"echo '{\"terraform_version\":\"1.11.4\"}'\n", asked, dir)
	if err := os.WriteFile(filepath.Join(dir, "1.11.4", "terraform"), []byte(script), 0o700); err != nil { //nolint:gosec // it is started
		t.Fatal(err)
	}
	store := engine.NewStore(engine.Options{
		Sources: engine.Sources{Dirs: []string{dir}}, Env: map[string]string{"PATH": ""}, Logger: slog.New(slog.DiscardHandler),
	})
	wish, err := engine.WishOf(protocol.Assignment{}, modulecode.Root{}, dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	left, leave := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := store.Choose(left, wish)
		first <- err
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(asked); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("the engine is not asked")
		}
	}
	var others errgroup.Group
	for range 3 {
		others.Go(func() error {
			chosen, err := store.Choose(t.Context(), wish)
			if err == nil && chosen.Version != "1.11.4" {
				err = fmt.Errorf("chose %v", chosen)
			}
			return err
		})
	}
	leave() // who asked first gives up, and takes no answer away
	if err := <-first; err == nil {
		t.Error("who gave up has an engine")
	}
	if err := os.WriteFile(filepath.Join(dir, "answer"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := others.Wait(); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(asked); err != nil || string(data) != "asked\n" {
		t.Errorf("the engine was asked: %q, %v, want once", data, err)
	}
}
