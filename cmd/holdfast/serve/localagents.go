package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/runner/local"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// startAgents starts the agents on the server's machine.
func (s *services) startAgents(ctx context.Context) ([]*local.Process, error) {
	var processes []*local.Process
	for _, agent := range s.agents {
		process, err := s.startAgent(ctx, agent)
		if err != nil {
			return processes, err
		}
		processes = append(processes, process)
	}
	return processes, nil
}

func (s *services) startAgent(ctx context.Context, agent *localAgent) (*local.Process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own binary: %w", err)
	}
	opts := local.Options{Command: local.Command{Binary: binary}, Dir: s.path(agent.name), Logger: s.logger}
	if opts, err = s.outfit(ctx, agent, opts); err != nil {
		return nil, fmt.Errorf("start %s: %w", agent.name, err)
	}
	opts.Command = s.agentCommand(binary, agent)
	opts.Signs = func() uint64 { return s.reconciler.Dispatcher().Signs(s.agentID(agent)) }
	process, err := local.Start(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", agent.name, err)
	}
	return process, nil
}

// agentCommand is what an agent is started with.
func (s *services) agentCommand(binary string, agent *localAgent) local.Command {
	e := s.cfg.Engines
	args := []string{
		"agent", "--server", "unix://" + s.path("run", "agent.sock"), "--token-file", "-",
		"--id", s.agentID(agent), "--dir", s.path(agent.name), "--slots", strconv.Itoa(s.cfg.Agent.Slots),
		"--grace", s.cfg.Server.Grace.String(), "--engine-grace", e.Grace.String(),
		"--download=" + strconv.FormatBool(e.Download), "--validation", e.Validation,
	}
	args = append(args, s.isolationArgs(agent)...)
	for flag, value := range map[string]string{
		"--terraform-mirror": e.TerraformMirror, "--tofu-mirror": e.TofuMirror, "--terragrunt-mirror": e.TerragruntMirror, "--cli-config": e.CLIConfigFile,
	} {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	for _, d := range e.Dirs {
		args = append(args, "--engine-dir", d)
	}
	for _, kind := range agent.kinds {
		args = append(args, "--kinds", string(kind))
	}
	return local.Command{Binary: binary, Args: args, Env: s.agentEnv(), Input: agent.token}
}

// outfit chooses the user of an agent. If the server is root, the best choice is the
// account that exists for it, in a user namespace: outside it is not root, and it can
// still give each run its own user. Otherwise the agent is root; or just the account,
// if nothing should keep engines from it.
func (s *services) outfit(ctx context.Context, agent *localAgent, opts local.Options) (local.Options, error) {
	if agent.as == nil {
		return opts, nil
	}
	fitted := opts
	fitted.User = fmt.Sprintf("%d:%d", agent.as.uid, agent.as.gid)
	wanted := s.cfg.Isolation
	if wanted == string(sandbox.ModeNone) {
		return fitted, nil
	}
	if wanted == string(sandbox.ModeSlots) { // which is for root
		return opts, nil
	}
	fitted.Range = local.Range{First: s.firstUser(agent), Count: s.cfg.Agent.Slots}
	group, err := sandbox.Delegate("local-"+agent.name, agent.as.uid)
	if err != nil { // the agent says so, and what that means
		s.logger.Debug("agent has no control group of its own", "agent", agent.name, "err", err)
	}
	for _, fitted.Group = range slices.Compact([]string{group, ""}) {
		probe := fitted
		probe.Command.Args = append([]string{"agent", "probe"}, s.isolationArgs(agent)...)
		var mode string
		if mode, err = local.Try(ctx, probe); err == nil && mode == string(sandbox.ModeRange) {
			return fitted, nil
		}
		if ctx.Err() != nil {
			return opts, ctx.Err()
		}
	}
	s.logger.Warn("agent is root: it cannot be started in a user namespace", "agent", agent.name, "err", err)
	return opts, nil
}

// firstUser is the first of those that an agent's engines run as.
func (s *services) firstUser(agent *localAgent) int {
	if slices.ContainsFunc(agent.kinds, func(k holdfast.RunKind) bool { return !k.Writes() }) {
		return s.cfg.Agent.SlotUsers.Plan
	}
	return s.cfg.Agent.SlotUsers.Apply
}

func (s *services) isolationArgs(agent *localAgent) []string {
	args := []string{"--isolation", s.cfg.Isolation, "--slot-user", strconv.Itoa(s.firstUser(agent))}
	for _, path := range s.cfg.Sandbox.Paths.ReadOnly {
		args = append(args, "--sandbox-read", path)
	}
	for _, path := range s.cfg.Sandbox.Paths.Writable {
		args = append(args, "--sandbox-write", path)
	}
	return args
}

// account is a user that an agent runs as.
type account struct{ uid, gid int }

// accounts are the users of the local agents. They share no group: the socket
// belongs to the user that applies, and to the group of the one that plans.
type accounts struct{ plan, apply *account }

// agentAccounts finds the agents' users. Only root can start processes as
// somebody else: nil for everybody else, and for root if root is asked for.
func agentAccounts(cfg config.Agent) (*accounts, error) {
	if os.Getuid() != 0 {
		for key, name := range map[string]string{"agent.user": cfg.User, "agent.applyUser": cfg.ApplyUser} {
			if name != "" {
				return nil, fmt.Errorf("%s is %q, but only root can start an agent as another user", key, name)
			}
		}
		return nil, nil
	}
	plan, err := lookupAccount(cfg.User, "holdfast-agent", "nobody")
	if err != nil || plan.uid == 0 {
		return nil, err
	}
	apply, err := lookupAccount(cfg.ApplyUser, "holdfast-apply")
	if err != nil && cfg.ApplyUser == "" {
		apply, err = &account{uid: config.DefaultApplyUID, gid: config.DefaultApplyUID}, nil
	}
	if err != nil {
		return nil, err
	}
	if apply.uid == plan.uid {
		return nil, fmt.Errorf("plans and applies would run as the same user %d: a plan could read what an apply holds", plan.uid)
	}
	return &accounts{plan, apply}, nil
}

// slotUsersFault says which of the users that engines run as is an agent's: code in a plan
// would be that agent.
func slotUsersFault(cfg config.Agent, as *accounts) error {
	if as == nil || cfg.Off {
		return nil
	}
	for _, users := range []struct {
		key   string
		first int
	}{{"plan", cfg.SlotUsers.Plan}, {"apply", cfg.SlotUsers.Apply}} {
		for _, uid := range []int{as.plan.uid, as.apply.uid} {
			if users.first <= uid && uid < users.first+cfg.Slots {
				return fmt.Errorf("agent.slotUsers.%s: the users from %d to %d include %d, which an agent runs as",
					users.key, users.first, users.first+cfg.Slots-1, uid)
			}
		}
	}
	return nil
}

// lookupAccount finds a user by name, or the first of the defaults if no name
// is given.
func lookupAccount(name string, defaults ...string) (*account, error) {
	candidates := []string{name}
	if name == "" {
		candidates = defaults
	}
	for _, candidate := range candidates {
		u, err := user.Lookup(candidate)
		if err != nil {
			continue
		}
		uid, errUID := strconv.Atoi(u.Uid)
		gid, errGID := strconv.Atoi(u.Gid)
		if err := errors.Join(errUID, errGID); err != nil {
			return nil, fmt.Errorf("read user %q: %w", candidate, err)
		}
		return &account{uid, gid}, nil
	}
	return nil, fmt.Errorf("no user %s", strings.Join(candidates, " or "))
}
