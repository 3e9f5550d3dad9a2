package ecs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/awsrole"
)

// Statuses of tasks and containers.
const (
	provisioning   = "PROVISIONING"
	running        = "RUNNING"
	deprovisioning = "DEPROVISIONING"
	stopped        = "STOPPED"
)

// over reports whether a task's containers have ended, or will never start.
func over(task types.Task) bool {
	last := aws.ToString(task.LastStatus)
	return last == stopped || last == deprovisioning
}

// ended reports whether nothing more will be said of a task.
func ended(task types.Task) bool { return aws.ToString(task.LastStatus) == stopped }

// begun reports whether the agent was started.
func begun(task types.Task) bool {
	c := containerOf(task)
	return task.StartedAt != nil || c.ExitCode != nil || aws.ToString(c.LastStatus) == running
}

func containerOf(task types.Task) types.Container {
	for _, c := range task.Containers {
		if aws.ToString(c.Name) == mainContainer {
			return c
		}
	}
	return types.Container{}
}

// launched is what a task says of its attempt. That it has stopped does not prove that its
// processes have ended: the exit code does, which the agent of ECS has seen.
func (o *object) launched() protocol.Launched {
	arn := aws.ToString(o.task.TaskArn)
	l := protocol.Launched{
		Run: o.ref.Run, Attempt: o.ref.Attempt, Name: nameOf(arn), Place: "task " + nameOf(arn),
		Over: over(o.task) || o.gone, Dead: over(o.task) && containerOf(o.task).ExitCode != nil, Begun: begun(o.task),
	}
	switch {
	case l.Over && !over(o.task):
		l.Reason, l.Detail = holdfast.CauseJobDeleted, "ECS no longer lists the task, and has not reported that its container ended"
	case l.Over, aws.ToString(o.task.DesiredStatus) == stopped:
		l.Reason, l.Detail = endOf(o.task)
	}
	return l
}

// words are what ECS's own words for a task that did not start, or was ended, mean.
var words = []struct {
	text   string
	reason holdfast.Reason
}{
	{"CannotPull", holdfast.CauseImagePullFailed},
	{"OutOfMemoryError", holdfast.CauseOutOfMemory},
	{"ResourceInitializationError", holdfast.CauseTaskConfiguration},
	{"Capacity is unavailable", holdfast.CauseCapacityUnavailable},
	{"reached the limit", holdfast.CauseRunnerQuota},
	{"CannotStartContainer", holdfast.CauseTaskConfiguration},
	{"CannotCreateContainer", holdfast.CauseTaskConfiguration},
	{"ContainerRuntime", holdfast.CauseTaskConfiguration},
	{"InsufficientFreeAddresses", holdfast.CauseTaskConfiguration},
	{"network interface", holdfast.CauseTaskConfiguration},
	{"Host EC2", holdfast.CauseTaskInterrupted},
	{"maintenance", holdfast.CauseTaskInterrupted},
	{"retire", holdfast.CauseTaskInterrupted},
	{"Spot", holdfast.CauseTaskInterrupted},
	{stoppedAsLate, holdfast.CauseJobDeadline},
}

// endOf says why a task has ended, or is to; empty if it ended well.
func endOf(task types.Task) (holdfast.Reason, string) {
	c := containerOf(task)
	said := oneLine(aws.ToString(task.StoppedReason), aws.ToString(c.Reason))
	byAWS := said
	if task.StopCode == types.TaskStopCodeUserInitiated && aws.ToString(task.StoppedReason) != stoppedAsLate {
		byAWS = aws.ToString(c.Reason) // the rest was written by whoever has stopped it
	}
	if c.ExitCode != nil && *c.ExitCode == 0 && task.StopCode != types.TaskStopCodeUserInitiated {
		return "", ""
	}
	for _, w := range words {
		if strings.Contains(byAWS, w.text) {
			return w.reason, said
		}
	}
	switch {
	case task.StopCode == types.TaskStopCodeSpotInterruption || task.StopCode == types.TaskStopCodeTerminationNotice:
		return holdfast.CauseTaskInterrupted, said
	case task.StopCode == types.TaskStopCodeUserInitiated:
		return holdfast.CauseJobDeleted, oneLine("the task was stopped", said)
	case task.StopCode == types.TaskStopCodeTaskFailedToStart:
		return holdfast.CauseTaskConfiguration, oneLine("the task did not start", said)
	case c.ExitCode != nil:
		return holdfast.ReasonAgentKilled, oneLine(fmt.Sprintf("the container ended with exit code %d", *c.ExitCode), said)
	default:
		return holdfast.CauseTaskInterrupted, oneLine("the task stopped, and nothing has reported that its container ended", said)
	}
}

// codes are what errors of ECS mean.
var codes = map[string]holdfast.Reason{
	"ClusterNotFoundException":                       holdfast.CauseRunnerClusterMissing,
	"InvalidParameterException":                      holdfast.CauseTaskConfiguration,
	"ClientException":                                holdfast.CauseTaskConfiguration,
	"PlatformTaskDefinitionIncompatibilityException": holdfast.CauseTaskConfiguration,
	"PlatformUnknownException":                       holdfast.CauseTaskConfiguration,
	"UnsupportedFeatureException":                    holdfast.CauseTaskConfiguration,
	"LimitExceededException":                         holdfast.CauseRunnerQuota,
	"BlockedException":                               holdfast.CauseCloudForbidden,
}

// explain is an error of ECS, with the reason for people.
func explain(what string, err error) error {
	err = awsrole.Explain(what, err, codes)
	var refused *protocol.LaunchError
	if errors.As(err, &refused) {
		if strings.Contains(refused.Error(), "reached the limit") {
			refused.Reason = holdfast.CauseRunnerQuota
		}
		refused.Waits = refused.Reason == holdfast.CauseRunnerQuota
	}
	return err
}

// failed is why ECS has started nothing, although the request was right.
func failed(failures []types.Failure) error {
	if len(failures) == 0 { // which is not an answer of ECS
		return explain("start a task", errors.New("it started nothing, and did not say why"))
	}
	said := oneLine(aws.ToString(failures[0].Reason), aws.ToString(failures[0].Detail))
	refused := &protocol.LaunchError{Reason: holdfast.CauseTaskConfiguration, Err: fmt.Errorf("start a task: %s", said)}
	switch {
	case strings.Contains(said, "Capacity is unavailable"), strings.Contains(said, "RESOURCE:"):
		refused.Reason = holdfast.CauseCapacityUnavailable
	case strings.Contains(said, "reached the limit"):
		refused.Reason, refused.Waits = holdfast.CauseRunnerQuota, true
	}
	return refused
}

func oneLine(parts ...string) string {
	var some []string
	for _, p := range parts {
		if p = strings.Join(strings.Fields(p), " "); p != "" {
			some = append(some, p)
		}
	}
	text := strings.Join(some, ": ")
	return strings.ToValidUTF8(text[:min(len(text), 1000)], "")
}
