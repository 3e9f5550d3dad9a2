package ecs_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/cloudapi"
	"github.com/holdfast-dev/holdfast/internal/testenv/relyingparty"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/awsrole"
	"github.com/holdfast-dev/holdfast/runner/ecs"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

const (
	region    = "eu-central-1"
	role      = "arn:aws:iam::123456789012:role/holdfast"
	execution = "arn:aws:iam::123456789012:role/execution"
	planRole  = "arn:aws:iam::123456789012:role/plan"
	applyRole = "arn:aws:iam::123456789012:role/apply"
	secretARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:token"
	image     = "registry.example.com/holdfast:1"
)

// actions are those that docs/runners-ecs.md asks for.
var actions = []string{
	"ecs:RunTask", "ecs:StopTask", "ecs:ListTasks", "ecs:DescribeTasks", "ecs:TagResource",
	"ecs:RegisterTaskDefinition", "ecs:DescribeTaskDefinition", "ecs:ListTaskDefinitions", "ecs:DeregisterTaskDefinition",
}

// lab is AWS with a cluster of ECS, and an issuer that a role trusts for runner "fargate".
type lab struct {
	aws    *cloudapi.AWS
	issuer cloudapi.Issuer
	runner runnerspec.Runner

	mu        sync.Mutex
	processes map[string]*process // by run
	specs     map[string]cloudapi.TaskSpec
}

// process is a container whose end a test decides.
type process struct {
	ends chan int
	asks chan syscall.Signal
}

func (p *process) Wait() int { return <-p.ends }
func (p *process) Signal(sig syscall.Signal) {
	select {
	case p.asks <- sig:
	default:
	}
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{
		issuer: cloudapi.NewIssuer(t), processes: map[string]*process{}, specs: map[string]cloudapi.TaskSpec{},
		runner: runnerspec.Runner{Name: "fargate", Type: runnerspec.ECS, ECS: &runnerspec.ECSTask{
			Region: region, Cluster: "runs", RoleARN: role, ExecutionRoleARN: execution, PlanTaskRoleARN: planRole, ApplyTaskRoleARN: applyRole,
			Subnets: []string{"subnet-1"}, Environment: map[string]string{"TF_LOG": "info"}, Secrets: map[string]string{"TOKEN": secretARN}, Image: image,
		}},
	}
	l.aws = &cloudapi.AWS{
		Region: region, STS: &relyingparty.AWS{Party: l.issuer.Party, Trust: map[string]string{role: "holdfast:runner:fargate"}},
		ECS: &cloudapi.ECS{
			Cluster: "runs", Subnets: []string{"subnet-1"}, Roles: []string{execution, planRole, applyRole},
			Secrets: map[string]string{secretARN: "a secret"}, Images: []string{image}, Start: l.start,
		},
	}
	l.aws.Allow(role, actions...)
	server := httptest.NewServer(l.aws)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_STS", server.URL+"/sts")
	t.Setenv("AWS_ENDPOINT_URL_ECS", server.URL+"/ecs")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	t.Setenv("HOME", t.TempDir())
	return l
}

func (l *lab) start(spec cloudapi.TaskSpec) (cloudapi.Process, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &process{ends: make(chan int, 1), asks: make(chan syscall.Signal, 8)}
	id := spec.Args[slices.Index(spec.Args, "--id")+1] // fargate/RUN-ATTEMPT
	run := strings.TrimSuffix(strings.TrimPrefix(id, "fargate/"), "-1")
	l.processes[run], l.specs[run] = p, spec
	return p, nil
}

func (l *lab) process(t *testing.T, run string) (*process, cloudapi.TaskSpec) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.processes[run] == nil {
		t.Fatalf("no container was started for %s", run)
	}
	return l.processes[run], l.specs[run]
}

