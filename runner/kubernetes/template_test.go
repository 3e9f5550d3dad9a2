package kubernetes

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// cluster is one that calls nobody.
func cluster(t *testing.T, change ...func(*Options)) *Cluster {
	t.Helper()
	opts := Options{
		Runner: runnerspec.Runner{Name: "east", Type: runnerspec.Kubernetes, Job: &runnerspec.Job{
			Namespace: "runs", PlanServiceAccount: "planner", ApplyServiceAccount: "applier",
		}},
		Access:       Access{Server: &Server{URL: "https://kubernetes.example.com", Token: "t"}},
		Agent:        Agent{ServerURL: "https://holdfast.example.com", Image: "holdfast:1"},
		Installation: "i",
	}
	for _, c := range change {
		c(&opts)
	}
	c, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func launchOf(kind holdfast.RunKind, ask *holdfast.ClusterRunner) protocol.Launch {
	return protocol.Launch{
		AttemptRef: holdfast.AttemptRef{Run: "run-1", Attempt: 2}, Kind: kind, Ticket: "the-ticket",
		Cluster: holdfast.Cluster{Name: "prod-eu", Project: "payments", Runner: ask}, Limits: holdfast.RunLimits{Memory: 1 << 30, CPU: 1.5},
	}
}

func TestJobOfARun(t *testing.T) {
	t.Parallel()
	c := cluster(t, func(o *Options) {
		o.Runner.Job.PodTemplate = json.RawMessage(`{"metadata": {"annotations": {"a": "b"}}, "spec": {"priorityClassName": "high",
			"containers": [{"name": "main", "image": "mine:2", "env": [{"name": "PROXY", "value": "p"}]}],
			"tolerations": [{"key": "runs", "operator": "Exists"}]}}`)
	})
	for kind, account := range map[holdfast.RunKind]string{
		holdfast.RunPlan: "planner", holdfast.RunDrift: "planner", holdfast.RunApply: "applier", holdfast.RunDestroy: "applier",
	} {
		job, err := c.job(launchOf(kind, nil))
		if err != nil {
			t.Fatal(err)
		}
		pod := job.Spec.Template.Spec
		main := pod.Containers[0]
		switch {
		case job.Name != "holdfast-run-1-2" || *job.Spec.BackoffLimit != 0:
			t.Errorf("%s: the Job is %+v", kind, job)
		case pod.ServiceAccountName != account:
			t.Errorf("%s: its service account is %s", kind, pod.ServiceAccountName)
		case main.Image != "mine:2" || pod.PriorityClassName != "high" || len(pod.Tolerations) != 1:
			t.Errorf("%s: the template was not merged: %+v", kind, pod)
		case main.Resources.Limits.Memory().Value() != 1<<30+agentMemory || main.Resources.Limits.Cpu().MilliValue() != 1500:
			t.Errorf("%s: its limits are %v", kind, main.Resources.Limits)
		}
		if text, _ := json.Marshal(job); strings.Contains(string(text), "the-ticket") {
			t.Errorf("%s: the Job shows the ticket", kind)
		}
	}
}

// A Job may wait for a quota for hours: the time that its run has begins with its Pod.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	l := launchOf(holdfast.RunApply, nil)
	l.Timeout = time.Hour
	job, err := cluster(t).job(l)
	if err != nil {
		t.Fatal(err)
	}
	pod := job.Spec.Template.Spec.ActiveDeadlineSeconds
	if pod == nil || *pod != 3600 || *job.Spec.ActiveDeadlineSeconds < 3600+12*3600 {
		t.Errorf("the Pod has %v seconds, the Job %d", pod, *job.Spec.ActiveDeadlineSeconds)
	}
}

