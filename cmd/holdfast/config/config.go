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
	DataDir      string       `yaml:"dataDir" default:".holdfast" doc:"Folder for everything that must persist: the database, plans, states, mirrors, the agent's workspaces. Relative to the folder of holdfast.yaml. If the server is not root, it must not be below /usr, /opt or anything else that [engines see](security.md#a-run), and neither must files with keys and secrets."`
	Encryption   Encryption   `yaml:"encryption" doc:"Key for what is encrypted at rest: plans, states, logs, variables, sensitive outputs."`
	Datastore    Datastore    `yaml:"datastore" doc:"Where records and blobs are kept. Left out: SQLite and files, in <dataDir>/db. See [install](install.md#postgresql) and [object stores](stores.md)."`
	Server       Server       `yaml:"server" doc:"Listeners."`
	Forges       []Forge      `yaml:"forges" doc:"Code hosts. \"local\" is always there: plain Git repositories without a code host, whose branches are the pull requests."`
	Repositories []Repository `yaml:"repositories" doc:"Git repositories that are watched."`
	Secrets      Secrets      `yaml:"secrets" doc:"The server's own secrets by name: documents of [runners](runners.md) refer to them with {secret: NAME}."`
	Credentials  []Credential `yaml:"credentials" doc:"The environment of the engine, by project, environment and phase. All entries that match are merged, later ones win. Of the server's own environment only [proxies and certificates](install.md#proxies-and-certificates) are passed on."`
	Runs         Runs         `yaml:"runs" doc:"Limits of runs."`
	Jobs         Jobs         `yaml:"jobs" doc:"Settings of the Jobs of all [Kubernetes runners](runners-kubernetes.md), and of the tasks of [ECS](runners-ecs.md)."`
	Policies     Policies     `yaml:"policies" doc:"Policies that plans are held against before they are applied: see [policies](policies.md). Clusters that have any need the condition policy, whatever their documents say."`
	Adopt        Adopt        `yaml:"adopt" doc:"The first plans of clusters that are found in Git and were never applied, such as with a fresh database. Everything else goes first."`
	Drift        Drift        `yaml:"drift" doc:"Drift checks: whether the infrastructure still matches the last apply."`
	Retention    Retention    `yaml:"retention" doc:"How much history is kept. Records that are still in use are always kept: runs that have not ended, the last apply of each cluster, runs of open pull requests."`
	Isolation    string       `yaml:"isolation" default:"auto" doc:"How the engine, and every process that it starts, is isolated from the agent, from other runs and from the machine. auto: the strongest mode that works on this machine. slots, range, user-namespace, landlock or users: that mode or a stronger one, in this order, else no run is started. none: no isolation is needed; code in a pull request can read and do what the agent can, and no pull request from a fork is planned. Agents elsewhere have the flag --isolation: one with a weaker mode than this key demands gets no runs, and with auto that is one without any. See [security](security.md)."`
	Sandbox      Sandbox      `yaml:"sandbox" doc:"The parts of the server's machine that engines can use besides their workspace, the system's programs and libraries, the engine, and its configuration with what that names."`
	Engines      Engines      `yaml:"engines" doc:"How the agents that serve starts find Terraform and OpenTofu. Agents elsewhere have flags instead: see [install](install.md#agents-on-other-machines)."`
	Agent        Agent        `yaml:"agent" doc:"The agents that serve starts: one for all runs, or, as root, one for plans and one for applies, each as a user of its own."`
	Lock         Lock         `yaml:"lock" doc:"Mutual exclusion across replicas."`
	Telemetry    Telemetry    `yaml:"telemetry" doc:"Logs and traces. Metrics are always at /metrics of the API listener."`

	dir string // of the file, for relative paths
}

