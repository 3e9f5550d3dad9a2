package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

const (
	// startsArg makes this program an agent that only starts something, with a mode, a
	// folder and a number after it.
	startsArg = "measure-starts"

	startsCounted = 50          // the fastest counts
	startsProgram = "/bin/true" // ends at once

	// Users that nobody else is: of an agent that is not root, and of its engines.
	startsAgent = 731_000
	startsSlot  = 730_000
)

// leastStart is the fastest start of a program as it is, and in a sandbox.
type leastStart struct{ Bare, Sandbox time.Duration }

// starts measures in each mode of isolation how long an agent takes for a start of a program
// that ends at once, against the same without an agent: what each start of an engine takes
// longer because of its sandbox. Each mode has its own process, as the user that it is for.
// Modes that this machine or this user does not have are left out.
func (b *bench) starts(s *stage) { s.startsOf(startsCounted) }

func (s *stage) startsOf(count int) {
	program := s.copyOfOurs()
	dir := s.TempDir()
	s.check(os.Chmod(dir, 0o755))
	for _, name := range []string{"work", "prepared"} {
		s.check(os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	s.write(filepath.Join(dir, "plan.bin"), "a plan", 0o644)
	s.write(filepath.Join(dir, "engine.rc"), "", 0o644)
	for _, mode := range sandbox.Modes() {
		cmd := s.command(program, startsArg, string(mode), dir, strconv.Itoa(count))
		cmd.Dir = "/"
		asAgentOf(cmd, mode)
		least, err := leastOf(cmd)
		if s.ctx.Err() != nil {
			s.Fatalf("measure starts in mode %s: %v", mode, err)
		}
		if err != nil {
			s.Logf("start in mode %s is not measured: %v", mode, err)
			continue
		}
		f := figure{Name: "start in a sandbox, " + string(mode), N: count, Value: inMS(least.Sandbox), Unit: "ms"}
		s.add(f.against(inMS(least.Bare)))
		s.Logf("start in mode %s: %s, without an agent %s", mode, least.Sandbox, least.Bare)
	}
}

// leastOf runs an agent that only starts something.
func leastOf(cmd *exec.Cmd) (least leastStart, err error) {
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) && len(failed.Stderr) > 0 {
		err = errors.New(string(failed.Stderr))
	}
	if err != nil {
		return least, err
	}
	return least, json.Unmarshal(out, &least)
}

// copyOfOurs is a copy of this program that every user can start.
func (s *stage) copyOfOurs() string {
	self, err := os.Executable()
	s.check(err)
	from, err := os.Open(self)
	s.check(err)
	defer from.Close()
	path := filepath.Join(s.dir, "agent")
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755) //nolint:gosec // it is executed
	s.check(err)
	_, err = io.Copy(to, from)
	s.check(errors.Join(err, to.Close()))
	return path
}

// measureStarts is what the agent does: it starts a program many times, as it is and in a
// sandbox of the mode that finds what an engine finds in a run.
func measureStarts(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 3 {
		return fmt.Errorf("%s needs a mode, a folder and a number", startsArg)
	}
	mode, dir := args[0], args[1]
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	slot := sandbox.Slot{UID: startsSlot, GID: startsSlot}
	starter, err := sandbox.Probe(ctx, sandbox.Options{Mode: sandbox.Mode(mode), Slot: slot})
	if err != nil {
		return err
	}
	command := sandbox.Command{
		Path: startsProgram, Dir: "/", Slot: slot, Limits: sandbox.Limits{Memory: 4 << 30, Processes: 1024},
		Mounts: []sandbox.Mount{
			{Source: filepath.Join(dir, "work"), Target: "/workspace", Writable: true},
			{Source: filepath.Join(dir, "prepared"), Target: "/prepared"},
			{Source: filepath.Join(dir, "plan.bin"), Target: "/plan/plan.bin"},
			{Source: filepath.Join(dir, "engine.rc"), Target: "/engine/engine.rc"},
		},
	}
	var least leastStart
	if least.Bare, err = fastestStart(count, func() error { return exec.CommandContext(ctx, startsProgram).Run() }); err != nil {
		return err
	}
	least.Sandbox, err = fastestStart(count, func() error {
		exit, err := starter.Run(ctx, command)
		if err == nil && (exit.Code != 0 || exit.Signal != 0) {
			err = fmt.Errorf("%s ended with code %d, signal %d", startsProgram, exit.Code, exit.Signal)
		}
		return err
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(least)
}

// fastestStart is how long the fastest of many starts took.
func fastestStart(count int, start func() error) (least time.Duration, err error) {
	for i := range count {
		began := time.Now()
		if err := start(); err != nil {
			return 0, err
		}
		if took := time.Since(began); i == 0 || took < least {
			least = took
		}
	}
	return least, nil
}
