package runnerdoc_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/templates/runnerdoc"
)

func options() runnerdoc.Options {
	return runnerdoc.Options{Secrets: []string{"eu-token", "eu-kubeconfig"}}
}

// publicKey is an Ed25519 key in PEM, the same for the same seed.
func publicKey(seed byte) string {
	key := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), ed25519.SeedSize)))
	der, _ := x509.MarshalPKIXPublicKey(key.Public())
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by)
}

func runner(name, spec string) string {
	return "apiVersion: holdfast.dev/v1\nkind: Runner\nmetadata: {name: " + name + "}\nspec:\n" + indent(spec, "  ") + "\n"
}

func rule(name, spec string) string {
	return "apiVersion: holdfast.dev/v1\nkind: RunnerRule\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
}

const job = "job: {namespace: runs, planServiceAccount: plan, applyServiceAccount: apply}"

func TestParse(t *testing.T) {
	t.Parallel()

	text := runner("eu", `
type: kubernetes
kubernetes: {kubeconfig: {secret: eu-kubeconfig}}
job:
  namespace: holdfast-runs
  image: registry.example.com/holdfast:1.0
  pullPolicy: IfNotPresent
  pullSecrets: [registry]
  planServiceAccount: plan
  applyServiceAccount: apply
  nodeSelector: {pool: runs}
  tolerations: [{key: runs, operator: Exists}]
  podTemplate: {metadata: {labels: {team: infra}}}
storage: {type: s3, bucket: states, region: eu-central-1, prefix: eu}
maxRuns: 20
allow: {resources: {memory: 8GiB, cpu: 2}, serviceAccounts: [apps-*], podTemplate: true}`) +
		"---\n" + runner("edge", "type: remote\nkeys:\n  - |\n"+indent(publicKey('a'), "    ")+"\n  - |\n"+indent(publicKey('b'), "    ")) +
		"---\n" + runner("tasks", `
type: serverless-ecs
ecs:
  region: eu-central-1
  cluster: runs
  roleARN: arn:aws:iam::123456789012:role/start
  executionRoleARN: arn:aws:iam::123456789012:role/execute
  planTaskRoleARN: arn:aws:iam::123456789012:role/plan
  applyTaskRoleARN: arn:aws:iam::123456789012:role/apply
  subnets: [subnet-1]
  environment: {HTTPS_PROXY: "http://proxy:3128"}
  secrets: {TOKEN: "arn:aws:secretsmanager:eu-central-1:123456789012:secret:token"}`) +
		"---\n" + rule("prod", "{project: payments, environment: prod, runner: eu}") +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: eu}\n"
	docs, faults := runnerdoc.Parse("runners.yaml", []byte(text), false, options())
	for _, doc := range docs {
		faults = append(faults, doc.Faults...)
	}
	if len(faults) > 0 {
		t.Fatalf("faults:\n%v", faults)
	}
	want := []runnerdoc.Document{
		{Path: "runners.yaml", Line: 1, Runner: &runnerspec.Runner{
			Name: "eu", Type: runnerspec.Kubernetes,
			Kubernetes: &runnerspec.KubernetesAccess{Kubeconfig: &runnerspec.ServerSecret{Secret: "eu-kubeconfig"}},
			Job: &runnerspec.Job{
				Namespace: "holdfast-runs", Image: "registry.example.com/holdfast:1.0", PullPolicy: "IfNotPresent",
				PullSecrets: []string{"registry"}, PlanServiceAccount: "plan", ApplyServiceAccount: "apply",
				NodeSelector: map[string]string{"pool": "runs"},
				Tolerations:  []json.RawMessage{json.RawMessage(`{"key":"runs","operator":"Exists"}`)},
				PodTemplate:  json.RawMessage(`{"metadata":{"labels":{"team":"infra"}}}`),
			},
			Storage: &holdfast.StateStorage{Type: "s3", Bucket: "states", Region: "eu-central-1", Prefix: "eu"},
			MaxRuns: 20,
			Allow: runnerspec.Allowance{
				Resources: holdfast.RunLimits{Memory: 8 << 30, CPU: 2}, ServiceAccounts: []string{"apps-*"}, PodTemplate: true,
			},
		}},
		{Path: "runners.yaml", Line: 21, Runner: &runnerspec.Runner{
			Name: "edge", Type: runnerspec.Remote, Keys: []string{publicKey('a'), publicKey('b')},
		}},
		{Path: "runners.yaml", Line: 36, Runner: &runnerspec.Runner{
			Name: "tasks", Type: runnerspec.ECS, ECS: &runnerspec.ECSTask{
				Region: "eu-central-1", Cluster: "runs", RoleARN: "arn:aws:iam::123456789012:role/start",
				ExecutionRoleARN: "arn:aws:iam::123456789012:role/execute",
				PlanTaskRoleARN:  "arn:aws:iam::123456789012:role/plan", ApplyTaskRoleARN: "arn:aws:iam::123456789012:role/apply",
				Subnets: []string{"subnet-1"}, Environment: map[string]string{"HTTPS_PROXY": "http://proxy:3128"},
				Secrets: map[string]string{"TOKEN": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:token"},
			},
		}},
		{Path: "runners.yaml", Line: 52, Rule: &runnerspec.Rule{Name: "prod", Runner: "eu", Project: "payments", Environment: "prod"}},
	}
	if diff := cmp.Diff(want, docs, cmpopts.IgnoreUnexported(runnerdoc.Document{}), cmpopts.IgnoreFields(runnerdoc.Document{}, "Lines"), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// TestFaults: each wrong field is told at its line, and all of a document at once.
func TestFaults(t *testing.T) {
	t.Parallel()

	private, _ := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	privateKey := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	key := func(text string) string { return "  - |\n" + indent(text, "    ") }
	const ecs = `
type: serverless-ecs
ecs:
  region: eu-central-1
  cluster: runs
  roleARN: arn:aws:iam::123456789012:role/start
  executionRoleARN: arn:aws:iam::123456789012:role/execute
  planTaskRoleARN: arn:aws:iam::123456789012:role/plan
  applyTaskRoleARN: arn:aws:iam::123456789012:role/apply
  subnets: [subnet-1]
`
	tests := map[string]struct {
		text string
		want []string
	}{
		"several at once": {runner("eu", "type: kubernetes\nkubernetes: {inCluster: true}\njob: {namespace: Runs, planServiceAccount: a, applyServiceAccont: b}\nmaxRuns: 0"), []string{
			`r.yaml:7:20: spec.job.namespace "Runs" is not a name of Kubernetes (use a-z, 0-9, - and . inside)`,
			`r.yaml:7:49: unknown key "applyServiceAccont" in spec.job (did you mean "applyServiceAccount"?)`,
			`r.yaml:8:12: spec.maxRuns must be a whole number of at least 1, not the number 0 (leave it out for no limit)`,
		}},
		"type":         {runner("eu", "type: kubernetes-agnet"), []string{`r.yaml:5:9: spec.type is "kubernetes-agnet" (did you mean "kubernetes-agent"?)`}},
		"local":        {runner("local", "type: remote"), []string{`r.yaml:3:18: metadata.name local is that of the runner which is always there (give it another name)`}},
		"local's type": {runner("eu", "type: local"), []string{`r.yaml:5:9: spec.type is "local" (one of kubernetes, kubernetes-agent, kubernetes-eks, kubernetes-gke, remote, serverless-ecs)`}},
		"no type":      {runner("eu", "maxRuns: 3"), []string{`r.yaml:5:3: spec.type is missing`}},
		"no spec":      {"apiVersion: holdfast.dev/v1\nkind: Runner\nmetadata: {name: eu}\n", []string{`r.yaml:1:1: spec is missing`}},
		"name":         {runner("EU", "type: remote"), []string{`r.yaml:3:18: metadata.name is "EU" (use a-z, 0-9 and - inside, at most 63 characters)`}},
		"other type's": {runner("eu", "type: remote\n"+job), []string{`r.yaml:6:3: spec.job does not belong to a runner of type remote (remove it, or write another type)`}},
		"no job":       {runner("eu", "type: kubernetes-agent"), []string{`r.yaml:5:3: spec.job is missing`}},
		"no way":       {runner("eu", "type: kubernetes\nkubernetes: {inCluster: false}\n"+job), []string{`r.yaml:6:15: spec.kubernetes does not say where the API server is (one of inCluster, kubeconfig, server)`}},
		"two ways": {runner("eu", "type: kubernetes\nkubernetes: {inCluster: true, kubeconfig: {secret: eu-kubeconfig}}\n"+job), []string{
			`r.yaml:6:33: spec.kubernetes has both inCluster and kubeconfig (keep one)`,
		}},
		"other cloud's": {runner("eu", "type: kubernetes-gke\nkubernetes: {eks: {region: eu-central-1, name: a, roleARN: 'arn:aws:iam::123456789012:role/a'}}\n"+job), []string{
			`r.yaml:6:15: spec.kubernetes does not say where the API server is (the only one is gke)`,
			`r.yaml:6:16: spec.kubernetes.eks does not belong to a runner of type kubernetes-gke (the only one is gke)`,
		}},
		"unknown secret": {runner("eu", "type: kubernetes\nkubernetes: {kubeconfig: {secret: eu-kubecofnig}}\n"+job), []string{
			`r.yaml:6:37: spec.kubernetes.kubeconfig.secret names no secret of the server (did you mean "eu-kubeconfig"?)`,
		}},
		"secret by value": {runner("eu", "type: kubernetes\nkubernetes: {kubeconfig: hunter2}\n"+job), []string{
			`r.yaml:6:28: spec.kubernetes.kubeconfig must refer to a secret (write {secret: NAME}, and NAME: {file: PATH} under secrets in holdfast.yaml)`,
		}},
		"server": {runner("eu", "type: kubernetes\nkubernetes:\n  server: {url: 'http://u:hunter2@host', certificateAuthority: x, clientKey: {secret: eu-token}}\n"+job), []string{
			`r.yaml:7:13: spec.kubernetes.server needs clientCertificate and clientKey together (write token: {secret: NAME}, or clientCertificate with clientKey: {secret: NAME})`,
			`r.yaml:7:19: spec.kubernetes.server.url is not a URL of the form https://HOST`,
			`r.yaml:7:66: spec.kubernetes.server.certificateAuthority is not a certificate in PEM (write it as a block (|), from -----BEGIN CERTIFICATE----- on)`,
		}},
		"same accounts": {runner("eu", "type: kubernetes-agent\njob: {namespace: runs, planServiceAccount: both, applyServiceAccount: both}"), []string{
			`r.yaml:6:73: spec.job.applyServiceAccount is that of plans: code in a pull request would have the rights of applies (name another one, or write sameServiceAccount: true)`,
		}},
		"same accounts, written": {runner("eu", "type: kubernetes-agent\njob: {namespace: runs, planServiceAccount: both, applyServiceAccount: both, sameServiceAccount: true}"), nil},
		"storage's fields": {runner("eu", "type: remote\nstorage: {type: gcs, bucket: b, region: eu, prefix: ../x}"), []string{
			`r.yaml:6:35: spec.storage.region does not belong to storage of type gcs (one of bucket, prefix)`,
			`r.yaml:6:55: spec.storage.prefix "../x" is not a folder (such as states/eu: without / at its begin and .. in it)`,
		}},
		"storage that tasks cannot have": {runner("eu", ecs+"storage: {type: gcs, bucket: b}"), []string{
			`r.yaml:14:19: a runner of type serverless-ecs cannot keep states in gcs (the only one is s3; or leave spec.storage out for Holdfast's own backend)`,
		}},
		"storage of tasks": {runner("eu", ecs+"storage: {type: s3, bucket: b}"), nil},
		"private key": {runner("eu", "type: remote\nkeys:\n"+key(privateKey)), []string{
			`r.yaml:7:7: spec.keys[0] is a private key (remove it, and create another one: anyone who can read the repository has it; here belongs the public key)`,
		}},
		"key twice": {runner("eu", "type: remote\nkeys:\n"+key(publicKey('a'))+"\n"+key(publicKey('a'))), []string{
			`r.yaml:11:7: spec.keys[1] is that of spec.keys[0] (remove one)`,
		}},
		"no key": {runner("eu", "type: remote\nkeys: [ssh-ed25519 AAAA]"), []string{
			`r.yaml:6:10: spec.keys[0] is not one public key in PEM (write it as a block (|), from -----BEGIN PUBLIC KEY----- on)`,
		}},
		"glob":          {runner("eu", "type: remote\nallow: {serviceAccounts: ['[']}"), []string{`r.yaml:6:29: spec.allow.serviceAccounts[0] is not a glob (such as apps-*)`}},
		"rule":          {rule("a", "{projct: payments, runner: eu}"), []string{`r.yaml:4:8: unknown key "projct" in spec (did you mean "project"?)`}},
		"rule's runner": {rule("a", "{project: payments}"), []string{`r.yaml:4:7: spec.runner is missing`}},
		"given twice":   {runner("eu", "type: remote\ntype: remote"), []string{`r.yaml:6:3: key "type" is given twice, first in line 5 (remove one)`}},
		"pod template": {runner("eu", "type: kubernetes-agent\njob: {namespace: runs, planServiceAccount: a, applyServiceAccount: b, podTemplate: [x]}"), []string{
			`r.yaml:6:86: spec.job.podTemplate must be a mapping, not a list`,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			docs, faults := runnerdoc.Parse("r.yaml", []byte(tc.text), false, options())
			for _, doc := range docs {
				faults = append(faults, doc.Faults...)
			}
			if got, want := faults.Error(), strings.Join(tc.want, "\n"); got != want {
				t.Errorf("faults:\n%s\nwant:\n%s", got, want)
			}
			if strings.Contains(faults.Error(), "hunter2") {
				t.Error("a fault repeats what may be a secret")
			}
		})
	}
}

// TestFaultsOfOthers: what others find wrong is told where it was written, or at the
// nearest key around it.
func TestFaultsOfOthers(t *testing.T) {
	t.Parallel()

	opts := options()
	opts.Check = func(runnerspec.Runner) []runnerspec.FieldFault {
		return []runnerspec.FieldFault{
			{Path: []string{"job", "podTemplate", "spec", "containers", "0", "name"}, Message: "the container must be main"},
			{Path: []string{"job", "podTemplate", "spec", "volumes"}, Message: "there must be volumes", Hint: "add them"},
		}
	}
	text := runner("eu", "type: kubernetes-agent\njob:\n  namespace: runs\n  planServiceAccount: a\n  applyServiceAccount: b\n"+
		"  podTemplate:\n    spec:\n      containers:\n        - {name: other}")
	docs, _ := runnerdoc.Parse("r.yaml", []byte(text), false, opts)
	want := "r.yaml:12:9: there must be volumes (add them)\nr.yaml:13:20: the container must be main"
	if got := docs[0].Faults.Error(); got != want {
		t.Errorf("faults:\n%s\nwant:\n%s", got, want)
	}
}

// TestAlone: where nobody looks for clusters, what resembles a document of ours is a fault.
func TestAlone(t *testing.T) {
	t.Parallel()

	text := strings.Replace(runner("eu", "type: remote"), "kind:", "kinnd:", 1)
	const want = `r.yaml:2:1: unknown key "kinnd" in the document (did you mean "kind"?)`
	for alone, want := range map[bool]string{true: want, false: ""} {
		if _, faults := runnerdoc.Parse("r.yaml", []byte(text), alone, options()); faults.Error() != want {
			t.Errorf("alone %t: faults are %q, want %q", alone, faults.Error(), want)
		}
	}
}
