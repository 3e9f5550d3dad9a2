package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/objects/address"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// contradictions finds what keys say against one another. What has the wrong type was
// reported already.
type contradictions struct{ *decoder }

func (d contradictions) check(c *Config) {
	d.checkServer(c)
	d.checkAccess(c)
	names := d.checkForges(c)
	d.checkRepositories(c, names)
	d.checkSecrets(c.Secrets)
	d.checkCredentials(c)
	d.checkIssuer(c)
	d.checkRivals(c)
	d.checkRuns(c)
	d.checkJobs(c.Jobs)
	d.checkSandbox(c)
	d.checkDrift(c)
	d.checkPolicies(c)
	d.checkCost(c.Cost)
	d.checkGates(c.Gates)
	d.checkNotifications(c.Notifications)
	d.oneOf("engines.validation", c.Engines.Validation, "signature", "sha")
	d.oneOf("lock.type", c.Lock.Type, "memory", "redis")
	d.checkRedis(c.Lock)
	d.checkDatastore(c.Datastore)
	d.checkBlobs(c.Datastore.Blobs)
	d.oneOf("telemetry.logLevel", c.Telemetry.LogLevel, "debug", "info", "warn", "error")
	d.oneOf("telemetry.logFormat", c.Telemetry.LogFormat, "text", "json")
	if c.Telemetry.Traces != "" {
		d.url("telemetry.traces", c.Telemetry.Traces, "http", "https")
	}
}

func (d contradictions) checkDatastore(c Datastore) {
	d.secret("datastore.password", c.Password)
	if c.URL == "" {
		if !c.Password.IsZero() {
			d.at("datastore.password", "is set, but datastore.url is not", "set datastore.url to postgres://USER@HOST:PORT/DATABASE, or remove it")
		}
		return
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		d.at("datastore.url", "must be a postgres URL", "such as postgres://holdfast@db.example.com:5432/holdfast?sslmode=verify-full")
		return
	}
	if _, has := u.User.Password(); has || u.Query().Has("password") {
		d.at("datastore.url", "contains a password", "write it to a file, or to a variable of the server's environment, and name that in datastore.password")
	}
}

// at adds a fault at the key with that path, or at the nearest key around it.
func (d *decoder) at(path, message, hint string) {
	for at := path; ; {
		if node := d.where[at]; node != nil {
			d.add(node, path, message, hint)
			return
		}
		if at == "" {
			d.add(nil, path, message, hint)
			return
		}
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
	}
}

func (d *decoder) oneOf(path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		d.at(path, fmt.Sprintf("%q is not one of %s", value, strings.Join(allowed, ", ")), "")
	}
}

func (d *decoder) globs(path string, patterns []string) {
	for i, pattern := range patterns {
		if !doublestar.ValidatePattern(pattern) {
			d.at(fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("%q is not a glob", pattern), "such as clusters/**/*.yaml")
		}
	}
}

func (d *decoder) secret(path string, s Secret) {
	if s.File != "" && s.Env != "" {
		d.at(path, "names both a file and an environment variable", "keep one")
	}
}

func (d *decoder) url(path, value string, schemes ...string) {
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme):
		d.at(path, "is not a URL of the form "+strings.Join(schemes, " or ")+"://host...", "")
	case u.User != nil:
		if _, has := u.User.Password(); has {
			d.at(path, "carries a password", "put it into a file and name the file")
		}
	}
}

func (d *decoder) tls(path string, t TLS) {
	if (t.CertFile == "") != (t.KeyFile == "") {
		d.at(path, "needs both certFile and keyFile", "")
	}
}

func (d *decoder) address(path, value string) {
	if value == "" {
		return
	}
	if _, _, err := net.SplitHostPort(value); err != nil {
		d.at(path, fmt.Sprintf("%q is not a host:port", value), "such as :8080 or 127.0.0.1:8080")
	}
}

