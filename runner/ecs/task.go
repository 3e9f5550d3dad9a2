package ecs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// deliverWait is how long an agent that was asked to stop tries to deliver what came of its
// engine, which it has interrupted and killed after a minute: both have mostGrace.
const deliverWait = 50 * time.Second

// passed are variables of a task that engines get: with them SDKs find the task's role.
var passed = []string{
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_REGION", "AWS_DEFAULT_REGION",
}

// task is the task of an attempt, without its definition. It is the same whenever it is made:
// ECS compares it by its token.
func (t *Tasks) task(l protocol.Launch) (*ecs.RunTaskInput, error) {
	ask := holdfast.ClusterRunner{}
	if l.Cluster.Runner != nil {
		ask = *l.Cluster.Runner
	}
	if err := beyond(ask, t.opts.Runner.Allow); err != nil {
		return nil, err
	}
	size, err := sizeFor(l.Limits, ask.Resources)
	if err != nil {
		return nil, err
	}
	e, role := t.opts.Runner.ECS, t.opts.Runner.ECS.PlanTaskRoleARN
	if l.Kind.Writes() {
		role = e.ApplyTaskRoleARN
	}
	public := types.AssignPublicIpDisabled
	if e.PublicIP {
		public = types.AssignPublicIpEnabled
	}
	in := &ecs.RunTaskInput{
		Cluster: t.cluster(), LaunchType: types.LaunchTypeFargate, Count: aws.Int32(1),
		ClientToken: aws.String(t.clientToken(l.AttemptRef)), StartedBy: aws.String(startedBy(l.AttemptRef)),
		NetworkConfiguration: &types.NetworkConfiguration{AwsvpcConfiguration: &types.AwsVpcConfiguration{
			Subnets: e.Subnets, SecurityGroups: e.SecurityGroups, AssignPublicIp: public,
		}},
		Overrides: &types.TaskOverride{
			TaskRoleArn: &role, Cpu: aws.String(size.cpu()), Memory: aws.String(size.memory()),
			ContainerOverrides: []types.ContainerOverride{{
				Name: aws.String(mainContainer), Command: t.args(l),
				Environment: []types.KeyValuePair{{Name: aws.String(ticketName), Value: &l.Ticket}},
			}},
		},
		Tags: t.tags(l),
	}
	return in, nil
}

// args are those of the agent.
func (t *Tasks) args(l protocol.Launch) []string {
	agent, e := t.opts.Agent, t.opts.Runner.ECS
	kinds := "plan,drift"
	if l.Kind.Writes() {
		kinds = "apply,destroy"
	}
	args := []string{
		"agent", "--run", "--server", agent.ServerURL, "--ticket-env", ticketName, "--dir", agentDir,
		"--id", protocol.LaunchAgent(t.opts.Runner.Name, l.AttemptRef), "--kinds", kinds, "--grace", deliverWait.String(),
	}
	if agent.Isolation != "" {
		args = append(args, "--isolation", agent.Isolation)
	}
	if len(agent.CA) > 0 {
		args = append(args, "--ca-env", caName)
	}
	for _, name := range slices.Concat(passed, slices.Sorted(maps.Keys(e.Environment))) {
		args = append(args, "--engine-env", name)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Secrets)) {
		args = append(args, "--engine-secret", name)
	}
	return append(args, agent.Args...)
}

// tags tell people what a task is for.
func (t *Tasks) tags(l protocol.Launch) []types.Tag {
	tags := []types.Tag{
		tag(tagInstallation, t.opts.Installation), tag(tagRunner, t.opts.Runner.Name),
		tag("holdfast.dev/run", l.Run), tag("holdfast.dev/attempt", strconv.Itoa(l.Attempt)), tag("holdfast.dev/kind", string(l.Kind)),
		tag("holdfast.dev/cluster", l.Cluster.Name), tag("holdfast.dev/project", l.Cluster.Project), tag("holdfast.dev/environment", l.Cluster.Environment),
	}
	if l.Timeout > 0 {
		tags = append(tags, tag(tagTimeout, strconv.Itoa(int(l.Timeout/time.Second))))
	}
	return tags
}

// clientToken has ECS start one task for an attempt, however often it is asked.
func (t *Tasks) clientToken(ref holdfast.AttemptRef) string {
	sum := sha256.Sum256([]byte(t.family() + " " + startedBy(ref)))
	return hex.EncodeToString(sum[:])
}

