package cloudapi

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// task is a task of a cluster. The ECS's mutex guards it.
type task struct {
	e         *ECS
	arn       string
	asked     struct{ token, body string } // by which it was started
	startedBy string
	family    string
	tags      []keyValue
	spec      TaskSpec
	made      time.Time
	grace     time.Duration

	process        Process // nil: it does not run
	version        int
	last, desired  string
	code, reason   string // why it stops
	begun, stopped time.Time
	exit           *int
	why            string // of the container
	lost           bool
}

var (
	startedBy = regexp.MustCompile(`^[\w/-]{1,128}$`)
	tagText   = regexp.MustCompile(`^[\pL\pN\s+\-=._:/@]*$`)
)

func (e *ECS) runTask(a *AWS, body []byte) (any, error) {
	var in runInput
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	if in.Cluster != e.Cluster {
		return nil, refuse(400, "ClusterNotFoundException", "Cluster not found.")
	}
	for _, t := range e.tasks {
		switch {
		case t.asked.token != in.ClientToken:
		case t.asked.body == string(body):
			return map[string]any{"tasks": []any{t.json(true)}, "failures": []any{}}, nil
		default:
			refusal := refuse(400, "ConflictException", "The clientToken was used with other parameters.")
			refusal.more = map[string]any{"resourceIds": []string{t.arn}}
			return nil, refusal
		}
	}
	d, err := e.checkRun(in)
	if err != nil {
		return nil, err
	}
	if e.refusal != "" {
		return map[string]any{"tasks": []any{}, "failures": []any{map[string]string{"reason": e.refusal}}}, nil
	}
	c, override := d.said.Containers[0], in.Overrides.Containers[0]
	t := &task{
		e: e, arn: fmt.Sprintf("arn:aws:ecs:%s:%s:task/%s/%s", a.Region, account, e.Cluster, strings.ToLower(rand.Text())),
		startedBy: in.StartedBy, family: d.family, tags: in.Tags, made: time.Now(), version: 1,
		last: "PROVISIONING", desired: "RUNNING", grace: time.Duration(c.StopTimeout) * time.Second,
		spec: TaskSpec{Role: in.Overrides.Role, Image: c.Image, Args: slices.Concat(c.EntryPoint, override.Command)},
	}
	t.asked.token, t.asked.body = in.ClientToken, string(body)
	if e.Grace > 0 {
		t.grace = min(t.grace, e.Grace)
	}
	t.spec.ARN = t.arn
	for _, p := range slices.Concat(c.Environment, override.Environment) {
		t.spec.Env = append(t.spec.Env, p.Name+"="+p.Value)
	}
	missing := ""
	for _, s := range c.Secrets {
		value, ok := e.Secrets[s.ValueFrom]
		if !ok {
			missing = s.ValueFrom
		}
		t.spec.Env = append(t.spec.Env, s.Name+"="+value)
	}
	t.spec.Env = append(t.spec.Env, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=/v2/credentials/"+rand.Text(), "AWS_REGION="+a.Region, "AWS_DEFAULT_REGION="+a.Region)
	e.tasks = append(e.tasks, t)
	first := t.json(true)
	go t.live(missing)
	return map[string]any{"tasks": []any{first}, "failures": []any{}}, nil
}

// checkRun is what ECS refuses at once.
func (e *ECS) checkRun(in runInput) (*taskDefinition, error) {
	d := e.definition(in.TaskDefinition)
	switch {
	case d == nil:
		return nil, client("TaskDefinition not found.")
	case !d.active:
		return nil, client("TaskDefinition is inactive")
	case in.LaunchType != "FARGATE" || in.Count != 1:
		return nil, invalid("No Container Instances were found in your cluster.")
	case len(in.Network.VPC.Subnets) == 0:
		return nil, invalid("Network Configuration must be provided when networkMode 'awsvpc' is specified.")
	case !startedBy.MatchString(in.StartedBy) || len(in.ClientToken) > 64:
		return nil, invalid("startedBy or clientToken is not valid")
	case !slices.Contains(e.Roles, in.Overrides.Role):
		return nil, client("ECS was unable to assume the role '%s' that was provided for this task.", in.Overrides.Role)
	case !onFargate(in.Overrides.CPU, in.Overrides.Memory):
		return nil, client("No Fargate configuration exists for given values: %s CPU, %s memory.", in.Overrides.CPU, in.Overrides.Memory)
	case len(in.Overrides.Containers) != 1 || in.Overrides.Containers[0].Name != d.said.Containers[0].Name:
		return nil, invalid("Override for container named %v is not a container in the TaskDefinition.", in.Overrides.Containers)
	case len(mustJSON(in.Overrides)) > 8192:
		return nil, invalid("Container Overrides length must be at most 8192")
	case len(in.Tags) > 50:
		return nil, invalid("Too many tags")
	}
	for _, subnet := range in.Network.VPC.Subnets {
		if !slices.Contains(e.Subnets, subnet) {
			return nil, invalid("Error retrieving subnet information for [%s]: The subnet ID '%[1]s' does not exist", subnet)
		}
	}
	for _, t := range in.Tags {
		if !tagText.MatchString(t.Key) || !tagText.MatchString(t.Value) || t.Key == "" || len(t.Key) > 128 || len(t.Value) > 256 {
			return nil, invalid("tag %s=%s is not valid", t.Key, t.Value)
		}
	}
	return d, nil
}

// live is the life of a task.
func (t *task) live(missing string) {
	e := t.e
	e.mu.Lock()
	defer e.mu.Unlock()
	t.is("PENDING")
	switch {
	case t.desired == "STOPPED":
		t.finish(nil, "")
		return
	case missing != "":
		t.end("TaskFailedToStart", "ResourceInitializationError: unable to pull secrets or registry auth: execution resource retrieval failed: unable to retrieve secret from asm: "+missing, false)
		t.finish(nil, "")
		return
	case !slices.Contains(e.Images, t.spec.Image):
		t.end("TaskFailedToStart", "CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref "+t.spec.Image+": not found", false)
		t.finish(nil, "")
		return
	}
	process := Process(nil)
	if e.Start != nil {
		var err error
		if process, err = e.Start(t.spec); err != nil {
			t.end("TaskFailedToStart", "CannotStartContainerError: "+err.Error(), false)
			t.finish(nil, "")
			return
		}
	} else {
		process = newIdle()
	}
	t.process, t.begun = process, time.Now()
	t.is("RUNNING")
	e.mu.Unlock()
	code := process.Wait()
	e.mu.Lock()
	t.process = nil
	if t.lost {
		return
	}
	if t.code == "" {
		t.code, t.reason, t.desired = "EssentialContainerExited", "Essential container in task exited", "STOPPED"
	}
	why := ""
	if code == 137 && strings.Contains(t.reason, "OutOfMemory") {
		why = "OutOfMemoryError: Container killed due to memory usage"
	}
	t.finish(&code, why)
}

func (t *task) is(status string) {
	t.last = status
	t.version++
}

func (t *task) finish(exit *int, why string) {
	t.exit, t.why, t.stopped = exit, why, time.Now()
	t.is("STOPPED")
}

// end asks a task to stop, with a reason. Lost: its host is gone, with no word of its container.
func (t *task) end(code, reason string, lost bool) {
	if t.last == "STOPPED" || t.desired == "STOPPED" {
		return
	}
	t.desired, t.code, t.reason = "STOPPED", code, reason
	t.version++
	process := t.process
	switch {
	case lost:
		t.lost = true
		t.finish(nil, "")
	case process != nil:
		process.Signal(syscall.SIGTERM)
		time.AfterFunc(t.grace, func() { process.Signal(syscall.SIGKILL) })
	}
}

// json is a task as ECS shows it.
func (t *task) json(withTags bool) map[string]any {
	container := map[string]any{"name": "main", "lastStatus": t.last, "image": t.spec.Image}
	if t.exit != nil {
		container["exitCode"] = *t.exit
	}
	if t.why != "" {
		container["reason"] = t.why
	}
	out := map[string]any{
		"taskArn": t.arn, "lastStatus": t.last, "desiredStatus": t.desired, "startedBy": t.startedBy, "version": t.version,
		"createdAt": seconds(t.made), "containers": []any{container}, "launchType": "FARGATE",
		"overrides": map[string]any{"taskRoleArn": t.spec.Role},
	}
	if !t.begun.IsZero() {
		out["startedAt"] = seconds(t.begun)
	}
	if t.code != "" {
		out["stopCode"], out["stoppedReason"] = t.code, t.reason
	}
	if !t.stopped.IsZero() {
		out["stoppedAt"] = seconds(t.stopped)
	}
	if withTags {
		out["tags"] = t.tags
	}
	return out
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func (e *ECS) stopTask(body []byte) (any, error) {
	var in tasksInput
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	for _, t := range e.tasks {
		if t.arn == in.Task {
			t.end("UserInitiated", in.Reason, false)
			return map[string]any{"task": t.json(false)}, nil
		}
	}
	return nil, invalid("The referenced task was not found.")
}

func (e *ECS) listTasks(body []byte) (any, error) {
	var in tasksInput
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	if in.Cluster != e.Cluster {
		return nil, refuse(400, "ClusterNotFoundException", "Cluster not found.")
	}
	if in.StartedBy != "" && (in.Family != "" || in.DesiredStatus != "") {
		return nil, invalid("startedBy must be the only filter")
	}
	desired := in.DesiredStatus
	if desired == "" {
		desired = "RUNNING"
	}
	arns := []string{}
	for _, t := range e.tasks {
		if t.desired == desired && (in.Family == "" || t.family == in.Family) && (in.StartedBy == "" || t.startedBy == in.StartedBy) && time.Since(t.made) >= e.Lag {
			arns = append(arns, t.arn)
		}
	}
	const page = 100
	from := 0
	if in.NextToken != "" {
		_, _ = fmt.Sscan(in.NextToken, &from)
	}
	out := map[string]any{"taskArns": arns[from:min(from+page, len(arns))]}
	if from+page < len(arns) {
		out["nextToken"] = fmt.Sprint(from + page)
	}
	return out, nil
}

func (e *ECS) describeTasks(body []byte) (any, error) {
	var in tasksInput
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	if len(in.Tasks) == 0 || len(in.Tasks) > 100 {
		return nil, invalid("Tasks must have 1 to 100 items.")
	}
	tasks, failures := []any{}, []any{}
	for _, arn := range in.Tasks {
		i := slices.IndexFunc(e.tasks, func(t *task) bool { return t.arn == arn })
		if i < 0 || time.Since(e.tasks[i].made) < e.Lag {
			failures = append(failures, map[string]string{"arn": arn, "reason": "MISSING"})
			continue
		}
		tasks = append(tasks, e.tasks[i].json(slices.Contains(in.Include, "TAGS")))
	}
	return map[string]any{"tasks": tasks, "failures": failures}, nil
}

// idle is a container that runs until it is stopped.
type idle struct{ end chan int }

func newIdle() *idle { return &idle{make(chan int, 2)} }

func (i *idle) Signal(sig syscall.Signal) {
	code := 0
	if sig == syscall.SIGKILL {
		code = 137
	}
	select {
	case i.end <- code:
	default:
	}
}

func (i *idle) Wait() int { return <-i.end }
