package v1

import (
	"reflect"
	"strings"

	"github.com/holdfast-dev/holdfast/access"
)

// Operation is one thing that the API does: a method on a path.
type Operation struct {
	ID      string       // of the operation, in the description
	Method  string       // of HTTP
	Path    string       // below /api/v1, with parameters in braces
	Summary string       // in a line
	Verb    access.Verb  // what whoever asks must be allowed, by access.Table
	Query   reflect.Type // a struct whose fields are the parameters; nil: there are none
	Body    reflect.Type // of the request; nil: there is none
	Status  int          // of a success
	Answer  reflect.Type // nil: see Media
	List    bool         // the answer is a List of Answer
	Media   string       // of the answer; empty: JSON
}

// Role is the weakest that may do it.
func (o Operation) Role() string { return string(o.Verb.Role()) }

// Parameters are the names of those that the query of the operation may have.
func (o Operation) Parameters() []string {
	if o.Query == nil {
		return nil
	}
	var names []string
	for _, field := range reflect.VisibleFields(o.Query) {
		if name, _, _ := strings.Cut(field.Tag.Get("query"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// PageQuery says which part of a list is wanted.
type PageQuery struct {
	Limit  int    `query:"limit"`  // How many items at most.
	Cursor string `query:"cursor"` // Where to continue: next of the previous page.
}

// ClusterQuery selects clusters. Parameters are combined by and, values of one that is
// repeated by or, except for label.
type ClusterQuery struct {
	Name        []string `query:"name"`        // Clusters of these names.
	Owner       string   `query:"owner"`       // Defined by this repository.
	Project     string   `query:"project"`     // Of this project.
	Environment string   `query:"environment"` // Of this environment.
	Phase       string   `query:"phase"`       // In this phase, such as Active.
	Waiting     string   `query:"waiting"`     // Waiting for this reason; * for any.
	Drift       string   `query:"drift"`       // Whose last drift check found this: none, drifted or failed.
	Label       []string `query:"label"`       // With this label, key=value.
	All         bool     `query:"all"`         // Of clusters: also those that are gone. Of drift: also clusters without drift.
}

// FieldsQuery says which fields of the items of a list are wanted.
type FieldsQuery struct {
	Fields []string `query:"fields"` // Only these fields of each item, separated by commas.
}

// SearchQuery selects clusters by what they are made of.
type SearchQuery struct {
	Search   string `query:"q"`        // Whose name or labels have these words; or, if it has a dot or an underscore, an address of a resource.
	Provider string `query:"provider"` // Of this provider.
	Template string `query:"template"` // Made from this template: a name, or name@version.
}

// OverviewQuery is that of GET /overview.
type OverviewQuery struct {
	ClusterQuery
	SearchQuery
}

// ClustersQuery is that of GET /clusters.
type ClustersQuery struct {
	ClusterQuery
	SearchQuery
	PageQuery
	FieldsQuery
}

// DriftQuery is that of GET /drift.
type DriftQuery struct {
	ClusterQuery
	PageQuery
	FieldsQuery
}

// RunsQuery is that of GET /runs.
type RunsQuery struct {
	Cluster string   `query:"cluster"` // Runs of this cluster.
	Repo    string   `query:"repo"`    // With number: runs of this pull request.
	Number  int      `query:"number"`  // With repo: runs of this pull request; zero or absent: of the tracked branch.
	Kind    []string `query:"kind"`    // Of these kinds.
	Status  []string `query:"status"`  // With these statuses.
	PageQuery
	FieldsQuery
}

// QueueQuery is that of GET /queue.
type QueueQuery struct {
	Runner string `query:"runner"` // Runs of this runner. Positions are those in the whole queue.
	PageQuery
}

// EnvironmentsQuery is that of GET /environments.
type EnvironmentsQuery struct {
	Project string `query:"project"` // Of this project.
	Runner  string `query:"runner"`  // Pinned to this runner.
	PageQuery
}

// PullRequestsQuery is that of GET /pullrequests.
type PullRequestsQuery struct {
	Repo    string   `query:"repo"`    // Of this repository.
	Cluster string   `query:"cluster"` // That affect this cluster.
	State   []string `query:"state"`   // In these states.
	PageQuery
	FieldsQuery
}

// PullRequestQuery names a pull request.
type PullRequestQuery struct {
	Repo   string `query:"repo,required"`   // The repository, as holdfast.yaml names it.
	Number int    `query:"number,required"` // The number.
}

// ResourcesQuery is that of GET /resources.
type ResourcesQuery struct {
	Cluster string `query:"cluster"` // Of this cluster.
	Type    string `query:"type"`    // Of this type, such as aws_vpc.
	ID      string `query:"id"`      // With this ID at the provider.
	Address string `query:"address"` // Whose addresses contain this.
	PageQuery
	FieldsQuery
}

// SuspensionsQuery is that of GET /suspensions.
type SuspensionsQuery struct {
	Many bool `query:"many"` // Only those of projects and of all clusters.
	PageQuery
}

// AuditQuery is that of GET /audit.
type AuditQuery struct {
	Object string `query:"object"` // About this cluster, run or pull request.
	PageQuery
}

// EventsQuery is that of GET /events.
type EventsQuery struct {
	After int64    `query:"after"` // Like the header Last-Event-ID, which takes precedence: the ID of the last event that was seen.
	Kind  []string `query:"kind"`  // Only changes of these kinds: Cluster, Run, PullRequest.
}

// LogQuery is that of GET /runs/{run}/log.
type LogQuery struct {
	Attempt int   `query:"attempt"` // The number of the attempt; zero or absent: the last one.
	Offset  int64 `query:"offset"`  // Where to begin, in bytes.
	Follow  bool  `query:"follow"`  // Until the attempt ends; a run that has not begun is waited for.
}

// ForceQuery is that of DELETE /locks/{cluster}.
type ForceQuery struct {
	Force bool `query:"force"` // Also if its holder is alive; requires the role admin.
}

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

// Operations are all that the API does.
func Operations() []Operation { return append(reads(), changes()...) }

func reads() []Operation {
	return []Operation{
		{ID: "getVersion", Method: "GET", Path: "/version", Verb: access.Read, Summary: "The server and its version", Status: 200, Answer: of[Version]()},
		{ID: "getCaller", Method: "GET", Path: "/whoami", Verb: access.Read, Summary: "The owner of the token, and its rights", Status: 200, Answer: of[Caller]()},
		{ID: "listReasons", Method: "GET", Path: "/reasons", Verb: access.Read, Summary: "What reasons mean, by name", Query: of[PageQuery](), Status: 200, Answer: of[ReasonInfo](), List: true},
		{ID: "getDescription", Method: "GET", Path: "/openapi.json", Verb: access.Read, Summary: "This description", Status: 200, Answer: of[map[string]any]()},
		{ID: "listClusters", Method: "GET", Path: "/clusters", Verb: access.Read, Summary: "List clusters, by name", Query: of[ClustersQuery](), Status: 200, Answer: of[ClusterSummary](), List: true},
		{ID: "getOverview", Method: "GET", Path: "/overview", Verb: access.Read, Summary: "How many clusters there are by phase, project and so on, and which wait for a person", Query: of[OverviewQuery](), Status: 200, Answer: of[Overview]()},
		{ID: "getCluster", Method: "GET", Path: "/clusters/{name}", Verb: access.Read, Summary: "A cluster", Status: 200, Answer: of[Cluster]()},
		{ID: "listOutputs", Method: "GET", Path: "/clusters/{name}/outputs", Verb: access.Read, Summary: "Outputs of a cluster's last apply, by name", Query: of[PageQuery](), Status: 200, Answer: of[Output](), List: true},
		{ID: "listTransitions", Method: "GET", Path: "/clusters/{name}/history", Verb: access.Read, Summary: "How a cluster's phase and conditions changed, newest first", Query: of[PageQuery](), Status: 200, Answer: of[Transition](), List: true},
		{ID: "getFamily", Method: "GET", Path: "/clusters/{name}/family", Verb: access.Read, Summary: "What a cluster depends on, and what depends on it", Status: 200, Answer: of[Family]()},
		{ID: "getDrift", Method: "GET", Path: "/clusters/{name}/drift", Verb: access.Read, Summary: "What the last drift check of a cluster found", Status: 200, Answer: of[DriftReport]()},
		{ID: "listDrift", Method: "GET", Path: "/drift", Verb: access.Read, Summary: "List clusters that have drifted or whose check failed, by name", Query: of[DriftQuery](), Status: 200, Answer: of[DriftLine](), List: true},
		{ID: "listResources", Method: "GET", Path: "/resources", Verb: access.Read, Summary: "Search resources of clusters, by cluster and address", Query: of[ResourcesQuery](), Status: 200, Answer: of[Resource](), List: true},
		{ID: "listSuspensions", Method: "GET", Path: "/suspensions", Verb: access.Read, Summary: "List what is suspended: all, projects, then clusters", Query: of[SuspensionsQuery](), Status: 200, Answer: of[Suspension](), List: true},
		{ID: "listTemplates", Method: "GET", Path: "/templates", Verb: access.Read, Summary: "List templates, by name", Query: of[PageQuery](), Status: 200, Answer: of[Template](), List: true},
		{ID: "getTemplate", Method: "GET", Path: "/templates/{name}", Verb: access.Read, Summary: "A template, with its versions and users", Status: 200, Answer: of[Template]()},
		{ID: "getTemplateVersion", Method: "GET", Path: "/templates/{name}/versions/{version}", Verb: access.Read, Summary: "A version of a template: the schema of its variables, rules and providers", Status: 200, Answer: of[TemplateDetail]()},
		{ID: "listRuns", Method: "GET", Path: "/runs", Verb: access.Read, Summary: "List runs, newest first", Query: of[RunsQuery](), Status: 200, Answer: of[Run](), List: true},
		{ID: "listQueue", Method: "GET", Path: "/queue", Verb: access.Read, Summary: "List runs that wait for an agent, in the order in which they are handed out", Query: of[QueueQuery](), Status: 200, Answer: of[QueuedRun](), List: true},
		{ID: "getRun", Method: "GET", Path: "/runs/{run}", Verb: access.Read, Summary: "A run", Status: 200, Answer: of[Run]()},
		{ID: "getPlan", Method: "GET", Path: "/runs/{run}/plan", Verb: access.Read, Summary: "What a run would change", Status: 200, Answer: of[Plan]()},
		{ID: "listAttempts", Method: "GET", Path: "/runs/{run}/attempts", Verb: access.Read, Summary: "Attempts of a run, oldest first", Query: of[PageQuery](), Status: 200, Answer: of[Attempt](), List: true},
		{ID: "getLog", Method: "GET", Path: "/runs/{run}/log", Verb: access.Read, Summary: "The log of an attempt", Query: of[LogQuery](), Status: 200, Media: "text/plain"},
		{ID: "listPullRequests", Method: "GET", Path: "/pullrequests", Verb: access.Read, Summary: "List pull requests, highest number first", Query: of[PullRequestsQuery](), Status: 200, Answer: of[PullRequest](), List: true},
		{ID: "getPullRequest", Method: "GET", Path: "/pullrequests/get", Verb: access.Read, Summary: "A pull request, with Holdfast's comments and statuses", Query: of[PullRequestQuery](), Status: 200, Answer: of[PullRequestDetail]()},
		{ID: "listRunners", Method: "GET", Path: "/runners", Verb: access.Read, Summary: "List runners: the local one, then others by name", Query: of[PageQuery](), Status: 200, Answer: of[Runner](), List: true},
		{ID: "getRunner", Method: "GET", Path: "/runners/{runner}", Verb: access.Read, Summary: "A runner, with its rules, environments and agents", Status: 200, Answer: of[RunnerDetail]()},
		{ID: "listEnvironments", Method: "GET", Path: "/environments", Verb: access.Read, Summary: "List environments that have had runs, by project and name", Query: of[EnvironmentsQuery](), Status: 200, Answer: of[Environment](), List: true},
		{ID: "listAgents", Method: "GET", Path: "/agents", Verb: access.Read, Summary: "List agents, by ID", Query: of[PageQuery](), Status: 200, Answer: of[Agent](), List: true},
		{ID: "listReplicas", Method: "GET", Path: "/replicas", Verb: access.Read, Summary: "List the servers that use the database, and those that died within the last hour, by identity", Query: of[PageQuery](), Status: 200, Answer: of[Replica](), List: true},
		{ID: "streamEvents", Method: "GET", Path: "/events", Verb: access.Read, Summary: "Follow what changes: server-sent events, whose data is an Event", Query: of[EventsQuery](), Status: 200, Media: "text/event-stream"},
		{ID: "listAudit", Method: "GET", Path: "/audit", Verb: access.Read, Summary: "The audit trail, newest first", Query: of[AuditQuery](), Status: 200, Answer: of[AuditEntry](), List: true},
		{ID: "listDeliveries", Method: "GET", Path: "/deliveries", Verb: access.Trace, Summary: "Webhooks that were received and their results, newest first", Query: of[PageQuery](), Status: 200, Answer: of[Delivery](), List: true},
		{ID: "listTokens", Method: "GET", Path: "/tokens", Verb: access.Login, Summary: "List the caller's tokens, by ID", Query: of[TokensQuery](), Status: 200, Answer: of[Token](), List: true},
		{ID: "listSessions", Method: "GET", Path: "/sessions", Verb: access.Login, Summary: "List the caller's logins in browsers, by ID", Query: of[TokensQuery](), Status: 200, Answer: of[Session](), List: true},
		{ID: "getLock", Method: "GET", Path: "/locks/{cluster}", Verb: access.Read, Summary: "Who holds a cluster's lock", Status: 200, Answer: of[Lock]()},
		{ID: "getUnsavedState", Method: "GET", Path: "/states/{cluster}", Verb: access.Read, Summary: "The state of a cluster that could not be saved", Status: 200, Answer: of[UnsavedState]()},
		{ID: "getBackendLock", Method: "GET", Path: "/states/{cluster}/lock", Verb: access.Read, Summary: "The lock of a state's own backend that the newest run found", Status: 200, Answer: of[BackendLock]()},
	}
}

func changes() []Operation {
	return []Operation{
		{ID: "command", Method: "POST", Path: "/commands", Verb: access.Plan, Summary: "Run a command, like /holdfast in a comment, and wait for the outcome (202: it is pending)", Body: of[CommandRequest](), Status: 200, Answer: of[Command]()},
		{ID: "reconcile", Method: "POST", Path: "/reconcile", Verb: access.Reconcile, Summary: "Look at a repository, a cluster or everything again", Body: of[ReconcileRequest](), Status: 202, Answer: of[struct{}]()},
		{ID: "suspendCluster", Method: "POST", Path: "/clusters/{name}/suspend", Verb: access.Suspend, Summary: "Stop new runs of a cluster", Body: of[SuspendClusterRequest](), Status: 200, Answer: of[Cluster]()},
		{ID: "resumeCluster", Method: "POST", Path: "/clusters/{name}/resume", Verb: access.Suspend, Summary: "Allow runs of a cluster", Body: of[SuspendClusterRequest](), Status: 200, Answer: of[Cluster]()},
		{ID: "checkDrift", Method: "POST", Path: "/clusters/{name}/drift/check", Verb: access.Check, Summary: "Queue a drift check of a cluster", Status: 202, Answer: of[Run]()},
		{ID: "transfer", Method: "POST", Path: "/clusters/{name}/transfer", Verb: access.Transfer, Summary: "Move a cluster to another repository", Body: of[TransferRequest](), Status: 200, Answer: of[Cluster]()},
		{ID: "upgrade", Method: "POST", Path: "/upgrades", Verb: access.Propose, Summary: "Propose newer versions of templates by pull requests", Body: of[UpgradeRequest](), Status: 200, Answer: of[Upgrade](), List: true},
		{ID: "proposeCluster", Method: "POST", Path: "/proposals", Verb: access.Propose, Summary: "Propose a new cluster, or a change or the removal of one, by a pull request", Body: of[ClusterProposal](), Status: 200, Answer: of[ProposedCluster]()},
		{ID: "proposeRunner", Method: "POST", Path: "/runners", Verb: access.Propose, Summary: "Propose a change of a runner's document by a pull request", Body: of[RunnerProposal](), Status: 200, Answer: of[ProposedRunner]()},
		{ID: "refreshRunner", Method: "POST", Path: "/environments/refresh", Verb: access.Propose, Summary: "Pin an environment to the runner that the rules select now", Body: of[RefreshRequest](), Status: 200, Answer: of[Refresh]()},
		{ID: "suspend", Method: "POST", Path: "/suspend", Verb: access.Suspend, Summary: "Stop new runs of a project's clusters, or of all", Body: of[SuspendRequest](), Status: 200, Answer: of[Suspension]()},
		{ID: "resume", Method: "POST", Path: "/resume", Verb: access.Suspend, Summary: "Allow runs of a project's clusters, or of all", Body: of[SuspendRequest](), Status: 200, Answer: of[Suspension]()},
		{ID: "releaseLock", Method: "DELETE", Path: "/locks/{cluster}", Verb: access.Unlock, Summary: "Release the lock of a dead run; answers with who held it", Query: of[ForceQuery](), Status: 200, Answer: of[Lock]()},
		{ID: "getUnsavedStateFile", Method: "GET", Path: "/states/{cluster}/file", Verb: access.ReadState, Summary: "The file of a state that could not be saved, including its secrets", Status: 200, Answer: of[map[string]any]()},
		{ID: "pushState", Method: "POST", Path: "/states/{cluster}/push", Verb: access.MoveState, Summary: "Queue the push of a state that could not be saved, or of the one in the body", Body: of[map[string]any](), Status: 202, Answer: of[Run]()},
		{ID: "waiveState", Method: "POST", Path: "/states/{cluster}/waive", Verb: access.MoveState, Summary: "Give up a state that could not be saved", Body: of[WaiveRequest](), Status: 200, Answer: of[UnsavedState]()},
		{ID: "migrateState", Method: "POST", Path: "/states/{cluster}/migrate", Verb: access.MoveState, Summary: "Queue a run that moves a state to its new place, or show what it would do", Body: of[MigrateStateRequest](), Status: 200, Answer: of[StateMigration]()},
		{ID: "createToken", Method: "POST", Path: "/tokens", Verb: access.Login, Summary: "Make a token for a command line or a script", Body: of[TokenRequest](), Status: 201, Answer: of[NewToken]()},
		{ID: "deleteToken", Method: "DELETE", Path: "/tokens/{id}", Verb: access.Login, Summary: "Delete a token", Query: of[RevokeQuery](), Status: 200, Answer: of[struct{}]()},
		{ID: "endSession", Method: "DELETE", Path: "/sessions/{id}", Verb: access.Login, Summary: "End a login in a browser", Query: of[RevokeQuery](), Status: 200, Answer: of[struct{}]()},
		{ID: "loginOnce", Method: "POST", Path: "/sessions/once", Verb: access.Login, Summary: "Get a code that begins a session in a browser, once, for a token of the configuration", Status: 201, Answer: of[OnceLogin]()},
		{ID: "unlockBackend", Method: "POST", Path: "/states/{cluster}/unlock", Verb: access.Unlock, Summary: "Queue the release of a lock of a state's own backend", Body: of[UnlockRequest](), Status: 202, Answer: of[Run]()},
	}
}
