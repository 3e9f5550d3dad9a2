package config

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Config is holdfast.yaml. The doc tags are its documentation: docs/config.md
// is made from them. A default tag is what an absent key means.
type Config struct {
	DataDir      string       `yaml:"dataDir" default:".holdfast" doc:"Folder for everything that must persist: the database, plans, states, mirrors, the agent's workspaces. Relative to the folder of holdfast.yaml. If the server is not root, this folder, and files with keys and secrets, must not be below /usr, /opt or anything else that [engines see](security.md#a-run)."`
	Encryption   Encryption   `yaml:"encryption" doc:"Key for the encryption at rest of plans, states, logs, variables and sensitive outputs."`
	Datastore    Datastore    `yaml:"datastore" doc:"Where records and blobs are kept. Left out: SQLite and files, in <dataDir>/db. See [install](install.md#postgresql) and [object stores](stores.md)."`
	Server       Server       `yaml:"server" doc:"Listeners."`
	Forges       []Forge      `yaml:"forges" doc:"Code hosts. \"local\" always exists: plain Git repositories without a code host, whose branches are the pull requests."`
	Repositories []Repository `yaml:"repositories" doc:"Git repositories to watch."`
	Secrets      Secrets      `yaml:"secrets" doc:"The server's own secrets by name: documents of [runners](runners.md) refer to them with {secret: NAME}."`
	Credentials  []Credential `yaml:"credentials" doc:"The environment of the engine, by project, environment and phase. All matching entries are merged; later ones win. Only [proxies and certificates](install.md#proxies-and-certificates) are passed on from the server's own environment."`
	Runs         Runs         `yaml:"runs" doc:"Limits of runs."`
	Jobs         Jobs         `yaml:"jobs" doc:"Settings of the Jobs of all [Kubernetes runners](runners-kubernetes.md), and of the tasks of [ECS](runners-ecs.md)."`
	Review
	Upkeep
	Retention Retention `yaml:"retention" doc:"How much history is kept. Records that are still in use are always kept: runs that have not ended, the last apply of each cluster, runs of open pull requests."`
	Isolation string    `yaml:"isolation" default:"auto" doc:"How the engine, and every process that it starts, is isolated from the agent, from other runs and from the machine. auto: the strongest mode that works on this machine. slots, range, user-namespace, landlock or users: that mode or a stronger one, in this order; otherwise no run is started. none: no isolation is needed; code in a pull request can read and do what the agent can, and no pull request from a fork is planned. Agents elsewhere have the flag --isolation: an agent with a weaker mode than this key requires gets no runs; with auto, an agent without isolation gets none. See [security](security.md)."`
	Sandbox   Sandbox   `yaml:"sandbox" doc:"The parts of the server's machine that engines can use besides their workspace, the system's programs and libraries, the engine, its configuration, and files that the configuration names."`
	Engines   Engines   `yaml:"engines" doc:"How agents that serve starts find Terraform and OpenTofu. Agents elsewhere have flags for this: see [install](install.md#agents-on-other-machines)."`
	Agent     Agent     `yaml:"agent" doc:"The agents that serve starts: one for all runs, or, if the server is root, one for plans and one for applies, each with its own user."`
	Lock      Lock      `yaml:"lock" doc:"Mutual exclusion across replicas."`
	Telemetry Telemetry `yaml:"telemetry" doc:"Logs and traces. Metrics are always at /metrics of the API listener."`

	dir string // of the file, for relative paths
}

// Review is what judges plans, and who is notified of the results. Its keys are keys of holdfast.yaml.
type Review struct {
	Policies      Policies  `yaml:"policies" doc:"Policies that are evaluated for plans before they are applied: see [policies](policies.md). Clusters with policies always have the condition policy, whatever their documents say."`
	Cost          Cost      `yaml:"cost" doc:"Estimates of how plans change the monthly price: see [cost](cost.md)."`
	Gates         []Gate    `yaml:"gates" doc:"Conditions that applies have to meet, whatever the documents of the clusters say: documents can only ask for more. All entries that match a cluster hold."`
	Notifications []Channel `yaml:"notifications" doc:"Channels outside of code hosts, such as chat rooms, to which events of clusters are sent: see [notifications](notifications.md)."`
}

