package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/serve/telemetry"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/objects"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/forge/github"
	forgelocal "github.com/holdfast-dev/holdfast/forge/local"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/reconciler/dispatch"
	"github.com/holdfast-dev/holdfast/reconciler/launch"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/issuer"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/webhook"
)

// services is a server's parts, put together.
type services struct {
	cfg    *config.Config
	logger *slog.Logger
	self
	clock *clock
	signals
	store      *datastore.Store
	keys       *seal.Keyring
	git        *gitsource.Source
	githubs    map[string]*github.Client // by forge name
	hooks      hooks
	reconciler *reconciler.Reconciler
	server     *server.Server
	issuer     *issuer.Issuer // of tokens; nil: none are issued
	launched   *launch.Pool   // the runs of runners that start something for each
	accounts   *accounts      // that local agents run as; nil: as we do
	agents     []*localAgent
	redis      *redisWatch // nil: locks are in memory
	closers    []func() error
	pricing
}

// self is what a server says of itself: the identity names it in leases, and its agent.
type self struct{ version, identity string }

// folders below dataDir. Only the agent's is reachable for another user.
func (s *services) path(elem ...string) string {
	return filepath.Join(append([]string{s.cfg.DataDir}, elem...)...)
}

func build(ctx context.Context, cfg *config.Config, opts Options, logger *slog.Logger) (*services, error) {
	clock := newClock(opts.Now)
	s := &services{cfg: cfg, logger: logger, self: self{version: opts.Version}, clock: clock, signals: signals{metrics: telemetry.New(clock.Now)}}
	for _, step := range []func(context.Context) error{
		s.openTraces, s.openFolders, s.openStore, s.openGit, s.openReconciler, s.openIssuer, s.openServer,
	} {
		if err := step(ctx); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *services) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		if err := s.closers[i](); err != nil {
			s.logger.Error("part was not closed", "err", err)
		}
	}
	s.closers = nil
}

func (s *services) openTraces(ctx context.Context) error {
	if s.cfg.Telemetry.Traces == "" {
		return nil
	}
	var err error
	if s.tracer, err = telemetry.OpenTracer(ctx, s.cfg.Telemetry.Traces); err != nil {
		return err
	}
	s.closers = append(s.closers, s.tracer.Close)
	return nil
}

// openFolders makes dataDir. The agent's user may pass through it; nobody else has
// access.
func (s *services) openFolders(ctx context.Context) error {
	mode := fs.FileMode(0o700)
	accounts, err := agentAccounts(s.cfg.Agent)
	if err != nil {
		return hint.New(err, "set agent.user and agent.applyUser in holdfast.yaml")
	}
	if err := slotUsersFault(s.cfg.Agent, accounts); err != nil {
		return hint.New(err, "set agent.slotUsers in holdfast.yaml to numbers that nothing else uses")
	}
	s.accounts = accounts
	if accounts != nil || os.Getuid() == 0 { // engines may be users of their own
		mode = 0o711
	}
	s.warnOfNoIsolation()
	if err := errors.Join(s.exposed(ctx)...); err != nil {
		return hint.New(err, hintExposed)
	}
	if err := makeFolder(s.cfg.DataDir, mode); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	if err := makeFolder(s.path("run"), 0o711); err != nil {
		return fmt.Errorf("make folder of the socket: %w", err)
	}
	if accounts == nil {
		return nil
	}
	return reachable(s.cfg.DataDir)
}

// isolates reports whether each engine is isolated, whoever starts it: agents that do
// not isolate them get no runs.
func isolates(cfg *config.Config) bool { return cfg.Isolation != protocol.IsolationNone }

func (s *services) warnOfNoIsolation() {
	switch {
	case isolates(s.cfg):
	case s.accounts == nil && !s.cfg.Agent.Off:
		s.logger.Warn("isolation is none, and plans run as the same user as the server: code in a plan can read the " +
			"server's keys; pull requests from forks are not planned")
	default:
		s.logger.Warn("isolation is none: code in a plan can read and do what its agent can; pull requests from forks are not planned")
	}
}

// demanded are the isolation modes one of which agents must have to get runs; nil: any,
// or none.
func (s *services) demanded() []string {
	if !isolates(s.cfg) {
		return nil
	}
	var modes []string
	for _, mode := range config.IsolationModes(s.cfg.Isolation) {
		modes = append(modes, string(mode))
	}
	return modes
}

