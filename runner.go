package holdfast

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// RunnerType says how the agents of a runner come to be. It never changes.
type RunnerType string

// The types of runners.
const (
	RunnerLocal           RunnerType = "local"            // the agents that serve starts on its own machine
	RunnerKubernetes      RunnerType = "kubernetes"       // a Job for each run, by a kubeconfig, a token or from within the cluster
	RunnerKubernetesGKE   RunnerType = "kubernetes-gke"   // as kubernetes; the API server is found and authenticated through Google Cloud
	RunnerKubernetesEKS   RunnerType = "kubernetes-eks"   // as kubernetes; the API server is found and authenticated through AWS
	RunnerKubernetesAgent RunnerType = "kubernetes-agent" // an agent within a cluster, outbound only, that starts a Job for each run there
	RunnerRemote          RunnerType = "remote"           // standing agents elsewhere, outbound only
	RunnerECS             RunnerType = "serverless-ecs"   // a Fargate task for each run
)

// RunnerTypes returns the types that a document may say, in the order in which people read
// them: LocalRunner has none.
func RunnerTypes() []RunnerType {
	return []RunnerType{RunnerKubernetes, RunnerKubernetesGKE, RunnerKubernetesEKS, RunnerKubernetesAgent, RunnerRemote, RunnerECS}
}

// Standing reports whether agents of such a runner are there before a run is: one without
// a living agent executes nothing. Of other types one is started for each run.
func (t RunnerType) Standing() bool {
	return t == RunnerLocal || t == RunnerKubernetesAgent || t == RunnerRemote
}

// StartsJobs reports whether the runs of such a runner are Jobs of Kubernetes.
func (t RunnerType) StartsJobs() bool {
	return t == RunnerKubernetes || t == RunnerKubernetesGKE || t == RunnerKubernetesEKS || t == RunnerKubernetesAgent
}

// StorageTypes returns where the states of such a runner's environments can be, besides
// Holdfast's own backend.
func (t RunnerType) StorageTypes() []string {
	if t == RunnerECS {
		return []string{"s3"}
	}
	return []string{"azurerm", "gcs", "kubernetes", "s3"}
}

// LocalRunner is the name of the runner that is always there.
const LocalRunner = "local"

// Runner is a place where agents execute runs, as its document (kind Runner) says.
// Which of the settings are set follows from Type.
type Runner struct {
	Name string     `json:"name"` // as names of clusters
	Type RunnerType `json:"type"`

	Kubernetes *KubernetesAccess `json:"kubernetes,omitempty"` // kubernetes, kubernetes-gke, kubernetes-eks: how the API server is reached
	Job        *RunnerJob        `json:"job,omitempty"`        // the kubernetes types: the Jobs
	Keys       []string          `json:"keys,omitempty"`       // kubernetes-agent, remote: Ed25519 public keys of its agents, PEM
	ECS        *ECSTask          `json:"ecs,omitempty"`        // serverless-ecs

	// Storage is where the states of its environments are, unless code or document of
	// a cluster says otherwise; nil: Holdfast's own backend.
	Storage *StateStorage `json:"storage,omitempty"`
	// MaxRuns is how many runs it executes at once; 0: as many as it can.
	MaxRuns int `json:"maxRuns,omitempty"`
	// Allow bounds what spec.runner of a cluster may change.
	Allow RunnerAllowance `json:"allow,omitzero"`
}

// ServerSecret refers to a secret by its name in the server's configuration (secrets).
type ServerSecret struct {
	Secret string `json:"secret"`
}

// KubernetesAccess says how the server reaches an API server. Of the first four exactly one
// is set.
type KubernetesAccess struct {
	InCluster  bool              `json:"inCluster,omitempty"`  // that of the Pod that the server is in
	Kubeconfig *ServerSecret     `json:"kubeconfig,omitempty"` // its current context, without plugins
	GKE        *GKECluster       `json:"gke,omitempty"`
	EKS        *EKSCluster       `json:"eks,omitempty"`
	Server     *KubernetesServer `json:"server,omitempty"`
}