// startedBy names an attempt to ECS: by it we know our tasks again.
func startedBy(ref holdfast.AttemptRef) string {
	return "holdfast/" + ref.Run + "/" + strconv.Itoa(ref.Attempt)
}

// attemptOf is the attempt that a task is for; false if it is not one of ours.
func attemptOf(by string) (ref holdfast.AttemptRef, ok bool) {
	rest, ours := strings.CutPrefix(by, "holdfast/")
	run, number, two := strings.Cut(rest, "/")
	attempt, err := strconv.Atoi(number)
	return holdfast.AttemptRef{Run: run, Attempt: attempt}, ours && two && run != "" && err == nil
}

// beyond returns what a cluster asks for that its runner does not allow, or tasks do not have.
func beyond(ask holdfast.ClusterRunner, allow runnerspec.Allowance) error {
	switch {
	case ask.ServiceAccount != "":
		return errors.New("spec.runner.serviceAccount: tasks have no service accounts")
	case len(ask.PodTemplate) > 0:
		return errors.New("spec.runner.podTemplate: tasks have no Pods")
	case ask.Resources.Memory > allow.Resources.Memory:
		return errors.New("spec.runner.resources.memory is more than the runner allows (allow.resources.memory)")
	case ask.Resources.CPU > allow.Resources.CPU:
		return errors.New("spec.runner.resources.cpu is more than the runner allows (allow.resources.cpu)")
	}
	return nil
}

// size is how large a task is, in AWS's units: CPU shares of 1024 to a processor, and MiB.
type size struct{ shares, mebibytes int }

func (s size) cpu() string    { return strconv.Itoa(s.shares) }
func (s size) memory() string { return strconv.Itoa(s.mebibytes) }

// smallest is the size that a definition says, which each task replaces.
var smallest = size{256, 512}

// fargate are the sizes that Fargate has: for each number of shares the memory from, to and in
// which steps. The smallest ones have 512, 1024 and 2048, and nothing in between.
var fargate = []struct{ shares, from, to, step int }{
	{256, 512, 1024, 512},
	{256, 2048, 2048, 1024},
	{512, 1024, 4096, 1024},
	{1024, 2048, 8192, 1024},
	{2048, 4096, 16384, 1024},
	{4096, 8192, 30720, 1024},
	{8192, 16384, 61440, 4096},
	{16384, 32768, 122880, 8192},
}

// agentMemory is what an agent needs besides its engine, in MiB.
const agentMemory = 256

// sizeFor is the smallest size that has what an engine may use, and room for its agent: it is
// never squeezed into less than it was promised. Without a limit it is one processor with 4 GiB.
func sizeFor(limits, ask holdfast.RunLimits) (size, error) {
	memory := cmp.Or(ask.Memory, limits.Memory)
	cpu := cmp.Or(ask.CPU, limits.CPU, 1)
	need := 4096
	if memory > 0 {
		need = int((memory+1<<20-1)>>20) + agentMemory
	}
	for _, f := range fargate {
		if float64(f.shares) < cpu*1024 || f.to < need {
			continue
		}
		got := f.from
		for got < need {
			got += f.step
		}
		return size{f.shares, got}, nil
	}
	return size{}, fmt.Errorf("no size of Fargate has %g processors and %d MiB of memory: lower runs.limits or spec.limits", cpu, need)
}

// CheckRunner returns what is wrong with the tasks of a runner, as far as that can be known
// without AWS, and the key in its document that says so.
func CheckRunner(r runnerspec.Runner) (key string, err error) {
	if r.ECS == nil {
		return "", nil
	}
	for _, of := range []struct {
		key   string
		names map[string]string
	}{{"environment", r.ECS.Environment}, {"secrets", r.ECS.Secrets}} {
		for _, name := range slices.Sorted(maps.Keys(of.names)) {
			if reserved(name) {
				return of.key, fmt.Errorf("variable %s is reserved", name)
			}
		}
	}
	return "", nil
}

// reserved are the variables that a task and its agent have themselves.
func reserved(name string) bool {
	return slices.Contains([]string{"HOME", "PATH", "TMPDIR"}, name) || strings.HasPrefix(name, "HOLDFAST_") ||
		strings.HasPrefix(name, "AWS_CONTAINER_") || strings.HasPrefix(name, "ECS_")
}
