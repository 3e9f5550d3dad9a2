package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	strict "sigs.k8s.io/json"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// CheckRunner returns what is wrong with the Jobs of a runner, as far as that can be known
// without its API server, and the key in its document that says so.
func CheckRunner(r runnerspec.Runner) (key string, err error) {
	if r.Job == nil {
		return "", nil
	}
	c := &Cluster{opts: Options{Runner: r, Agent: Agent{Image: "holdfast"}}}
	bare := *c
	bare.opts.Runner.Job = &runnerspec.Job{Tolerations: r.Job.Tolerations}
	for _, kind := range []holdfast.RunKind{holdfast.RunPlan, holdfast.RunApply} {
		l := protocol.Launch{AttemptRef: holdfast.AttemptRef{Run: "run", Attempt: 1}, Kind: kind}
		if _, err := bare.ownTemplate(l, holdfast.ClusterRunner{}); err != nil {
			return "tolerations", err
		}
		if _, err := c.template(l, holdfast.ClusterRunner{}); err != nil {
			return "podTemplate", err
		}
	}
	return "", nil
}

// checkTemplate refuses directives and nulls of a strategic merge, which remove things
// silently, and unknown fields.
func checkTemplate(template json.RawMessage) error {
	if len(template) == 0 {
		return nil
	}
	var tree any
	if err := json.Unmarshal(template, &tree); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if _, ok := tree.(map[string]any); !ok {
		return errors.New("want a mapping of metadata and spec")
	}
	if err := plain("", tree); err != nil {
		return err
	}
	return decodeStrictly(template, &core.PodTemplateSpec{})
}

// ticketName is what Secrets with tickets are called. Whoever mounts that of another run, or
// of the next attempt, has its ticket before its agent does.
var ticketName = regexp.MustCompile(`^holdfast-run-[0-9a-z]+-[0-9]+$`)

// plain returns the first directive, null or name of a ticket's Secret of a tree.
func plain(at string, tree any) error {
	switch value := tree.(type) {
	case nil:
		return fmt.Errorf("%s is null, which would remove it: leave it out", strings.TrimPrefix(at, "."))
	case string:
		if ticketName.MatchString(value) {
			return fmt.Errorf("%s: Secret %s has the ticket of a run, which is for its agent alone", strings.TrimPrefix(at, "."), value)
		}
	case map[string]any:
		for key, v := range value {
			if strings.HasPrefix(key, "$") {
				return fmt.Errorf("%s: directives of a patch are not supported", strings.TrimPrefix(at+"."+key, "."))
			}
			if err := plain(at+"."+key, v); err != nil {
				return err
			}
		}
	case []any:
		for i, v := range value {
			if err := plain(fmt.Sprintf("%s[%d]", at, i), v); err != nil {
				return err
			}
		}
	}
	return nil
}

// decodeStrictly decodes JSON; fields that are not known, or written twice, are errors.
func decodeStrictly(text []byte, into any) error {
	wrong, err := strict.UnmarshalStrict(text, into)
	if err != nil {
		return err
	}
	return errors.Join(wrong...)
}

// merge merges a template over another one, as kubectl does.
func merge(base core.PodTemplateSpec, patch json.RawMessage) (merged core.PodTemplateSpec, err error) {
	if err := checkTemplate(patch); err != nil {
		return base, err
	}
	text, err := json.Marshal(base)
	if err != nil {
		return base, err
	}
	if text, err = strategicpatch.StrategicMergePatch(text, patch, core.PodTemplateSpec{}); err != nil {
		return base, fmt.Errorf("merge: %w", err)
	}
	return merged, decodeStrictly(text, &merged)
}