// Whatever a template would change that is reserved, it is refused with what it is.
func TestTemplatesThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ template, want string }{
		"directive":           {`{"spec": {"$patch": "replace"}}`, "spec.$patch: directives"},
		"order of elements":   {`{"spec": {"$setElementOrder/containers": [{"name": "main"}]}}`, "directives"},
		"retained keys":       {`{"spec": {"containers": [{"name": "main", "$retainKeys": ["name"]}]}}`, "spec.containers[0].$retainKeys: directives"},
		"null":                {`{"spec": {"volumes": null}}`, "spec.volumes is null"},
		"misspelt":            {`{"spec": {"nodeselector": {}}}`, "nodeselector"},
		"twice":               {`{"spec": {"hostname": "a", "hostname": "b"}}`, "duplicate"},
		"not a mapping":       {`[]`, "want a mapping"},
		"another container":   {`{"spec": {"containers": [{"name": "side", "image": "x"}]}}`, "exactly one, main"},
		"command":             {`{"spec": {"containers": [{"name": "main", "command": ["sh"]}]}}`, "command and args"},
		"args":                {`{"spec": {"containers": [{"name": "main", "args": ["serve"]}]}}`, "command and args"},
		"reserved variable":   {`{"spec": {"containers": [{"name": "main", "env": [{"name": "HOME", "value": "/"}]}]}}`, "env HOME is reserved"},
		"variable from":       {`{"spec": {"containers": [{"name": "main", "env": [{"name": "HOME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}]}}`, "env HOME is reserved"},
		"our mount":           {`{"spec": {"containers": [{"name": "main", "volumeMounts": [{"name": "x", "mountPath": "/holdfast/ticket"}]}], "volumes": [{"name": "x", "emptyDir": {}}]}}`, "reserved"},
		"below our mounts":    {`{"spec": {"containers": [{"name": "main", "volumeMounts": [{"name": "x", "mountPath": "/holdfast/work/agent"}]}], "volumes": [{"name": "x", "emptyDir": {}}]}}`, "reserved"},
		"our volume":          {`{"spec": {"volumes": [{"name": "holdfast-work", "hostPath": {"path": "/"}}]}}`, "holdfast-work is reserved"},
		"the ticket":          {`{"spec": {"initContainers": [{"name": "i", "image": "x", "volumeMounts": [{"name": "holdfast-ticket", "mountPath": "/t"}]}]}}`, "agent alone"},
		"label":               {`{"metadata": {"labels": {"holdfast.dev/run": "x"}}}`, "holdfast.dev/run] is reserved"},
		"namespace":           {`{"metadata": {"namespace": "x"}}`, "labels and annotations only"},
		"restart policy":      {`{"spec": {"restartPolicy": "OnFailure"}}`, "restartPolicy"},
		"service account":     {`{"spec": {"serviceAccountName": "admin"}}`, "serviceAccountName"},
		"old account":         {`{"spec": {"serviceAccount": "admin"}}`, "serviceAccountName"},
		"deadline":            {`{"spec": {"activeDeadlineSeconds": 5}}`, "activeDeadlineSeconds"},
		"processes of a node": {`{"spec": {"hostPID": true}}`, "namespaces"},
		"privileged":          {`{"spec": {"containers": [{"name": "main", "securityContext": {"privileged": true}}]}}`, "without privileges"},
		"capabilities":        {`{"spec": {"containers": [{"name": "main", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]}}`, "without privileges"},
		"root":                {`{"spec": {"containers": [{"name": "main", "securityContext": {"runAsUser": 0}}]}}`, "without privileges"},
		"root Pod":            {`{"spec": {"securityContext": {"runAsUser": 0}}}`, "does not run as root"},
		"perhaps root":        {`{"spec": {"securityContext": {"runAsNonRoot": false}}}`, "does not run as root"},
		"unconfined":          {`{"spec": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}}`, "unconfined"},
		"no AppArmor":         {`{"spec": {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}}`, "unconfined"},
		"a hook":              {`{"spec": {"containers": [{"name": "main", "lifecycle": {"postStart": {"exec": {"command": ["cat", "/holdfast/ticket/ticket"]}}}}]}}`, "lifecycle and probes"},
		"a probe":             {`{"spec": {"containers": [{"name": "main", "livenessProbe": {"exec": {"command": ["false"]}}}]}}`, "lifecycle and probes"},
		"another's ticket":    {`{"spec": {"volumes": [{"name": "x", "secret": {"secretName": "holdfast-run-01jd8qsk3y2v9rm4t6ag-1"}}]}}`, "volumes[0].secret.secretName: Secret holdfast-run-"},
		"a ticket among more": {`{"spec": {"volumes": [{"name": "x", "projected": {"sources": [{"secret": {"name": "holdfast-run-01jd8qsk3y2v9rm4t6ag-2"}}]}}]}}`, "has the ticket of a run"},
		"a ticket as env":     {`{"spec": {"initContainers": [{"name": "i", "image": "x", "envFrom": [{"secretRef": {"name": "holdfast-run-01jd8qsk3y2v9rm4t6ag-1"}}]}]}}`, "has the ticket of a run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t)
			c.opts.Runner.Job.PodTemplate = json.RawMessage(test.template)
			if key, err := CheckRunner(c.opts.Runner); key != "podTemplate" || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("CheckRunner() = %s, %v", key, err)
			}
			_, err := c.job(launchOf(holdfast.RunPlan, nil))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want it to contain %q", err, test.want)
			}
		})
	}
}

