package runnerspec

import (
	"encoding/json"

	"github.com/holdfast-dev/holdfast"
)

// Type says how the agents of a runner are started. It never changes.
type Type string

// Standing reports whether agents of such a runner are there before a run is: one without
// a living agent executes nothing. For other types one is started for each run.
func (t Type) Standing() bool {
	return t == Local || t == KubernetesAgent || t == Remote
}

// StartsJobs reports whether the runs of such a runner are Jobs of Kubernetes.
func (t Type) StartsJobs() bool {
	return t == Kubernetes || t == KubernetesGKE || t == KubernetesEKS || t == KubernetesAgent
}

// StorageTypes returns where the states of such a runner's environments can be, besides
// Holdfast's own backend.
func (t Type) StorageTypes() []string {
	if t == ECS {
		return []string{"s3"}
	}
	return []string{"azurerm", "gcs", "kubernetes", "s3"}
}

// The types of runners.
const (
	Local           Type = "local"            // the agents that serve starts on its own machine
	Kubernetes      Type = "kubernetes"       // a Job for each run, by a kubeconfig, a token or from within the cluster
	KubernetesGKE   Type = "kubernetes-gke"   // as kubernetes; the API server is found and authenticated through Google Cloud
	KubernetesEKS   Type = "kubernetes-eks"   // as kubernetes; the API server is found and authenticated through AWS
	KubernetesAgent Type = "kubernetes-agent" // an agent within a cluster, outbound only, that starts a Job for each run there
	Remote          Type = "remote"           // standing agents elsewhere, outbound only
	ECS             Type = "serverless-ecs"   // a Fargate task for each run
)

// Types returns the types that a document may say, in the order in which people read
// them: LocalRunner has none.
func Types() []Type {
	return []Type{Kubernetes, KubernetesGKE, KubernetesEKS, KubernetesAgent, Remote, ECS}
}

// Runner is a place where agents execute runs, as its document (kind Runner) says.
// Which of the settings are set follows from Type.
type Runner struct {
	Name string `json:"name"` // as names of clusters
	Type Type   `json:"type"`

	Kubernetes *KubernetesAccess `json:"kubernetes,omitempty"` // kubernetes, kubernetes-gke, kubernetes-eks: how the API server is reached
	Job        *Job              `json:"job,omitempty"`        // the kubernetes types: the Jobs
	Keys       []string          `json:"keys,omitempty"`       // kubernetes-agent, remote: Ed25519 public keys of its agents, PEM
	ECS        *ECSTask          `json:"ecs,omitempty"`        // serverless-ecs

	// Storage is where the states of its environments are, unless code or document of
	// a cluster says otherwise; nil: Holdfast's own backend.
	Storage *holdfast.StateStorage `json:"storage,omitempty"`
	// MaxRuns is how many runs it executes at once; 0: as many as it can.
	MaxRuns int `json:"maxRuns,omitempty"`
	// Allow bounds what spec.runner of a cluster may change.
	Allow Allowance `json:"allow,omitzero"`
}

// ServerSecret refers to a secret by its name in the server's configuration (secrets).
type ServerSecret struct {
	Secret string `json:"secret"`
}

// KubernetesAccess says how the server reaches an API server. Exactly one of the first four
// is set.
type KubernetesAccess struct {
	InCluster  bool              `json:"inCluster,omitempty"`  // that of the Pod that the server is in
	Kubeconfig *ServerSecret     `json:"kubeconfig,omitempty"` // its current context, without plugins
	GKE        *GKECluster       `json:"gke,omitempty"`
	EKS        *EKSCluster       `json:"eks,omitempty"`
	Server     *KubernetesServer `json:"server,omitempty"`
}

// KubernetesServer is an API server by its address. The caller authenticates by a token,
// or by a certificate and its key: one of the two is set.
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

// Job is what the Jobs of a runner are made from.
type Job struct {
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

// Allowance bounds what spec.runner of a cluster may change.
type Allowance struct {
	Resources       holdfast.RunLimits `json:"resources,omitzero"`        // the most that it may ask for
	ServiceAccounts []string           `json:"serviceAccounts,omitempty"` // globs
	PodTemplate     bool               `json:"podTemplate,omitempty"`     // it may have one of its own
}

// FieldFault is what is wrong with a value of a document, for whoever does not know where
// that was written.
type FieldFault struct {
	Path    []string // from spec: keys, and the numbers of items
	Message string
	Hint    string
}
