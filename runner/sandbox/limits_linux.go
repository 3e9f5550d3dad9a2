package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/runner/sandbox/internal/stage"
)

// limit adds l to spec where it is not a control group that holds it.
func (s *Starter) limit(spec *stage.Spec, l Limits) {
	if l.Memory > 0 && !slices.ContainsFunc(spec.Env, func(v string) bool { return strings.HasPrefix(v, "GOMEMLIMIT=") }) {
		// What is written in Go then collects before it is refused.
		spec.Env = append(spec.Env, "GOMEMLIMIT="+strconv.FormatInt(l.Memory/10*9, 10))
	}
	if s.groups != nil {
		return
	}
	spec.Data = l.Memory
	if s.mode.CountsProcesses() {
		spec.Processes = int64(l.Processes)
		// Only the machine's root is not counted itself.
		spec.CountUser = s.mode.OwnUser() && (os.Geteuid() != 0 || inUserNamespace())
	}
}

// group makes the control group of a start, nil where there is none.
func (s *Starter) group(l Limits) (*group, error) {
	if s.groups == nil || l == (Limits{}) {
		return nil, nil
	}
	return s.groups.new(fmt.Sprintf("run-%d-%d", os.Getpid(), s.started.Add(1)), l)
}

// start starts a command that build makes in g, before it does anything. Where
// the kernel, or what filters its calls, cannot start it there, it is moved:
// it waits until it is given a command.
func start(g *group, build func() *exec.Cmd) (*exec.Cmd, error) {
	if g == nil {
		cmd := build()
		return cmd, cmd.Start()
	}
	cmd, err := startIn(g, build)
	if err != nil {
		_ = g.tree.Remove(g.dir)
	}
	return cmd, err
}

func startIn(g *group, build func() *exec.Cmd) (*exec.Cmd, error) {
	if dir, err := os.Open(g.dir); err == nil {
		defer dir.Close()
		cmd := build()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
		err := cmd.Start()
		if !errors.Is(err, syscall.ENOSYS) && !errors.Is(err, syscall.EBADF) && !errors.Is(err, syscall.EPERM) {
			return cmd, err
		}
	}
	cmd := build()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := g.add(cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	return cmd, nil
}
