package serve

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/templates/runnerdoc"
)

// TestRunnersAreAllowed: by default a repository defines clusters alone. An entry for runners and
// rules allows these where it says, and no clusters.
func TestRunnersAreAllowed(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("holdfast.yaml", "/etc", []byte(`
repositories:
  - {name: plain, url: plain}
  - {name: clusters, url: clusters, allow: [{projects: [shop]}]}
  - name: platform
    url: platform
    allow:
      - {kinds: [Runner], paths: ["runners/**"], runners: ["eu-*"], secrets: ["eu-*"]}
      - {kinds: [RunnerRule], paths: ["rules/**"], projects: [shop], runners: [eu-1]}
      - {kinds: [RunnerRule], paths: ["rules/**"], runners: [us]}
`))
	if err != nil {
		t.Fatal(err)
	}
	grants, clusters := runnerGrants(cfg), bindings(cfg)
	runner := func(path, name string) runnerdoc.Document {
		return runnerdoc.Document{Path: path, Runner: &runnerspec.Runner{Name: name}}
	}
	reached := func(secrets ...string) runnerdoc.Document {
		doc := runner("runners/a.yaml", "eu-1")
		server := &runnerspec.KubernetesServer{URL: "https://elsewhere.example.com", Token: &runnerspec.ServerSecret{Secret: secrets[0]}}
		if len(secrets) > 1 {
			server.ClientKey = &runnerspec.ServerSecret{Secret: secrets[1]}
		}
		doc.Runner.Kubernetes = &runnerspec.KubernetesAccess{Server: server}
		return doc
	}
	kubeconfig := runner("runners/a.yaml", "eu-1")
	kubeconfig.Runner.Kubernetes = &runnerspec.KubernetesAccess{Kubeconfig: &runnerspec.ServerSecret{Secret: "us-kubeconfig"}}
	rule := func(project, environment, runner string) runnerdoc.Document {
		return runnerdoc.Document{Path: "rules/a.yaml", Rule: &runnerspec.Rule{Name: "a", Project: project, Environment: environment, Runner: runner}}
	}
	for name, tc := range map[string]struct {
		repo  string
		doc   runnerdoc.Document
		allow bool
	}{
		"by default":          {"plain", runner("runners/a.yaml", "eu-1"), false},
		"for clusters":        {"clusters", runner("runners/a.yaml", "eu-1"), false},
		"a runner":            {"platform", runner("runners/a.yaml", "eu-1"), true},
		"another name":        {"platform", runner("runners/a.yaml", "us"), false},
		"another place":       {"platform", runner("rules/a.yaml", "eu-1"), false},
		"with its secret":     {"platform", reached("eu-token", "eu-key"), true},
		"another's token":     {"platform", reached("us-token"), false},
		"another's key":       {"platform", reached("eu-token", "us-key"), false},
		"another's access":    {"platform", kubeconfig, false},
		"a rule":              {"platform", rule("shop", "prod", "eu-1"), true},
		"of another project":  {"platform", rule("web", "prod", "eu-1"), false},
		"of all projects":     {"platform", rule("", "prod", "eu-1"), false},
		"all to what all may": {"platform", rule("", "", "us"), true},
		"to another runner":   {"platform", rule("shop", "", "eu-2"), false},
	} {
		if err := grants.Allow(tc.repo, tc.doc); (err == nil) != tc.allow || err != nil && !strings.Contains(err.Error(), "may not ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for repo, allow := range map[string]bool{"plain": true, "clusters": true, "platform": false} {
		if err := clusters(repo, holdfast.Cluster{Project: "shop", Path: "runners/a.yaml"}, "clusters/a"); (err == nil) != allow {
			t.Errorf("clusters of %s: %v", repo, err)
		}
	}
	if got := runnerPaths(cfg.Repositories[2]); strings.Join(got, " ") != "runners/** rules/** rules/**" {
		t.Errorf("paths are %v", got)
	}
	if got := runnerPaths(cfg.Repositories[1]); len(got) > 0 {
		t.Errorf("paths of clusters are %v", got)
	}
}
