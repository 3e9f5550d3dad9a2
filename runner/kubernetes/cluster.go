package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// Options are what a Cluster needs. All are required unless noted.
type Options struct {
	Runner runnerspec.Runner // its Job is set
	Access Access
	Agent  Agent
	// Installation tells our Jobs from those of others in the same namespace: the same at
	// all replicas and after a restart.
	Installation string
	Logger       *slog.Logger // nil discards
}

// Agent is what a Job's agent is started with.
type Agent struct {
	ServerURL string // of the server's listener for agents, as the Pods reach it: https
	CA        []byte // PEM: of the server's certificate; empty: that of the image's system
	Image     string // where the runner names none
	Isolation string // as isolation in holdfast.yaml
	// Args are further arguments of the agent, such as where engines come from.
	Args []string
	// Grace is how long an agent has to end its engine and to deliver its outcome.
	Grace time.Duration
}

// Cluster is a namespace of a Kubernetes cluster, as the place of a runner's Jobs. Its
// methods are safe for concurrent use.
type Cluster struct {
	opts  Options
	calls *calls
	seen  *seen
}

// Open returns a Cluster, or an error that says what is missing or wrong. It calls nobody.
func Open(opts Options) (*Cluster, error) {
	switch {
	case opts.Runner.Job == nil || opts.Runner.Job.Namespace == "":
		return nil, errors.New("runner has no namespace for its Jobs")
	case opts.Agent.ServerURL == "":
		return nil, errors.New("there is no address at which Jobs reach the server: set server.agents.url")
	case opts.Installation == "":
		return nil, errors.New("the installation has no name")
	case opts.Runner.Job.Image == "" && opts.Agent.Image == "":
		return nil, errors.New("there is no image for Jobs: set job.image")
	}
	if err := checkTemplate(opts.Runner.Job.PodTemplate); err != nil {
		return nil, fmt.Errorf("job.podTemplate: %w", err)
	}
	config, err := opts.Access.config()
	if err != nil {
		return nil, err
	}
	calls, err := newCalls(config, opts.Runner.Job.Namespace)
	if err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Cluster{opts: opts, calls: calls, seen: newSeen()}, nil
}

func proxyOf(u *url.URL) func(*http.Request) (*url.URL, error) { return http.ProxyURL(u) }

func (c *Cluster) namespace() string { return c.opts.Runner.Job.Namespace }

// Start starts a Job for an attempt. It may be called again for the same attempt, which
// changes nothing. The error is a *protocol.LaunchError if it is known why it cannot be.
func (c *Cluster) Start(ctx context.Context, l protocol.Launch) error {
	job, err := c.job(l)
	if err != nil {
		return &protocol.LaunchError{Reason: holdfast.CausePodTemplateRefused, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	made, err := c.calls.jobs.Create(ctx, job, meta.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		if made, err = c.calls.jobs.Get(ctx, job.Name, meta.GetOptions{}); err == nil && made.Labels[labelInstallation] != c.opts.Installation {
			return &protocol.LaunchError{
				Reason: holdfast.CauseRunnerForbidden,
				Err:    fmt.Errorf("create Job %s: namespace %s has one of that name that is not ours", job.Name, c.namespace()),
			}
		}
	}
	if err != nil {
		return c.refusal("create Job "+job.Name, err)
	}
	// Owned by the Job it goes with it. The Pod waits for it.
	secret := &core.Secret{
		ObjectMeta: meta.ObjectMeta{
			Name: job.Name, Labels: maps.Clone(job.Labels),
			OwnerReferences: []meta.OwnerReference{*meta.NewControllerRef(made, jobKind)},
		},
		Data: map[string][]byte{ticketKey: []byte(l.Ticket)},
	}
	if len(c.opts.Agent.CA) > 0 {
		secret.Data[caKey] = c.opts.Agent.CA
	}
	if _, err = c.calls.secrets.Create(ctx, secret, meta.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return c.refusal("create Secret "+secret.Name, err)
	}
	return nil
}

// Stop ends the Job of an attempt, if there is one: its agent is asked to stop, and has the
// grace for that. It does not wait.
func (c *Cluster) Stop(ctx context.Context, ref holdfast.AttemptRef) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	background := meta.DeletePropagationBackground // without it Pod and Secret would stay
	err := c.calls.jobs.Delete(ctx, jobName(ref), meta.DeleteOptions{PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		return c.refusal("delete Job "+jobName(ref), err)
	}
	return nil
}

// Launched returns what is known of our Jobs that exist, and of those that were seen and
// are gone since a few minutes. An error says why that may be outdated: the last look at
// the API server has failed.
func (c *Cluster) Launched(context.Context) ([]protocol.Launched, error) {
	list, err := c.seen.list()
	slices.SortFunc(list, func(x, y protocol.Launched) int { return strings.Compare(x.Name, y.Name) })
	return list, err
}

// Changed returns a channel that is closed when next something has changed.
func (c *Cluster) Changed() <-chan struct{} { return c.seen.wait() }

// broadcast wakes all who wait.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

func newBroadcast() *broadcast { return &broadcast{ch: make(chan struct{})} }

func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ch
}

func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.ch)
	b.ch = make(chan struct{})
}