// makeFolder makes a folder with that mode, whatever the umask, or gives it to
// one that is there.
func makeFolder(dir string, mode fs.FileMode) error {
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	return os.Chmod(dir, mode)
}

// reachable checks that another user can pass through all folders above dir.
func reachable(dir string) error {
	for at := filepath.Clean(dir); at != "/" && at != "."; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return fmt.Errorf("look at data folder: %w", err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			return hint.New(
				fmt.Errorf("the agent's user cannot pass through %s to the data folder", at),
				"choose a dataDir such as /var/lib/holdfast, or set agent.user: root for one agent, which is root",
			)
		}
	}
	return nil
}

// Keyring loads the keys of an installation. A key file that is missing is an fs.ErrNotExist.
func Keyring(cfg *config.Config) (*seal.Keyring, error) { return keyring(cfg, seal.LoadKey) }

func keyring(cfg *config.Config, load func(path string) ([]byte, error)) (*seal.Keyring, error) {
	current, err := load(cfg.Encryption.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("load encryption key: %w", err)
	}
	var older [][]byte
	for _, file := range cfg.Encryption.OldKeyFiles {
		key, err := seal.LoadKey(file)
		if err != nil {
			return nil, fmt.Errorf("load old encryption key: %w", err)
		}
		older = append(older, key)
	}
	keys, err := seal.NewKeyring(current, older...)
	if err != nil {
		return nil, fmt.Errorf("load encryption keys: %w", err)
	}
	return keys, nil
}

// Records is the SQLite file of an installation, and where it would be if its records are in
// PostgreSQL.
func Records(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "db", "holdfast.db") }

// Identity is the file with a server's name.
func Identity(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "identity") }

func (s *services) openStore(ctx context.Context) (err error) {
	if s.keys, err = keyring(s.cfg, seal.LoadOrCreateKey); err != nil {
		return err
	}
	address, err := Database(ctx, s.cfg, s.logger)
	if err != nil {
		return err
	}
	opts := datastore.Options{
		Path: Records(s.cfg), Postgres: address, Blobs: Blobs(s.cfg), Keys: s.keys,
		Retention: retention(s.cfg.Retention), Replica: asReplica(s.cfg, s.version), Logger: s.logger,
	}
	if address.URL == "" {
		opts.Now = s.clock.Now
	}
	if s.store, err = datastore.Open(ctx, opts); err != nil {
		return fmt.Errorf("open datastore: %w", err)
	}
	s.closers = append(s.closers, s.store.Close)
	s.identity = s.store.Identity()
	if address.URL != "" {
		s.clock.set(s.store.Now)
	}
	s.metrics.Watch(s.store, s.logger)
	return nil
}

// Blobs is where large contents are.
func Blobs(cfg *config.Config) objects.Options {
	c, dir := cfg.Datastore.Blobs, filepath.Dir(Records(cfg))
	if c.URL == "" {
		return objects.Options{}
	}
	opts := objects.Options{URL: c.URL, Dir: dir, AccessKey: c.AccessKey, CAFile: c.CAFile}
	if !c.Secret.IsZero() {
		opts.Secret = c.Secret.Value
	}
	return opts
}

// retention is the store's, where zero means the default.
func retention(c config.Retention) datastore.Retention {
	r := datastore.Retention{Runs: c.Runs, DriftRuns: c.DriftRuns, Logs: c.Logs, Audit: c.Audit, Ended: c.PullRequests}
	if c.PullRequests == 0 {
		r.Ended = -1
	}
	for _, number := range []*int{&r.Runs, &r.DriftRuns} {
		if *number == 0 {
			*number = -1
		}
	}
	return r
}

func (s *services) openGit(context.Context) error {
	if err := s.openGitHub(); err != nil {
		return err
	}
	repos := make([]gitsource.Repository, 0, len(s.cfg.Repositories))
	for _, r := range s.cfg.Repositories {
		from := cloneOf(s.cfg, r)
		auth, err := s.gitAuth(r, from)
		if err != nil {
			return err
		}
		if note := foreignNote(r, from); note != "" {
			s.logger.Warn("repository is cloned without a credential", "repo", r.Name, "detail", note)
		}
		repos = append(repos, gitsource.Repository{Name: r.Name, URL: from.url, Branch: r.Branch, Auth: auth})
	}
	var err error
	s.git, err = gitsource.New(gitsource.Options{Dir: s.path("mirrors"), Repositories: repos, Logger: s.logger})
	if err != nil {
		return fmt.Errorf("open mirrors: %w", err)
	}
	return nil
}