// Upkeep is what happens to clusters that nobody changes. Its keys are keys of holdfast.yaml.
type Upkeep struct {
	Adopt Adopt `yaml:"adopt" doc:"The first plans of clusters that were found in Git and never applied, for example with a fresh database. They have the lowest priority."`
	Drift Drift `yaml:"drift" doc:"Drift checks: whether the infrastructure still matches the last apply."`
}

// Datastore says where everything is kept that must persist.
type Datastore struct {
	URL      string `yaml:"url" doc:"A PostgreSQL database for the records, version 14 or later: postgres://USER@HOST:PORT/DATABASE, with the parameters of libpq, such as sslmode=verify-full and sslrootcert. Behind PgBouncer in transaction mode, add default_query_exec_mode=exec. One server can use it, or several [replicas](install.md#replicas). A database that accepts connections without a password is refused unless isolation is none, because code that engines execute could connect to it."`
	Password Secret `yaml:"password" doc:"The password of the user in the URL. It is read again for each new connection."`
	Blobs    Blobs  `yaml:"blobs" doc:"Where plan documents, states, bundles and everything else that is larger than 16 KiB is stored, encrypted: see [object stores](stores.md)."`
}

// Blobs is a bucket.
type Blobs struct {
	URL       string `yaml:"url" doc:"An existing bucket: s3://BUCKET?region=REGION (Amazon S3; with endpoint=https://HOST a compatible store, such as MinIO), gs://BUCKET (Google Cloud Storage) or azblob://CONTAINER?account=NAME (Azure Blob Storage). A prefix in the bucket can follow: /FOLDER. A bucket or prefix belongs to one installation; that of another installation is refused. Left out: files in <dataDir>/db/blobs."`
	AccessKey string `yaml:"accessKey" doc:"For s3:// the id of an access key, whose secret is secret."`
	Secret    Secret `yaml:"secret" doc:"For s3:// the secret of accessKey, for gs:// the JSON key of a service account, for azblob:// the key of the storage account. Read again every minute. Left out: the credentials in the server's environment, where the cloud's SDK looks for them."`
	CAFile    string `yaml:"caFile" doc:"Certificate authorities (PEM) to trust besides the system's, for a store with a private certificate."`
}

// Encryption says where the key is.
type Encryption struct {
	KeyFile     string   `yaml:"keyFile" doc:"File with 32 bytes, raw, hexadecimal or base64. Left out: <dataDir>/key, which is created at the first start."`
	OldKeyFiles []string `yaml:"oldKeyFiles" doc:"Former keys, which are used only to decrypt."`
}

// Server is the listeners.
type Server struct {
	Public Public        `yaml:"public" doc:"Webhooks, /healthz."`
	API    API           `yaml:"api" doc:"The API, the console, /metrics, /healthz and /readyz."`
	Access Access        `yaml:"access" doc:"Who may do what: see [access](access.md)."`
	Agents Agents        `yaml:"agents" doc:"Agents on other machines. The one on the server's machine uses a Unix socket."`
	Issuer Issuer        `yaml:"issuer" doc:"Tokens (OpenID Connect) by which runs get credentials of clouds and secret stores without a stored key: see [keyless](keyless.md)."`
	Grace  time.Duration `yaml:"grace" default:"5m" doc:"How long runs may continue after SIGTERM before their engines are interrupted."`
}

// Public is the listener for webhooks.
type Public struct {
	Address string `yaml:"address" default:"127.0.0.1:8080" doc:"host:port; empty switches the listener off."`
	TLS     TLS    `yaml:"tls" doc:"Without it: plain HTTP, for a loopback address or behind a proxy."`
}

