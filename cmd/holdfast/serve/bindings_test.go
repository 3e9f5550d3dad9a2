package serve

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// TestSecretSources states which folders and stores a run gets: those of its
// project, its environment and its phase, and nobody else's.
func TestSecretSources(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("holdfast.yaml", "/etc", []byte(`
credentials:
  - secretDirs: [/run/all]
    stores: {vault: {command: [vault, "{key}"]}}
  - project: payments
    environment: prod*
    secretDirs: [/run/payments, /run/all]
  - project: payments
    phase: apply
    secretDirs: [/run/applies]
    stores:
      vault: {command: [payments-vault, "{key}"]}
      other: {command: [other, "{key}"]}
  - {project: shop, secretDirs: [/run/shop], stores: {shop: {command: [shop, "{key}"]}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	type sources struct {
		Dirs   []string
		Stores map[string][]string
	}
	vault := []string{"vault", "{key}"}
	for _, test := range []struct {
		project, environment string
		kind                 holdfast.RunKind
		want                 sources
	}{
		{"payments", "production", holdfast.RunPlan, sources{[]string{"/run/all", "/run/payments"}, map[string][]string{"vault": vault}}},
		{"payments", "staging", holdfast.RunDrift, sources{[]string{"/run/all"}, map[string][]string{"vault": vault}}},
		{"payments", "production", holdfast.RunDestroy, sources{
			[]string{"/run/all", "/run/payments", "/run/applies"},
			map[string][]string{"vault": {"payments-vault", "{key}"}, "other": {"other", "{key}"}},
		}},
		{"shop", "production", holdfast.RunApply, sources{
			[]string{"/run/all", "/run/shop"}, map[string][]string{"vault": vault, "shop": {"shop", "{key}"}},
		}},
	} {
		dirs, stores := secretSources(cfg)(holdfast.Cluster{Project: test.project, Environment: test.environment}, test.kind)
		if diff := gocmp.Diff(test.want, sources{dirs, stores}); diff != "" {
			t.Errorf("%s of %s/%s (-want +got):\n%s", test.kind, test.project, test.environment, diff)
		}
	}
	none, err := config.Parse("holdfast.yaml", "/etc", nil)
	if err != nil {
		t.Fatal(err)
	}
	if dirs, stores := secretSources(none)(holdfast.Cluster{}, holdfast.RunPlan); dirs != nil || stores != nil {
		t.Errorf("without an entry: %v, %v", dirs, stores)
	}
}

// TestVaried: what is bound to something else in one project or environment than elsewhere
// may lead to another store of states.
func TestVaried(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ credentials, want string }{
		"none":                         {"", ""},
		"for all":                      {"- env: {AWS_ENDPOINT_URL_S3: https://store, AWS_PROFILE: holdfast}", ""},
		"keys only":                    {"- {project: a, env: {AWS_ACCESS_KEY_ID: x}}", ""},
		"an endpoint of a project":     {"- {project: a, env: {AWS_ENDPOINT_URL_S3: https://store}}", "AWS_ENDPOINT_URL_S3"},
		"a profile of an environment":  {"- {environment: live, env: {AWS_PROFILE: live}}", "AWS_PROFILE"},
		"a secret endpoint":            {"- {project: a, secrets: {AWS_ENDPOINT_URL: {env: ENDPOINT}}}", "AWS_ENDPOINT_URL"},
		"said twice":                   {"- env: {AWS_ENDPOINT_URL: https://store}\n- {project: a, env: {AWS_ENDPOINT_URL: https://store/}}", ""},
		"an exception":                 {"- env: {AWS_ENDPOINT_URL: https://store}\n- {project: a, env: {AWS_ENDPOINT_URL: https://other}}", "AWS_ENDPOINT_URL"},
		"regions":                      {"- {project: a, env: {AWS_REGION: eu-west-1}}\n- {project: b, env: {AWS_REGION: us-east-1}}", ""},
		"a region of another part":     {"- {project: a, env: {AWS_REGION: cn-north-1}}\n- {project: b, env: {AWS_REGION: us-east-1}}", "AWS_REGION"},
		"another context of a cluster": {"- {environment: live, env: {KUBE_CTX: live}}", "KUBE_CTX"},
	} {
		cfg, err := config.Parse("holdfast.yaml", "/etc", []byte("credentials:\n"+test.credentials+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(varied(cfg), " "); got != test.want {
			t.Errorf("%s: %q, and not %q", name, got, test.want)
		}
	}
}

// TestStatesOfRepositories: globs of states say what the arguments of backends say, with or
// without the store that the environment leads to.
func TestStatesOfRepositories(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{Repositories: []config.Repository{{Name: "r", Allow: []config.Allow{{
		Paths: []string{"**"}, Projects: []string{"*"}, Environments: []string{"*"},
		States: []string{"s3:bucket=b,key=prod/state", "s3:bucket=c,key=*,store=environment"},
	}}}}}
	for state, want := range map[string]bool{
		"s3:bucket=b,key=prod/state":                    true,
		"s3:bucket=b,key=prod/state,store=environment":  true,
		"s3:bucket=b,key=other/state,store=environment": false,
		"s3:bucket=c,key=k,store=environment":           true,
	} {
		err := bindings(cfg)("r", holdfast.Cluster{Name: "a", Path: "clusters/a.yaml", Project: "p", Environment: "e"}, state)
		if (err == nil) != want {
			t.Errorf("%s is allowed: %v", state, err)
		}
	}
}

// TestGitHosts: each host has its own credential, as Git asks for it.
func TestGitHosts(t *testing.T) {
	t.Parallel()
	there := filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(there, []byte("pass word"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := &config.Config{Credentials: []config.Credential{{Project: "*", Environment: "*", Git: map[string]config.GitHost{
		"https://b.example.com": {Username: "reader", Password: config.Secret{File: there}},
		"https://a.example.com": {Password: config.Secret{File: there}},
		"https://c.example.com": {Password: config.Secret{File: there + ".gone"}},
	}}}}
	got, err := credentials(cfg, slog.New(slog.DiscardHandler))(holdfast.Cluster{}, holdfast.RunPlan)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]string{"HOLDFAST_GIT_PASSWORD_0", "HOLDFAST_GIT_PASSWORD_1"}, got.Secrets); diff != "" || len(got.Missing) > 0 {
		t.Errorf("secrets %v, missing %v", got.Secrets, got.Missing)
	}
	for host, want := range map[string]string{
		"https://a.example.com": "username=x-access-token\npassword=pass word\n",
		"https://b.example.com": "username=reader\npassword=pass word\n",
		"https://c.example.com": "",
	} {
		out, err := askGit(t, got, "url="+host+"/acme/modules.git\n\n", "credential", "fill")
		if !strings.Contains(out, want) || (err == nil) != (want != "") {
			t.Errorf("%s is shown %q, %v", host, out, err)
		}
	}
}

// TestGitHostsKeepSettings: a host's credential leaves settings for Git alone, of whichever
// entry they are.
func TestGitHostsKeepSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "password"), []byte("pass word"), 0o600); err != nil {
		t.Fatal(err)
	}
	const (
		settings = `env: {GIT_CONFIG_COUNT: "2", GIT_CONFIG_KEY_0: user.name, GIT_CONFIG_VALUE_0: reader, ` +
			`GIT_CONFIG_KEY_1: "url.https://mirror.example.com/.insteadOf", GIT_CONFIG_VALUE_1: "https://github.com/"}`
		host = `git: {https://mirror.example.com: {password: {file: password}}}`
	)
	for name, entries := range map[string]string{
		"the settings first": "credentials:\n  - " + settings + "\n  - " + host + "\n",
		"the host first":     "credentials:\n  - " + host + "\n  - " + settings + "\n",
		"one entry":          "credentials:\n  - " + host + "\n    " + settings + "\n",
		"a project's host":   "credentials:\n  - " + settings + "\n  - {project: payments, " + host + "}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := config.Parse("holdfast.yaml", dir, []byte(entries))
			if err != nil {
				t.Fatal(err)
			}
			got, err := credentials(cfg, slog.New(slog.DiscardHandler))(holdfast.Cluster{Project: "payments"}, holdfast.RunPlan)
			if err != nil || len(got.Missing) > 0 {
				t.Fatalf("%v, missing %v", err, got.Missing)
			}
			if out, err := askGit(t, got, "", "ls-remote", "--get-url", "https://github.com/acme/modules.git"); out != "https://mirror.example.com/acme/modules.git\n" {
				t.Errorf("it is fetched from %q, %v", out, err)
			}
			if out, err := askGit(t, got, "url=https://mirror.example.com/acme/modules.git\n\n", "credential", "fill"); !strings.Contains(out, "password=pass word\n") {
				t.Errorf("the host is shown %q, %v", out, err)
			}
		})
	}
}