func (s *services) openReconciler(ctx context.Context) error {
	if err := openPrices(s); err != nil {
		return err
	}
	runs := s.cfg.Runs
	opts := reconciler.Options{
		Store:   s.store,
		Sources: reconciler.Sources{Git: s.git, Forges: make(map[string]reconciler.Forge), Commands: webhook.Commands},
		Replica: reconciler.Replica{
			Identity: s.identity, Process: rand.Text(), FingerprintKey: s.keys.Derive("fingerprints"), TokenKey: s.keys.Derive("run tokens"),
		},
		Grants: reconciler.Grants{
			Isolation: s.demanded(), Allow: bindings(s.cfg), Credentials: credentials(s.cfg, s.logger), Varied: varied(s.cfg),
			SameCredential: sameCredential(s.cfg),
			SecretSources:  secretSources(s.cfg), Limits: limits(s.cfg), Runners: runnerGrants(s.cfg), Policies: policyGrants(s.cfg), Cost: s.estimate, Gates: gateMinimums(s.cfg),
		},
		Limits: reconciler.Limits{
			Runs: runs.Max, Timeout: runs.Timeout, Lease: runs.Lease, Retries: runs.Retries, RetryDelay: runs.RetryDelay,
			Break: runs.Break, LockTimeout: runs.LockTimeout, Provider: runs.MaxPerProvider, Project: runs.MaxPerProject, Drift: s.cfg.Drift.Max,
			First: s.cfg.Adopt.MaxPerHour,
		},
		Reports:   reconciler.Reports{Issues: s.cfg.Drift.MaxIssues, PolicyStatus: s.cfg.Policies.Status},
		Telemetry: reconciler.Telemetry{Metrics: s.metrics, Logger: s.logger},
		Now:       s.clock.Now,
	}
	linkPages(s.cfg.Server.API.URL, &opts.Reports)
	if s.tracer != nil {
		opts.Telemetry.Tracer = s.tracer
	}
	if opts.Limits.Retries == 0 {
		opts.Limits.Retries = -1 // zero means the default there
	}
	if opts.Reports.Issues == 0 {
		opts.Reports.Issues = -1 // here, too
	}
	if s.cfg.Drift.Schedule != document.DriftOff {
		opts.Sources.DriftSchedule = s.cfg.Drift.Schedule
	}
	if peers := s.store.Peers(); peers != nil {
		opts.Replica.Peers = peers
	}
	if err := s.openLock(ctx, &opts); err != nil {
		return err
	}
	if err := openNotifier(s, &opts); err != nil {
		return err
	}
	branches := make(map[string]string)
	for _, r := range s.cfg.Repositories {
		repo := s.watched(r)
		if len(r.Allow) == 0 && len(s.cfg.Repositories) > 1 && len(s.cfg.Credentials) > 0 {
			s.logger.Warn("anyone who can open a pull request here can use the credentials of every project and environment: "+
				"bind it under repositories[].allow", "repo", r.Name)
		}
		branches[r.Name] = r.Branch
		opts.Sources.Repositories = append(opts.Sources.Repositories, repo)
	}
	plain, err := forgelocal.New(forgelocal.Options{
		Git: s.git, Store: s.store, Branches: branches, Others: otherBranches(s.cfg.Repositories), Now: s.clock.Now,
	})
	if err != nil {
		return err
	}
	for _, r := range s.cfg.Repositories {
		opts.Sources.Forges[r.Name] = plain
		if client := s.githubs[r.Forge]; client != nil {
			opts.Sources.Forges[r.Name] = client
			if entries := entriesOf(s.cfg.Repositories, r); entries[0] != r.Name {
				opts.Sources.Forges[r.Name] = furtherBranch{client, r.Branch}
			}
		}
	}
	if s.reconciler, err = reconciler.New(opts); err != nil {
		return err
	}
	s.metrics.WatchAgents(s.reconciler.Dispatcher().Heard)
	return nil
}

// linkPages makes reports link to pages of this server, if holdfast.yaml has its
// address.
func linkPages(url string, reports *reconciler.Reports) {
	site := strings.TrimRight(url, "/")
	if site == "" {
		return
	}
	reports.LogURL = func(run string) string { return site + server.RunPage(run) }
	reports.PullRequestURL = func(ref holdfast.PullRequestRef) string { return site + server.PullRequestPage(ref) }
}

