package serve

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/dispatch"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/server/launchdesk"
)

// newDesk answers agents that launch the runs of their runner elsewhere.
func (s launches) newDesk() *launchdesk.Desk {
	return launchdesk.New(launchdesk.Options{
		Launches: dispatch.Launches{Dispatcher: s.reconciler.Dispatcher()}, Runs: s.store,
		Settings: s.settings, Limits: s.granted(), Now: s.clock.Now,
	})
}

// settings are those by which an agent elsewhere launches the runs of a runner.
func (s launches) settings(ctx context.Context, r runnerspec.Runner) (protocol.LaunchSettings, error) {
	rec, err := s.store.Runner(ctx, r.Name)
	if err != nil {
		return protocol.LaunchSettings{}, fmt.Errorf("read runner %q: %w", r.Name, err)
	}
	if s.cfg.Server.Agents.URL == "" {
		return protocol.LaunchSettings{}, errors.New("there is no address at which Jobs reach the server: set server.agents.url")
	}
	agent, err := s.launchedAgent()
	return protocol.LaunchSettings{
		Installation: s.installation(), Isolation: s.isolation(), Agent: agent,
		Start: s.cfg.Jobs.StartTimeout, Timeout: s.cfg.Runs.Timeout, Grace: s.cfg.Jobs.Grace, Former: s.former(rec),
	}, err
}

// launchedAgent is how the agent of a Job is started.
func (s launches) launchedAgent() (protocol.LaunchedAgent, error) {
	agents := s.cfg.Server.Agents
	agent := protocol.LaunchedAgent{ServerURL: agents.URL, Image: s.cfg.Jobs.Image, Isolation: s.cfg.Isolation, Flags: s.cfg.Jobs.Flags}
	if agent.Image == "" {
		agent.Image = "holdfast:" + s.version
	}
	if agents.CAFile == "" {
		return agent, nil
	}
	var err error
	if agent.CA, err = os.ReadFile(agents.CAFile); err != nil {
		return agent, fmt.Errorf("read server.agents.caFile: %w", err)
	}
	return agent, nil
}

// installation distinguishes our Jobs from those of other servers.
func (s launches) installation() string {
	return hex.EncodeToString(s.keys.Derive("installation"))[:16]
}

// isolation is the weakest that agents of Jobs have. A stronger one is demanded when such an
// agent calls.
func (s launches) isolation() string {
	if isolates(s.cfg) {
		return "landlock" // what a Pod has
	}
	return protocol.IsolationNone
}

// granted are the limits of a cluster's runs.
func (s launches) granted() func(c holdfast.Cluster) holdfast.RunLimits {
	of := limits(s.cfg)
	return func(c holdfast.Cluster) holdfast.RunLimits {
		most, _ := of(c)
		return most
	}
}