// KubernetesServer is an API server by its address. Who asks is known by a token, or by a
// certificate and its key: one of the two is set.
type KubernetesServer struct {
	URL                  string        `json:"url"`                            // https
	CertificateAuthority string        `json:"certificateAuthority,omitempty"` // PEM; empty: the system's
	ProxyURL             string        `json:"proxyURL,omitempty"`
	Token                *ServerSecret `json:"token,omitempty"`             // of a service account
	ClientCertificate    string        `json:"clientCertificate,omitempty"` // PEM
	ClientKey            *ServerSecret `json:"clientKey,omitempty"`         // PEM
}

// GKECluster is a cluster of Google Kubernetes Engine.
type GKECluster struct {
	Project    string `json:"project"`
	Location   string `json:"location"`
	Name       string `json:"name"`
	InternalIP bool   `json:"internalIP,omitempty"`
	ProxyURL   string `json:"proxyURL,omitempty"`
	// WorkloadIdentityProvider and ServiceAccount exchange a token of Holdfast's issuer.
	WorkloadIdentityProvider string `json:"workloadIdentityProvider"`
	ServiceAccount           string `json:"serviceAccount,omitempty"`
}

// EKSCluster is a cluster of Amazon Elastic Kubernetes Service.
type EKSCluster struct {
	Region      string `json:"region"`
	Name        string `json:"name"`
	RoleARN     string `json:"roleARN"`
	SessionName string `json:"sessionName,omitempty"` // default: holdfast-RUNNER
	STSRegion   string `json:"stsRegion,omitempty"`   // default: Region
}

// RunnerJob is what the Jobs of a runner are made from.
type RunnerJob struct {
	Namespace string `json:"namespace"`
	Image     string `json:"image,omitempty"` // default: that of the server's version
	// PullPolicy and PullSecrets are as in a Pod.
	PullPolicy  string   `json:"pullPolicy,omitempty"`
	PullSecrets []string `json:"pullSecrets,omitempty"`

	PlanServiceAccount  string `json:"planServiceAccount"`  // of plans and drift checks
	ApplyServiceAccount string `json:"applyServiceAccount"` // of applies and destroys
	// SameServiceAccount writes down that both may be the same.
	SameServiceAccount bool `json:"sameServiceAccount,omitempty"`

	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Tolerations  []json.RawMessage `json:"tolerations,omitempty"` // as in a Pod
	// PodTemplate is a PodTemplateSpec that is merged strategically over ours.
	PodTemplate json.RawMessage `json:"podTemplate,omitempty"`
}

// ECSTask is what the tasks of a runner are made from.
type ECSTask struct {
	Region           string `json:"region"`
	Cluster          string `json:"cluster"`
	RoleARN          string `json:"roleARN"` // assumed by web identity to start tasks
	SessionName      string `json:"sessionName,omitempty"`
	STSRegion        string `json:"stsRegion,omitempty"`
	ExecutionRoleARN string `json:"executionRoleARN"`
	PlanTaskRoleARN  string `json:"planTaskRoleARN"`
	ApplyTaskRoleARN string `json:"applyTaskRoleARN"`
	// SameTaskRole writes down that both may be the same.
	SameTaskRole   bool              `json:"sameTaskRole,omitempty"`
	Subnets        []string          `json:"subnets"`
	SecurityGroups []string          `json:"securityGroups,omitempty"`
	PublicIP       bool              `json:"publicIP,omitempty"`
	Environment    map[string]string `json:"environment,omitempty"`
	Secrets        map[string]string `json:"secrets,omitempty"` // name to ARN in Secrets Manager or SSM
	Image          string            `json:"image,omitempty"`
}

