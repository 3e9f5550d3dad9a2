package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Reasons of Pods whose words are ours, too.
const (
	podEvicted  = string(holdfast.CauseEvicted)
	podNodeLost = string(holdfast.CauseNodeLost)
)

var errNotLooked = errors.New("the API server was not reached yet")

// over reports whether a Job starts nothing more. A FailureTarget says only that it is to
// fail once its Pod has ended.
func over(job *batch.Job) bool {
	for _, c := range job.Status.Conditions {
		if (c.Type == batch.JobFailed || c.Type == batch.JobComplete) && c.Status == core.ConditionTrue {
			return true
		}
	}
	return false
}

// launched is what an object says of its attempt.
func (o *object) launched(name string) protocol.Launched {
	l := protocol.Launched{
		Run: o.run, Attempt: o.attempt, Name: name, Place: o.place(),
		Over: o.job == nil && !o.gone.IsZero() || o.job != nil && over(o.job), Dead: o.dead != nil && !o.several, Begun: o.begun(),
	}
	if o.pod != nil {
		l.Host = o.pod.Name
	}
	switch {
	case o.dead != nil:
		l.Reason, l.Detail = o.ended()
	case o.pod != nil && o.pod.Status.Phase == core.PodFailed:
		l.Reason, l.Detail = podFailed(o.pod)
	case o.pod != nil && !o.lost && o.pod.Status.Phase == core.PodPending:
		l.Reason, l.Detail = o.pending()
	case o.job != nil && !over(o.job) && o.pod == nil && o.event.reason == "FailedCreate":
		l.Reason, l.Detail = createFailed(o.event)
		l.Waits = l.Reason == holdfast.CauseRunnerQuota
	case l.Over && o.deadline():
		l.Reason, l.Detail = holdfast.CauseJobDeadline, "the Job was active for longer than its deadline"
	case l.Over && (o.lost || o.pod == nil):
		l.Reason, l.Detail = holdfast.CauseJobDeleted, "the Job or its Pod was deleted, and nothing has reported that its container ended"
	case o.lost:
		l.Reason, l.Detail = holdfast.CauseJobDeleted, "the Pod was deleted, and nothing has reported that its container ended"
	}
	return l
}

func (o *object) begun() bool {
	if o.dead != nil {
		return true
	}
	if o.pod == nil {
		return false
	}
	for _, c := range o.pod.Status.ContainerStatuses {
		if c.Name == mainContainer && c.State.Running != nil {
			return true
		}
	}
	return false
}

func (o *object) deadline() bool {
	if o.job == nil {
		return false
	}
	for _, c := range o.job.Status.Conditions {
		if c.Type == batch.JobFailed && c.Reason == batch.JobReasonDeadlineExceeded {
			return true
		}
	}
	return false
}

// ended says why a container has ended, by its kubelet; empty if it ended well.
func (o *object) ended() (holdfast.Reason, string) {
	t := o.dead
	switch {
	case o.pod.Status.Reason == podEvicted:
		return podFailed(o.pod)
	case t.Reason == "OOMKilled":
		return holdfast.CauseOutOfMemory, "the node killed the container because it exceeded the memory limit of its Pod" + limitText(o.pod)
	case o.pod.Status.Reason == "DeadlineExceeded" || o.deadline():
		return holdfast.CauseJobDeadline, oneLine("the Job was active for longer than its deadline", o.pod.Status.Message)
	case t.ExitCode == 0:
		return "", ""
	}
	detail := fmt.Sprintf("the container ended with exit code %d", t.ExitCode)
	if t.Signal != 0 || t.ExitCode > 128 {
		detail = fmt.Sprintf("the container was killed (exit code %d)", t.ExitCode)
	}
	for _, c := range o.pod.Status.Conditions {
		if c.Type == core.DisruptionTarget && c.Status == core.ConditionTrue {
			return holdfast.CauseEvicted, oneLine(detail, c.Reason, c.Message)
		}
	}
	if o.pod.DeletionTimestamp != nil {
		return holdfast.CauseJobDeleted, "its Pod was deleted: " + detail
	}
	return holdfast.ReasonAgentKilled, oneLine(detail, t.Reason, lastLines(t.Message))
}

func limitText(pod *core.Pod) string {
	for _, c := range pod.Spec.Containers {
		if limit, ok := c.Resources.Limits[core.ResourceMemory]; ok && c.Name == mainContainer {
			return " (" + limit.String() + ")"
		}
	}
	return ""
}