// Datastore says where everything is kept that must persist.
type Datastore struct {
	URL      string `yaml:"url" doc:"A PostgreSQL database for the records, version 14 or later: postgres://USER@HOST:PORT/DATABASE, with the parameters of libpq, such as sslmode=verify-full and sslrootcert. Behind PgBouncer in transaction mode, add default_query_exec_mode=exec. One server may use it, or several [replicas](install.md#replicas). A database that accepts connections without a password is refused unless isolation is none, as code that engines execute can connect to it."`
	Password Secret `yaml:"password" doc:"Of the user in the URL. It is read again for each new connection."`
	Blobs    Blobs  `yaml:"blobs" doc:"Where plan documents, states, bundles and whatever else is larger than 16 KiB is kept, encrypted: see [object stores](stores.md)."`
}

// Blobs is a bucket.
type Blobs struct {
	URL       string `yaml:"url" doc:"A bucket, which is not made: s3://BUCKET?region=REGION (Amazon S3; with endpoint=https://HOST another store that speaks its protocol, such as MinIO), gs://BUCKET (Google Cloud Storage) or azblob://CONTAINER?account=NAME (Azure Blob Storage). Each may end with a folder, /FOLDER. A bucket, or folder of one, belongs to one installation; another one's is refused. Left out: files in <dataDir>/db/blobs."`
	AccessKey string `yaml:"accessKey" doc:"For s3:// the id of an access key, whose secret is secret."`
	Secret    Secret `yaml:"secret" doc:"For s3:// the secret of accessKey, for gs:// the JSON key of a service account, for azblob:// the key of the storage account. Read again every minute. Left out: what the environment of the server has, as the tools of the cloud look for it."`
	CAFile    string `yaml:"caFile" doc:"Certificate authorities (PEM) to trust besides the system's, for a store with a certificate of its own."`
}

// Encryption says where the key is.
type Encryption struct {
	KeyFile     string   `yaml:"keyFile" doc:"File with 32 bytes, raw, hexadecimal or base64. Made on the first start if this key is left out: <dataDir>/key."`
	OldKeyFiles []string `yaml:"oldKeyFiles" doc:"Former keys, which still decrypt."`
}

// Server is the listeners.
type Server struct {
	Public Public        `yaml:"public" doc:"Webhooks, /healthz."`
	API    API           `yaml:"api" doc:"The API of the CLI, /metrics, /healthz and /readyz."`
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
	URL     string  `yaml:"url" doc:"How people reach it, such as https://holdfast.example.com. Comments and statuses then link to pages of runs and pull requests there, in plain text; a browser asks for a token as the password."`
	TLS     TLS     `yaml:"tls" doc:"Without it: plain HTTP, for a loopback address or behind a proxy."`
	Tokens  []Token `yaml:"tokens" doc:"Tokens for the API. If there are none, serve creates an admin token in <dataDir>/admin.token."`
}

// Token is a bearer token of the API.
type Token struct {
	Name     string   `yaml:"name" doc:"Shown in the audit trail."`
	Role     string   `yaml:"role" default:"viewer" doc:"viewer, operator, approver or admin: [access](access.md) says what each may do."`
	Approves bool     `yaml:"approves" default:"true" doc:"Whether a token with the role operator may approve, too, as such tokens could before there was the role approver. The log says once that it may."`
	Token    Secret   `yaml:"token" doc:"The token, at least 16 characters."`
	Projects []string `yaml:"projects" doc:"The projects whose clusters may be seen and commanded. Its holder does not see objects of other projects, nor pull requests that affect their clusters; commands for these are answered as if they did not exist. A cluster that moves from another project, or that continues one of another under a new name, belongs to both until it is applied: only a token with both can command it and see what its state contains. Requests for objects of all projects, such as the audit trail, agents, templates and plans of all clusters that a template's change would change, are refused. Left out: all."`
}