// intact returns what a merge has changed of a template that it must not.
func intact(own, merged core.PodTemplateSpec) error {
	for key, value := range own.Labels {
		if merged.Labels[key] != value {
			return fmt.Errorf("metadata.labels[%s] is reserved", key)
		}
	}
	a, b := own.Spec, merged.Spec
	switch {
	case merged.Namespace != "" || merged.Name != "" || merged.GenerateName != "" || len(merged.OwnerReferences) > 0 || len(merged.Finalizers) > 0:
		return errors.New("metadata may have labels and annotations only")
	case b.RestartPolicy != a.RestartPolicy:
		return errors.New("spec.restartPolicy is reserved: a Job's Pod is not started again")
	case b.ServiceAccountName != a.ServiceAccountName || b.DeprecatedServiceAccount != "":
		return errors.New("spec.serviceAccountName is reserved: the runner has one for plans and one for applies")
	case !reflect.DeepEqual(a.ActiveDeadlineSeconds, b.ActiveDeadlineSeconds):
		return errors.New("spec.activeDeadlineSeconds is reserved: runs.timeout bounds runs")
	case b.TerminationGracePeriodSeconds == nil || *b.TerminationGracePeriodSeconds < *a.TerminationGracePeriodSeconds:
		return fmt.Errorf("spec.terminationGracePeriodSeconds must be at least %d: an engine needs it to end well", *a.TerminationGracePeriodSeconds)
	case b.HostNetwork || b.HostPID || b.HostIPC || b.ShareProcessNamespace != nil && *b.ShareProcessNamespace:
		return errors.New("spec: the Pod shares neither the node's namespaces nor those of its containers")
	case len(b.EphemeralContainers) > 0:
		return errors.New("spec.ephemeralContainers is reserved")
	case len(b.Containers) != 1 || b.Containers[0].Name != mainContainer:
		return errors.New("spec.containers must have exactly one, main: others belong to initContainers, with restartPolicy Always if they are to stay")
	}
	if err := containerIntact(a.Containers[0], b.Containers[0]); err != nil {
		return err
	}
	if err := unprivileged(b.SecurityContext); err != nil {
		return err
	}
	return volumesIntact(a, b)
}

func containerIntact(a, b core.Container) error {
	if !slices.Equal(a.Command, b.Command) || !slices.Equal(a.Args, b.Args) {
		return errors.New("container main: command and args are reserved")
	}
	if b.Image == "" {
		return errors.New("container main has no image")
	}
	for _, e := range a.Env {
		is := func(other core.EnvVar) bool { return other.Name == e.Name }
		i := slices.IndexFunc(b.Env, is)
		if i < 0 || !reflect.DeepEqual(b.Env[i], e) || slices.ContainsFunc(b.Env[i+1:], is) {
			return fmt.Errorf("container main: env %s is reserved", e.Name)
		}
	}
	for _, m := range a.VolumeMounts {
		if !slices.ContainsFunc(b.VolumeMounts, func(other core.VolumeMount) bool { return reflect.DeepEqual(other, m) }) {
			return fmt.Errorf("container main: the mount at %s is reserved", m.MountPath)
		}
	}
	for _, m := range b.VolumeMounts {
		ours := slices.ContainsFunc(a.VolumeMounts, func(own core.VolumeMount) bool { return reflect.DeepEqual(own, m) })
		if at := path.Clean(m.MountPath); !ours && (at == "/" || at == "/holdfast" || strings.HasPrefix(at, "/holdfast/")) {
			return fmt.Errorf("container main: %s is reserved", m.MountPath)
		}
	}
	if !reflect.DeepEqual(a.SecurityContext, b.SecurityContext) {
		return errors.New("container main: securityContext is reserved: it runs without privileges")
	}
	// They would run programs next to the agent, which see what it sees, or end it.
	if b.Lifecycle != nil || b.LivenessProbe != nil || b.ReadinessProbe != nil || b.StartupProbe != nil {
		return errors.New("container main: lifecycle and probes are reserved")
	}
	return nil
}

