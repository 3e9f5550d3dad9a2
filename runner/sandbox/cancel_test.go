//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// TestStartCanceled has an engine that saves when it is interrupted, one that
// does not listen, and one that knows nothing of signals.
func TestStartCanceled(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		for name, test := range map[string]struct {
			verb   string
			grace  time.Duration
			code   int
			signal syscall.Signal
			saved  bool
		}{
			"it saves":           {verb: "save", grace: 10 * time.Minute, code: 1, saved: true},
			"it does not listen": {verb: "deaf", grace: 50 * time.Millisecond, code: -1, signal: syscall.SIGKILL},
			"without grace":      {verb: "save", code: -1, signal: syscall.SIGKILL},
			"it has no handler":  {verb: "sleep", grace: 10 * time.Minute, code: 2}, // as Go's runtime ends on SIGINT: by its code or the signal
		} {
			t.Run(string(mode)+"/"+name, func(t *testing.T) {
				t.Parallel()
				l := newLab(t, mode)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r, w := io.Pipe()
				c := l.command(test.verb, l.lock, filepath.Join(l.at, "saved"))
				c.Stdout, c.Stderr, c.Grace = w, w, test.grace
				go func() {
					ready(t, r)
					cancel()
					_, _ = io.Copy(io.Discard, r)
				}()
				exit, err := l.Run(ctx, c)
				if err != nil {
					t.Fatal(err)
				}
				l.dead(t)
				if test.verb == "sleep" {
					if exit.Code == 0 || exit.Signal == syscall.SIGKILL {
						t.Errorf("got %+v", exit)
					}
				} else if exit.Code != test.code || exit.Signal != test.signal {
					t.Errorf("got %+v, want %+v", exit, test)
				}
				if _, err := os.Stat(filepath.Join(l.dir, "saved")); (err == nil) != test.saved {
					t.Errorf("saved: %v, want %t", err, test.saved)
				}
			})
		}
	}
}

// TestStartRefused starts what cannot be started: it is an error that says
// what was tried, never an exit.
func TestStartRefused(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		for name, test := range map[string]struct {
			change func(*sandbox.Command)
			want   string
			is     error
		}{
			"no such program":   {func(c *sandbox.Command) { c.Path = "/usr/bin/there-is-none" }, "start /usr/bin/there-is-none", syscall.ENOENT},
			"no such folder":    {func(c *sandbox.Command) { c.Dir = "/usr/there-is-none" }, "in /usr/there-is-none", syscall.ENOENT},
			"relative program":  {func(c *sandbox.Command) { c.Path = "engine" }, "paths are absolute", nil},
			"relative mount":    {func(c *sandbox.Command) { c.Mounts[0].Source = "work" }, "paths are absolute", nil},
			"canceled already":  {nil, "", context.Canceled},
			"no such mount":     {func(c *sandbox.Command) { c.Mounts[0].Source = "/there/is/none" }, "open /there/is/none", syscall.ENOENT},
			"the agent as slot": {func(c *sandbox.Command) { c.Slot = sandbox.Slot{} }, "needs a user of the slot", nil},
		} {
			if name == "no such mount" && !mode.OwnRoot() && mode != sandbox.ModeLandlock ||
				name == "the agent as slot" && !mode.OwnUser() {
				continue // these modes do not look
			}
			t.Run(string(mode)+"/"+name, func(t *testing.T) {
				t.Parallel()
				l := newLab(t, mode)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := l.command("whoami")
				if test.change == nil {
					cancel()
				} else {
					test.change(&c)
				}
				exit, err := l.Run(ctx, c)
				if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
					t.Errorf("got %+v, %v, want %q, %v", exit, err, test.want, test.is)
				}
			})
		}
	}
}

// TestStartGit has git work on a checkout of somebody else.
func TestStartGit(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, mode)
			c := l.command("")
			c.Path, c.Args = "/bin/sh", []string{"-c", "git init -q . && git commit -q --allow-empty -m first && git log --format=%an && id -un && test ! -t 0"}
			c.Env = map[string]string{
				"PATH": "/usr/bin:/bin", "HOME": l.at,
				"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "somebody",
				"EMAIL": "somebody@example.com",
			}
			exit, said := l.run(t, c)
			nameless := strings.Contains(said, "cannot find name for user") && !mode.OwnRoot()
			if exit.Code != 0 && !nameless {
				t.Errorf("%+v: %s", exit, said)
			}
			if mode.OwnRoot() && said != "somebody\nholdfast\n" {
				t.Errorf("it said %q", said)
			}
		})
	}
}