// Agents is the listener for agents elsewhere.
type Agents struct {
	Address string       `yaml:"address" doc:"host:port; left out: no agents from elsewhere."`
	TLS     TLS          `yaml:"tls" doc:"Required unless the address is a loopback one."`
	URL     string       `yaml:"url" doc:"How agents and Jobs of [runners](runners.md) reach this listener, such as https://agents.holdfast.example.com. Tokens that agents [sign](runners.md#keys) have to name it. Left out: runners that start Jobs, and agents with keys, cannot be used."`
	CAFile  string       `yaml:"caFile" doc:"PEM: the certificate authority of this listener's certificate, for Jobs whose image does not trust it. It is given to them with their tickets."`
	Tokens  []AgentToken `yaml:"tokens" doc:"Credentials with which agents claim runs, and what each may claim. A claim for more is refused and put on record. Give agents that plan another token than those that apply: code in a plan may get hold of its agent's token."`
}

// AgentToken is the credential of agents elsewhere.
type AgentToken struct {
	Name     string   `yaml:"name" doc:"Shown in the audit trail. The --id of an agent with this token must be the name, or begin with it and a slash. An id that is the name of another token, or below one that is longer, belongs to that token alone: with tokens team and team/apply, team/apply/1 belongs to the latter."`
	Token    Secret   `yaml:"token" doc:"The token, at least 16 characters."`
	Kinds    []string `yaml:"kinds" doc:"The kinds of runs that may be claimed: plan, drift, apply, destroy."`
	Projects []string `yaml:"projects" doc:"The projects of whose clusters runs may be claimed. Left out: all."`
	Runner   string   `yaml:"runner" default:"local" doc:"The [runner](runners.md) to which agents with this token belong: they get the runs of environments that are pinned to it. local: they share the runs of the server's own agents."`
}

// TLS is a certificate.
type TLS struct {
	CertFile string `yaml:"certFile" doc:"PEM."`
	KeyFile  string `yaml:"keyFile" doc:"PEM."`
}

// Secret is a value that is elsewhere.
type Secret struct {
	File string `yaml:"file" doc:"Path of a file; a newline at its end is left out. Read again whenever the value is used."`
	Env  string `yaml:"env" doc:"Name of a variable in the server's environment."`
}

// Secrets are secrets by name.
type Secrets map[string]Secret

// Names are those of the secrets, sorted.
func (s Secrets) Names() []string { return slices.Sorted(maps.Keys(s)) }

// Forge is a code host.
type Forge struct {
	Name  string `yaml:"name" doc:"The name by which repositories refer to it."`
	Type  string `yaml:"type" default:"github" doc:"github."`
	URL   string `yaml:"url" doc:"The address of GitHub's pages or of its API: https://acme.ghe.com, or https://HOST of GitHub Enterprise Server. Left out: github.com. serve --check prints the addresses that follow from it."`
	App   App    `yaml:"app" doc:"A GitHub App. Either this or a token."`
	Token Secret `yaml:"token" doc:"A personal access token. Either this or an App."`
}

// App is a GitHub App.
type App struct {
	ID             int64  `yaml:"id" doc:"The App's id."`
	InstallationID int64  `yaml:"installationID" doc:"Left out: looked up for each repository."`
	PrivateKeyFile string `yaml:"privateKeyFile" doc:"PEM, as GitHub hands it out."`
}