// StateStorage is where the states of a runner's environments are, each under a key of
// its own below Prefix. The credentials are the Job's own identity.
type StateStorage struct {
	Type           string `json:"type"`                     // kubernetes, s3, gcs or azurerm
	Namespace      string `json:"namespace,omitempty"`      // kubernetes
	Bucket         string `json:"bucket,omitempty"`         // s3, gcs
	Region         string `json:"region,omitempty"`         // s3
	ResourceGroup  string `json:"resourceGroup,omitempty"`  // azurerm
	StorageAccount string `json:"storageAccount,omitempty"` // azurerm
	Container      string `json:"container,omitempty"`      // azurerm
	Prefix         string `json:"prefix,omitempty"`         // s3, gcs, azurerm
}

// RunnerAllowance bounds what spec.runner of a cluster may change.
type RunnerAllowance struct {
	Resources       RunLimits `json:"resources,omitzero"`        // the most that it may ask for
	ServiceAccounts []string  `json:"serviceAccounts,omitempty"` // globs
	PodTemplate     bool      `json:"podTemplate,omitempty"`     // it may have one of its own
}

// RunnerRule says which runner an environment gets when it first runs, as its document
// (kind RunnerRule) says. The most specific rule wins: project and environment, then project,
// then environment, then neither.
type RunnerRule struct {
	Name        string `json:"name"`
	Runner      string `json:"runner"`
	Project     string `json:"project,omitempty"`     // empty: any
	Environment string `json:"environment,omitempty"` // empty: any
}

// Specificity orders rules: of those that match an environment, the one with the highest
// number wins.
func (r RunnerRule) Specificity() int {
	n := 0
	if r.Project != "" {
		n += 2
	}
	if r.Environment != "" {
		n++
	}
	return n
}

// Matches reports whether a rule is about an environment.
func (r RunnerRule) Matches(env EnvironmentKey) bool {
	return (r.Project == "" || r.Project == env.Project) && (r.Environment == "" || r.Environment == env.Name)
}

// RuleFor returns the most specific of the rules that match an environment; false if none
// does. Of two that are equally specific, which is a fault of the later one, the first by name.
func RuleFor(rules []RunnerRule, env EnvironmentKey) (rule RunnerRule, ok bool) {
	for _, r := range slices.SortedFunc(slices.Values(rules), func(a, b RunnerRule) int {
		return cmp.Or(b.Specificity()-a.Specificity(), cmp.Compare(a.Name, b.Name))
	}) {
		if r.Matches(env) {
			return r, true
		}
	}
	return RunnerRule{}, false
}

// ClusterRunner is what a cluster's document asks of the runner of its environment, within
// what that allows.
type ClusterRunner struct {
	Resources      RunLimits       `json:"resources,omitzero"`
	ServiceAccount string          `json:"serviceAccount,omitempty"`
	PodTemplate    json.RawMessage `json:"podTemplate,omitempty"`
}

// EnvironmentKey names an environment of a project.
type EnvironmentKey struct {
	Project string `json:"project"`
	Name    string `json:"name"`
}

// String returns "project/name", as people write it.
func (k EnvironmentKey) String() string { return k.Project + "/" + k.Name }

// EnvironmentKey is that of the environment that the cluster belongs to.
func (c Cluster) EnvironmentKey() EnvironmentKey { return EnvironmentKey{c.Project, c.Environment} }

// Environment is an environment that has run, and the runner that it is pinned to since:
// rules that change move it nowhere until somebody asks for it.
type Environment struct {
	EnvironmentKey
	Runner   string    `json:"runner"`
	Rule     string    `json:"rule,omitempty"` // by which it has that runner; empty: no rule matched
	PinnedAt time.Time `json:"pinnedAt"`
}

// DocumentPlace is where a document of a tracked branch stands.
type DocumentPlace struct {
	Repo     string   `json:"repo"`
	Path     string   `json:"path"`
	Line     int      `json:"line"`
	Revision Revision `json:"revision"`
}

