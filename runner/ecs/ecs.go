package ecs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/awsrole"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// Options are what Tasks need. All are required unless noted.
type Options struct {
	Runner runnerspec.Runner // its ECS is set
	Agent  Agent
	// Installation tells our tasks from those of others in the same cluster: the same at all
	// replicas and after a restart.
	Installation string
	// Token returns a token of our issuer for awsrole.Audience.
	Token  func(ctx context.Context) (string, error)
	Logger *slog.Logger // nil discards
}

// Agent is what a task's agent is started with.
type Agent struct {
	ServerURL string // of the server's listener for agents, as tasks reach it: https
	CA        []byte // PEM: of the server's certificate; empty: that of the image's system
	Image     string // where the runner names none
	Isolation string // as isolation in holdfast.yaml
	// Args are further arguments of the agent, such as where engines come from.
	Args []string
	// Grace is how long an agent has to end its engine and to deliver its outcome. Fargate
	// gives no more than two minutes.
	Grace time.Duration
}

// callTime bounds each call, its retries included.
const callTime = 30 * time.Second

// Tasks are the tasks of a runner. Its methods are safe for concurrent use.
type Tasks struct {
	opts       Options
	client     *ecs.Client
	definition definition
	seen       *seen
}

// Open returns Tasks, or an error that says what is missing or wrong. It calls nobody.
func Open(ctx context.Context, opts Options) (*Tasks, error) {
	switch {
	case opts.Runner.ECS == nil:
		return nil, errors.New("runner does not say what its tasks are made from")
	case opts.Agent.ServerURL == "":
		return nil, errors.New("there is no address at which tasks reach the server: set server.agents.url")
	case opts.Installation == "" || opts.Token == nil:
		return nil, errors.New("the installation has no name or no tokens")
	case opts.Runner.ECS.Image == "" && opts.Agent.Image == "":
		return nil, errors.New("there is no image for tasks: set ecs.image")
	}
	if key, err := CheckRunner(opts.Runner); err != nil {
		return nil, fmt.Errorf("ecs.%s: %w", key, err)
	}
	e := opts.Runner.ECS
	config, err := awsrole.Config(ctx, awsrole.Role{
		ARN: e.RoleARN, SessionName: cmp.Or(e.SessionName, awsrole.SessionName(opts.Runner.Name)),
		Region: cmp.Or(e.STSRegion, e.Region), Token: opts.Token,
	}, e.Region)
	if err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Tasks{opts: opts, client: ecs.NewFromConfig(config), seen: newSeen()}
	t.definition.turn = make(chan struct{}, 1)
	t.definition.turn <- struct{}{}
	return t, nil
}

func (t *Tasks) cluster() *string { return &t.opts.Runner.ECS.Cluster }

// Start starts a task for an attempt. It may be called again for the same attempt, which
// changes nothing. The error is a *protocol.LaunchError if it is known why it cannot be.
func (t *Tasks) Start(ctx context.Context, l protocol.Launch) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	in, err := t.task(l)
	if err != nil {
		return &protocol.LaunchError{Reason: holdfast.CausePodTemplateRefused, Err: err}
	}
	for again := false; ; again = true {
		revision, err := t.revision(ctx)
		if err != nil {
			return err
		}
		in.TaskDefinition = &revision
		out, err := t.client.RunTask(ctx, in)
		var there *types.ConflictException
		var refused *types.ClientException
		switch {
		case errors.As(err, &there):
			// It was started already, from another revision or with other limits.
			t.seen.note(l.AttemptRef, there.ResourceIds...)
			return nil
		case errors.As(err, &refused) && !again && strings.Contains(strings.ToLower(refused.ErrorMessage()), "inactive"):
			t.forget(revision) // another replica has registered another one
			continue
		case err != nil:
			return explain("start a task", err)
		case len(out.Tasks) == 0:
			return failed(out.Failures)
		}
		t.seen.took(out.Tasks, false)
		t.seen.started.wake()
		return nil
	}
}

// Stop ends the task of an attempt, if there is one: its agent is asked to stop, and has the
// grace for that. It does not wait.
func (t *Tasks) Stop(ctx context.Context, ref holdfast.AttemptRef) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	arns, known := t.seen.alive(ref)
	if !known {
		out, err := t.client.ListTasks(ctx, &ecs.ListTasksInput{Cluster: t.cluster(), StartedBy: aws.String(startedBy(ref))})
		if err != nil {
			return explain("list tasks", err)
		}
		arns = out.TaskArns
	}
	var errs []error
	for _, arn := range arns {
		errs = append(errs, t.stop(ctx, arn, stoppedByUs))
	}
	t.seen.started.wake()
	return errors.Join(errs...)
}

// What our own stops say, to people and to us.
const (
	stoppedByUs   = "holdfast: its attempt was canceled or is over"
	stoppedAsLate = "holdfast: it was active for longer than its deadline"
)

func (t *Tasks) stop(ctx context.Context, arn, why string) error {
	out, err := t.client.StopTask(ctx, &ecs.StopTaskInput{Cluster: t.cluster(), Task: &arn, Reason: &why})
	var gone *types.InvalidParameterException
	switch {
	case errors.As(err, &gone) && strings.Contains(gone.ErrorMessage(), "not found"):
		return nil
	case err == nil && out.Task != nil:
		t.seen.took([]types.Task{*out.Task}, false)
	}
	return explain("stop task "+nameOf(arn), err)
}

// Launched returns what is known of our tasks that exist, and of those that ended not long
// ago. An error says why that may be outdated: the last look at ECS has failed.
func (t *Tasks) Launched(context.Context) ([]protocol.Launched, error) {
	list, err := t.seen.list()
	slices.SortFunc(list, func(x, y protocol.Launched) int { return strings.Compare(x.Name, y.Name) })
	return list, err
}

// Changed returns a channel that is closed when next something has changed.
func (t *Tasks) Changed() <-chan struct{} { return t.seen.changed.wait() }