// API is the listener for people and tools.
type API struct {
	Address string  `yaml:"address" default:"127.0.0.1:8081" doc:"host:port; empty switches the listener off."`
	URL     string  `yaml:"url" doc:"How people reach it, such as https://holdfast.example.com. If it is set, comments and statuses link to the [console](console.md)."`
	TLS     TLS     `yaml:"tls" doc:"Without it: plain HTTP, for a loopback address or behind a proxy."`
	Tokens  []Token `yaml:"tokens" doc:"Tokens for the API. If there are none, serve creates an admin token in <dataDir>/admin.token."`
}

// Token is a bearer token of the API.
type Token struct {
	Name     string   `yaml:"name" doc:"Shown in the audit trail."`
	Role     string   `yaml:"role" default:"viewer" doc:"viewer, operator, approver or admin: see [access](access.md)."`
	Approves bool     `yaml:"approves" default:"true" doc:"Whether a token with the role operator can also approve, as such tokens could before the role approver existed. If it can, the log has a warning."`
	Token    Secret   `yaml:"token" doc:"The token, at least 16 characters."`
	Projects []string `yaml:"projects" doc:"The projects whose clusters the token can see and command. Objects of other projects, and pull requests that affect their clusters, do not exist for it. A cluster that moves from another project, or that continues a cluster of another project under a new name, belongs to both until it is applied: only a token with both projects can command it and see its state. Requests for objects of all projects, such as the audit trail, agents, templates and plans of all clusters that use a changed template, are refused. Left out: all."`
}

// Agents is the listener for agents elsewhere.
type Agents struct {
	Address string       `yaml:"address" doc:"host:port; left out: no agents from elsewhere."`
	TLS     TLS          `yaml:"tls" doc:"Required unless the address is a loopback one."`
	URL     string       `yaml:"url" doc:"How agents and Jobs of [runners](runners.md) reach this listener, such as https://agents.holdfast.example.com. It is the audience of tokens that agents [sign](runners.md#keys). Required for runners that start Jobs or tasks, and for agents with keys."`
	CAFile  string       `yaml:"caFile" doc:"PEM: the certificate authority of this listener's certificate, for Jobs whose image does not trust it. It is given to them with their tickets."`
	Tokens  []AgentToken `yaml:"tokens" doc:"Credentials with which agents claim runs, and their limits. A claim beyond the limits is refused and recorded. Use different tokens for agents that plan and agents that apply, because code in a plan may get hold of its agent's token."`
}

// AgentToken is the credential of agents elsewhere.
type AgentToken struct {
	Name     string   `yaml:"name" doc:"Shown in the audit trail. The --id of an agent with this token must be the name, optionally followed by a slash and another name. If an id matches several tokens, it belongs to the one with the longest name: with tokens team and team/apply, team/apply/1 belongs to the latter."`
	Token    Secret   `yaml:"token" doc:"The token, at least 16 characters."`
	Kinds    []string `yaml:"kinds" doc:"The kinds of runs that can be claimed: plan, drift, apply, destroy."`
	Projects []string `yaml:"projects" doc:"The projects whose runs can be claimed. Left out: all."`
	Runner   string   `yaml:"runner" default:"local" doc:"The [runner](runners.md) to which agents with this token belong: they get the runs of environments that are pinned to it. local: they share the runs of the server's own agents."`
}

// TLS is a certificate.
type TLS struct {
	CertFile string `yaml:"certFile" doc:"PEM."`
	KeyFile  string `yaml:"keyFile" doc:"PEM."`
}

// Secret is a value that is elsewhere.
type Secret struct {
	File string `yaml:"file" doc:"Path of a file; a newline at its end is removed. Read again whenever the value is used."`
	Env  string `yaml:"env" doc:"Name of a variable in the server's environment."`
}

// Secrets are secrets by name.
type Secrets map[string]Secret

// Names are those of the secrets, sorted.
func (s Secrets) Names() []string { return slices.Sorted(maps.Keys(s)) }

