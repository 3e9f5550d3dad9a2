package kubetest_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/cloudapi"
	"github.com/holdfast-dev/holdfast/internal/testenv/container"
	"github.com/holdfast-dev/holdfast/internal/testenv/relyingparty"
)

const (
	region     = "eu-central-1"
	runnerRole = "arn:aws:iam::123456789012:role/holdfast"
	subject    = "holdfast:runner:east"
)

// site is the public listener of a server that issues tokens.
type site struct {
	address string
	party   *relyingparty.Party // trusts its tokens
}

// newSite chooses an address. Whoever trusts the tokens fetches the keys from there.
func newSite(t *testing.T) site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := site{address: l.Addr().String()}
	_ = l.Close()
	s.party = relyingparty.New(t, cloudapi.Site, httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.address}))
	return s
}

func (s site) lines() string {
	return fmt.Sprintf("public: {address: %q}\n  issuer: {url: %q}", s.address, cloudapi.Site)
}

// useAWS has servers find AWS at its stand-in.
func useAWS(t *testing.T, aws *cloudapi.AWS) {
	t.Helper()
	server := httptest.NewServer(aws)
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_STS": server.URL + "/sts", "AWS_ENDPOINT_URL_EKS": server.URL + "/eks", "AWS_ENDPOINT_URL_ECS": server.URL + "/ecs",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
}

// letIn binds the Role that is shipped to a user of the cluster.
func letIn(t *testing.T, s space, user string) {
	t.Helper()
	_, err := admin.RbacV1().RoleBindings(s.name).Create(t.Context(), &rbac.RoleBinding{
		ObjectMeta: meta.ObjectMeta{Name: "cloud"}, Subjects: []rbac.Subject{{Kind: rbac.UserKind, APIGroup: rbac.GroupName, Name: user}},
		RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: "holdfast-runner"},
	}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

const jobOfCloud = `  job:
    namespace: %s
    image: holdfast:real
    planServiceAccount: holdfast-plan
    applyServiceAccount: holdfast-apply
`

// A cluster of EKS is found by a role that a token of the server's own issuer assumes. Its
// API server knows the role by what it was signed. As long as the role has no access entry the
// run says so.
func TestEKS(t *testing.T) {
	startNode(t, "eks")
	at := newSite(t)
	aws := &cloudapi.AWS{Region: region, STS: &relyingparty.AWS{Party: at.party, Trust: map[string]string{runnerRole: subject}}}
	aws.Allow(runnerRole, "eks:DescribeCluster")
	aws.EKS.Add("prod", api.URL, api.CA, nil)
	useAWS(t, aws)
	who.Ask(func(r *http.Request, token string) (string, error) { return aws.EKSUser(r, "prod", token) })
	s := newSpace(t, "eks")
	letIn(t, s, "runs-of-holdfast")
	w := newWorldOf(t, s, func(w *world) string {
		w.public = at.lines()
		return fmt.Sprintf("  type: kubernetes-eks\n  kubernetes: {eks: {region: %s, name: prod, roleARN: %q}}\n"+jobOfCloud, region, runnerRole, s.name)
	})
	w.git("checkout", "-q", "-b", "add-alpha", "main")
	w.cluster("alpha", one)
	w.commit("Add alpha")
	w.git("checkout", "-q", "main")
	w.untilRun("alpha", holdfast.RunPlan, "it says that the cluster does not know the role", func(r holdfast.Run) bool {
		return r.Reason == holdfast.CauseRunnerUnauthorized
	})
	aws.EKS.Add("prod", api.URL, api.CA, map[string]string{runnerRole: "runs-of-holdfast"})
	w.untilRun("alpha", holdfast.RunPlan, "alpha is planned", is(holdfast.RunPlanned))
	w.merge("alpha")
	w.untilRun("alpha", holdfast.RunApply, "alpha is applied", is(holdfast.RunApplied))
	for _, got := range aws.STS.Sessions() {
		if got != runnerRole+" holdfast-east 3600" {
			t.Errorf("a session is %q", got)
		}
	}
	if seen := at.party.Seen(); len(seen) == 0 || seen[0]["phase"] != "runner" || seen[0]["runner"] != "east" || seen[0]["repository"] != "fleet" {
		t.Errorf("tokens said %v", seen)
	}
}

// tunnel is a proxy that connects to the API server, and to nothing else.
type tunnel struct {
	*httptest.Server
	used atomic.Int64
	shut atomic.Bool // it refuses everybody
}

func newTunnel(t *testing.T) *tunnel {
	t.Helper()
	p := &tunnel{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || "https://"+r.Host != api.URL || p.shut.Load() {
			http.Error(w, "not through here", http.StatusForbidden)
			return
		}
		there, err := net.Dial("tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer there.Close()
		w.WriteHeader(http.StatusOK)
		here, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer here.Close()
		p.used.Add(1)
		go func() { _, _ = io.Copy(there, here); _ = there.Close() }()
		_, _ = io.Copy(here, there)
	}))
	t.Cleanup(p.CloseClientConnections)
	return p
}

