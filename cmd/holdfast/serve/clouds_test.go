package serve

import (
	"bytes"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/runnerspec"
)

// What a cloud's runner cannot do without, and variables that are reserved, are faults at their
// place in the document.
func TestRunnersOfCloudsAreChecked(t *testing.T) {
	t.Parallel()
	const issues = `server: {issuer: {url: "https://holdfast.example.com"}}`
	fargate := &runnerspec.ECSTask{Environment: map[string]string{"HOLDFAST_TICKET": "x"}}
	for name, test := range map[string]struct {
		config string
		runner runnerspec.Runner
		want   string
	}{
		"an issuer":            {issues, runnerspec.Runner{Type: runnerspec.KubernetesEKS}, ""},
		"none":                 {"dataDir: data", runnerspec.Runner{Type: runnerspec.KubernetesGKE}, "type: spec.type: kubernetes-gke: server.issuer is not set"},
		"none is needed":       {"dataDir: data", runnerspec.Runner{Type: runnerspec.Kubernetes}, ""},
		"a reserved variable":  {issues, runnerspec.Runner{Type: runnerspec.ECS, ECS: fargate}, "ecs.environment: spec.ecs.environment: variable HOLDFAST_TICKET is reserved"},
		"another one is right": {issues, runnerspec.Runner{Type: runnerspec.ECS, ECS: &runnerspec.ECSTask{Environment: map[string]string{"TF_LOG": "x"}}}, ""},
	} {
		var got []string
		for _, f := range checkRunner(parsed(t, test.config))(test.runner) {
			if f.Hint == "" {
				t.Errorf("%s: %s has no hint", name, f.Message)
			}
			got = append(got, strings.Join(f.Path, ".")+": "+f.Message)
		}
		if text := strings.Join(got, "\n"); (text == "") != (test.want == "") || !strings.HasPrefix(text, test.want) {
			t.Errorf("%s: %q, want %q", name, text, test.want)
		}
	}
}

// serve --check says whom clouds have to trust.
func TestSubjectOfRunnersIsShown(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	DescribeIssuer(&out, parsed(t, `server:
  issuer: {url: "https://holdfast.example.com"}
  agents: {address: "127.0.0.1:8082", url: "http://127.0.0.1:8082"}
`))
	if !strings.Contains(out.String(), "serverless-ecs: subject holdfast:runner:NAME\n") {
		t.Errorf("it says\n%s", &out)
	}
}