// Forge is a code host.
type Forge struct {
	Name            string `yaml:"name" doc:"The name by which repositories refer to it."`
	Type            string `yaml:"type" default:"github" doc:"github."`
	URL             string `yaml:"url" doc:"The address of GitHub's pages or of its API: https://acme.ghe.com, or https://HOST of GitHub Enterprise Server. Left out: github.com. serve --check prints the addresses that are derived from it."`
	App             App    `yaml:"app" doc:"A GitHub App. Either this or a token."`
	Token           Secret `yaml:"token" doc:"A personal access token. Either this or an App."`
	WritesPerMinute int    `yaml:"writesPerMinute" default:"80" doc:"How many comments, statuses and other changes are sent in a minute: a quarter at once, the others at equal intervals. github.com takes 80. GitHub Enterprise Server has no limit, unless its administrators have set one: there 600 shows large pull requests sooner."`
}

// App is a GitHub App.
type App struct {
	ID             int64  `yaml:"id" doc:"The App's id."`
	InstallationID int64  `yaml:"installationID" doc:"Left out: looked up for each repository."`
	PrivateKeyFile string `yaml:"privateKeyFile" doc:"PEM, as downloaded from GitHub."`
}

// Repository is a Git repository.
type Repository struct {
	Name               string            `yaml:"name" doc:"Unique. On GitHub the full name, owner/repository, unless the key repository contains it."`
	Forge              string            `yaml:"forge" default:"local" doc:"Name of a code host in forges, or local."`
	Repository         string            `yaml:"repository" doc:"On GitHub: its full name, owner/repository. Left out: name. Required in each further entry of a repository with several tracked branches."`
	URL                string            `yaml:"url" doc:"https, ssh (user@host:path) or file URL, or a path. Left out for GitHub: derived from the full name."`
	Branch             string            `yaml:"branch" default:"main" doc:"The tracked branch. To track several branches, add an entry for each, with a different name and the same url (on GitHub the same repository). On GitHub the first entry sets the statuses holdfast/plan and holdfast/apply, the others holdfast/plan/BRANCH and holdfast/apply/BRANCH. Names of clusters are unique in the fleet, across branches too."`
	Clusters           []string          `yaml:"clusters" default:"[\"**/*.yaml\", \"**/*.yml\"]" doc:"Globs of files that can define clusters; ** crosses folders. The folders examples and tests next to a template.yaml are ignored."`
	Templates          map[string]string `yaml:"templates" doc:"Templates that this repository publishes by tags: name to folder."`
	Upgrades           Upgrades          `yaml:"upgrades" doc:"How newer versions of templates are proposed to its clusters."`
	Samples            int               `yaml:"samples" default:"10" doc:"How many clusters are planned to show the effect of a pull request that changes a published template: one for each group of clusters with the same change; /holdfast plan --all plans all. These plans execute the pull request's code with the plan credentials of these clusters, whatever repository they are in. 0: none."`
	SampleEnvironments []string          `yaml:"sampleEnvironments" doc:"Globs of the environments whose clusters can be planned for this, as a sample or by /holdfast plan --all. Left out: all. The author of a template change decides which clusters it affects: leave out environments whose plan credentials such a pull request must not use."`
	WebhookSecret      Secret            `yaml:"webhookSecret" doc:"Secret of this repository's webhook. Without it deliveries are refused, and polling finds changes."`
	Auth               Auth              `yaml:"auth" doc:"How Git reads it. Left out on GitHub: the App or token of its entry in forges."`
	Allow              []Allow           `yaml:"allow" doc:"The documents that the repository can define. Left out: any cluster, no runners and no rules. Otherwise each document must match an entry that lists its kind."`
	Forks              bool              `yaml:"forks" doc:"Plan pull requests from forks, too: a plan executes the code of the person who opened the pull request. Ignored with isolation: none, even if agents isolate engines."`
	Drafts             bool              `yaml:"drafts" doc:"Plan drafts, too."`
	Labels             bool              `yaml:"labels" doc:"Label open pull requests on GitHub by what their plans do: see [comments](comments.md#labels)."`
	Poll               time.Duration     `yaml:"poll" doc:"How often it is polled, ±20 %. Left out: 5m, and 1s with forge: local."`
}