// A cluster of GKE is found by a service account that a workload identity is, and its API server
// reached through a proxy. Tokens that are revoked in the middle are replaced.
func TestGKE(t *testing.T) {
	startNode(t, "gke")
	at := newSite(t)
	const provider = "projects/123456/locations/global/workloadIdentityPools/holdfast/providers/holdfast"
	const account = "runs@acme.iam.gserviceaccount.com"
	google := &cloudapi.Google{Project: "acme", Viewers: []string{account}, Tokens: &relyingparty.Google{
		Party: at.party, Provider: provider, Accounts: map[string]string{account: subject},
	}}
	server := httptest.NewServer(google)
	defer server.Close()
	who.Ask(func(_ *http.Request, token string) (string, error) { return google.User("europe-west3", "prod", token) })
	s := newSpace(t, "gke")
	letIn(t, s, account)
	proxy := newTunnel(t)
	proxy.shut.Store(true)
	w := newWorldOf(t, s, func(w *world) string {
		w.public = at.lines()
		w.jobs = fmt.Sprintf(`, google: {sts: %q, iamCredentials: %[1]q, container: %[1]q}`, server.URL)
		return fmt.Sprintf("  type: kubernetes-gke\n  kubernetes:\n    gke: {project: acme, location: europe-west3, name: prod, workloadIdentityProvider: %s, serviceAccount: %s, proxyURL: %q}\n"+jobOfCloud,
			provider, account, proxy.URL, s.name)
	})
	w.git("checkout", "-q", "-b", "add-alpha", "main")
	w.cluster("alpha", one)
	w.commit("Add alpha")
	w.git("checkout", "-q", "main")
	w.untilRun("alpha", holdfast.RunPlan, "it says that there is no such cluster", func(r holdfast.Run) bool {
		return r.Reason == holdfast.CauseRunnerClusterMissing
	})
	google.Add("europe-west3", "prod", strings.TrimPrefix(api.URL, "https://"), api.CA, map[string]string{account: account})
	w.untilRun("alpha", holdfast.RunPlan, "it says that the proxy refuses", func(r holdfast.Run) bool {
		return r.Reason == holdfast.CauseRunnerUnreachable && strings.Contains(r.Detail, "Forbidden")
	})
	proxy.shut.Store(false)
	w.untilRun("alpha", holdfast.RunPlan, "alpha is planned", is(holdfast.RunPlanned))
	google.Tokens.Revoke()
	w.merge("alpha")
	w.untilRun("alpha", holdfast.RunApply, "alpha is applied", is(holdfast.RunApplied))
	if proxy.used.Load() == 0 {
		t.Error("the proxy was not used")
	}
}

