package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
)

var update = flag.Bool("update", false, "write docs/config.md")

// TestReference holds docs/config.md to the code.
func TestReference(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "docs", "config.md")
	if *update {
		if err := os.WriteFile(path, []byte(config.Reference()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Reference(), string(got)); diff != "" {
		t.Errorf("docs/config.md differs from the code: run make docs (-want +got):\n%s", diff)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "# nothing\n", "server:\n", "runs: {}\n"} {
		c, err := config.Parse("holdfast.yaml", "/etc/holdfast", []byte(text))
		if err != nil {
			t.Fatalf("Parse(%q): %v", text, err)
		}
		if c.DataDir != "/etc/holdfast/.holdfast" || c.Encryption.KeyFile != "/etc/holdfast/.holdfast/key" {
			t.Errorf("Parse(%q): data in %s, key in %s", text, c.DataDir, c.Encryption.KeyFile)
		}
		if c.Drift != (config.Drift{MaxIssues: 10}) || c.Retention != (config.Retention{Runs: 100, DriftRuns: 5, Audit: 365 * 24 * time.Hour, PullRequests: 180 * 24 * time.Hour}) {
			t.Errorf("Parse(%q): %+v, %+v", text, c.Drift, c.Retention)
		}
		if l := c.Runs.Limits; c.Isolation != "auto" || l.Memory != 4<<30 || l.Processes != 1024 || l.CPU != 0 || c.Agent.SlotUsers.Plan == 0 {
			t.Errorf("Parse(%q): isolation %q, limits %+v, agents %+v", text, c.Isolation, l, c.Agent)
		}
		if c.Runs.Max != 4 || c.Runs.Timeout != 30*time.Minute || c.Lock.Type != "memory" || !c.Engines.Download {
			t.Errorf("Parse(%q) = %+v", text, c)
		}
	}
}

const full = `
dataDir: /var/lib/holdfast
server:
  api:
    tokens:
      - {name: ops, role: admin, token: {file: ops.token}}
forges:
  - name: github
    app: {id: 7, privateKeyFile: app.pem}
repositories:
  - name: acme/clusters
    forge: github
    webhookSecret: {env: WEBHOOK_SECRET}
    allow:
      - {paths: ["payments/**"], projects: [payments]}
  - name: plain
    url: ../plain
credentials:
  - project: payments
    phase: apply
    env: {AWS_REGION: eu-west-1}
    secrets: {AWS_SECRET_ACCESS_KEY: {file: aws.key}}
    secretDirs: [/run/secrets/payments]
    stores: {vault: {command: [vault, kv, get, -field=value, "payments/{key}"]}}
secrets: {eu: {file: eu.kubeconfig}}
lock: {type: redis, redis: {url: "redis://127.0.0.1:6379/0"}}
runs: {maxPerProvider: {aws: 10}, maxPerProject: 3}
drift: {schedule: "CRON_TZ=Europe/Berlin 0 5 * * 1-5", maxIssues: 0}
`

func TestParse(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("holdfast.yaml", "/etc/holdfast", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	if c.Runs.MaxPerProvider["aws"] != 10 || c.Runs.MaxPerProject != 3 || c.Drift.MaxIssues != 0 || c.Runs.Max != 4 {
		t.Errorf("runs %+v, drift %+v", c.Runs, c.Drift)
	}
	if cred := c.Credentials[0]; !slices.Equal(cred.SecretDirs, []string{"/run/secrets/payments"}) || cred.Stores["vault"].Command[4] != "payments/{key}" {
		t.Errorf("credentials %+v", cred)
	}
	acme := c.Repositories[0]
	if acme.Branch != "main" || len(acme.Clusters) != 2 || acme.Allow[0].Environments[0] != "*" {
		t.Errorf("defaults of a list's items are missing: %+v", acme)
	}
	for got, want := range map[string]string{
		c.Server.API.Tokens[0].Token.File:                      "/etc/holdfast/ops.token",
		c.Forges[0].App.PrivateKeyFile:                         "/etc/holdfast/app.pem",
		c.Repositories[1].URL:                                  "/etc/plain",
		c.Credentials[0].Secrets["AWS_SECRET_ACCESS_KEY"].File: "/etc/holdfast/aws.key",
		c.Secrets["eu"].File:                                   "/etc/holdfast/eu.kubeconfig",
		c.Repositories[0].Allow[0].Kinds[0]:                    "Cluster",
		c.DataDir:                                              "/var/lib/holdfast",
	} {
		if got != want {
			t.Errorf("path %s, want %s", got, want)
		}
	}
}

// TestFaults states that all that is wrong is told at once, each where it is.
func TestFaults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []string // beginnings of lines
	}{
		"several at once": {
			"server:\n  grace: soon\n  pubic: {}\nruns:\n  max: many\n  retries: -1\nlock: [redis]\n",
			[]string{
				`f:2:10: server.grace: "soon" is not a duration`,
				`f:3:3: server: unknown key "pubic" (did you mean "public"?)`,
				`f:5:8: runs.max: "many" must be a whole number`,
				`f:6:12: runs.retries: must be between 0 and 20`,
				`f:7:7: lock: must be a mapping`,
			},
		},
		"drift and retention": {
			"runs: {maxPerProvider: {aws: 0}, maxPerProject: -1}\ndrift:\n  schedule: daily\n  max: -1\n  maxIssues: -1\nretention: {runs: 9, driftRuns: many, pullRequests: 1h}\n",
			[]string{
				`f:1:30: runs.maxPerProvider.aws: must be at least 1`,
				`f:1:49: runs.maxPerProject: must be at least 0 (0: limited by runs.max alone)`,
				`f:3:13: drift.schedule: "daily" is not a schedule that ever occurs`,
				`f:4:8: drift.max: must be at least 0`,
				`f:5:14: drift.maxIssues: must be at least 0`,
				`f:6:19: retention.runs: must be at least 50 (or 0 to keep all)`,
				`f:6:33: retention.driftRuns: "many" must be a whole number`,
				`f:6:53: retention.pullRequests: must be at least 720h`,
			},
		},
		"an address without a scheme": {"server: {api: {url: holdfast.example.com}}\n", []string{`f:1:21: server.api.url: "holdfast.example.com" is not an http or https URL`}},
		"a schedule that never comes": {"drift: {schedule: \"0 0 30 2 *\"}\n", []string{`f:1:19: drift.schedule: "0 0 30 2 *" is not a schedule`}},
		"a key twice":                 {"dataDir: a\ndataDir: b\n", []string{`f:2:1: key "dataDir" is given twice`}},
		"not YAML":                    {"a: [", []string{"f: line 1"}},
		"a number for text":           {"dataDir: 1\n", []string{`f:1:10: dataDir: 1 must be text (put it in quotes: "1")`}},
		"a list for a text":           {"dataDir: []\n", []string{"f:1:10: dataDir: must be a single value"}},
		"text for a bool":             {"agent: {off: \"yes\"}\n", []string{`f:1:14: agent.off: "yes" must be true or false`}},
		"an alias":                    {"dataDir: &a x\nencryption: {keyFile: *a}\n", []string{"f:2:23: encryption.keyFile: aliases are not supported here"}},
		"redis without a url":         {"lock: {type: redis}\n", []string{"f:1:14: lock.type: redis needs lock.redis.url"}},
		"a url for nothing":           {"lock: {redis: {url: redis://x/0}}\n", []string{"f:1:21: lock.redis.url: is set, but lock.type is memory"}},
		"a password without a url":    {"datastore: {password: {env: P}}\n", []string{"f:1:23: datastore.password: is set, but datastore.url is not"}},
		"another database":            {"datastore: {url: \"mysql://x\"}\n", []string{"f:1:18: datastore.url: must be a postgres URL"}},
		"a password in a url":         {"datastore: {url: \"postgres://a:b@h/d\"}\n", []string{"f:1:18: datastore.url: contains a password"}},
		"a password parameter":        {"datastore: {url: \"postgres://a@h/d?password=b\"}\n", []string{"f:1:18: datastore.url: contains a password"}},
		"a bucket elsewhere":          {"datastore: {blobs: {url: ftp://b}}\n", []string{`f:1:26: datastore.blobs.url: has the scheme "ftp"`}},
		"credentials of no bucket":    {"datastore: {blobs: {accessKey: AKIA}}\n", []string{"f:1:20: datastore.blobs: has no url"}},
		"half an access key":          {"datastore: {blobs: {url: s3://b, accessKey: AKIA}}\n", []string{"f:1:45: datastore.blobs.accessKey: has no secret"}},
		"the other half":              {"datastore: {blobs: {url: s3://b, secret: {env: A}}}\n", []string{"f:1:42: datastore.blobs.secret: has no accessKey"}},
		"an access key of Azure":      {"datastore: {blobs: {url: \"azblob://c?account=a\", accessKey: A}}\n", []string{"f:1:61: datastore.blobs.accessKey: is for s3://"}},
		"Redis in two places": {
			"lock: {type: redis, redis: {url: redis://x/0, cluster: {addresses: [a:1]}}}\n",
			[]string{"f:1:56: lock.redis.cluster: is set, and so is lock.redis.url"},
		},
		"half a Sentinel": {
			"lock: {type: redis, redis: {database: -1, sentinel: {addresses: [a, b:26379]}}}\n",
			[]string{
				"f:1:39: lock.redis.database: is only for sentinel",
				"f:1:53: lock.redis.sentinel.master: is missing",
				`f:1:66: lock.redis.sentinel.addresses[0]: "a" is not a host:port`,
			},
		},
		"a Sentinel without addresses": {"lock: {type: redis, redis: {sentinel: {master: m}}}\n", []string{"f:1:39: lock.redis.sentinel.addresses: is missing"}},
		"a cluster for nothing":        {"lock: {redis: {cluster: {addresses: [a:1]}}}\n", []string{"f:1:25: lock.redis.cluster: is set, but lock.type is memory"}},
		"a password in Redis's URL": {
			"lock: {type: redis, redis: {url: \"redis://u:s3cret@x/0\", user: v}}\n",
			[]string{"f:1:34: lock.redis.url: carries a password", "f:1:34: lock.redis.url: names a user, and so does lock.redis.user"},
		},
		"not a URL of Redis":      {"lock: {type: redis, redis: {url: \"http://u:s3cret@x/0\"}}\n", []string{"f:1:34: lock.redis.url: is not a redis://, rediss:// or unix:// URL"}},
		"TLS files without TLS":   {"lock: {type: redis, redis: {cluster: {addresses: [a:1]}, tls: {caFile: x}}}\n", []string{"f:1:63: lock.redis.tls: is set, but TLS is not used"}},
		"TLS with another URL":    {"lock: {type: redis, redis: {url: redis://x/0, tls: {enabled: true, certFile: x}}}\n", []string{"f:1:52: lock.redis.tls: needs both certFile and keyFile", "f:1:62: lock.redis.tls.enabled: is true, but lock.redis.url is not"}},
		"a secret twice":          {"lock: {type: redis, redis: {url: redis://x/0, password: {file: a, env: B}}}\n", []string{"f:1:57: lock.redis.password: names both"}},
		"an unknown forge":        {"repositories:\n  - {name: a/b, forge: gihub}\n", []string{`f:2:24: repositories[0].forge: "gihub" is not one of local`}},
		"a local one without url": {"repositories:\n  - name: a\n", []string{"f:2:5: repositories[0]: has no url"}},
		"twice the same name": {
			"repositories:\n  - {name: a, url: x}\n  - {name: a, url: y}\n",
			[]string{`f:3:12: repositories[1].name: "a" is listed twice`},
		},
		"branches of one repository": {
			"forges: [{name: hub, token: {env: T}}]\nrepositories:\n  - {name: a/b, forge: hub}\n  - {name: b-release, repository: A/b, forge: hub, branch: release}\n" +
				"  - {name: b-again, repository: a/b, forge: hub}\n  - {name: c, repository: b, forge: hub}\n  - {name: d, url: x, repository: a/b}\n",
			[]string{
				`f:5:33: repositories[2].repository: branch "main" of a/b is tracked by "a/b" already`,
				`f:6:27: repositories[3].repository: "b" must be owner/repository`,
				`f:7:35: repositories[4].repository: is only for repositories on a code host`,
			},
		},
		"a password in a URL":   {"repositories:\n  - {name: a, url: \"https://u:p@h/r\"}\n", []string{"f:2:20: repositories[0].url: carries a password"}},
		"no glob":               {"repositories:\n  - {name: a, url: x, clusters: [\"[\"]}\n", []string{`f:2:34: repositories[0].clusters[0]: "[" is not a glob`}},
		"ssh without hosts":     {"repositories:\n  - {name: a, url: \"git@h:r\", auth: {sshKeyFile: k}}\n", []string{"f:2:50: repositories[0].auth.sshKeyFile: needs knownHostsFile"}},
		"neither App nor token": {"forges:\n  - name: github\n", []string{"f:2:5: forges[0]: has neither an App nor a token"}},
		"too few writes":        {"forges: [{name: hub, token: {env: T}, writesPerMinute: 5}]\n", []string{"f:1:56: forges[0].writesPerMinute: must be between 20 and 60000"}},
		"a managed variable":    {"credentials:\n  - env: {TF_DATA_DIR: x}\n", []string{"f:2:24: credentials[0].env.TF_DATA_DIR: is set by Holdfast"}},
		"an http backend":       {"credentials:\n  - env: {TF_HTTP_PASSWORD: x, TF_HTTP_ADDRESS: y}\n", []string{"f:2:49: credentials[0].env.TF_HTTP_ADDRESS: is set by Holdfast"}},
		"secret folders": {
			"dataDir: /var/lib/holdfast/\ncredentials:\n  - secretDirs: [secrets, /, /proc/self, /var/lib, /srv/../dev, /run/secrets, /var/lib/holdfast]\n",
			[]string{
				`f:3:18: credentials[0].secretDirs[0]: "secrets" is not an absolute path`,
				`f:3:27: credentials[0].secretDirs[1]: contains more than secrets`,
				`f:3:30: credentials[0].secretDirs[2]: contains more than secrets`,
				`f:3:42: credentials[0].secretDirs[3]: contains the server's own data`,
				`f:3:52: credentials[0].secretDirs[4]: contains more than secrets`,
				`f:3:79: credentials[0].secretDirs[6]: contains the server's own data`,
			},
		},
		"secret stores": {
			"credentials:\n  - stores:\n      a: {}\n      b: {command: []}\n      c: {command: [vault]}\n      d: {command: [bin/vault, \"{key}\"]}\n" +
				"      e: {command: [\"{key}\"]}\n      f/g: {command: [vault, \"{key}\"]}\n      h: {command: vault}\n      i: {comand: []}\n",
			[]string{
				`f:3:10: credentials[0].stores.a: has no command`,
				`f:4:10: credentials[0].stores.b: has no command`,
				`f:5:20: credentials[0].stores.c.command: has no "{key}"`,
				`f:6:21: credentials[0].stores.d.command[0]: must be the name of a program or an absolute path`,
				`f:7:21: credentials[0].stores.e.command[0]: must not be chosen by a key`,
				`f:8:12: credentials[0].stores.f/g: "f/g" is not a valid store name`,
				`f:9:20: credentials[0].stores.h.command: must be a list`,
				`f:10:11: credentials[0].stores.i: unknown key "comand" (did you mean "command"?)`,
				`f:10:10: credentials[0].stores.i: has no command`,
			},
		},
		"agents in the clear": {
			"server: {agents: {address: \"0.0.0.0:9\", tokens: [{name: a, kinds: [plan], token: {env: T}}]}}\n",
			[]string{"f:1:28: server.agents.address: is not a loopback address and has no TLS"},
		},
		"agents that are bound to nothing": {
			"server:\n  agents:\n    tokens:\n      - {name: a, token: {env: T}}\n      - {name: a, kinds: [plan, aply], token: {env: T}}\n      - {name: b, kinds: [plan]}\n",
			[]string{
				`f:4:9: server.agents.tokens[0]: is bound to no kind of run`,
				`f:5:16: server.agents.tokens[1].name: "a" is listed twice`,
				`f:5:33: server.agents.tokens[1].kinds[1]: "aply" is not one of plan, drift, apply, destroy`,
				`f:6:9: server.agents.tokens[2]: has no token`,
			},
		},
		"runners": {
			"server:\n  agents:\n    tokens:\n      - {name: a, token: {env: T}, kinds: [plan], runner: EU}\n" +
				"secrets:\n  eu: {fil: x}\n  US: {file: us.key}\n" +
				"repositories:\n  - name: r\n    url: r\n    allow:\n      - {kinds: [Runer, Cluster], runners: ['[']}\n",
			[]string{
				`f:4:59: server.agents.tokens[0].runner: "EU" cannot be the name of a runner`,
				`f:6:7: secrets.eu: names neither a file nor an environment variable`,
				`f:6:8: secrets.eu: unknown key "fil" (did you mean "file"?)`,
				`f:7:7: secrets.US: "US" cannot be the name of a secret`,
				`f:12:18: repositories[0].allow[0].kinds[0]: "Runer" is not one of Cluster, Runner, RunnerRule`,
				`f:12:45: repositories[0].allow[0].runners[0]: "[" is not a glob`,
			},
		},
		"agents whose ids would be empty": {
			"server:\n  agents:\n    tokens:\n      - {name: team/, kinds: [plan], token: {env: T}}\n      - {name: \"a b\", kinds: [plan], token: {env: T}}\n      - {name: a/b, kinds: [plan], token: {env: T}}\n      - {name: team/аpply, kinds: [apply], token: {env: T}}\n",
			[]string{
				`f:4:16: server.agents.tokens[0].name: "team/" has a slash with nothing before or after it`,
				`f:5:16: server.agents.tokens[1].name: "a b" has characters other than ASCII letters`,
				`f:7:16: server.agents.tokens[3].name: "team/аpply" has characters other than ASCII letters`,
			},
		},
		"agents without a token": {
			"server: {agents: {address: \"127.0.0.1:9\"}}\n",
			[]string{"f:1:28: server.agents.address: agents need a token"},
		},
		"tickets in the clear": {
			"server: {agents: {address: \"127.0.0.1:9\", url: \"http://example.com\"}}\n",
			[]string{"f:1:48: server.agents.url: \"http://example.com\" is not an https URL without query"},
		},
		"tokens of Google in the clear": {
			"jobs: {google: {sts: \"http://example.com\", container: \"http://127.0.0.1:1\"}}\n",
			[]string{"f:1:22: jobs.google.sts: \"http://example.com\" is not an https URL without query"},
		},
		"Jobs that reach nobody": {
			"server: {agents: {url: \"https://example.com\"}}\n", []string{"f:1:24: server.agents.url: is of no use without an address"},
		},
		"a sandbox with holes": {
			"dataDir: /var/lib/holdfast\nisolation: strong\nsandbox:\n  paths:\n    readOnly: [gcp.json, /, /var/lib]\n    writable: [/dev/shm, /var/lib/holdfast/x]\n",
			[]string{
				`f:2:12: isolation: "strong" is not one of auto, slots`,
				`f:5:16: sandbox.paths.readOnly[0]: "gcp.json" is not an absolute path`,
				`f:5:26: sandbox.paths.readOnly[1]: would no longer be a sandbox`,
				`f:5:29: sandbox.paths.readOnly[2]: contains the server's own data`,
				`f:6:16: sandbox.paths.writable[0]: would no longer be a sandbox`,
				`f:6:26: sandbox.paths.writable[1]: contains the server's own data`,
			},
		},
		"limits": {
			"runs:\n  limits:\n    memory: 4\n    processes: 3\n    cpu: many\n    overrides:\n      - {memory: 1MiB, project: \"[\"}\n",
			[]string{
				`f:3:13: runs.limits.memory: "4" is not a size`,
				`f:4:16: runs.limits.processes: must be at least 32`,
				`f:5:10: runs.limits.cpu: "many" must be a number`,
				`f:7:18: runs.limits.overrides[0].memory: must be at least 64MiB`,
				`f:7:33: runs.limits.overrides[0].project[0]: "[" is not a glob`,
			},
		},
		"users that are shared": {
			"agent: {slots: 8, slotUsers: {plan: 2000, apply: 2007}}\n",
			[]string{`f:1:30: agent.slotUsers: plans and applies would share users (keep them at least agent.slots (8) apart)`},
		},
		"users that are an agent's": {
			"agent: {slots: 4, slotUsers: {plan: 65530, apply: 65531}}\n", []string{
				`f:1:30: agent.slotUsers: plans and applies would share users`,
				`f:1:37: agent.slotUsers.plan: includes 65533, which the agent for applies may run as`,
				`f:1:51: agent.slotUsers.apply: includes 65534, the uid of nobody`,
			},
		},
		"users that are somebody": {
			"agent: {slotUsers: {plan: 0}}\n", []string{`f:1:27: agent.slotUsers.plan: 0 cannot be a dedicated user`},
		},
		"a token of a project without a name": {
			"server: {api: {tokens: [{name: a, token: {env: T}, projects: [shop, \"\"]}]}}\n",
			[]string{"f:1:69: server.api.tokens[0].projects[1]: is missing"},
		},
		"policies": {
			"repositories: [{name: a, url: /a}]\npolicies:\n  sets:\n    - {repository: a}\n    - {name: holdfast, repository: b, path: ../x, version: v1}\n" +
				"    - {name: p, repository: a, projects: [\"[\"]}\n    - {name: p, repository: a}\n",
			[]string{
				`f:4:7: policies.sets[0].name: is required`,
				`f:5:14: policies.sets[1].name: "holdfast" is not a name for a set`,
				`f:5:36: policies.sets[1].repository: there is no repository "b"`,
				`f:5:45: policies.sets[1].path: must be a folder in the repository`,
				`f:5:60: policies.sets[1].version: "v1" is not a version`,
				`f:6:43: policies.sets[2].projects[0]: "[" is not a glob`,
				`f:7:14: policies.sets[3].name: there is another set "p"`,
			},
		},
		"prices": {
			"cost:\n  refresh: 1m\n  sources:\n    - {type: gcp}\n    - {type: oracle}\n    - {type: infracost, key: {env: K}}\n" +
				"    - {type: aws, url: ftp://x}\n    - {type: aws}\n",
			[]string{
				`f:2:12: cost.refresh: must be at least 1h`,
				`f:4:7: cost.sources[0].key: is required for gcp`,
				`f:5:14: cost.sources[1].type: "oracle" is not one of`,
				`f:6:7: cost.sources[2].url: is required for infracost`,
				`f:7:24: cost.sources[3].url: is not a URL`,
				`f:8:14: cost.sources[4].type: "aws" is listed twice`,
			},
		},
		"gates": {
			"gates:\n  - {requires: [policy], environments: [\"[\"]}\n  - {approvals: 11}\n  - {projects: [a]}\n" +
				"  - {cost: {maxIncrease: \"1e3\", currency: usd, unpriced: x}}\n  - {approvals: 1, cost: {approvedBy: [\"\"]}}\n",
			[]string{
				`f:2:41: gates[0].environments[0]: "[" is not a glob`,
				`f:2:17: gates[0].requires[0]: "policy" is not one of approved, mergeable`,
				`f:3:17: gates[1].approvals: must be from 0 to 10`,
				`f:4:5: gates[2]: requires nothing`,
				`f:5:26: gates[3].cost.maxIncrease: "1e3" is not a decimal number`,
				`f:5:43: gates[3].cost.currency: "usd" is not the three letters`,
				`f:5:58: gates[3].cost.unpriced: "x" is not one of deny, allow`,
				`f:6:40: gates[4].cost.approvedBy[0]: is missing`,
				`f:6:39: gates[4].cost.approvedBy: is set, but maxIncrease is not`,
			},
		},
		"a token without one": {"server: {api: {tokens: [{name: a}]}}\n", []string{"f:1:25: server.api.tokens[0]: has no token"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("f", "/", []byte(test.text))
			var faults holdfast.Faults
			if !errors.As(err, &faults) {
				t.Fatalf("Parse: %v, want faults", err)
			}
			if len(faults) != len(test.want) {
				t.Fatalf("%d faults, want %d:\n%v", len(faults), len(test.want), faults)
			}
			for _, want := range test.want {
				if !strings.Contains("\n"+faults.Error(), "\n"+want) {
					t.Errorf("no line begins with %q in\n%v", want, faults)
				}
			}
		})
	}
}

func TestSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOLDFAST_TEST_SECRET", "from the environment")
	for want, s := range map[string]config.Secret{
		"from a file":          {File: file},
		"from the environment": {Env: "HOLDFAST_TEST_SECRET"},
	} {
		if got, err := s.Value(); got != want || err != nil {
			t.Errorf("%+v = %q, %v; want %q", s, got, err, want)
		}
	}
	for _, s := range []config.Secret{{}, {File: file + "x"}, {Env: "HOLDFAST_TEST_UNSET"}} {
		if got, err := s.Value(); err == nil {
			t.Errorf("%+v = %q, want an error", s, got)
		}
	}
}