// FullName is what the code host calls the repository: owner/repository. It is of
// no use with the local forge.
func (r Repository) FullName() string {
	if r.Repository != "" {
		return r.Repository
	}
	return r.Name
}

// SameAs reports whether two entries are one repository on one code host.
func (r Repository) SameAs(other Repository) bool {
	return r.Forge == other.Forge && r.Forge != "local" && strings.EqualFold(r.FullName(), other.FullName())
}

// Upgrades are the pull requests that propose newer versions of templates.
type Upgrades struct {
	GroupBy []string `yaml:"groupBy" doc:"Keys of metadata.labels: clusters with the same values are upgraded by one pull request. Left out: one for all clusters of a template."`
}

// Auth is a credential for Git.
type Auth struct {
	Username       string `yaml:"username" doc:"For https; left out with a password: x-access-token."`
	Password       Secret `yaml:"password" doc:"Password or token for https."`
	SSHKeyFile     string `yaml:"sshKeyFile" doc:"Private key for ssh."`
	SSHPassphrase  Secret `yaml:"sshPassphrase" doc:"Passphrase of the private key."`
	KnownHostsFile string `yaml:"knownHostsFile" doc:"Required for ssh: host keys that are trusted."`
}

// Allow is what documents under some paths may be.
type Allow struct {
	Kinds        []string `yaml:"kinds" default:"[\"Cluster\"]" doc:"Kinds of documents: Cluster, Runner, RunnerRule. Anyone who can merge a Runner or RunnerRule decides where applies are executed, and with which rights."`
	Paths        []string `yaml:"paths" default:"[\"**\"]" doc:"Globs of files. Files of runners and rules do not have to match the key clusters."`
	Projects     []string `yaml:"projects" default:"[\"*\"]" doc:"Globs of projects, of clusters and of rules. A rule for all projects requires a glob that matches everything."`
	Environments []string `yaml:"environments" default:"[\"*\"]" doc:"Globs of environments, of clusters and of rules."`
	States       []string `yaml:"states" default:"[\"**\"]" doc:"Clusters: globs of state locations: clusters/NAME for Holdfast's own backend, otherwise type:... as describe cluster shows it."`
	Runners      []string `yaml:"runners" default:"[\"*\"]" doc:"Runners and rules: globs of the runners that can be defined, or that rules can name."`
	Secrets      []string `yaml:"secrets" default:"[\"*\"]" doc:"Runners: globs of the entries of secrets that they can refer to. Anyone who can merge a Runner can make the server send these secrets to an address of their choice: if several repositories define runners, list only the secrets of this one."`
}

// Credential is a part of the engine's environment, and of where secret
// variables may come from.
type Credential struct {
	Project     string             `yaml:"project" default:"*" doc:"Glob of projects."`
	Environment string             `yaml:"environment" default:"*" doc:"Glob of environments."`
	Phase       string             `yaml:"phase" doc:"plan (also drift) or apply (also destroy). Left out: both."`
	Env         map[string]string  `yaml:"env" doc:"Variables that are not secrets."`
	Secrets     map[string]Secret  `yaml:"secrets" doc:"Variables that are secrets: masked wherever they might be printed. A secret variable of a template refers to one with {secret: {env: NAME}}."`
	SecretDirs  []string           `yaml:"secretDirs" doc:"Absolute folders on the agent's machine that can contain the files of secret variables: {secret: {file: PATH}}. All matching entries are combined."`
	Stores      map[string]Store   `yaml:"stores" doc:"Secret stores by name: {secret: {store: NAME, key: KEY}}."`
	Git         map[string]GitHost `yaml:"git" doc:"Git hosts that module sources are fetched from, by address, such as https://git.example.com. See [credentials](credentials.md#private-modules)."`

	AWS   AWS   `yaml:"aws" doc:"A role that the engine assumes with a token of its run instead of an access key. If several entries match, the last one is used; this is also true for gcp, azure and vault. See [keyless](keyless.md)."`
	GCP   GCP   `yaml:"gcp" doc:"A workload identity of Google Cloud instead of a service account's key."`
	Azure Azure `yaml:"azure" doc:"A federated credential of Azure instead of a client secret."`
	Vault Vault `yaml:"vault" doc:"A role of Vault's or OpenBao's auth method jwt: the agent logs in, and the engine gets VAULT_ADDR and VAULT_TOKEN."`
}