// askGit returns what the Git of a run with credentials answers.
func askGit(t *testing.T, with protocol.Credentials, input string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = t.TempDir()
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + command.Dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_ASKPASS=false"}
	for name, value := range with.Env {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Stdin = strings.NewReader(input)
	out, err := command.Output()
	return string(out), err
}

// TestModulesOfAGitHost: an engine's init fetches a module from a host that wants
// a password, and from no other with it.
func TestModulesOfAGitHost(t *testing.T) {
	t.Parallel()
	engine := cmp.Or(lookPath("terraform"), lookPath("tofu"))
	if engine == "" && os.Getenv("CI") == "" {
		t.Skip("neither terraform nor tofu is on PATH")
	}
	host, other := gitserver.New(t), gitserver.New(t)
	for _, server := range []*gitserver.Server{host, other} {
		server.CreateRepo("modules").Commit("main", "a module", map[string]string{"net/main.tf": "output \"x\" { value = 1 }\n"})
		server.RequireAuth("reader", "pass word")
	}
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("pass word"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := &config.Config{Credentials: []config.Credential{{Project: "*", Environment: "*", Git: map[string]config.GitHost{
		host.URL(): {Username: "reader", Password: config.Secret{File: password}},
	}}}}
	bound, err := credentials(cfg, slog.New(slog.DiscardHandler))(holdfast.Cluster{}, holdfast.RunPlan)
	if err != nil {
		t.Fatal(err)
	}
	for server, want := range map[*gitserver.Server]bool{host: true, other: false} {
		dir := t.TempDir()
		code := fmt.Sprintf("module \"net\" { source = \"git::%s/modules.git//net\" }\n", server.URL())
		if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		init := exec.CommandContext(t.Context(), engine, "init", "-input=false", "-no-color")
		init.Dir = dir
		init.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "CHECKPOINT_DISABLE=1"}
		for name, value := range bound.Env {
			init.Env = append(init.Env, name+"="+value)
		}
		if out, err := init.CombinedOutput(); (err == nil) != want {
			t.Errorf("with the host that has the password %v: %v\n%s", want, err, out)
		}
	}
}

func lookPath(name string) string {
	path, _ := exec.LookPath(name)
	return path
}

// TestLimits states what the engine of a cluster may use: what is said for all,
// unless entries that match say something else.
func TestLimits(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("holdfast.yaml", "/etc", []byte(`
runs:
  limits:
    cpu: 2
    max: {processes: 8192}
    overrides:
      - {project: payments, memory: 8GiB, max: {memory: 16GiB}}
      - {cluster: "big-*", processes: 4096, cpu: 3.5}
`))
	if err != nil {
		t.Fatal(err)
	}
	of := limits(cfg)
	for _, test := range []struct {
		project, cluster string
		asks, want, most holdfast.RunLimits
	}{
		{
			project: "shop", cluster: "small",
			want: holdfast.RunLimits{Memory: 4 << 30, Processes: 1024, CPU: 2}, most: holdfast.RunLimits{Memory: 4 << 30, Processes: 8192, CPU: 2},
		},
		{
			project: "shop", cluster: "modest", asks: holdfast.RunLimits{Memory: 1 << 30, CPU: 0.5},
			want: holdfast.RunLimits{Memory: 1 << 30, Processes: 1024, CPU: 0.5}, most: holdfast.RunLimits{Memory: 4 << 30, Processes: 8192, CPU: 2},
		},
		{
			project: "payments", cluster: "small", asks: holdfast.RunLimits{Memory: 12 << 30, Processes: 2048},
			want: holdfast.RunLimits{Memory: 12 << 30, Processes: 2048, CPU: 2}, most: holdfast.RunLimits{Memory: 16 << 30, Processes: 8192, CPU: 2},
		},
		{
			project: "payments", cluster: "big-eu", asks: holdfast.RunLimits{Memory: 64 << 30, Processes: 9000, CPU: 4},
			want: holdfast.RunLimits{Memory: 16 << 30, Processes: 8192, CPU: 3.5}, most: holdfast.RunLimits{Memory: 16 << 30, Processes: 8192, CPU: 3.5},
		},
	} {
		got, most := of(holdfast.Cluster{Project: test.project, Name: test.cluster, Limits: test.asks})
		if got != test.want || most != test.most {
			t.Errorf("limits of %s/%s are %+v within %+v, want %+v within %+v", test.project, test.cluster, got, most, test.want, test.most)
		}
	}
	cfg.Runs.Limits.Memory, cfg.Runs.Limits.Overrides = 0, nil
	if got, most := of(holdfast.Cluster{Limits: holdfast.RunLimits{Memory: 1 << 40}}); got.Memory != 1<<40 || most.Memory != 0 {
		t.Errorf("without a limit: %+v within %+v", got, most)
	}
}

// TestSameCredential: a credential of one name is another one where it comes from another
// entry, or from none.
func TestSameCredential(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("holdfast.yaml", "/etc", []byte(`
credentials:
  - secrets: {TOKEN: {file: token}, DB: {file: db}}
  - {project: shop, phase: apply, secrets: {TOKEN: {file: shop-token}}}
  - {project: bank, env: {VAULT: a}}
`))
	if err != nil {
		t.Fatal(err)
	}
	shop, bank := holdfast.Cluster{Project: "shop"}, holdfast.Cluster{Project: "bank"}
	for _, test := range []struct {
		name string
		kind holdfast.RunKind
		same bool
	}{
		{"DB", holdfast.RunApply, true},
		{"TOKEN", holdfast.RunPlan, true},
		{"TOKEN", holdfast.RunApply, false},
		{"VAULT", holdfast.RunPlan, false},
		{"NONE", holdfast.RunPlan, false},
	} {
		if got := sameCredential(cfg)(test.name, test.kind, shop, bank); got != test.same {
			t.Errorf("%s of a %s: the same is %t", test.name, test.kind, got)
		}
	}
}

// TestMissingCredentials: what cannot be read is missing, and not what an earlier
// entry says instead. The server's path is for its log.
func TestMissingCredentials(t *testing.T) {
	t.Parallel()
	there := filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(there, []byte("value"), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := config.Secret{File: there + ".gone"}
	cfg := &config.Config{Credentials: []config.Credential{
		{Project: "*", Environment: "*", Env: map[string]string{"A": "earlier"}, Secrets: map[string]config.Secret{"B": gone}},
		{Project: "shop", Environment: "*", Secrets: map[string]config.Secret{"A": gone, "B": {File: there}, "C": {File: there}}},
	}}
	var log strings.Builder
	got, err := credentials(cfg, slog.New(slog.NewTextHandler(&log, nil)))(holdfast.Cluster{Project: "shop", Environment: "e"}, holdfast.RunPlan)
	if err != nil {
		t.Fatal(err)
	}
	want := protocol.Credentials{Env: map[string]string{"B": "value", "C": "value"}, Secrets: []string{"B", "C"}, Missing: []string{"A"}}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(log.String(), there+".gone") {
		t.Errorf("the log has %q", log.String())
	}
}
