package cloudapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const account = "123456789012"

// ECS is a cluster of Amazon ECS on Fargate. Its tasks are what Start starts.
type ECS struct {
	Cluster string
	Subnets []string          // that there are
	Roles   []string          // that may be passed to tasks
	Secrets map[string]string // values by ARN
	Images  []string
	// Start starts the container of a task. Nil: it runs until it is stopped.
	Start func(t TaskSpec) (Process, error)
	// Lag is how long a task is not listed after it was started.
	Lag time.Duration
	// Grace is the most that is between SIGTERM and SIGKILL; zero: two minutes.
	Grace time.Duration

	mu          sync.Mutex
	region      string
	definitions []*taskDefinition
	tasks       []*task
	refusal     string // why nothing is started, as RunTask's failures say; empty: it is
}

// TaskSpec is what a container is started with.
type TaskSpec struct {
	ARN, Role string
	Image     string
	Args      []string
	Env       []string
}

// Process is a container that runs.
type Process interface {
	Signal(sig syscall.Signal)
	Wait() int // its exit code
}

// Refuse has RunTask start nothing, with that reason among its failures; empty: no longer.
func (e *ECS) Refuse(reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refusal = reason
}

// Started is how many tasks were started for a run.
func (e *ECS) Started(run string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, t := range e.tasks {
		if strings.Contains(t.startedBy, "/"+run+"/") {
			n++
		}
	}
	return n
}

// Role is that of the last task of a run.
func (e *ECS) Role(run string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range slices.Backward(e.tasks) {
		if strings.Contains(t.startedBy, "/"+run+"/") {
			return t.spec.Role
		}
	}
	return ""
}

// Active are the revisions of task definitions that are active.
func (e *ECS) Active() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []string
	for _, d := range e.definitions {
		if d.active {
			list = append(list, d.family+":"+strconv.Itoa(d.revision))
		}
	}
	return list
}

// Interrupt stops the tasks of a run as AWS does: with a code and a reason. Lost has nothing
// report that the container has ended.
func (e *ECS) Interrupt(run, code, reason string, lost bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.tasks {
		if strings.Contains(t.startedBy, "/"+run+"/") {
			t.end(code, reason, lost)
		}
	}
}

// Forget drops the tasks of a run, as after an hour.
func (e *ECS) Forget(run string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tasks = slices.DeleteFunc(e.tasks, func(t *task) bool { return strings.Contains(t.startedBy, "/"+run+"/") })
}

// taskDefinition is a revision.
type taskDefinition struct {
	family   string
	revision int
	active   bool
	said     registerInput
}

// The parts of requests that are looked at.
type (
	registerInput struct {
		Family                  string   `json:"family"`
		NetworkMode             string   `json:"networkMode"`
		RequiresCompatibilities []string `json:"requiresCompatibilities"`
		CPU                     string   `json:"cpu"`
		Memory                  string   `json:"memory"`
		ExecutionRoleARN        string   `json:"executionRoleArn"`
		Containers              []struct {
			Name        string            `json:"name"`
			Image       string            `json:"image"`
			EntryPoint  []string          `json:"entryPoint"`
			Command     []string          `json:"command"`
			StopTimeout int               `json:"stopTimeout"`
			Environment []pair            `json:"environment"`
			Secrets     []secretReference `json:"secrets"`
		} `json:"containerDefinitions"`
		Tags []keyValue `json:"tags"`
	}
	pair struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	secretReference struct {
		Name      string `json:"name"`
		ValueFrom string `json:"valueFrom"`
	}
	keyValue struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	runInput struct {
		Cluster        string `json:"cluster"`
		TaskDefinition string `json:"taskDefinition"`
		LaunchType     string `json:"launchType"`
		Count          int    `json:"count"`
		ClientToken    string `json:"clientToken"`
		StartedBy      string `json:"startedBy"`
		Network        struct {
			VPC struct {
				Subnets        []string `json:"subnets"`
				SecurityGroups []string `json:"securityGroups"`
				PublicIP       string   `json:"assignPublicIp"`
			} `json:"awsvpcConfiguration"`
		} `json:"networkConfiguration"`
		Overrides struct {
			Role       string `json:"taskRoleArn"`
			CPU        string `json:"cpu"`
			Memory     string `json:"memory"`
			Containers []struct {
				Name        string   `json:"name"`
				Command     []string `json:"command"`
				Environment []pair   `json:"environment"`
			} `json:"containerOverrides"`
		} `json:"overrides"`
		Tags []keyValue `json:"tags"`
	}
	tasksInput struct {
		Cluster       string   `json:"cluster"`
		Family        string   `json:"family"`
		StartedBy     string   `json:"startedBy"`
		DesiredStatus string   `json:"desiredStatus"`
		NextToken     string   `json:"nextToken"`
		Tasks         []string `json:"tasks"`
		Task          string   `json:"task"`
		Reason        string   `json:"reason"`
		Include       []string `json:"include"`
	}
	definitionInput struct {
		TaskDefinition string   `json:"taskDefinition"`
		FamilyPrefix   string   `json:"familyPrefix"`
		Include        []string `json:"include"`
	}
)

const target = "AmazonEC2ContainerServiceV20141113."

func (a *AWS) serveECS(w http.ResponseWriter, r *http.Request) {
	value, err := a.ecs(r)
	answer(w, "application/x-amz-json-1.1", value, err)
}