// Repository is a Git repository.
type Repository struct {
	Name               string            `yaml:"name" doc:"Unique. On GitHub its full name, owner/repository, unless repository has that."`
	Forge              string            `yaml:"forge" default:"local" doc:"Name of a code host in forges, or local."`
	Repository         string            `yaml:"repository" doc:"On GitHub: its full name, owner/repository. Left out: name. Required in each further entry of a repository with several tracked branches."`
	URL                string            `yaml:"url" doc:"https, ssh (user@host:path) or file URL, or a path. Left out for GitHub: derived from the full name."`
	Branch             string            `yaml:"branch" default:"main" doc:"The tracked branch. Several branches can be tracked, with an entry for each: a name of its own and the same url, or on GitHub the same repository. On GitHub the first entry sets the statuses holdfast/plan and holdfast/apply, any other one holdfast/plan/BRANCH and holdfast/apply/BRANCH. Names of clusters are unique in the fleet, across branches too."`
	Clusters           []string          `yaml:"clusters" default:"[\"**/*.yaml\", \"**/*.yml\"]" doc:"Globs of files that may define clusters; ** crosses folders. The folders examples and tests next to a template.yaml define none."`
	Templates          map[string]string `yaml:"templates" doc:"Templates that are published by tags: name to folder."`
	Upgrades           Upgrades          `yaml:"upgrades" doc:"How newer versions of templates are proposed to its clusters."`
	Samples            int               `yaml:"samples" default:"10" doc:"Clusters that are planned to show what a pull request's change of a published template would do, one for each group of clusters with the same change; /holdfast plan --all plans all. Their plans execute the pull request's code with the plan credentials of these clusters, whatever repository they are in. 0: none."`
	SampleEnvironments []string          `yaml:"sampleEnvironments" doc:"Globs of the environments whose clusters may be planned for that, as a sample or by /holdfast plan --all. Left out: all. Whoever changes a template decides which clusters it reaches: leave out the environments whose plan credentials a template's pull request must not use."`
	WebhookSecret      Secret            `yaml:"webhookSecret" doc:"Secret of this repository's webhook. Without it deliveries are refused, and polling finds changes."`
	Auth               Auth              `yaml:"auth" doc:"How Git reads it. Left out on GitHub: the App or token of its entry in forges."`
	Allow              []Allow           `yaml:"allow" doc:"The documents that it may define. Left out: any cluster, no runner and no rule. Otherwise each document must match one entry that lists its kind."`
	Forks              bool              `yaml:"forks" doc:"Plan pull requests from forks too: a plan executes the code of whoever opened it. Ignored with isolation: none, also where agents do isolate engines."`
	Drafts             bool              `yaml:"drafts" doc:"Plan drafts too."`
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
	Kinds        []string `yaml:"kinds" default:"[\"Cluster\"]" doc:"Kinds of documents: Cluster, Runner, RunnerRule. Whoever may merge a Runner or RunnerRule decides where applies are executed, with which rights."`
	Paths        []string `yaml:"paths" default:"[\"**\"]" doc:"Globs of files. Those of runners and rules need not be among clusters."`
	Projects     []string `yaml:"projects" default:"[\"*\"]" doc:"Globs of projects: of clusters, and that rules may name. A rule for all projects needs one that matches everything."`
	Environments []string `yaml:"environments" default:"[\"*\"]" doc:"Globs of environments, as projects."`
	States       []string `yaml:"states" default:"[\"**\"]" doc:"Clusters: globs of state locations: clusters/NAME for Holdfast's own backend, else type:... as describe cluster shows it."`
	Runners      []string `yaml:"runners" default:"[\"*\"]" doc:"Runners and rules: globs of the runners that may be defined, or that rules may name."`
	Secrets      []string `yaml:"secrets" default:"[\"*\"]" doc:"Runners: globs of the secrets (below secrets) that they may refer to. Whoever may merge a Runner has the server send these to an address of their choice: name those that are theirs if others define runners, too."`
}

