package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/reconciler/dispatch"
	"github.com/holdfast-dev/holdfast/reconciler/launch"
	"github.com/holdfast-dev/holdfast/runner/kubernetes"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// launching are the types of runners that this server starts something for.
var launching = map[runnerspec.Type]bool{
	runnerspec.Kubernetes: true, runnerspec.KubernetesGKE: true, runnerspec.KubernetesEKS: true, runnerspec.ECS: true,
}

// launches is how a server launches runs.
type launches struct{ *services }

// newPool launches the runs of runners that start something for each run.
func (s launches) newPool() (*launch.Pool, error) {
	return launch.NewPool(launch.PoolOptions{
		Runners: launchingRunners{s}, Open: s.openJobs, Secrets: s.secretsOf, Dispatcher: dispatch.Launches{Dispatcher: s.reconciler.Dispatcher()}, Runs: s.store,
		Settings: launch.Settings{
			Replica: s.identity, Isolation: s.isolation(), Start: s.cfg.Jobs.StartTimeout, Timeout: s.cfg.Runs.Timeout, Grace: s.cfg.Jobs.Grace,
			Limits: s.granted(),
		},
		Logger: s.logger, Now: s.clock.Now,
	})
}

// launchingRunners are the runners that this server starts something for: those in force, and
// those of which something may be left.
type launchingRunners struct{ s launches }

func (l launchingRunners) LaunchingRunners(ctx context.Context) ([]launch.Launching, error) {
	records, err := l.s.store.Runners(ctx)
	if err != nil {
		return nil, err
	}
	var list []launch.Launching
	for _, rec := range records {
		if launching[rec.Document.Type] {
			list = append(list, launch.Launching{Runner: rec.Document, Former: l.s.former(rec)})
		}
	}
	removed, err := l.s.store.RemovedRunners(ctx)
	if err != nil {
		return nil, err
	}
	for _, rec := range removed {
		if launching[rec.Document.Type] && rec.RemovedAt.After(l.s.mayBeLeftSince()) {
			list = append(list, launch.Launching{Runner: rec.Document, Former: l.s.former(rec), Removed: true})
		}
	}
	return list, nil
}

// mayBeLeftSince is the time since which something that was started may still exist.
func (s launches) mayBeLeftSince() time.Time {
	const stopping = 15 * time.Minute // what is stopped takes a while, too
	return s.clock.Now().Add(-s.cfg.Jobs.StartTimeout - s.cfg.Runs.Timeout - s.cfg.Jobs.Grace - stopping)
}

// former are the former places of a runner where something that it has started may still be.
func (s launches) former(rec runnerspec.Record) []runnerspec.Runner {
	return rec.FormerSince(s.mayBeLeftSince())
}

// secretsOf names the current values of the files and secrets that runs of a runner need.
func (s launches) secretsOf(ctx context.Context, r runnerspec.Runner) (string, error) {
	start, err := s.agentStart()
	if err != nil {
		return "", err
	}
	var access kubernetes.Access
	if !provesItself(r.Type) { // to clouds the server shows tokens of its own
		if access, err = s.kubernetesAccess(ctx, r); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal([]any{access, start.CA})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// openJobs makes what starts the Jobs of a runner, or its tasks.
func (s launches) openJobs(ctx context.Context, r runnerspec.Runner) (launch.Jobs, func(context.Context) error, error) {
	start, err := s.agentStart()
	if err != nil {
		return nil, nil, err
	}
	if r.Type == runnerspec.ECS {
		return s.openTasks(ctx, r, start)
	}
	access, err := s.kubernetesAccess(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	cluster, err := kubernetes.Open(kubernetes.Options{Runner: r, Access: access, Installation: s.installation(), Agent: start, Logger: s.logger})
	if err != nil {
		return nil, nil, err
	}
	return cluster, cluster.Run, nil
}

// agentStart is what this server starts agents with.
func (s launches) agentStart() (kubernetes.Agent, error) {
	agent, err := s.launchedAgent()
	return kubernetes.Agent{
		ServerURL: agent.ServerURL, CA: agent.CA, Image: agent.Image, Isolation: agent.Isolation, Args: agent.Flags, Grace: s.cfg.Jobs.Grace,
	}, err
}

// kubernetesAccess is how the API server of a runner is reached, with its secrets.
func (s launches) kubernetesAccess(ctx context.Context, r runnerspec.Runner) (kubernetes.Access, error) {
	a := r.Kubernetes
	switch {
	case r.Type != runnerspec.Kubernetes:
		return s.cloudAccess(ctx, r)
	case a == nil:
		return kubernetes.Access{}, fmt.Errorf("runner %q does not say how its API server is reached", r.Name)
	case a.InCluster:
		return kubernetes.Access{InCluster: true}, nil
	case a.Kubeconfig != nil:
		text, err := s.serverSecret(*a.Kubeconfig)
		return kubernetes.Access{Kubeconfig: []byte(text)}, err
	case a.Server == nil:
		return kubernetes.Access{}, fmt.Errorf("runner %q does not say how its API server is reached", r.Name)
	}
	server := &kubernetes.Server{
		URL: a.Server.URL, CA: []byte(a.Server.CertificateAuthority), ProxyURL: a.Server.ProxyURL, Certificate: []byte(a.Server.ClientCertificate),
	}
	var err error
	if a.Server.Token != nil {
		if server.Token, err = s.serverSecret(*a.Server.Token); err != nil {
			return kubernetes.Access{}, err
		}
	}
	if a.Server.ClientKey != nil {
		key, err := s.serverSecret(*a.Server.ClientKey)
		if err != nil {
			return kubernetes.Access{}, err
		}
		server.Secret = []byte(key)
	}
	return kubernetes.Access{Server: server}, nil
}

// serverSecret is the value of a secret that a document refers to.
func (s launches) serverSecret(ref runnerspec.ServerSecret) (string, error) {
	secret, ok := s.cfg.Secrets[ref.Secret]
	if !ok {
		return "", fmt.Errorf("secrets in holdfast.yaml has no %q", ref.Secret)
	}
	value, err := secret.Value()
	if err != nil {
		return "", fmt.Errorf("read secret %q: %w", ref.Secret, err)
	}
	return value, nil
}