// siteURL checks where a site begins: links are made by adding paths to it.
func (d *decoder) siteURL(path, value string) {
	if value == "" {
		return
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery+u.Fragment != "" {
		d.at(path, fmt.Sprintf("%q is not an http or https URL without query", value), "such as https://holdfast.example.com")
	}
}

func (d contradictions) checkBlobs(b Blobs) {
	const path = "datastore.blobs"
	d.secret(path+".secret", b.Secret)
	if b.URL == "" {
		if b != (Blobs{}) {
			d.at(path, "has no url", "add url: s3://..., gs://... or azblob://..., or remove the rest")
		}
		return
	}
	if _, err := address.Parse(b.URL); err != nil {
		d.at(path+".url", err.Error(), "such as s3://holdfast-acme?region=eu-central-1")
	}
	isS3 := strings.HasPrefix(b.URL, "s3://")
	switch {
	case b.AccessKey != "" && !isS3:
		d.at(path+".accessKey", "is for s3:// only", "remove it")
	case b.AccessKey != "" && b.Secret.IsZero():
		d.at(path+".accessKey", "has no secret", "add secret: {file: PATH} or {env: NAME}")
	case b.AccessKey == "" && !b.Secret.IsZero() && isS3:
		d.at(path+".secret", "has no accessKey that it belongs to", "add accessKey: its id")
	}
}

func (d contradictions) checkServer(c *Config) {
	s := c.Server
	d.address("server.public.address", s.Public.Address)
	d.address("server.api.address", s.API.Address)
	d.address("server.agents.address", s.Agents.Address)
	d.siteURL("server.api.url", s.API.URL)
	d.tls("server.public.tls", s.Public.TLS)
	d.tls("server.api.tls", s.API.TLS)
	d.tls("server.agents.tls", s.Agents.TLS)
	d.checkAgentTokens(s.Agents)
	if s.Agents.Address != "" && s.Agents.TLS.CertFile == "" && !loopback(s.Agents.Address) {
		d.at("server.agents.address", "is not a loopback address and has no TLS", "add server.agents.tls")
	}
	seen := make(map[string]bool)
	for i, token := range s.API.Tokens {
		path := fmt.Sprintf("server.api.tokens[%d]", i)
		d.oneOf(path+".role", token.Role, "viewer", "operator", "approver", "admin")
		d.required(path+".name", token.Name)
		d.unique(path+".name", token.Name, seen)
		d.secret(path+".token", token.Token)
		if token.Token.IsZero() {
			d.at(path, "has no token", "add token: {file: ...} or token: {env: ...}")
		}
		for j, project := range token.Projects {
			d.required(fmt.Sprintf("%s.projects[%d]", path, j), project)
		}
	}
}

func loopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (d *decoder) required(path, value string) {
	if value == "" {
		d.at(path, "is missing", "")
	}
}

func (d *decoder) unique(path, value string, seen map[string]bool) {
	if seen[value] && value != "" {
		d.at(path, fmt.Sprintf("%q is listed twice", value), "")
	}
	seen[value] = true
}

func (d contradictions) checkForges(c *Config) (names []string) {
	seen := map[string]bool{"local": true}
	names = []string{"local"}
	for i, f := range c.Forges {
		path := fmt.Sprintf("forges[%d]", i)
		d.required(path+".name", f.Name)
		d.unique(path+".name", f.Name, seen)
		d.oneOf(path+".type", f.Type, "github")
		d.secret(path+".token", f.Token)
		if f.URL != "" {
			d.url(path+".url", f.URL, "http", "https")
			if u, err := url.Parse(f.URL); err == nil && (u.RawQuery != "" || u.Fragment != "") {
				d.at(path+".url", "has a query or a fragment", "")
			}
		}
		if f.WritesPerMinute < 20 || f.WritesPerMinute > 60_000 {
			d.at(path+".writesPerMinute", "must be between 20 and 60000", "github.com takes 80")
		}
		switch app := f.App != (App{}); {
		case app && !f.Token.IsZero():
			d.at(path, "has both an App and a token", "keep one")
		case !app && f.Token.IsZero():
			d.at(path, "has neither an App nor a token", "add app: {id, privateKeyFile} or token: {file}")
		case app && (f.App.ID <= 0 || f.App.PrivateKeyFile == ""):
			d.at(path+".app", "needs id and privateKeyFile", "")
		}
		names = append(names, f.Name)
	}
	return names
}

func (d contradictions) checkRepositories(c *Config, forges []string) {
	seen := make(map[string]bool)
	templates := make(map[string]bool)
	for i, r := range c.Repositories {
		path := fmt.Sprintf("repositories[%d]", i)
		d.required(path+".name", r.Name)
		d.unique(path+".name", r.Name, seen)
		d.required(path+".branch", r.Branch)
		d.oneOf(path+".forge", r.Forge, forges...)
		d.globs(path+".clusters", r.Clusters)
		d.secret(path+".webhookSecret", r.WebhookSecret)
		d.checkAuth(path+".auth", r)
		for name := range r.Templates {
			d.unique(path+".templates."+name, name, templates)
		}
		groups := make(map[string]bool)
		for j, key := range r.Upgrades.GroupBy {
			at := fmt.Sprintf("%s.upgrades.groupBy[%d]", path, j)
			d.required(at, key)
			d.unique(at, key, groups)
		}
		d.checkAllow(path, r.Allow)
		if r.Forge == "local" && r.URL == "" {
			d.at(path, "has no url", "the path or URL of its Git repository")
		}
		d.checkFullName(path, c.Repositories[:i], r)
		d.globs(path+".sampleEnvironments", r.SampleEnvironments)
		if r.Samples < 0 {
			d.at(path+".samples", "must be at least 0", "")
		}
		if r.Poll != 0 && r.Poll < 100*time.Millisecond {
			d.at(path+".poll", "is shorter than 100ms", "")
		}
	}
}

// checkFullName checks what a code host calls a repository, of which the entries
// before may be another branch.
func (d contradictions) checkFullName(path string, before []Repository, r Repository) {
	at := path + ".name"
	if r.Repository != "" {
		at = path + ".repository"
	}
	switch {
	case r.Forge == "local" && r.Repository != "":
		d.at(at, "is only for repositories on a code host", "plain Git repositories have a url")
	case r.Forge != "local" && strings.Count(r.FullName(), "/") != 1:
		d.at(at, fmt.Sprintf("%q must be owner/repository, as the code host calls it", r.FullName()), "")
	}
	for _, other := range before {
		if r.SameAs(other) && r.Branch == other.Branch {
			d.at(at, fmt.Sprintf("branch %q of %s is tracked by %q already", r.Branch, r.FullName(), other.Name), "remove one, or set another branch")
		}
	}
}

func (d contradictions) checkAuth(path string, r Repository) {
	a := r.Auth
	d.secret(path+".password", a.Password)
	d.secret(path+".sshPassphrase", a.SSHPassphrase)
	if u, err := url.Parse(r.URL); err == nil && u.User != nil {
		if _, has := u.User.Password(); has {
			d.at(strings.TrimSuffix(path, "auth")+"url", "carries a password", "use auth.password: {file: ...}")
		}
	}
	if a.SSHKeyFile != "" && a.KnownHostsFile == "" {
		d.at(path+".sshKeyFile", "needs knownHostsFile", "ssh-keyscan HOST > known_hosts, and check the fingerprints")
	}
	if a.SSHKeyFile != "" && !a.Password.IsZero() {
		d.at(path, "has both a password and an SSH key", "keep the one that the URL uses")
	}
}

func (d contradictions) checkRuns(c *Config) {
	if c.Runs.Max < 1 {
		d.at("runs.max", "must be at least 1", "")
	}
	if c.Runs.Retries < 0 || c.Runs.Retries > 20 {
		d.at("runs.retries", "must be between 0 and 20", "")
	}
	if c.Runs.Lease < 2*time.Second {
		d.at("runs.lease", "must be at least 2s", "agents send a heartbeat every sixth of it")
	}
	if c.Runs.LockTimeout < 0 || c.Runs.LockTimeout > time.Hour {
		d.at("runs.lockTimeout", "must be between 0s and 1h", "")
	}
	if c.Runs.Break < time.Second || c.Runs.Break > 24*time.Hour {
		d.at("runs.break", "must be between 1s and 24h", "")
	}
	if c.Runs.Timeout < time.Second {
		d.at("runs.timeout", "must be at least 1s", "")
	}
	if c.Runs.MaxPerProject < 0 {
		d.at("runs.maxPerProject", "must be at least 0", "0: limited by runs.max alone")
	}
	if c.Adopt.MaxPerHour < 0 {
		d.at("adopt.maxPerHour", "must be at least 0", "0: no limit")
	}
	for provider, most := range c.Runs.MaxPerProvider {
		if most < 1 {
			d.at("runs.maxPerProvider."+provider, "must be at least 1", "to stop a provider's runs, suspend its clusters")
		}
	}
	if c.Agent.Slots < 1 {
		d.at("agent.slots", "must be at least 1", "")
	}
}

// minMemory and minProcesses are what an engine does not start without.
const (
	minMemory    = 64 << 20
	minProcesses = 32
	maxSlotUID   = 1<<32 - 2
	nobodyUID    = 65534 // whom the kernel also shows for users that it cannot show
)

// kernelFolders show more of a machine than files.
var kernelFolders = []string{"/proc", "/sys", "/dev"}

// checkSandbox checks what keeps engines from all else.
func (d contradictions) checkSandbox(c *Config) {
	d.oneOf("isolation", c.Isolation, Isolations...)
	for _, list := range []struct {
		key   string
		paths []string
	}{{"readOnly", c.Sandbox.Paths.ReadOnly}, {"writable", c.Sandbox.Paths.Writable}} {
		for i, path := range list.paths {
			at := fmt.Sprintf("sandbox.paths.%s[%d]", list.key, i)
			switch clean := filepath.Clean(path); {
			case !filepath.IsAbs(path):
				d.at(at, fmt.Sprintf("%q is not an absolute path", path), "such as /etc/holdfast/gcp.json: it is the same path for engines")
			case clean == "/" || folders.Within(kernelFolders, clean):
				d.at(at, "would no longer be a sandbox", "name what the engine needs, or set isolation: none")
			case folders.Within([]string{clean}, c.data()) || folders.Within([]string{c.data()}, clean):
				d.at(at, "contains the server's own data", "use a folder of its own")
			}
		}
	}
	d.limits("runs.limits", c.Runs.Limits.Memory, c.Runs.Limits.Processes, c.Runs.Limits.CPU)
	bounds := c.Runs.Limits.Max
	d.limits("runs.limits.max", bounds.Memory, bounds.Processes, bounds.CPU)
	for i, o := range c.Runs.Limits.Overrides {
		at := fmt.Sprintf("runs.limits.overrides[%d]", i)
		d.globs(at+".project", []string{o.Project})
		d.globs(at+".cluster", []string{o.Cluster})
		d.limits(at, o.Memory, o.Processes, o.CPU)
		d.limits(at+".max", o.Max.Memory, o.Max.Processes, o.Max.CPU)
	}
	d.checkSlotUsers(c.Agent)
}

// checkSlotUsers checks the users that engines run as: they are nobody else's, and
// neither are those of the other agent.
func (d contradictions) checkSlotUsers(a Agent) {
	users := a.SlotUsers
	for _, first := range []struct {
		key string
		uid int
	}{{"plan", users.Plan}, {"apply", users.Apply}} {
		includes := func(uid int) bool { return first.uid <= uid && uid < first.uid+a.Slots }
		fault := ""
		switch {
		case first.uid < 1000 || first.uid > maxSlotUID-a.Slots:
			fault = fmt.Sprintf("%d cannot be a dedicated user", first.uid)
		case includes(nobodyUID):
			fault = fmt.Sprintf("includes %d, the uid of nobody", nobodyUID)
		case includes(DefaultApplyUID) && a.ApplyUser == "":
			fault = fmt.Sprintf("includes %d, which the agent for applies may run as", DefaultApplyUID)
		}
		if fault != "" {
			d.at("agent.slotUsers."+first.key, fault, "such as 60600")
		}
	}
	if users.Plan < users.Apply+a.Slots && users.Apply < users.Plan+a.Slots {
		d.at("agent.slotUsers", "plans and applies would share users", fmt.Sprintf("keep them at least agent.slots (%d) apart", a.Slots))
	}
}

func (d *decoder) limits(path string, memory Size, processes int, cpu float64) {
	if memory != 0 && memory < minMemory {
		d.at(path+".memory", "must be at least 64MiB", "no engine starts with less; 0 means no limit")
	}
	if processes < 0 || processes != 0 && processes < minProcesses {
		d.at(path+".processes", "must be at least 32", "no engine starts with less; 0 means no limit")
	}
	if cpu < 0 || cpu != 0 && cpu < 0.01 {
		d.at(path+".cpu", "must be at least 0.01", "left out: no limit")
	}
}

func (d contradictions) checkDrift(c *Config) {
	schedule := c.Drift.Schedule
	// The zero time is that of a schedule that never comes.
	if schedule != "" && schedule != document.DriftOff &&
		document.DriftDue(holdfast.DriftSettings{Schedule: schedule}, "", "", time.Now()).IsZero() {
		d.at("drift.schedule", fmt.Sprintf("%q is not a schedule that ever occurs", schedule),
			"such as \"0 */6 * * *\" or \"CRON_TZ=Europe/Berlin 0 5 * * 1-5\"")
	}
	for _, least := range []struct {
		path string
		is   int
		must int
	}{
		{"drift.max", c.Drift.Max, 0},
		{"drift.maxIssues", c.Drift.MaxIssues, 0},
	} {
		if least.is < least.must {
			d.at(least.path, fmt.Sprintf("must be at least %d", least.must), "")
		}
	}
	for _, kept := range []struct {
		path        string
		is, atLeast int
	}{
		{"retention.runs", c.Retention.Runs, 50},
		{"retention.driftRuns", c.Retention.DriftRuns, 2},
	} {
		if kept.is != 0 && kept.is < kept.atLeast {
			d.at(kept.path, fmt.Sprintf("must be at least %d", kept.atLeast), "or 0 to keep all")
		}
	}
	if kept := c.Retention.PullRequests; kept != 0 && kept < 720*time.Hour {
		d.at("retention.pullRequests", "must be at least 720h", "or 0s to keep all")
	}
}