func (l *lab) open(t *testing.T) *ecs.Tasks {
	t.Helper()
	token := l.issuer.Token("fargate")
	tasks, err := ecs.Open(t.Context(), ecs.Options{
		Runner: l.runner, Installation: "0123456789abcdef", Token: func(ctx context.Context) (string, error) { return token(ctx, awsrole.Audience) },
		Agent: ecs.Agent{ServerURL: "https://holdfast.example.com:8082", CA: []byte("the authority"), Isolation: "auto", Args: []string{"--download=false"}, Grace: 10 * time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

func launch(run string, change ...func(*protocol.Launch)) protocol.Launch {
	l := protocol.Launch{
		AttemptRef: holdfast.AttemptRef{Run: run, Attempt: 1, Fence: 7}, Runner: "fargate", Kind: holdfast.RunPlan,
		Cluster: holdfast.Cluster{Name: "prod-eu", Project: "payments", Environment: "production"},
		Ticket:  run + ".1.secret", Limits: holdfast.RunLimits{Memory: 4 << 30}, Timeout: 10 * time.Minute,
	}
	for _, c := range change {
		c(&l)
	}
	return l
}

func start(t *testing.T, tasks *ecs.Tasks, l protocol.Launch) {
	t.Helper()
	if err := tasks.Start(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

// until looks until what is said of a run is as it should be.
func until(t *testing.T, tasks *ecs.Tasks, run, what string, is func(protocol.Launched) bool) protocol.Launched {
	t.Helper()
	var found protocol.Launched
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err := tasks.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := tasks.Launched(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(list, func(l protocol.Launched) bool { return l.Run == run }); i >= 0 {
			if found = list[i]; is(found) {
				return found
			}
		}
	}
	t.Fatalf("%s: it never came to that: %+v", what, found)
	return found
}

func begun(l protocol.Launched) bool { return l.Begun }
func over(l protocol.Launched) bool  { return l.Over }

// A task gets what it needs, and one is started however often that is asked, by whomever.
func TestOneTaskForAnAttempt(t *testing.T) {
	l := newLab(t)
	l.aws.ECS.Lag = time.Second // ECS neither lists nor knows it at first
	tasks, replica := l.open(t), l.open(t)
	var g sync.WaitGroup
	for i := range 8 {
		g.Go(func() {
			of := tasks
			if i%2 == 0 {
				of = replica
			}
			if err := of.Start(t.Context(), launch("run-1")); err != nil {
				t.Error(err)
			}
		})
	}
	g.Wait()
	if n := l.aws.ECS.Started("run-1"); n != 1 {
		t.Errorf("%d tasks were started", n)
	}
	for range 5 {
		if err := tasks.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if list, err := tasks.Launched(t.Context()); err != nil || len(list) != 1 || list[0].Over {
			t.Fatalf("before ECS knows it, it says %+v, %v", list, err)
		}
	}
	found := until(t, tasks, "run-1", "it runs", begun)
	if found.Over || found.Dead || found.Reason != "" || !strings.HasPrefix(found.Place, "task ") {
		t.Errorf("it says %+v", found)
	}
	_, spec := l.process(t, "run-1")
	command := strings.Join(spec.Args, " ")
	for _, want := range []string{
		"holdfast agent --run --server https://holdfast.example.com:8082 --ticket-env HOLDFAST_TICKET", "--id fargate/run-1-1 --kinds plan,drift", "--isolation auto",
		"--ca-env HOLDFAST_CA", "--engine-env AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "--engine-env TF_LOG", "--engine-secret TOKEN", "--download=false",
	} {
		if !strings.Contains(command, want) {
			t.Errorf("it is started as %s, want %s", command, want)
		}
	}
	if strings.Contains(command, "secret ") && strings.Contains(command, "run-1.1.secret") {
		t.Error("the ticket is in the command line")
	}
	for _, want := range []string{"HOLDFAST_TICKET=run-1.1.secret", "HOLDFAST_CA=the authority", "TF_LOG=info", "TOKEN=a secret"} {
		if !slices.Contains(spec.Env, want) {
			t.Errorf("its environment has no %s: %q", want, spec.Env)
		}
	}
	if got := l.aws.ECS.Role("run-1"); got != planRole {
		t.Errorf("a plan has role %s", got)
	}
	start(t, tasks, launch("run-2", func(l *protocol.Launch) { l.Kind = holdfast.RunDestroy }))
	if got := l.aws.ECS.Role("run-2"); got != applyRole {
		t.Errorf("a destroy has role %s", got)
	}
}

// What was registered is found again, and changed only with its content; former revisions end.
func TestTaskDefinition(t *testing.T) {
	l := newLab(t)
	const family = "holdfast-0123456789abcdef-fargate"
	want := func(what string, revisions ...string) {
		t.Helper()
		if got := l.aws.ECS.Active(); !slices.Equal(got, revisions) {
			t.Errorf("%s: active are %v, want %v", what, got, revisions)
		}
	}
	first := l.open(t)
	start(t, first, launch("run-1"))
	start(t, first, launch("run-2", func(l *protocol.Launch) { l.Kind, l.Limits.Memory = holdfast.RunApply, 8<<30 }))
	start(t, l.open(t), launch("run-3"))
	want("once for all", family+":1")
	changed := *l.runner.ECS
	changed.Environment = map[string]string{"TF_LOG": "debug"}
	l.runner.ECS = &changed
	second := l.open(t)
	start(t, second, launch("run-4"))
	want("a changed runner", family+":2")
	// A replica that still has the former document registers that once more; nothing fails.
	start(t, first, launch("run-5"))
	want("a replica that is behind", family+":3")
	start(t, second, launch("run-6"))
	want("and the others again", family+":4")
	// The same attempt from another revision is the same task.
	start(t, first, launch("run-6"))
	if n := l.aws.ECS.Started("run-6"); n != 1 {
		t.Errorf("%d tasks were started for an attempt", n)
	}
}

// What is said of a task that ends, for each of the ways in which one can.
func TestEnds(t *testing.T) {
	l := newLab(t)
	tasks := l.open(t)
	for name, test := range map[string]struct {
		end    func(t *testing.T, run string)
		reason holdfast.Reason
		words  string
		dead   bool
	}{
		"well":  {func(t *testing.T, run string) { p, _ := l.process(t, run); p.ends <- 0 }, "", "", true},
		"badly": {func(t *testing.T, run string) { p, _ := l.process(t, run); p.ends <- 3 }, holdfast.ReasonAgentKilled, "exit code 3", true},
		"memory": {func(t *testing.T, run string) {
			p, _ := l.process(t, run)
			l.aws.ECS.Interrupt(run, "EssentialContainerExited", "OutOfMemoryError: Container killed due to memory usage", false)
			p.ends <- 137
		}, holdfast.CauseOutOfMemory, "memory usage", true},
		"by a person": {func(t *testing.T, run string) {
			p, _ := l.process(t, run)
			l.aws.ECS.Interrupt(run, "UserInitiated", "Task stopped by user", false)
			p.ends <- 143
		}, holdfast.CauseJobDeleted, "stopped by user", true},
		"by a person who writes as AWS does": {func(t *testing.T, run string) {
			p, _ := l.process(t, run)
			l.aws.ECS.Interrupt(run, "UserInitiated", "OutOfMemoryError? No, stopped for maintenance", false)
			p.ends <- 143
		}, holdfast.CauseJobDeleted, "No, stopped for maintenance", true},
		"its host is retired": {func(t *testing.T, run string) {
			p, _ := l.process(t, run)
			l.aws.ECS.Interrupt(run, "TerminationNotice", "ECS is performing maintenance on the underlying infrastructure hosting the task", false)
			p.ends <- 143
		}, holdfast.CauseTaskInterrupted, "maintenance", true},
		"Spot takes it back": {func(t *testing.T, run string) {
			p, _ := l.process(t, run)
			l.aws.ECS.Interrupt(run, "SpotInterruption", "Your Spot Task was interrupted.", false)
			p.ends <- 143
		}, holdfast.CauseTaskInterrupted, "Spot", true},
		"its host is lost": {func(_ *testing.T, run string) {
			l.aws.ECS.Interrupt(run, "TerminationNotice", "Host EC2 (instance i-1) terminated.", true)
		}, holdfast.CauseTaskInterrupted, "Host EC2", false},
		"nobody has heard of it": {func(_ *testing.T, run string) { l.aws.ECS.Forget(run) }, holdfast.CauseJobDeleted, "no longer lists the task", false},
	} {
		t.Run(name, func(t *testing.T) {
			run := "run-" + strings.ReplaceAll(name, " ", "-")
			start(t, tasks, launch(run))
			until(t, tasks, run, "it runs", begun)
			test.end(t, run)
			got := until(t, tasks, run, "it is over", over)
			if got.Reason != test.reason || !strings.Contains(got.Detail, test.words) || got.Dead != test.dead {
				t.Errorf("it says %+v", got)
			}
			l.aws.ECS.Forget(run) // its last word stays for whoever has to act on it
			if again := until(t, tasks, run, "it is still known", over); again != got {
				t.Errorf("once ECS has forgotten it, it says %+v", again)
			}
		})
	}
}

// What is said of a task that does not start.
func TestDoesNotStart(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*lab)
		reason holdfast.Reason
		words  string
	}{
		"image":  {func(l *lab) { l.aws.ECS.Images = nil }, holdfast.CauseImagePullFailed, "CannotPullContainerError"},
		"secret": {func(l *lab) { l.aws.ECS.Secrets = nil }, holdfast.CauseTaskConfiguration, "ResourceInitializationError"},
		"program": {func(l *lab) {
			l.aws.ECS.Start = func(cloudapi.TaskSpec) (cloudapi.Process, error) { return nil, errors.New("exec: holdfast: not found") }
		}, holdfast.CauseTaskConfiguration, "CannotStartContainerError"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			test.change(l)
			tasks := l.open(t)
			start(t, tasks, launch("run-1"))
			got := until(t, tasks, "run-1", "it is over", over)
			if got.Reason != test.reason || !strings.Contains(got.Detail, test.words) || got.Begun || got.Dead {
				t.Errorf("it says %+v", got)
			}
		})
	}
}

// Each way in which AWS refuses to start a task has its reason.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*lab)
		launch func(*protocol.Launch)
		reason holdfast.Reason
		words  string
		waits  bool
	}{
		"the role trusts somebody else": {change: func(l *lab) { l.aws.STS.Trust[role] = "x" }, reason: holdfast.CauseCloudIdentityRefused, words: "Not authorized"},
		"the role may not":              {change: func(l *lab) { l.aws.Allow(role, actions[1:]...) }, reason: holdfast.CauseCloudForbidden, words: "ecs:RunTask"},
		"it may not tag": {
			change: func(l *lab) {
				l.aws.Allow(role, slices.DeleteFunc(slices.Clone(actions), func(a string) bool { return a == "ecs:TagResource" })...)
			},
			reason: holdfast.CauseCloudForbidden, words: "ecs:TagResource",
		},
		"another cluster":   {change: func(l *lab) { l.runner.ECS.Cluster = "none" }, reason: holdfast.CauseRunnerClusterMissing, words: "Cluster not found"},
		"another subnet":    {change: func(l *lab) { l.runner.ECS.Subnets = []string{"subnet-2"} }, reason: holdfast.CauseTaskConfiguration, words: "subnet-2"},
		"another task role": {change: func(l *lab) { l.runner.ECS.PlanTaskRoleARN = role }, reason: holdfast.CauseTaskConfiguration, words: "unable to assume the role"},
		"another execution": {change: func(l *lab) { l.runner.ECS.ExecutionRoleARN = role }, reason: holdfast.CauseTaskConfiguration, words: "Role is not valid"},
		"no capacity":       {change: func(l *lab) { l.aws.ECS.Refuse("Capacity is unavailable at this time. Please try again later") }, reason: holdfast.CauseCapacityUnavailable, words: "Capacity"},
		"the account's quota": {
			change: func(l *lab) {
				l.aws.ECS.Refuse("You've reached the limit on the number of vCPUs you can run concurrently")
			},
			reason: holdfast.CauseRunnerQuota, words: "vCPUs", waits: true,
		},
		"throttled": {change: func(l *lab) { l.aws.Break("ecs:RunTask", "ThrottlingException") }, reason: holdfast.CauseRunnerUnreachable, words: "Throttling"},
		"more than it may": {launch: func(l *protocol.Launch) {
			l.Cluster.Runner = &holdfast.ClusterRunner{Resources: holdfast.RunLimits{Memory: 1 << 30}}
		}, reason: holdfast.CausePodTemplateRefused, words: "allow.resources.memory"},
		"a Pod template": {launch: func(l *protocol.Launch) { l.Cluster.Runner = &holdfast.ClusterRunner{PodTemplate: []byte("{}")} }, reason: holdfast.CausePodTemplateRefused, words: "podTemplate"},
		"too large":      {launch: func(l *protocol.Launch) { l.Limits.Memory = 200 << 30 }, reason: holdfast.CausePodTemplateRefused, words: "no size of Fargate"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			if test.change != nil {
				test.change(l)
			}
			asked := launch("run-1")
			if test.launch != nil {
				test.launch(&asked)
			}
			err := l.open(t).Start(t.Context(), asked)
			var refused *protocol.LaunchError
			if !errors.As(err, &refused) || refused.Reason != test.reason || refused.Waits != test.waits || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %v (%+v), want %s: %s", err, refused, test.reason, test.words)
			}
		})
	}
}
