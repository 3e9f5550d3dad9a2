package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Labels of what is ours.
const (
	labelInstallation = "holdfast.dev/installation"
	labelRunner       = "holdfast.dev/runner"
	labelRun          = "holdfast.dev/run"
	labelAttempt      = "holdfast.dev/attempt"
	labelCluster      = "holdfast.dev/cluster"
	labelProject      = "holdfast.dev/project"
	labelEnvironment  = "holdfast.dev/environment"
	labelKind         = "holdfast.dev/kind"
)

// Names in a Pod. Folders are below one that no image has.
const (
	mainContainer = "main"

	ticketKey, caKey                     = "ticket", "ca.crt"
	ticketVolume, workVolume, tempVolume = "holdfast-ticket", "holdfast-work", "holdfast-tmp"
	ticketDir, workDir, tempDir          = "/holdfast/ticket", "/holdfast/work", "/tmp"

	// user is the one that the image has for it.
	user = 10001

	// ttl is how long a Job that has ended is kept, for people to look at.
	ttl = 10 * time.Minute
	// waitTime is how much longer a Job may exist than its Pod, which counts from the time at
	// which its node has it: a Job that waits for a quota must not have its apply cut for that.
	waitTime = 24 * time.Hour
	// agentMemory is what an agent needs besides its engine, in bytes.
	agentMemory = 256 << 20
)

var jobKind = batch.SchemeGroupVersion.WithKind("Job")

// jobName names the Job of an attempt: a second one cannot be made.
func jobName(ref holdfast.AttemptRef) string {
	return "holdfast-" + ref.Run + "-" + strconv.Itoa(ref.Attempt)
}

// job is the Job of an attempt.
func (c *Cluster) job(l protocol.Launch) (*batch.Job, error) {
	ask := holdfast.ClusterRunner{}
	if l.Cluster.Runner != nil {
		ask = *l.Cluster.Runner
	}
	if err := beyond(ask, c.opts.Runner.Allow); err != nil {
		return nil, err
	}
	template, err := c.template(l, ask)
	if err != nil {
		return nil, err
	}
	none, keep := int32(0), int32(ttl/time.Second)
	job := &batch.Job{
		ObjectMeta: meta.ObjectMeta{Name: jobName(l.AttemptRef), Labels: c.labels(l)},
		Spec: batch.JobSpec{
			BackoffLimit: &none, TTLSecondsAfterFinished: &keep, Template: template,
		},
	}
	job.Spec.ActiveDeadlineSeconds = secondsOf(l.Timeout, waitTime)
	return job, nil
}

// secondsOf is a deadline, and more; nil if there is none.
func secondsOf(deadline, more time.Duration) *int64 {
	if deadline <= 0 {
		return nil
	}
	seconds := int64((deadline + more) / time.Second)
	return &seconds
}

// labels tell people what a Job is for, and us which ones are ours.
func (c *Cluster) labels(l protocol.Launch) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": "holdfast-run", "app.kubernetes.io/managed-by": "holdfast",
		labelInstallation: c.opts.Installation, labelRunner: labelValue(c.opts.Runner.Name),
		labelRun: l.Run, labelAttempt: strconv.Itoa(l.Attempt), labelKind: string(l.Kind),
		labelCluster: labelValue(l.Cluster.Name), labelProject: labelValue(l.Cluster.Project), labelEnvironment: labelValue(l.Cluster.Environment),
	}
}

// labelValue is a text as a label can have it.
func labelValue(text string) string {
	text = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}, text)
	return strings.Trim(text[:min(len(text), 63)], "-_.")
}

// template is what the Pod of an attempt is made of: ours, with the runner's and then the
// cluster's merged over it.
func (c *Cluster) template(l protocol.Launch, ask holdfast.ClusterRunner) (core.PodTemplateSpec, error) {
	own, err := c.ownTemplate(l, ask)
	if err != nil {
		return own, err
	}
	merged := own
	for _, patch := range []struct {
		of   string
		text json.RawMessage
	}{{"job.podTemplate of runner " + c.opts.Runner.Name, c.opts.Runner.Job.PodTemplate}, {"spec.runner.podTemplate of cluster " + l.Cluster.Name, ask.PodTemplate}} {
		if len(patch.text) == 0 {
			continue
		}
		if merged, err = merge(merged, patch.text); err == nil {
			err = intact(own, merged)
		}
		if err != nil {
			return own, fmt.Errorf("%s: %w", patch.of, err)
		}
	}
	return merged, nil
}