// RunnerRecord is a runner in force: what its last good document says, which belongs to
// the repository that defined the name first.
type RunnerRecord struct {
	Document Runner        `json:"document"`
	Place    DocumentPlace `json:"place"`
	// Faults say why what the repository says now is not in force; none: it is.
	Faults    Faults    `json:"faults,omitempty"`
	UpdatedAt time.Time `json:"updatedAt"`
	// Next is what the repository says now, if nothing keeps it from being in force but
	// states that it would move; nil: something else does, or nothing.
	Next *Runner `json:"next,omitempty"`
	// Former are its former places, the last one first: something may be left there.
	Former []FormerRunner `json:"former,omitempty"`
	// RemovedAt is when it ceased to be in force, as its document is gone: something that it
	// has launched may be left. Zero: it is in force.
	RemovedAt time.Time `json:"removedAt,omitzero"`
}

// RunnerRuleRecord is a rule in force, as RunnerRecord is a runner.
type RunnerRuleRecord struct {
	Document  RunnerRule    `json:"document"`
	Place     DocumentPlace `json:"place"`
	Faults    Faults        `json:"faults,omitempty"`
	UpdatedAt time.Time     `json:"updatedAt"`
}

// RunnerChange is the change of a runner or a rule that a pull request makes.
type RunnerChange struct {
	Kind   string `json:"kind"` // of the document: Runner or RunnerRule
	Name   string `json:"name"`
	Change string `json:"change"` // added, changed or removed
	// Environments are those that it bears on: of a runner, those that are pinned to it; of
	// a rule, those that a refresh would move.
	Environments []AffectedEnvironment `json:"environments,omitempty"`
}

// AffectedEnvironment is an environment on which a change of a runner or a rule bears.
type AffectedEnvironment struct {
	EnvironmentKey
	Runner   string   `json:"runner"`         // that it is pinned to
	Next     string   `json:"next,omitempty"` // a rule: the runner that a refresh would move it to; empty: none matches
	Clusters []string `json:"clusters"`       // sorted
}

// RunnersChange is how a repository changes what is in force of runners and rules.
type RunnersChange struct {
	Runners         []RunnerRecord // that are in force from now on
	Rules           []RunnerRuleRecord
	Gone, GoneRules []string // names of those that no longer are
	// Unwatched are repositories that the configuration no longer has: others may have the
	// names that belonged to them.
	Unwatched []string
}

// Empty reports whether there is nothing new.
func (c RunnersChange) Empty() bool {
	return len(c.Runners)+len(c.Rules)+len(c.Gone)+len(c.GoneRules) == 0
}

// RunnerProposal asks for a pull request that changes the document of a runner.
type RunnerProposal struct {
	Name     string
	Change   string     // create, update or delete
	Type     RunnerType // to create one without a document
	Document string     // the whole document, YAML
	Set      []string   // changes of single keys below spec: "job.namespace=runs"
	Repo     string     // where to create one; empty: the only repository that may define runners
	Path     string     // in which file to create one; empty: runners/NAME.yaml
	By       string     // who asks
}

// ProposedRunner is the pull request that was made.
type ProposedRunner struct {
	PullRequest PullRequest
	Path        string // of the file that it changes
	Document    string // as it would be; empty: it would be gone
}

// EnvironmentFilter selects environments. Zero fields select all.
type EnvironmentFilter struct {
	Projects []string
	Runner   string
}

// EnvironmentBusyError says that an environment cannot move to another runner while one of
// its runs is running. It is an ErrConflict.
type EnvironmentBusyError struct {
	Environment EnvironmentKey
	Run         string
	Cluster     string
}

// Error names the run.
func (e *EnvironmentBusyError) Error() string {
	return fmt.Sprintf("run %s of %s is running in environment %s", e.Run, e.Cluster, e.Environment)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *EnvironmentBusyError) Is(target error) bool { return target == ErrConflict }

// FieldFault is what is wrong with a value of a document, for who does not know where that
// was written.
type FieldFault struct {
	Path    []string // from spec: keys, and the numbers of items
	Message string
	Hint    string
}