// lastLines are what a container said last: often an error and what to do about it.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-2):], " ")
}

// podFailed says why a Pod has failed, by its status.
func podFailed(pod *core.Pod) (holdfast.Reason, string) {
	switch pod.Status.Reason {
	case podEvicted:
		return holdfast.CauseEvicted, oneLine("the node evicted the Pod", pod.Status.Message)
	case "DeadlineExceeded":
		return holdfast.CauseJobDeadline, oneLine(pod.Status.Message)
	case podNodeLost:
		return holdfast.CauseNodeLost, oneLine(pod.Status.Message)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == core.DisruptionTarget && c.Status == core.ConditionTrue {
			if c.Reason == "DeletionByPodGC" {
				return holdfast.CauseNodeLost, oneLine("the Pod's node is gone", c.Message)
			}
			return holdfast.CauseEvicted, oneLine(c.Reason, c.Message)
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.Reason == statusUnknown {
			return holdfast.CauseNodeLost, oneLine("the node has lost the container, and nothing has reported that it ended", t.Message)
		}
	}
	for _, c := range pod.Status.InitContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return holdfast.CausePodConfiguration, fmt.Sprintf("init container %s ended with exit code %d", c.Name, t.ExitCode)
		}
	}
	return holdfast.CausePodConfiguration, oneLine("the Pod failed before its container was started", pod.Status.Reason, pod.Status.Message)
}

// pending says what a Pod waits for; empty: nothing that is worth a word.
func (o *object) pending() (holdfast.Reason, string) {
	status := o.pod.Status
	for _, c := range status.Conditions {
		if c.Type == core.PodScheduled && c.Status == core.ConditionFalse && c.Reason == core.PodReasonUnschedulable {
			return holdfast.CauseUnschedulable, oneLine("no node fits the Pod", c.Message)
		}
	}
	all := append(append([]core.ContainerStatus{}, status.InitContainerStatuses...), status.ContainerStatuses...)
	for _, c := range all {
		w := c.State.Waiting
		if w == nil {
			continue
		}
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError", "SignatureValidationFailed":
			return holdfast.CauseImagePullFailed, oneLine("image "+c.Image+" cannot be pulled", w.Reason, w.Message)
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError", "CrashLoopBackOff":
			return holdfast.CausePodConfiguration, oneLine("the container cannot be started", w.Reason, w.Message)
		}
	}
	if o.event.reason == "FailedMount" || o.event.reason == "FailedAttachVolume" {
		return holdfast.CausePodConfiguration, oneLine("a volume cannot be mounted", o.event.message)
	}
	return "", ""
}

// createFailed says why the Job controller cannot make a Pod.
func createFailed(e event) (holdfast.Reason, string) {
	switch {
	case strings.Contains(e.message, "exceeded quota"):
		return holdfast.CauseRunnerQuota, oneLine("the namespace's quota is used up", e.message)
	case strings.Contains(e.message, "serviceaccount"):
		return holdfast.CausePodConfiguration, oneLine("a Pod with this service account cannot be made", e.message)
	default:
		return holdfast.CausePodConfiguration, oneLine("the Pod was refused", e.message)
	}
}

// refusal is an error of the API server, with the reason for people.
func (c *Cluster) refusal(what string, err error) error {
	if err == nil {
		return nil
	}
	if cloud := refusedByCloud(err); cloud != nil {
		return &protocol.LaunchError{Reason: cloud.Reason, Waits: cloud.Waits, Err: fmt.Errorf("%s in namespace %s: %w", what, c.namespace(), cloud.Err)}
	}
	refused := &protocol.LaunchError{Err: fmt.Errorf("%s in namespace %s: %w", what, c.namespace(), err)}
	switch text := err.Error(); {
	case apierrors.IsUnauthorized(err):
		refused.Reason = holdfast.CauseRunnerUnauthorized
	case apierrors.IsForbidden(err) && strings.Contains(text, "exceeded quota"):
		refused.Reason, refused.Waits = holdfast.CauseRunnerQuota, true
	case apierrors.IsForbidden(err) && strings.Contains(text, "because it is being terminated"), apierrors.IsNotFound(err):
		refused.Reason = holdfast.CauseNamespaceMissing
	case apierrors.IsForbidden(err):
		refused.Reason = holdfast.CauseRunnerForbidden
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		refused.Reason = holdfast.CausePodTemplateRefused
	case errors.Is(err, context.Canceled):
		return refused.Err
	default:
		refused.Reason = holdfast.CauseRunnerUnreachable
	}
	return refused
}