// watched is a repository as the reconciler watches it.
func (s *services) watched(r config.Repository) reconciler.Repository {
	repo := reconciler.Repository{
		Name: r.Name, Branch: r.Branch, Clusters: r.Clusters, Runners: runnerPaths(r), Templates: r.Templates,
		UpgradeGroups: r.Upgrades.GroupBy,
		Local:         r.Forge == "local", Forks: r.Forks && isolates(s.cfg), Drafts: r.Drafts, Labels: r.Labels, Poll: r.Poll,
		Samples: r.Samples, SampleEnvironments: r.SampleEnvironments,
		Entries: entriesOf(s.cfg.Repositories, r),
	}
	if repo.Samples == 0 {
		repo.Samples = -1 // here, zero means the default
	}
	if repo.Local && repo.Poll == 0 {
		repo.Poll = time.Second
	}
	if repo.Poll == 0 {
		repo.Poll = max(5*time.Minute, pollFloor(len(s.cfg.Repositories)))
	}
	return repo
}

// pollFloor keeps polling below a quarter of GitHub's 5,000 calls an hour: a
// look at a repository takes two, and two more when something has changed.
func pollFloor(repositories int) time.Duration {
	const callsPerLook, callsPerHour = 4, 5000 / 4
	return time.Duration(repositories) * callsPerLook * time.Hour / callsPerHour
}

func (s *services) openServer(context.Context) error {
	hooks, err := s.webhooks()
	if err != nil {
		return err
	}
	s.hooks.Handler = hooks
	agents := s.reconciler.Dispatcher()
	opts := server.Options{
		API: server.API{
			Records: s.store, Artefacts: s.store, Commander: s.reconciler, Registry: agents, Rescuer: s.reconciler.States(),
			Local: s.store, Posts: s.shownPosts(), Runners: server.Runners{Records: s.store, Operator: s.reconciler}, Proposer: s.reconciler, Deliveries: s.store, Asked: s.store,
		},
		Agents: server.Agents{
			Dispatcher: agents, Registry: agents, Runs: s.store, Blobs: s.store, States: s.store, Tickets: dispatch.Launches{Dispatcher: agents}, Refused: s.metrics.ClaimRefused,
			Keys: server.Keys{Runners: s.store, Address: s.cfg.Server.Agents.URL}, Launches: launches{s}.newDesk(),
		},
		Webhooks: hooks, Audit: s.store,
		Health: server.Health{Ready: s.waitsFor, Lacking: s.lacks, Metrics: s.metrics.Handler()},
		Listen: server.Listeners{Socket: server.Socket{Path: s.path("run", "agent.sock")}},
		Limits: server.Limits{Drain: min(max(s.cfg.Server.Grace, time.Second), 10*time.Second)},
		System: server.System{Version: s.version, Logger: s.logger, Now: s.clock.Now},
	}
	if s.issuer != nil {
		opts.Agents.Issuer = s.issuer
	}
	if name, err := os.Hostname(); err == nil {
		opts.API.Hosts = append(opts.API.Hosts, name) // some systems have it lead to loopback
	}
	if site, err := url.Parse(s.cfg.Server.API.URL); err == nil && site.Hostname() != "" {
		opts.API.Hosts = append(opts.API.Hosts, site.Hostname())
	}
	if s.accounts != nil {
		opts.Listen.Socket.ChangeOwner, opts.Listen.Socket.Shared = true, true
		opts.Listen.Socket.UID, opts.Listen.Socket.GID = s.accounts.apply.uid, s.accounts.plan.gid
	}
	listen := s.cfg.Server
	for _, l := range []struct {
		to      *server.Listener
		address string
		tls     config.TLS
	}{
		{&opts.Listen.Public, listen.Public.Address, listen.Public.TLS},
		{&opts.Listen.API, listen.API.Address, listen.API.TLS},
		{&opts.Listen.Agents, listen.Agents.Address, listen.Agents.TLS},
	} {
		l.to.Address = l.address
		if l.to.TLS, err = certificate(l.tls); err != nil {
			return err
		}
	}
	if opts.API.Tokens, err = s.apiTokens(); err != nil {
		return err
	}
	if opts.API.Login, err = logins(s, opts.API.Tokens); err != nil {
		return err
	}
	if opts.Agents.Tokens, err = s.agentTokens(); err != nil {
		return err
	}
	if s.launched, err = (launches{s}).newPool(); err != nil {
		return err
	}
	s.server, err = server.New(opts)
	return err
}

// hooks take in webhooks, and keep what became of them.
type hooks struct {
	*webhook.Handler
	seen *recorder
}