// fargate has the containers of tasks run as processes of this machine.
func fargate(t *testing.T) func(cloudapi.TaskSpec) (cloudapi.Process, error) {
	t.Helper()
	work, err := os.MkdirTemp("", "holdfast-fargate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(work) })
	return func(spec cloudapi.TaskSpec) (cloudapi.Process, error) {
		home := filepath.Join(work, filepath.Base(spec.ARN))
		if err := os.MkdirAll(filepath.Join(home, "lib", "holdfast"), 0o755); err != nil {
			return nil, err
		}
		c, err := container.Start(container.Spec{
			Programs: filepath.Join(dir, "image"), Args: spec.Args, Env: append(spec.Env, "HOME=/var/lib/holdfast"), Dir: "/var/lib/holdfast",
			Mounts: []container.Mount{{From: filepath.Join(home, "lib"), To: "/var/lib"}}, Log: filepath.Join(home, "log"), User: 10001,
		})
		if err != nil {
			return nil, err
		}
		return c, nil
	}
}

// Runs are tasks of Fargate: each phase with its own role, and engines with the environment and
// the secrets of the runner. A task whose host is retired during a plan is planned again.
func TestECS(t *testing.T) {
	need(t)
	at := newSite(t)
	const (
		execution, planRole, applyRole = "arn:aws:iam::123456789012:role/execution", "arn:aws:iam::123456789012:role/plan", "arn:aws:iam::123456789012:role/apply"
		secret                         = "arn:aws:ssm:eu-central-1:123456789012:parameter/token"
	)
	aws := &cloudapi.AWS{
		Region: region, STS: &relyingparty.AWS{Party: at.party, Trust: map[string]string{runnerRole: subject}},
		ECS: &cloudapi.ECS{
			Cluster: "runs", Subnets: []string{"subnet-1"}, Roles: []string{execution, planRole, applyRole}, Secrets: map[string]string{secret: "value-of-the-token"},
			Images: []string{"holdfast:real"}, Start: fargate(t), Lag: time.Second, Grace: 10 * time.Second,
		},
	}
	aws.Allow(runnerRole, "ecs:RunTask", "ecs:StopTask", "ecs:ListTasks", "ecs:DescribeTasks", "ecs:TagResource",
		"ecs:RegisterTaskDefinition", "ecs:DescribeTaskDefinition", "ecs:ListTaskDefinitions", "ecs:DeregisterTaskDefinition")
	aws.ECS.Refuse("Capacity is unavailable at this time. Please try again later or in a different availability zone")
	useAWS(t, aws)
	w := newWorldOf(t, space{}, func(w *world) string {
		w.public = at.lines()
		return fmt.Sprintf(`  type: serverless-ecs
  ecs:
    region: %s
    cluster: runs
    roleARN: %q
    executionRoleARN: %s
    planTaskRoleARN: %s
    applyTaskRoleARN: %s
    subnets: [subnet-1]
    environment: {GREETING: hello}
    secrets: {TOKEN: %s}
    image: holdfast:real
`, region, runnerRole, execution, planRole, applyRole, secret)
	})
	w.git("checkout", "-q", "-b", "add-alpha", "main")
	w.cluster("alpha", `resource "terraform_data" "one" {
  provisioner "local-exec" { command = "test -n \"$AWS_CONTAINER_CREDENTIALS_RELATIVE_URI\" && echo $GREETING, the token is $TOKEN" }
}
`)
	w.commit("Add alpha")
	w.git("checkout", "-q", "main")
	w.untilRun("alpha", holdfast.RunPlan, "it says that there is no capacity", func(r holdfast.Run) bool {
		return r.Reason == holdfast.CauseCapacityUnavailable
	})
	aws.ECS.Refuse("")
	plan := w.untilRun("alpha", holdfast.RunPlan, "alpha is planned", is(holdfast.RunPlanned))
	w.merge("alpha")
	apply := w.untilRun("alpha", holdfast.RunApply, "alpha is applied", is(holdfast.RunApplied))
	for run, role := range map[string]string{plan.ID: planRole, apply.ID: applyRole} {
		if got := aws.ECS.Role(run); got != role || aws.ECS.Started(run) != 1 {
			t.Errorf("run %s: %d tasks, the last one with role %s", run, aws.ECS.Started(run), got)
		}
	}
	if got := aws.ECS.Active(); len(got) != 1 {
		t.Errorf("task definitions are %v", got)
	}
	log, err := w.holdfast("logs", apply.ID)
	if err != nil || !strings.Contains(log, "hello, the token is") || strings.Contains(log, "value-of-the-token") {
		t.Errorf("the log of the apply says %s, %v", log, err)
	}
	w.interruptedPlan(aws)
}

// interruptedPlan has AWS take back the host of a plan.
func (w *world) interruptedPlan(aws *cloudapi.AWS) {
	w.t.Helper()
	w.git("checkout", "-q", "-b", "add-beta", "main")
	w.cluster("beta", one)
	w.commit("Add beta")
	w.git("checkout", "-q", "main")
	var run holdfast.Run
	until(w.t, "its task runs", func() (bool, string) {
		runs, text := w.runs("beta", holdfast.RunPlan)
		if len(runs) == 0 || aws.ECS.Started(runs[0].ID) == 0 {
			return false, text
		}
		run = runs[0]
		return true, ""
	})
	aws.ECS.Interrupt(run.ID, "TerminationNotice", "ECS is performing maintenance on the underlying infrastructure hosting the task", false)
	w.untilRun("beta", holdfast.RunPlan, "beta is planned in the end", func(r holdfast.Run) bool { return r.Status.Good() })
}