// Credential is a part of the engine's environment, and of where secret
// variables may come from.
type Credential struct {
	Project     string             `yaml:"project" default:"*" doc:"Glob of projects."`
	Environment string             `yaml:"environment" default:"*" doc:"Glob of environments."`
	Phase       string             `yaml:"phase" doc:"plan (also drift) or apply (also destroy). Left out: both."`
	Env         map[string]string  `yaml:"env" doc:"Variables that are not secrets."`
	Secrets     map[string]Secret  `yaml:"secrets" doc:"Variables that are secrets: masked wherever they might be printed. A template's secret variable names one with {secret: {env: NAME}}."`
	SecretDirs  []string           `yaml:"secretDirs" doc:"Folders on the agent's machine, absolute, in which the files of secret variables may be: {secret: {file: PATH}}. All entries that match add up."`
	Stores      map[string]Store   `yaml:"stores" doc:"Secret stores by name: {secret: {store: NAME, key: KEY}}."`
	Git         map[string]GitHost `yaml:"git" doc:"Git hosts that module sources are fetched from, by address, such as https://git.example.com. See [credentials](credentials.md#private-modules)."`

	AWS   AWS   `yaml:"aws" doc:"A role that the engine assumes with a token of its run instead of an access key. Of several entries that match, the last one counts; the same holds for gcp, azure and vault. See [keyless](keyless.md)."`
	GCP   GCP   `yaml:"gcp" doc:"A workload identity of Google Cloud instead of a service account's key."`
	Azure Azure `yaml:"azure" doc:"A federated credential of Azure instead of a client secret."`
	Vault Vault `yaml:"vault" doc:"A role of Vault's or OpenBao's auth method jwt: the agent logs in, and the engine gets VAULT_ADDR and VAULT_TOKEN."`
}

// GitHost is what a Git host is shown.
type GitHost struct {
	Username string `yaml:"username" doc:"Left out: x-access-token, which GitHub expects with tokens."`
	Password Secret `yaml:"password" doc:"Password or token, which only has to read."`
}

// Store is a command that prints a secret.
type Store struct {
	Command []string `yaml:"command" doc:"Program and arguments, such as [vault, kv, get, -field=value, \"{key}\"]. The agent executes it, without a shell, with the environment of the run; it has 30 s to print the value. {key} is replaced by the key: whoever writes a cluster's YAML chooses the key, so the command's credentials must not read more than the project and environment may have."`
}

// Runs are the limits of runs.
type Runs struct {
	Max            int            `yaml:"max" default:"4" doc:"Runs at once in the fleet."`
	Timeout        time.Duration  `yaml:"timeout" default:"30m" doc:"After this time the engine of a run is interrupted."`
	Lease          time.Duration  `yaml:"lease" default:"30s" doc:"How long an agent may be silent."`
	Retries        int            `yaml:"retries" default:"5" doc:"How often a run that failed for a transient cause is retried."`
	LockTimeout    time.Duration  `yaml:"lockTimeout" default:"2m" doc:"How long a run waits for the lock of the state's own backend, from the first refusal on. An engine waits for 5 s of it, in its slot; between attempts, with pauses that grow from retryDelay to a minute, the run takes no slot. Then, and with 0s at once, the run fails. No refusal uses one of retries."`
	RetryDelay     time.Duration  `yaml:"retryDelay" default:"10s" doc:"Before the first retry; it doubles."`
	Break          time.Duration  `yaml:"break" default:"1m" doc:"How long no run of a provider is started after the provider throttled three clusters or failed. Each break that follows is twice as long, up to 15 times this value."`
	Limits         Limits         `yaml:"limits" doc:"The limits of each start of an engine, including every process that it starts. A run that hits a limit fails with a reason that says so."`
	MaxPerProject  int            `yaml:"maxPerProject" default:"0" doc:"Runs at once of each project. 0: with max of at least 3, all but one of max if there are several projects, and the same for each repository."`
	MaxPerProvider map[string]int `yaml:"maxPerProvider" doc:"Runs at once by provider, as clusters name it, such as aws: 10. One that is not named is limited by max alone. Clusters with a module of their own have no provider."`
}

