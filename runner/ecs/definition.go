package ecs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// Names in a task.
const (
	mainContainer = "main"
	agentDir      = "/var/lib/holdfast/agent" // in a folder that the image has for it
	ticketName    = "HOLDFAST_TICKET"
	caName        = "HOLDFAST_CA"

	tagInstallation = "holdfast.dev/installation"
	tagRunner       = "holdfast.dev/runner"
	tagDigest       = "holdfast.dev/digest"

	// mostGrace is what Fargate gives a container between SIGTERM and SIGKILL.
	mostGrace = 2 * time.Minute
)

// definition is the revision of the runner's task definition that says what it is to say.
type definition struct {
	turn chan struct{} // holds a value while nobody looks for it
	arn  string        // of whoever has the turn; empty: it is to be looked for
}

// family names the task definition of a runner.
func (t *Tasks) family() string { return "holdfast-" + t.opts.Installation + "-" + t.opts.Runner.Name }

// wanted is the task definition of the runner. What differs between attempts is given to each
// task: its arguments, size and role.
func (t *Tasks) wanted() *ecs.RegisterTaskDefinitionInput {
	e, agent := t.opts.Runner.ECS, t.opts.Agent
	image := e.Image
	if image == "" {
		image = agent.Image
	}
	env := pairs(e.Environment)
	if len(agent.CA) > 0 {
		env = append(env, types.KeyValuePair{Name: aws.String(caName), Value: aws.String(string(agent.CA))})
	}
	var secrets []types.Secret
	for _, name := range slices.Sorted(maps.Keys(e.Secrets)) {
		secrets = append(secrets, types.Secret{Name: aws.String(name), ValueFrom: aws.String(e.Secrets[name])})
	}
	grace := int32(min(max(agent.Grace, 30*time.Second), mostGrace) / time.Second)
	return &ecs.RegisterTaskDefinitionInput{
		Family: aws.String(t.family()), NetworkMode: types.NetworkModeAwsvpc,
		RequiresCompatibilities: []types.Compatibility{types.CompatibilityFargate},
		Cpu:                     aws.String(smallest.cpu()), Memory: aws.String(smallest.memory()),
		ExecutionRoleArn: aws.String(e.ExecutionRoleARN),
		ContainerDefinitions: []types.ContainerDefinition{{
			Name: aws.String(mainContainer), Image: aws.String(image), Essential: aws.Bool(true),
			// Process 1: it passes a signal on to the engine, and delivers its outcome.
			EntryPoint: []string{"holdfast"}, Command: []string{"agent", "--help"},
			Environment: env, Secrets: secrets, StopTimeout: &grace,
			LinuxParameters: &types.LinuxParameters{InitProcessEnabled: aws.Bool(false)},
		}},
	}
}

func pairs(of map[string]string) []types.KeyValuePair {
	list := []types.KeyValuePair{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, types.KeyValuePair{Name: aws.String(name), Value: aws.String(of[name])})
	}
	return list
}

// digestOf tells task definitions apart.
func digestOf(in *ecs.RegisterTaskDefinitionInput) (string, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("encode task definition: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// revision returns the runner's task definition, which is registered if it is not yet, or has
// changed. Former revisions are then deregistered, which bears on no task that was started.
func (t *Tasks) revision(ctx context.Context) (string, error) {
	d := &t.definition
	select {
	case <-d.turn:
	case <-ctx.Done():
		return "", explain("find the task definition", context.Cause(ctx))
	}
	defer func() { d.turn <- struct{}{} }()
	if d.arn != "" {
		return d.arn, nil
	}
	wanted := t.wanted()
	digest, err := digestOf(wanted)
	if err != nil {
		return "", err
	}
	out, err := t.client.DescribeTaskDefinition(ctx, &ecs.DescribeTaskDefinitionInput{
		TaskDefinition: wanted.Family, Include: []types.TaskDefinitionField{types.TaskDefinitionFieldTags},
	})
	var none *types.ClientException // there is no revision that is active
	switch {
	case err != nil && !errors.As(err, &none):
		return "", explain("find task definition "+*wanted.Family, err)
	case err == nil && out.TaskDefinition != nil && tagged(out.Tags, tagDigest) == digest:
		d.arn = aws.ToString(out.TaskDefinition.TaskDefinitionArn)
		return d.arn, nil
	}
	wanted.Tags = []types.Tag{tag(tagInstallation, t.opts.Installation), tag(tagRunner, t.opts.Runner.Name), tag(tagDigest, digest)}
	made, err := t.client.RegisterTaskDefinition(ctx, wanted)
	if err != nil {
		return "", explain("register task definition "+*wanted.Family, err)
	}
	if made.TaskDefinition == nil {
		return "", explain("register task definition "+*wanted.Family, errors.New("the answer has none"))
	}
	d.arn = aws.ToString(made.TaskDefinition.TaskDefinitionArn)
	t.opts.Logger.InfoContext(ctx, "task definition was registered", "runner", t.opts.Runner.Name, "definition", d.arn)
	if err := t.deregister(ctx, *made.TaskDefinition); err != nil {
		t.opts.Logger.WarnContext(ctx, "former task definitions were not deregistered", "runner", t.opts.Runner.Name, "err", err)
	}
	return d.arn, nil
}

// deregister ends the revisions before one.
func (t *Tasks) deregister(ctx context.Context, now types.TaskDefinition) error {
	pages := ecs.NewListTaskDefinitionsPaginator(t.client, &ecs.ListTaskDefinitionsInput{
		FamilyPrefix: now.Family, Status: types.TaskDefinitionStatusActive,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return explain("list task definitions", err)
		}
		for _, arn := range page.TaskDefinitionArns {
			family, revision, ok := strings.Cut(nameOf(arn), ":")
			var number int32
			if _, err := fmt.Sscan(revision, &number); !ok || err != nil || family != aws.ToString(now.Family) || number >= now.Revision {
				continue
			}
			if _, err := t.client.DeregisterTaskDefinition(ctx, &ecs.DeregisterTaskDefinitionInput{TaskDefinition: &arn}); err != nil {
				return explain("deregister task definition "+nameOf(arn), err)
			}
		}
	}
	return nil
}

// forget has the task definition looked for again.
func (t *Tasks) forget(arn string) {
	<-t.definition.turn
	defer func() { t.definition.turn <- struct{}{} }()
	if t.definition.arn == arn {
		t.definition.arn = ""
	}
}

func tag(key, value string) types.Tag { return types.Tag{Key: &key, Value: &value} }

func tagged(tags []types.Tag, key string) string {
	for _, t := range tags {
		if aws.ToString(t.Key) == key {
			return aws.ToString(t.Value)
		}
	}
	return ""
}

// nameOf is the last part of an ARN.
func nameOf(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }
