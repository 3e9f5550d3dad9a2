// Package deploy_test tries what people install: the Helm chart and the Compose file.
package deploy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
)

const chart = "helm/holdfast"

// tool returns a program of `make tools`.
func tool(t *testing.T, program string) string {
	t.Helper()
	dir := os.Getenv("HOLDFAST_TEST_PROVIDERS")
	path := filepath.Join(dir, program)
	if _, err := os.Stat(path); dir == "" || err != nil {
		t.Fatalf("%s is not in HOLDFAST_TEST_PROVIDERS (%q): make tools", program, dir)
	}
	return path
}

// helm runs a command of Helm with files of testdata as values.
func helm(t *testing.T, command string, values ...string) (string, error) {
	t.Helper()
	args := []string{command}
	if command == "template" {
		// Helm that was built as a Go module believes in a Kubernetes of long ago.
		args = append(args, "holdfast", "--namespace", "holdfast", "--kube-version", "1.33.0")
	}
	args = append(args, chart)
	for _, name := range values {
		args = append(args, "--values", filepath.Join("testdata", name+".yaml"))
	}
	run := exec.Command(tool(t, "helm"), args...)
	run.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	var out, errs bytes.Buffer
	run.Stdout, run.Stderr = &out, &errs
	if err := run.Run(); err != nil {
		return out.String(), errors.New(out.String() + errs.String())
	}
	return out.String(), nil
}

// object is a rendered object.
type object map[string]any

// rendered are the objects of a chart with these values.
func rendered(t *testing.T, values ...string) []object {
	t.Helper()
	out, err := helm(t, "template", values...)
	if err != nil {
		t.Fatal(err)
	}
	var objects []object
	decoder := yaml.NewDecoder(strings.NewReader(out))
	for {
		var one map[string]any
		switch err := decoder.Decode(&one); {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatalf("%v in:\n%s", err, out)
		case len(one) > 0:
			objects = append(objects, one)
		}
	}
}

func (o object) at(path ...string) any {
	var at any = map[string]any(o)
	for _, key := range path {
		m, _ := at.(map[string]any)
		at = m[key]
	}
	return at
}

func (o object) name() string {
	kind, _ := o["kind"].(string)
	name, _ := o.at("metadata", "name").(string)
	if namespace, _ := o.at("metadata", "namespace").(string); namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

func TestChartIsLinted(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"three", "one", "everything", "agent"} {
		if out, err := helm(t, "lint", values); err != nil {
			t.Errorf("%s: %v\n%s", values, err, out)
		}
	}
}

func TestChartRenders(t *testing.T) {
	t.Parallel()
	for values, want := range map[string][]string{
		"one": {
			"ConfigMap holdfast", "NetworkPolicy holdfast", "Service holdfast", "Service holdfast-replicas",
			"ServiceAccount holdfast", "StatefulSet holdfast",
		},
		"three": {
			"ConfigMap holdfast", "Namespace holdfast-jobs", "NetworkPolicy holdfast", "NetworkPolicy holdfast-jobs/holdfast",
			"PodDisruptionBudget holdfast", "Role holdfast-jobs/holdfast", "RoleBinding holdfast-jobs/holdfast", "Service holdfast",
			"Service holdfast-replicas", "ServiceAccount holdfast", "ServiceAccount holdfast-jobs/holdfast-apply",
			"ServiceAccount holdfast-jobs/holdfast-plan", "StatefulSet holdfast",
		},
		"agent": {
			"Deployment holdfast-launch", "Namespace holdfast-jobs", "NetworkPolicy holdfast-jobs/holdfast", "NetworkPolicy holdfast-launch",
			"Role holdfast-jobs/holdfast", "RoleBinding holdfast-jobs/holdfast", "ServiceAccount holdfast-jobs/holdfast-apply",
			"ServiceAccount holdfast-jobs/holdfast-plan", "ServiceAccount holdfast-launch",
		},
		"everything": {
			"ConfigMap holdfast", "Deployment holdfast-launch", "HTTPRoute holdfast-api", "HTTPRoute holdfast-webhooks", "Ingress holdfast-api",
			"Ingress holdfast-webhooks", "Namespace runs", "NetworkPolicy holdfast", "NetworkPolicy holdfast-launch", "NetworkPolicy runs/holdfast",
			"PodDisruptionBudget holdfast", "ResourceQuota runs/holdfast", "Role runs/holdfast", "RoleBinding runs/holdfast",
			"Service holdfast", "Service holdfast-replicas", "ServiceAccount holdfast", "ServiceAccount holdfast-launch",
			"ServiceAccount runs/holdfast-apply", "ServiceAccount runs/holdfast-plan", "ServiceMonitor holdfast", "StatefulSet holdfast",
		},
	} {
		var got []string
		for _, o := range rendered(t, values) {
			got = append(got, o.name())
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", values, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// The rendered holdfast.yaml is valid, where its files exist.
func TestChartConfiguration(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"three", "one", "everything"} {
		text := ""
		for _, o := range rendered(t, values) {
			if o.name() == "ConfigMap holdfast" {
				text, _ = o.at("data", "holdfast.yaml").(string)
			}
		}
		dir := t.TempDir()
		for _, secret := range []string{"holdfast-postgres/password", "holdfast-redis/password", "holdfast-tokens/admin", "holdfast-github/webhook"} {
			path := filepath.Join(dir, "secrets", secret)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("a-secret-of-some-length"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(dir, "holdfast.yaml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "/etc/holdfast/", dir+"/")), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file)
		if err != nil {
			t.Errorf("%s: %v\n%s", values, err, text)
			continue
		}
		if !cfg.Agent.Off || cfg.Server.API.Address != ":8081" || cfg.DataDir != "/var/lib/holdfast" {
			t.Errorf("%s: agent.off %v, API on %q, data in %q", values, cfg.Agent.Off, cfg.Server.API.Address, cfg.DataDir)
		}
	}
}

// What must not be installed is refused, with what to do.
func TestChartRefuses(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"config: {}":                                                    "several replicas need PostgreSQL",
		"encryption: {secretName: ''}":                                  "encryption.secretName is required",
		"agents: {tls: {secretName: ''}}":                               "agents.tls.secretName is required",
		"agents: {enabled: false}":                                      "jobs.enabled needs agents.enabled",
		"jobs: {namespace: holdfast}":                                   "jobs.namespace is that of the server",
		"config: {dataDir: /data}":                                      "config.dataDir is set by the chart",
		"config: {agent: {off: true}}":                                  "config.agent.off is set by the chart",
		"replica: 3":                                                    "replica",
		"replicas: 0":                                                   "replicas",
		"config: {lock: {type: memory}}":                                "several replicas need Redis",
		"config: {datastore: {blobs: {url: ''}}}":                       "several replicas need an object store",
		"config: {datastore: {blobs: null}}":                            "blobs",
		"config: {server: {api: {tokens: []}}}":                         "several replicas need the same tokens",
		"config: {server: {api: null}}":                                 "/config/server/api': got null, want object",
		"server: {enabled: false}":                                      "nothing would be installed",
		"launchAgent: {enabled: true}":                                  "launchAgent.server is required",
		"launchAgent: {enabled: true, server: \"https://a\", id: east}": "launchAgent.secretName is required",
		"launchAgent: {server: \"http://a\"}":                           "launchAgent/server",
		"launchAgent: {id: \"east/\"}":                                  "launchAgent/id",
		"{server: {enabled: false}, jobs: {enabled: false}, launchAgent: {enabled: true, server: \"https://a\", id: east, secretName: key}}": "launchAgent.enabled needs jobs.enabled",
		"jobs: {planServiceAccount: {name: one}, applyServiceAccount: {name: one}}":                                                          "have one name",
	} {
		file := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
			t.Fatal(err)
		}
		base := []string{"--values", filepath.Join("testdata", "three.yaml")}
		if values == "config: {}" {
			base = []string{"--values", filepath.Join("testdata", "bare.yaml")}
		}
		args := append([]string{"template", "holdfast", chart, "--namespace", "holdfast", "--kube-version", "1.33.0"}, append(base, "--values", file)...)
		out, err := exec.Command(tool(t, "helm"), args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want an error that says %q\n%s", values, err, want, out)
		}
	}
}

// A launch agent alone has what deploy/kubernetes/kubernetes-agent.yaml gives it: its account makes
// Jobs and no more, and these reach the server's port.
func TestChartLaunchAgent(t *testing.T) {
	t.Parallel()
	for _, o := range rendered(t, "agent") {
		switch o.name() {
		case "Deployment holdfast-launch":
			spec := object(o.at("spec", "template", "spec").(map[string]any))
			args := fmt.Sprint(object(spec["containers"].([]any)[0].(map[string]any))["args"])
			want := "[agent launch --server=https://agents.holdfast.example.com:8082 --id=east/agent --key=/etc/holdfast/agent/key --ca-file=/etc/holdfast/agent/ca.crt]"
			if args != want || spec["serviceAccountName"] != "holdfast-launch" || spec["automountServiceAccountToken"] != true {
				t.Errorf("it is started as %s by %v", args, spec["serviceAccountName"])
			}
		case "RoleBinding holdfast-jobs/holdfast":
			if got := fmt.Sprint(o["subjects"]); got != "[map[kind:ServiceAccount name:holdfast-launch namespace:holdfast]]" {
				t.Errorf("the Role is of %s", got)
			}
		case "NetworkPolicy holdfast-jobs/holdfast":
			if got := fmt.Sprint(o.at("spec", "egress")); !strings.Contains(got, "port:8082") || strings.Contains(got, "port:agents") {
				t.Errorf("Jobs reach %s", got)
			}
		}
	}
}

// Pods of the server and of the launch agent meet Pod Security "restricted", and see no Secret but
// those they need.
func TestChartPods(t *testing.T) {
	t.Parallel()
	for _, o := range rendered(t, "everything") {
		if o["kind"] != "StatefulSet" && o["kind"] != "Deployment" {
			continue
		}
		spec := object(o.at("spec", "template", "spec").(map[string]any))
		if spec.at("securityContext", "runAsNonRoot") != true || spec.at("securityContext", "seccompProfile", "type") != "RuntimeDefault" {
			t.Errorf("security context of the Pod: %v", spec["securityContext"])
		}
		container := object(spec["containers"].([]any)[0].(map[string]any))
		if container.at("securityContext", "allowPrivilegeEscalation") != false || container.at("securityContext", "readOnlyRootFilesystem") != true {
			t.Errorf("security context of the container: %v", container["securityContext"])
		}
		mounts := make(map[string]bool)
		for _, m := range container["volumeMounts"].([]any) {
			mounts[object(m.(map[string]any))["name"].(string)] = true
		}
		for _, v := range spec["volumes"].([]any) {
			if name := object(v.(map[string]any))["name"].(string); !mounts[name] {
				t.Errorf("volume %s is mounted nowhere", name)
			}
		}
	}
}