// Jobs are settings of the Jobs of all runners.
type Jobs struct {
	Image        string        `yaml:"image" doc:"The image of Jobs whose runner names none. Left out: holdfast:VERSION, with the version of this server."`
	StartTimeout time.Duration `yaml:"startTimeout" default:"10m" doc:"How long a Job may take until its agent has called the server: its node, its image, its volumes. Then it is removed, and the run is retried, as nothing of it had begun."`
	Grace        time.Duration `yaml:"grace" default:"10m" doc:"How long an agent has, once its Pod is to end, until its engine has ended and the server has all that came of it."`
	Flags        []string      `yaml:"flags" doc:"Further flags of holdfast agent in Jobs, such as --engine-dir=/opt/engines."`
	Google       GoogleAPIs    `yaml:"google" doc:"Where Google's APIs are that [kubernetes-gke](runners-clouds.md#google-kubernetes-engine) needs, if that is not where everybody finds them, such as Private Service Connect. For AWS set AWS_ENDPOINT_URL_STS, AWS_ENDPOINT_URL_EKS and AWS_ENDPOINT_URL_ECS in the server's environment."`
}

// GoogleAPIs are addresses of Google's APIs.
type GoogleAPIs struct {
	STS            string `yaml:"sts" doc:"Left out: https://sts.googleapis.com."`
	IAMCredentials string `yaml:"iamCredentials" doc:"Left out: https://iamcredentials.googleapis.com."`
	Container      string `yaml:"container" doc:"Left out: https://container.googleapis.com."`
}

// Limits bound what an engine uses.
type Limits struct {
	Memory    Size         `yaml:"memory" default:"4GiB" doc:"Such as 512MiB or 4GiB. 0: no limit. Where cgroups cannot be used the limit is that of each process."`
	Processes int          `yaml:"processes" default:"1024" doc:"Processes and threads. 0: no limit. Ignored in modes landlock and none where cgroups cannot be used."`
	CPU       float64      `yaml:"cpu" doc:"Processors, such as 1.5. Left out: no limit. Ignored where cgroups cannot be used."`
	Max       LimitBounds  `yaml:"max" doc:"The most that spec.limits of a cluster's document may ask for. Left out: no more than the limit that the cluster has without it."`
	Overrides []LimitEntry `yaml:"overrides" doc:"Other limits for some clusters. All entries that match count, later ones win."`
}

// LimitEntry is limits for some clusters.
type LimitEntry struct {
	Project   string  `yaml:"project" default:"*" doc:"Glob of projects."`
	Cluster   string  `yaml:"cluster" default:"*" doc:"Glob of clusters."`
	Memory    Size    `yaml:"memory" doc:"Left out: as above."`
	Processes int     `yaml:"processes" doc:"Left out: as above."`
	CPU       float64 `yaml:"cpu" doc:"Left out: as above."`

	Max LimitBounds `yaml:"max" doc:"The most that these clusters' documents may ask for. Left out: as above."`
}

// LimitBounds are the most that documents may ask for.
type LimitBounds struct {
	Memory    Size    `yaml:"memory" doc:"Such as 16GiB."`
	Processes int     `yaml:"processes" doc:"Processes and threads."`
	CPU       float64 `yaml:"cpu" doc:"Processors."`
}

// Sandbox is what engines find of a machine.
type Sandbox struct {
	Paths SandboxPaths `yaml:"paths" doc:"Absolute paths on the server's machine: files and folders, found at the same place. The users that engines run as must be able to read them. Agents elsewhere have the flags --sandbox-read and --sandbox-write instead."`
}

// SandboxPaths are what is on a machine and engines need.
type SandboxPaths struct {
	ReadOnly []string `yaml:"readOnly" doc:"Such as a file of credentials that a variable names, or a command that a provider starts outside of /usr, /bin, /lib and /opt."`
	Writable []string `yaml:"writable" doc:"Every run can write there, including those of pull requests, and read what others have written."`
}

// Adopt is how clusters are planned that Git has already.
type Adopt struct {
	MaxPerHour int `yaml:"maxPerHour" default:"0" doc:"How many of these plans are started in an hour, at equal intervals. 0: no limit."`
}