func (c *Cluster) ownTemplate(l protocol.Launch, ask holdfast.ClusterRunner) (core.PodTemplateSpec, error) {
	job := c.opts.Runner.Job
	account := job.PlanServiceAccount
	if l.Kind.Writes() {
		account = job.ApplyServiceAccount
	}
	// A plan executes the code of a pull request, which also says what it asks for.
	if ask.ServiceAccount != "" && (l.Kind.Writes() || job.SameServiceAccount) {
		account = ask.ServiceAccount
	}
	tolerations := make([]core.Toleration, len(job.Tolerations))
	for i, text := range job.Tolerations {
		if err := decodeStrictly(text, &tolerations[i]); err != nil {
			return core.PodTemplateSpec{}, fmt.Errorf("job.tolerations[%d] of runner %s: %w", i, c.opts.Runner.Name, err)
		}
	}
	secrets := make([]core.LocalObjectReference, len(job.PullSecrets))
	for i, name := range job.PullSecrets {
		secrets[i].Name = name
	}
	yes, no, who := true, false, int64(user)
	grace := int64(c.opts.Agent.Grace / time.Second)
	return core.PodTemplateSpec{
		ObjectMeta: meta.ObjectMeta{Labels: c.labels(l)},
		Spec: core.PodSpec{
			RestartPolicy: core.RestartPolicyNever, ServiceAccountName: account, AutomountServiceAccountToken: &no,
			TerminationGracePeriodSeconds: &grace, ActiveDeadlineSeconds: secondsOf(l.Timeout, 0), EnableServiceLinks: &no,
			NodeSelector: maps.Clone(job.NodeSelector), Tolerations: tolerations, ImagePullSecrets: secrets,
			SecurityContext: &core.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &who, RunAsGroup: &who, FSGroup: &who,
				SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []core.Container{c.container(l, ask)},
			Volumes: []core.Volume{
				{Name: ticketVolume, VolumeSource: core.VolumeSource{Secret: &core.SecretVolumeSource{SecretName: jobName(l.AttemptRef), DefaultMode: modeOf(0o440)}}},
				{Name: workVolume, VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}},
				{Name: tempVolume, VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}},
			},
		},
	}, nil
}

func modeOf(mode int32) *int32 { return &mode }

// container is the agent.
func (c *Cluster) container(l protocol.Launch, ask holdfast.ClusterRunner) core.Container {
	job, agent := c.opts.Runner.Job, c.opts.Agent
	kinds := "plan,drift"
	if l.Kind.Writes() {
		kinds = "apply,destroy"
	}
	args := []string{
		"agent", "--run", "--server", agent.ServerURL, "--ticket-file", ticketDir + "/" + ticketKey, "--dir", workDir + "/agent",
		"--id", protocol.LaunchAgent(c.opts.Runner.Name, l.AttemptRef), "--kinds", kinds,
	}
	if agent.Isolation != "" {
		args = append(args, "--isolation", agent.Isolation)
	}
	if len(agent.CA) > 0 {
		args = append(args, "--ca-file", ticketDir+"/"+caKey)
	}
	yes, no := true, false
	image := job.Image
	if image == "" {
		image = agent.Image
	}
	return core.Container{
		Name: mainContainer, Image: image, ImagePullPolicy: core.PullPolicy(job.PullPolicy),
		// Process 1: it passes a signal on to the engine, and delivers its outcome.
		Command: []string{"holdfast"}, Args: slices.Concat(args, agent.Args),
		Env: []core.EnvVar{
			{Name: "HOME", Value: workDir},
			{Name: "TMPDIR", Value: tempDir},
			// By that name its ticket is exchanged: the end of another Pod is not its end.
			{Name: protocol.HostVariable, ValueFrom: &core.EnvVarSource{FieldRef: &core.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
		},
		Resources: resourcesOf(limitsOf(l.Limits, ask.Resources)),
		SecurityContext: &core.SecurityContext{
			AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}},
		},
		VolumeMounts: []core.VolumeMount{
			{Name: ticketVolume, MountPath: ticketDir, ReadOnly: true}, {Name: workVolume, MountPath: workDir}, {Name: tempVolume, MountPath: tempDir},
		},
		TerminationMessagePolicy: core.TerminationMessageFallbackToLogsOnError,
	}
}

// limitsOf are the limits of a run, except for what the cluster asks of its runner.
func limitsOf(limits, ask holdfast.RunLimits) holdfast.RunLimits {
	if ask.Memory > 0 {
		limits.Memory = ask.Memory
	}
	if ask.CPU > 0 {
		limits.CPU = ask.CPU
	}
	return limits
}

// resourcesOf is what a Pod has so that an engine can use all that it may: it is never
// squeezed into less than it was promised, as an apply that is killed is costly.
func resourcesOf(limits holdfast.RunLimits) core.ResourceRequirements {
	list := core.ResourceList{}
	if limits.Memory > 0 {
		list[core.ResourceMemory] = *resource.NewQuantity(limits.Memory+agentMemory, resource.BinarySI)
	}
	if limits.CPU > 0 {
		list[core.ResourceCPU] = *resource.NewMilliQuantity(int64(limits.CPU*1000), resource.DecimalSI)
	}
	if len(list) == 0 {
		return core.ResourceRequirements{}
	}
	return core.ResourceRequirements{Requests: list, Limits: maps.Clone(list)}
}