// GitHost is what a Git host is shown.
type GitHost struct {
	Username string `yaml:"username" doc:"Left out: x-access-token, which GitHub expects with tokens."`
	Password Secret `yaml:"password" doc:"Password or token; read access is enough."`
}

// Store is a command that prints a secret.
type Store struct {
	Command []string `yaml:"command" doc:"Program and arguments, such as [vault, kv, get, -field=value, \"{key}\"]. The agent executes it, without a shell, with the environment of the run; it has 30 s to print the value. {key} is replaced by the key. The author of a cluster's YAML chooses the key, so the command's credentials must not be able to read more than the project and environment may have."`
}

// Runs are the limits of runs.
type Runs struct {
	Max            int            `yaml:"max" default:"4" doc:"Concurrent runs in the fleet."`
	Timeout        time.Duration  `yaml:"timeout" default:"30m" doc:"After this time the engine of a run is interrupted."`
	Lease          time.Duration  `yaml:"lease" default:"30s" doc:"How long an agent can be silent before its run counts as lost."`
	Retries        int            `yaml:"retries" default:"5" doc:"How often a run that failed for a transient cause is retried."`
	LockTimeout    time.Duration  `yaml:"lockTimeout" default:"2m" doc:"How long a run waits for the lock of the state's own backend, counted from the first refusal. Each attempt waits 5 s in its slot; between attempts, with pauses that grow from retryDelay to a minute, the run takes no slot. After this time, or at once with 0s, the run fails. These attempts do not count as retries."`
	RetryDelay     time.Duration  `yaml:"retryDelay" default:"10s" doc:"Pause before the first retry; it doubles with each retry."`
	Break          time.Duration  `yaml:"break" default:"1m" doc:"How long no run of a provider is started after the provider failed or throttled three clusters. Each consecutive break is twice as long, up to 15 times this value."`
	Limits         Limits         `yaml:"limits" doc:"Limits of each start of an engine, including every process that it starts. A run that hits a limit fails, and its reason names the limit."`
	MaxPerProject  int            `yaml:"maxPerProject" default:"0" doc:"Concurrent runs of each project. 0: if max is at least 3 and there are several projects, max minus 1; the same for each repository."`
	MaxPerProvider map[string]int `yaml:"maxPerProvider" doc:"Concurrent runs by provider, as in documents of clusters, such as aws: 10. Other providers are limited only by max. Clusters with a custom root module have no provider."`
}

// Jobs are settings of the Jobs of all runners.
type Jobs struct {
	Image        string        `yaml:"image" doc:"The image of Jobs whose runner names none. Left out: holdfast:VERSION, with the version of this server."`
	StartTimeout time.Duration `yaml:"startTimeout" default:"10m" doc:"How long a Job can take to start (node, image, volumes) until its agent calls the server. After this time it is removed and the run is retried, because nothing had begun."`
	Grace        time.Duration `yaml:"grace" default:"10m" doc:"How long an agent has, when its Pod is stopped, to end its engine and to deliver state, log and result."`
	Flags        []string      `yaml:"flags" doc:"Additional flags of holdfast agent in Jobs, such as --engine-dir=/opt/engines."`
	Google       GoogleAPIs    `yaml:"google" doc:"Addresses of Google's APIs for [kubernetes-gke](runners-clouds.md#google-kubernetes-engine), if they are not the public ones, for example with Private Service Connect. For AWS set AWS_ENDPOINT_URL_STS, AWS_ENDPOINT_URL_EKS and AWS_ENDPOINT_URL_ECS in the server's environment."`
}

