package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/dispatch"
	"github.com/holdfast-dev/holdfast/reconciler/launch"
	"github.com/holdfast-dev/holdfast/runner/kubernetes"
)

// launching are the types of runners that this server starts something for.
var launching = map[holdfast.RunnerType]bool{
	holdfast.RunnerKubernetes: true, holdfast.RunnerKubernetesGKE: true, holdfast.RunnerKubernetesEKS: true, holdfast.RunnerECS: true,
}

// launches is how a server launches runs.
type launches struct{ *services }

// newPool has the runs of runners launched that start something for each.
func (s launches) newPool() (*launch.Pool, error) {
	isolation := holdfast.IsolationNone
	if isolates(s.cfg) {
		isolation = "landlock" // what a Pod has; a stronger one is demanded when its agent calls
	}
	granted := limits(s.cfg)
	return launch.NewPool(launch.PoolOptions{
		Runners: launchingRunners{s}, Open: s.openJobs, Secrets: s.secretsOf, Dispatcher: dispatch.Launches{Dispatcher: s.reconciler.Dispatcher()}, Runs: s.store,
		Settings: launch.Settings{
			Replica: s.identity, Isolation: isolation, Start: s.cfg.Jobs.StartTimeout, Timeout: s.cfg.Runs.Timeout, Grace: s.cfg.Jobs.Grace,
			Limits: func(c holdfast.Cluster) holdfast.RunLimits {
				most, _ := granted(c)
				return most
			},
		},
		Logger: s.logger, Now: s.clock.Now,
	})
}

// launchingRunners are the runners in force that this server starts something for.
type launchingRunners struct{ s launches }

func (l launchingRunners) LaunchingRunners(ctx context.Context) ([]holdfast.Runner, error) {
	records, err := l.s.store.Runners(ctx)
	if err != nil {
		return nil, err
	}
	var list []holdfast.Runner
	for _, rec := range records {
		if launching[rec.Document.Type] {
			list = append(list, rec.Document)
		}
	}
	return list, nil
}

// agentsCA are the authorities of the certificate of our listener for agents, as Jobs get them.
func (s launches) agentsCA() ([]byte, error) {
	if s.cfg.Server.Agents.CAFile == "" {
		return nil, nil
	}
	ca, err := os.ReadFile(s.cfg.Server.Agents.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read server.agents.caFile: %w", err)
	}
	return ca, nil
}

// secretsOf names the present values of the files and secrets that Jobs of a runner need.
func (s launches) secretsOf(ctx context.Context, r holdfast.Runner) (string, error) {
	var access kubernetes.Access // clouds have no secrets of ours
	var err error
	if r.Type == holdfast.RunnerKubernetes {
		if access, err = s.kubernetesAccess(ctx, r); err != nil {
			return "", err
		}
	}
	ca, err := s.agentsCA()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal([]any{access, ca})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// openJobs makes what starts the Jobs of a runner, or its tasks.
func (s launches) openJobs(ctx context.Context, r holdfast.Runner) (launch.Jobs, func(context.Context) error, error) {
	start, err := s.agentStart()
	if err != nil {
		return nil, nil, err
	}
	if r.Type == holdfast.RunnerECS {
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

// installation distinguishes what we start from what others start in the same place.
func (s launches) installation() string {
	return hex.EncodeToString(s.keys.Derive("installation"))[:16]
}

// agentStart is what agents are started with.
func (s launches) agentStart() (kubernetes.Agent, error) {
	agents := s.cfg.Server.Agents
	start := kubernetes.Agent{
		ServerURL: agents.URL, Image: cmp.Or(s.cfg.Jobs.Image, "holdfast:"+s.version), Isolation: s.cfg.Isolation,
		Args: s.cfg.Jobs.Flags, Grace: s.cfg.Jobs.Grace,
	}
	var err error
	start.CA, err = s.agentsCA()
	return start, err
}

// kubernetesAccess is how the API server of a runner is reached, with its secrets.
func (s launches) kubernetesAccess(ctx context.Context, r holdfast.Runner) (kubernetes.Access, error) {
	a := r.Kubernetes
	switch {
	case r.Type != holdfast.RunnerKubernetes:
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
func (s launches) serverSecret(ref holdfast.ServerSecret) (string, error) {
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