func TestWhatAClusterAsksFor(t *testing.T) {
	t.Parallel()
	allow := runnerspec.Allowance{
		Resources: holdfast.RunLimits{Memory: 4 << 30}, ServiceAccounts: []string{"team-*"}, PodTemplate: true,
	}
	for name, test := range map[string]struct {
		ask   holdfast.ClusterRunner
		allow runnerspec.Allowance
		want  string
	}{
		"within":           {holdfast.ClusterRunner{Resources: holdfast.RunLimits{Memory: 4 << 30}, ServiceAccount: "team-a"}, allow, ""},
		"too much memory":  {holdfast.ClusterRunner{Resources: holdfast.RunLimits{Memory: 5 << 30}}, allow, "resources.memory is more"},
		"nothing allowed":  {holdfast.ClusterRunner{Resources: holdfast.RunLimits{CPU: 1}}, allow, "allows no spec.runner.resources.cpu"},
		"another account":  {holdfast.ClusterRunner{ServiceAccount: "admin"}, allow, "not among those"},
		"too many things":  {holdfast.ClusterRunner{Resources: holdfast.RunLimits{Processes: 9}}, allow, "no such limit for a Pod"},
		"a template":       {holdfast.ClusterRunner{PodTemplate: json.RawMessage(`{"spec": {"nodeSelector": {"disk": "fast"}, "priorityClassName": "low"}}`)}, allow, ""},
		"no template":      {holdfast.ClusterRunner{PodTemplate: json.RawMessage(`{"spec": {"nodeSelector": {"disk": "fast"}}}`)}, runnerspec.Allowance{}, "no spec.runner.podTemplate"},
		"a wrong template": {holdfast.ClusterRunner{PodTemplate: json.RawMessage(`{"spec": {"nodeSelector": {"disk": null}}}`)}, allow, "cluster prod-eu"},
		"an image":         {holdfast.ClusterRunner{PodTemplate: json.RawMessage(`{"spec": {"containers": [{"name": "main", "image": "evil"}]}}`)}, allow, "spec.containers is for the runner's own template"},
		"a program":        {holdfast.ClusterRunner{PodTemplate: json.RawMessage(`{"spec": {"initContainers": [{"name": "i", "image": "evil"}]}}`)}, allow, "spec.initContainers is for"},
		"a host's folder":  {holdfast.ClusterRunner{PodTemplate: json.RawMessage(`{"spec": {"volumes": [{"name": "x", "hostPath": {"path": "/"}}]}}`)}, allow, "spec.volumes is for"},
		"a token":          {holdfast.ClusterRunner{PodTemplate: json.RawMessage(`{"spec": {"automountServiceAccountToken": true}}`)}, allow, "spec.automountServiceAccountToken is for"},
		"another name":     {holdfast.ClusterRunner{PodTemplate: json.RawMessage(`{"spec": {"hostAliases": [{"ip": "10.0.0.9", "hostnames": ["holdfast.example.com"]}]}}`)}, allow, "spec.hostAliases is for"},
		"an annotation":    {holdfast.ClusterRunner{PodTemplate: json.RawMessage(`{"metadata": {"annotations": {"iam.amazonaws.com/role": "admin"}}}`)}, allow, "metadata is for"},
		"not a mapping":    {holdfast.ClusterRunner{PodTemplate: json.RawMessage(`{"spec": []}`)}, allow, "spec: want a mapping"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t, func(o *Options) { o.Runner.Allow = test.allow })
			job, err := c.job(launchOf(holdfast.RunApply, &test.ask))
			switch {
			case test.want == "" && err != nil, test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			case err == nil && test.ask.ServiceAccount != "" && job.Spec.Template.Spec.ServiceAccountName != test.ask.ServiceAccount:
				t.Errorf("its account is %s", job.Spec.Template.Spec.ServiceAccountName)
			}
		})
	}
}

// A plan executes what a pull request says before anybody has seen it: it does not choose the
// account of it, unless the runner says that plans may have that of applies.
func TestAccountOfAPlan(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind holdfast.RunKind
		same bool
		want string
	}{
		"plan":           {holdfast.RunPlan, false, "planner"},
		"drift":          {holdfast.RunDrift, false, "planner"},
		"apply":          {holdfast.RunApply, false, "applier"},
		"destroy":        {holdfast.RunDestroy, false, "applier"},
		"plan, the same": {holdfast.RunPlan, true, "applier"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t, func(o *Options) {
				o.Runner.Allow.ServiceAccounts, o.Runner.Job.SameServiceAccount = []string{"*"}, test.same
			})
			c.opts.Runner.Job.ApplyServiceAccount = "other"
			job, err := c.job(launchOf(test.kind, &holdfast.ClusterRunner{ServiceAccount: "applier"}))
			if err != nil {
				t.Fatal(err)
			}
			if got := job.Spec.Template.Spec.ServiceAccountName; got != test.want {
				t.Errorf("its account is %s, want %s", got, test.want)
			}
		})
	}
}

// A kubeconfig is somebody's text: nothing in it starts a program or reads a file.
func TestKubeconfigs(t *testing.T) {
	t.Parallel()
	const head = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],
		clusters: [{name: k, cluster: {server: "https://kubernetes.example.com"%s}}], users: [{name: u, user: {%s}}]}`
	for name, test := range map[string]struct{ cluster, user, want string }{
		"token":  {"", "token: x", ""},
		"exec":   {"", "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}", "exec plugin"},
		"file":   {"", "tokenFile: /etc/passwd", "refers to files"},
		"key":    {"", "client-key: /etc/passwd, client-certificate: /etc/passwd", "refers to files"},
		"caFile": {", certificate-authority: /etc/passwd", "token: x", "refers to a file"},
		"plugin": {"", "auth-provider: {name: gcp}", "auth provider"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(strings.Replace(head, "%s", test.cluster, 1), "%s", test.user, 1)
			_, err := Access{Kubeconfig: []byte(text)}.config()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