// GoogleAPIs are addresses of Google's APIs.
type GoogleAPIs struct {
	STS            string `yaml:"sts" doc:"Left out: https://sts.googleapis.com."`
	IAMCredentials string `yaml:"iamCredentials" doc:"Left out: https://iamcredentials.googleapis.com."`
	Container      string `yaml:"container" doc:"Left out: https://container.googleapis.com."`
}

// Limits bound what an engine uses.
type Limits struct {
	Memory    Size         `yaml:"memory" default:"4GiB" doc:"Such as 512MiB or 4GiB. 0: no limit. Without cgroups, the limit applies to each process."`
	Processes int          `yaml:"processes" default:"1024" doc:"Processes and threads. 0: no limit. Ignored in modes landlock and none where cgroups cannot be used."`
	CPU       float64      `yaml:"cpu" doc:"Processors, such as 1.5. Left out: no limit. Ignored where cgroups cannot be used."`
	Max       LimitBounds  `yaml:"max" doc:"Maximum for spec.limits of a cluster's document. Left out: the limit that the cluster has without it."`
	Overrides []LimitEntry `yaml:"overrides" doc:"Other limits for some clusters. All matching entries are merged; later ones win."`
}

// LimitEntry is limits for some clusters.
type LimitEntry struct {
	Project   string  `yaml:"project" default:"*" doc:"Glob of projects."`
	Cluster   string  `yaml:"cluster" default:"*" doc:"Glob of clusters."`
	Memory    Size    `yaml:"memory" doc:"Left out: as above."`
	Processes int     `yaml:"processes" doc:"Left out: as above."`
	CPU       float64 `yaml:"cpu" doc:"Left out: as above."`

	Max LimitBounds `yaml:"max" doc:"Maximum for spec.limits of these clusters' documents. Left out: as above."`
}

// LimitBounds are the most that documents may ask for.
type LimitBounds struct {
	Memory    Size    `yaml:"memory" doc:"Such as 16GiB."`
	Processes int     `yaml:"processes" doc:"Processes and threads."`
	CPU       float64 `yaml:"cpu" doc:"Processors."`
}

// Sandbox is what engines find of a machine.
type Sandbox struct {
	Paths SandboxPaths `yaml:"paths" doc:"Absolute paths of files and folders on the server's machine; engines see them at the same path. The users of engines must be able to read them. Agents elsewhere have the flags --sandbox-read and --sandbox-write instead."`
}

// SandboxPaths are what is on a machine and engines need.
type SandboxPaths struct {
	ReadOnly []string `yaml:"readOnly" doc:"Such as a file of credentials that a variable names, or a command that a provider starts outside of /usr, /bin, /lib and /opt."`
	Writable []string `yaml:"writable" doc:"Every run, including those of pull requests, can write there, and can read what other runs have written."`
}

// Adopt is how clusters are planned that Git has already.
type Adopt struct {
	MaxPerHour int `yaml:"maxPerHour" default:"0" doc:"How many of these plans are started per hour, at equal intervals. 0: no limit."`
}

// Drift is when and how much is checked for drift.
type Drift struct {
	Schedule  string `yaml:"schedule" doc:"For clusters whose document has no spec.drift.schedule: a cron expression such as 0 */6 * * *, in UTC unless CRON_TZ=Zone precedes it. Each cluster is checked at an offset that is derived from its name, so that checks are spread out. Left out: these clusters are not checked."`
	Max       int    `yaml:"max" doc:"Concurrent drift checks. Plans and applies always go first. Left out: half of runs.max."`
	MaxIssues int    `yaml:"maxIssues" default:"10" doc:"Maximum of open issues per repository, one for each drifted cluster. One more issue summarizes the rest; with 0 there is only the summary."`
}