// Drift is when and how much is checked for drift.
type Drift struct {
	Schedule  string `yaml:"schedule" doc:"For clusters whose document has no spec.drift.schedule: a cron expression such as 0 */6 * * *, in UTC unless CRON_TZ=Zone precedes it. Each cluster is checked at an offset that follows from its name, so that checks are spread out. Left out: these clusters are not checked."`
	Max       int    `yaml:"max" doc:"Drift checks at once. Plans and applies always go first. Left out: half of runs.max."`
	MaxIssues int    `yaml:"maxIssues" default:"10" doc:"Open issues about single clusters in a repository. One more issue summarizes the rest; with 0 there is only that one."`
}

// Retention is how much of the past is kept.
type Retention struct {
	Runs      int           `yaml:"runs" default:"100" doc:"Newest runs of each cluster's tracked branch, and as many plans of its pull requests, with their plans and logs. At least 50; 0 keeps all. Those of clusters that no longer exist are removed once the last one is older than pullRequests says."`
	DriftRuns int           `yaml:"driftRuns" default:"5" doc:"Newest drift checks of each cluster: this many with drift, and this many without; and this many attempts to save a state that could not be saved. At least 2; 0 keeps all."`
	Logs      time.Duration `yaml:"logs" doc:"How long logs are kept. Left out: as long as their runs."`
	Audit     time.Duration `yaml:"audit" default:"8760h" doc:"How long the audit trail is kept. 0s keeps all."`
	// PullRequests: zero keeps all.
	PullRequests time.Duration `yaml:"pullRequests" default:"4320h" doc:"How long pull requests are kept after they were closed or merged, with comments, statuses, answers and commands. One whose merge a cluster has not applied yet is always kept. Also how long, after their last run, the older versions of states in Holdfast's own backend are kept of clusters that no longer exist; the newest version is always kept. At least 720h; 0s keeps all."`
}

// Engines says how Terraform and OpenTofu are found.
type Engines struct {
	Dirs            []string      `yaml:"dirs" doc:"Folders with installed engines, searched before PATH."`
	Download        bool          `yaml:"download" default:"true" doc:"Download a version that is not installed; downloads are verified."`
	TerraformMirror string        `yaml:"terraformMirror" doc:"Base URL instead of the vendor's."`
	TofuMirror      string        `yaml:"tofuMirror" doc:"Base URL instead of the project's."`
	Validation      string        `yaml:"validation" default:"signature" doc:"signature or sha: how downloads are verified."`
	CLIConfigFile   string        `yaml:"cliConfigFile" doc:"The engines' own configuration file, for provider mirrors and the like."`
	Grace           time.Duration `yaml:"grace" default:"60s" doc:"Time between interrupting an engine and killing it."`
}

// Agent is the local agent.
type Agent struct {
	User      string    `yaml:"user" doc:"User of the agent for plans when the server is root. Left out: holdfast-agent if there is such a user, else nobody. With root one agent, which is root, executes plans and applies. Engines run as users of slotUsers; with isolation none they run as the user of their agent."`
	ApplyUser string    `yaml:"applyUser" doc:"User of the agent for applies when the server is root: another one than that for plans, so that the code of a pull request that is planned cannot reach what an apply holds. Left out: holdfast-apply if there is such a user, else the uid 65533."`
	Slots     int       `yaml:"slots" default:"4" doc:"Runs that each agent executes at once."`
	SlotUsers SlotUsers `yaml:"slotUsers" doc:"Users that engines run as when the server is root: each run at once has its own. The numbers need no accounts, and nothing else may use them: an agent does not start while another agent on the machine uses one of them ([install](install.md#systemd))."`
	Off       bool      `yaml:"off" doc:"Start no agents: they run elsewhere."`
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
	Redis Redis  `yaml:"redis" doc:"Where Redis is: url, sentinel or cluster."`
}

// Telemetry is logs and traces.
type Telemetry struct {
	LogLevel  string `yaml:"logLevel" default:"info" doc:"debug, info, warn or error."`
	LogFormat string `yaml:"logFormat" default:"text" doc:"text or json."`
	Traces    string `yaml:"traces" doc:"OTLP endpoint over HTTP, such as http://127.0.0.1:4318. Left out: no traces."`
}