// unprivileged returns what a merge has given to the Pod's processes.
func unprivileged(is *core.PodSecurityContext) error {
	switch {
	case is == nil || is.RunAsNonRoot == nil || !*is.RunAsNonRoot || is.RunAsUser == nil || *is.RunAsUser == 0:
		return errors.New("spec.securityContext: the Pod does not run as root")
	case is.SeccompProfile == nil || is.SeccompProfile.Type == core.SeccompProfileTypeUnconfined,
		is.AppArmorProfile != nil && is.AppArmorProfile.Type == core.AppArmorProfileTypeUnconfined:
		return errors.New("spec.securityContext: the Pod does not run unconfined")
	}
	return nil
}

func volumesIntact(a, b core.PodSpec) error {
	for _, v := range a.Volumes {
		count := 0
		for _, other := range b.Volumes {
			if other.Name == v.Name && reflect.DeepEqual(other, v) {
				count++
			}
		}
		if count != 1 {
			return fmt.Errorf("volume %s is reserved", v.Name)
		}
	}
	// The ticket is for the agent alone.
	for _, c := range b.InitContainers {
		for _, m := range c.VolumeMounts {
			if m.Name == ticketVolume {
				return fmt.Errorf("init container %s: volume %s is for the agent alone", c.Name, ticketVolume)
			}
		}
	}
	return nil
}

// placement are the keys of spec in the Pod template of a cluster, which a pull request
// writes before anybody has seen it: where the Pod runs, and nothing of what runs in it or with
// which rights. An image, a variable, a volume or an annotation could have the agent say that a
// plan is another one than it is.
var placement = []string{"affinity", "nodeSelector", "priorityClassName", "tolerations", "topologySpreadConstraints"}

// placesOnly refuses whatever else the Pod template of a cluster says.
func placesOnly(template json.RawMessage) error {
	var tree map[string]json.RawMessage
	if err := json.Unmarshal(template, &tree); err != nil {
		return errors.New("want a mapping with spec")
	}
	var spec map[string]json.RawMessage
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		if key != "spec" {
			return fmt.Errorf("%s is for the runner's own template: that of a cluster has spec alone", key)
		}
		if err := json.Unmarshal(tree[key], &spec); err != nil {
			return errors.New("spec: want a mapping")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(spec)) {
		if !slices.Contains(placement, key) {
			return fmt.Errorf("spec.%s is for the runner's own template: that of a cluster may have %s", key, strings.Join(placement, ", "))
		}
	}
	return nil
}

// beyond returns what a cluster asks of its runner that this does not allow.
func beyond(ask holdfast.ClusterRunner, allow runnerspec.Allowance) error {
	switch most := allow.Resources; { // a zero allows nothing here
	case ask.Resources.Memory > 0 && most.Memory == 0:
		return errors.New("the runner allows no spec.runner.resources.memory")
	case ask.Resources.CPU > 0 && most.CPU == 0:
		return errors.New("the runner allows no spec.runner.resources.cpu")
	case ask.Resources.Processes > 0:
		return errors.New("spec.runner.resources.processes: Kubernetes has no such limit for a Pod; use spec.limits")
	}
	if key, most := ask.Resources.Beyond(allow.Resources); key != "" {
		return fmt.Errorf("spec.runner.resources.%s is more than the runner allows (%s)", key, most)
	}
	allowed := func(pattern string) bool {
		ok, err := path.Match(pattern, ask.ServiceAccount)
		return err == nil && ok
	}
	switch {
	case ask.ServiceAccount != "" && !slices.ContainsFunc(allow.ServiceAccounts, allowed):
		return fmt.Errorf("spec.runner.serviceAccount %q is not among those that the runner allows", ask.ServiceAccount)
	case len(ask.PodTemplate) > 0 && !allow.PodTemplate:
		return errors.New("the runner allows no spec.runner.podTemplate")
	case len(ask.PodTemplate) > 0:
		if err := placesOnly(ask.PodTemplate); err != nil {
			return fmt.Errorf("spec.runner.podTemplate: %w", err)
		}
	}
	return nil
}