// Retention is how much of the past is kept.
type Retention struct {
	Runs      int           `yaml:"runs" default:"100" doc:"How many of the newest runs of each cluster are kept for the tracked branch, and as many for pull requests, with their plans and logs. At least 50; 0 keeps all. Runs of clusters that no longer exist are removed once the last one is older than pullRequests."`
	DriftRuns int           `yaml:"driftRuns" default:"5" doc:"How many of the newest drift checks of each cluster are kept: this many with drift, and this many without; also this many attempts to push a state that could not be saved. At least 2; 0 keeps all."`
	Logs      time.Duration `yaml:"logs" doc:"How long logs are kept. Left out: as long as their runs."`
	Audit     time.Duration `yaml:"audit" default:"8760h" doc:"How long the audit trail is kept. 0s keeps all."`
	// PullRequests: zero keeps all.
	PullRequests time.Duration `yaml:"pullRequests" default:"4320h" doc:"How long pull requests are kept after they were closed or merged, with comments, statuses, answers and commands. A pull request is always kept while a cluster has not applied its merge. The key also says how long older state versions in Holdfast's own backend are kept after the last run of a cluster that no longer exists; the newest version is always kept. At least 720h; 0s keeps all."`
}

// Engines says how Terraform and OpenTofu are found.
type Engines struct {
	Dirs             []string      `yaml:"dirs" doc:"Folders with installed engines, searched before PATH."`
	Download         bool          `yaml:"download" default:"true" doc:"Download a version that is not installed; downloads are verified."`
	TerraformMirror  string        `yaml:"terraformMirror" doc:"Base URL instead of the vendor's."`
	TofuMirror       string        `yaml:"tofuMirror" doc:"Base URL instead of the project's."`
	TerragruntMirror string        `yaml:"terragruntMirror" doc:"Base URL of Terragrunt instead of the project's."`
	Validation       string        `yaml:"validation" default:"signature" doc:"signature or sha: how downloads are verified."`
	CLIConfigFile    string        `yaml:"cliConfigFile" doc:"The engines' own configuration file, for example for provider mirrors."`
	Grace            time.Duration `yaml:"grace" default:"60s" doc:"Time between interrupting an engine and killing it."`
}

// Agent is the local agent.
type Agent struct {
	User      string    `yaml:"user" doc:"User of the agent for plans if the server is root. Left out: holdfast-agent if this user exists, otherwise nobody. If it is root, a single agent, as root, executes plans and applies. Engines run as users of slotUsers; with isolation none they run as the user of their agent."`
	ApplyUser string    `yaml:"applyUser" doc:"User of the agent for applies if the server is root. It must differ from the user for plans, so that the code of a pull request cannot reach the files and credentials of an apply. Left out: holdfast-apply if this user exists, otherwise the uid 65533."`
	Slots     int       `yaml:"slots" default:"4" doc:"Runs that each agent executes at once."`
	SlotUsers SlotUsers `yaml:"slotUsers" doc:"Users of engines if the server is root: concurrent runs have different users. The numbers need no accounts, and nothing else may use them: an agent does not start while another agent on the machine uses one of them ([install](install.md#systemd))."`
	Off       bool      `yaml:"off" doc:"Start no agents, because they run elsewhere."`
}

// DefaultApplyUID is who applies if there is no user for it, and its group: unassigned on
// common systems, and not nobody.
const DefaultApplyUID = 65533

// SlotUsers are the users that engines run as.
type SlotUsers struct {
	Plan  int `yaml:"plan" default:"60600" doc:"First uid and gid of plans; as many are used as there are slots."`
	Apply int `yaml:"apply" default:"60900" doc:"First uid and gid of applies; as many are used as there are slots."`
}

// Lock is mutual exclusion.
type Lock struct {
	Type  string `yaml:"type" default:"memory" doc:"memory (a single server) or redis."`
	Redis Redis  `yaml:"redis" doc:"How Redis is reached: url, sentinel or cluster."`
}

// Telemetry is logs and traces.
type Telemetry struct {
	LogLevel  string `yaml:"logLevel" default:"info" doc:"debug, info, warn or error."`
	LogFormat string `yaml:"logFormat" default:"text" doc:"text or json."`
	Traces    string `yaml:"traces" doc:"OTLP endpoint over HTTP, such as http://127.0.0.1:4318. Left out: no traces."`
}