func (a *AWS) ecs(r *http.Request) ([]byte, error) {
	action, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), target)
	e := a.ECS
	call, known := map[string]func([]byte) (any, error){
		"RunTask": func(b []byte) (any, error) { return e.runTask(a, b) }, "StopTask": e.stopTask, "ListTasks": e.listTasks,
		"DescribeTasks": e.describeTasks, "RegisterTaskDefinition": e.register, "DescribeTaskDefinition": e.describeDefinition,
		"ListTaskDefinitions": e.listDefinitions, "DeregisterTaskDefinition": e.deregister,
	}[action]
	if !ok || !known || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-amz-json-1.1" {
		return nil, refuse(http.StatusBadRequest, "UnknownOperationException", "")
	}
	session, body, err := a.authorize(r, "ecs", "ecs:"+action)
	if err != nil {
		return nil, err
	}
	if strings.Contains(string(body), `"tags":[{`) && !a.may(session.Role, "ecs:TagResource") {
		return nil, refuse(http.StatusBadRequest, "AccessDeniedException", "User: %s is not authorized to perform: ecs:TagResource", session.Role)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.region = a.Region
	value, err := call(body)
	if err != nil {
		return nil, err
	}
	return mustJSON(value), nil
}

func (a *AWS) may(role, action string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.allow[role], action)
}

func invalid(format string, args ...any) *awsError {
	return refuse(http.StatusBadRequest, "InvalidParameterException", format, args...)
}

func client(format string, args ...any) *awsError {
	return refuse(http.StatusBadRequest, "ClientException", format, args...)
}

func decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return refuse(http.StatusBadRequest, "SerializationException", "%v", err)
	}
	return nil
}

func (e *ECS) register(body []byte) (any, error) {
	var in registerInput
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	switch {
	case !regexp.MustCompile(`^[\w-]{1,255}$`).MatchString(in.Family):
		return nil, client("Family contains invalid characters.")
	case in.NetworkMode != "awsvpc" || !slices.Contains(in.RequiresCompatibilities, "FARGATE"):
		return nil, client("Fargate only supports network mode ‘awsvpc’.")
	case !onFargate(in.CPU, in.Memory):
		return nil, client("No Fargate configuration exists for given values: %s CPU, %s memory.", in.CPU, in.Memory)
	case !slices.Contains(e.Roles, in.ExecutionRoleARN):
		return nil, client("Role is not valid")
	case len(in.Containers) != 1 || in.Containers[0].Image == "":
		return nil, client("Container.image should not be null or empty.")
	case in.Containers[0].StopTimeout > 120:
		return nil, client("stopTimeout must be at most 120 seconds on Fargate")
	}
	revision := 1
	for _, d := range e.definitions {
		if d.family == in.Family {
			revision = d.revision + 1
		}
	}
	d := &taskDefinition{in.Family, revision, true, in}
	e.definitions = append(e.definitions, d)
	return map[string]any{"taskDefinition": e.definitionJSON(d), "tags": in.Tags}, nil
}

func (e *ECS) definitionARN(d *taskDefinition) string {
	return fmt.Sprintf("arn:aws:ecs:%s:%s:task-definition/%s:%d", e.region, account, d.family, d.revision)
}

func (e *ECS) definitionJSON(d *taskDefinition) map[string]any {
	status := "ACTIVE"
	if !d.active {
		status = "INACTIVE"
	}
	return map[string]any{"taskDefinitionArn": e.definitionARN(d), "family": d.family, "revision": d.revision, "status": status}
}

// definition finds a revision by ARN, or the last active one of a family.
func (e *ECS) definition(name string) *taskDefinition {
	for _, d := range slices.Backward(e.definitions) {
		if e.definitionARN(d) == name || d.family == name && d.active {
			return d
		}
	}
	return nil
}

func (e *ECS) describeDefinition(body []byte) (any, error) {
	var in definitionInput
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	d := e.definition(in.TaskDefinition)
	if d == nil {
		return nil, client("Unable to describe task definition.")
	}
	out := map[string]any{"taskDefinition": e.definitionJSON(d)}
	if slices.Contains(in.Include, "TAGS") {
		out["tags"] = d.said.Tags
	}
	return out, nil
}

func (e *ECS) listDefinitions(body []byte) (any, error) {
	var in definitionInput
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	arns := []string{}
	for _, d := range e.definitions {
		if d.active && d.family == in.FamilyPrefix {
			arns = append(arns, e.definitionARN(d))
		}
	}
	return map[string]any{"taskDefinitionArns": arns}, nil
}

func (e *ECS) deregister(body []byte) (any, error) {
	var in definitionInput
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	d := e.definition(in.TaskDefinition)
	if d == nil {
		return nil, client("The specified task definition does not exist.")
	}
	d.active = false
	return map[string]any{"taskDefinition": e.definitionJSON(d)}, nil
}

// onFargate reports whether there is such a size.
func onFargate(cpu, memory string) bool {
	from, known := map[string][3]int{
		"256": {512, 2048, 512}, "512": {1024, 4096, 1024}, "1024": {2048, 8192, 1024}, "2048": {4096, 16384, 1024},
		"4096": {8192, 30720, 1024}, "8192": {16384, 61440, 4096}, "16384": {32768, 122880, 8192},
	}[cpu]
	m, err := strconv.Atoi(memory)
	if cpu == "256" && m == 1536 {
		return false
	}
	return known && err == nil && m >= from[0] && m <= from[1] && (m-from[0])%from[2] == 0
}
