package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/launch"
	"github.com/holdfast-dev/holdfast/runner/awsrole"
	"github.com/holdfast-dev/holdfast/runner/ecs"
	"github.com/holdfast-dev/holdfast/runner/eks"
	"github.com/holdfast-dev/holdfast/runner/gke"
	"github.com/holdfast-dev/holdfast/runner/kubernetes"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/server/issuer/claims"
)

// provesItself reports whether the server shows its own tokens to the cloud of such a
// runner.
func provesItself(t runnerspec.Type) bool {
	return t == runnerspec.KubernetesGKE || t == runnerspec.KubernetesEKS || t == runnerspec.ECS
}

var errNoIssuer = errors.New("server.issuer is not set in holdfast.yaml: without it the server has no tokens to show to the cloud")

// cloudAccess is how the API server of a runner in a cloud's cluster is reached.
func (s launches) cloudAccess(ctx context.Context, r runnerspec.Runner) (kubernetes.Access, error) {
	if s.issuer == nil {
		return kubernetes.Access{}, errNoIssuer
	}
	token := s.runnerToken(r.Name)
	switch a := r.Kubernetes; {
	case a != nil && a.EKS != nil:
		cluster, err := eks.Open(ctx, *a.EKS, r.Name, func(ctx context.Context) (string, error) { return token(ctx, awsrole.Audience) })
		return kubernetes.Access{Cloud: &kubernetes.CloudServer{Cloud: cluster}}, err
	case a != nil && a.GKE != nil:
		at := s.cfg.Jobs.Google
		cluster, err := gke.Open(gke.Options{
			Cluster: *a.GKE, Token: token, Endpoints: gke.Endpoints{STS: at.STS, IAMCredentials: at.IAMCredentials, Container: at.Container},
		})
		return kubernetes.Access{Cloud: &kubernetes.CloudServer{Cloud: cluster, ProxyURL: a.GKE.ProxyURL}}, err
	default:
		return kubernetes.Access{}, fmt.Errorf("runner %q does not say which cluster it is about", r.Name)
	}
}

// openTasks makes what starts the tasks of a runner.
func (s launches) openTasks(ctx context.Context, r runnerspec.Runner, start kubernetes.Agent) (launch.Jobs, func(context.Context) error, error) {
	if s.issuer == nil {
		return nil, nil, errNoIssuer
	}
	token := s.runnerToken(r.Name)
	tasks, err := ecs.Open(ctx, ecs.Options{
		Runner: r, Agent: ecs.Agent(start), Installation: s.installation(), Logger: s.logger,
		Token: func(ctx context.Context) (string, error) { return token(ctx, awsrole.Audience) },
	})
	if err != nil {
		return nil, nil, err
	}
	return tasks, tasks.Run, nil
}

// runnerToken makes tokens by which the server proves that it starts the runs of a runner.
func (s launches) runnerToken(name string) func(ctx context.Context, audience string) (string, error) {
	return func(ctx context.Context, audience string) (string, error) {
		records, err := s.store.Runners(ctx)
		if err != nil {
			return "", err
		}
		removed, err := s.store.RemovedRunners(ctx) // what is left of them is stopped
		if err != nil {
			return "", err
		}
		for _, rec := range slices.Concat(records, removed) {
			if rec.Document.Name != name || !rec.RemovedAt.IsZero() && rec.RemovedAt.Before(s.mayBeLeftSince()) {
				continue
			}
			origin := branchOrigin(s.cfg, rec.Place.Repo)
			origin.Runner = name
			token, err := s.issuer.IssueRunner(ctx, origin, audience)
			return token.Token, err
		}
		return "", fmt.Errorf("runner %q is no longer in force: %w", name, holdfast.ErrNotFound)
	}
}

// describeRunnerTokens describes the server's identity when it starts runs, for
// registering it.
func describeRunnerTokens() string {
	return fmt.Sprintf("runners of types %s, %s, %s: subject %s\n",
		runnerspec.KubernetesGKE, runnerspec.KubernetesEKS, runnerspec.ECS, claims.RunnerSubject("")+"NAME")
}
