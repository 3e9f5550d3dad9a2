package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/forge/github"
	forgelocal "github.com/holdfast-dev/holdfast/forge/local"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/webhook"
)

// house is a server's parts, put together.
type house struct {
	cfg        *config.Config
	logger     *slog.Logger
	metrics    *metrics
	tracer     *tracer // nil: nothing is traced
	store      *datastore.Store
	keys       *datastore.Keyring
	git        *gitsource.Source
	githubs    map[string]*github.Client // by forge name
	reconciler *reconciler.Reconciler
	server     *server.Server
	accounts   *accounts // that local agents run as; nil: as we do
	agents     []*localAgent
	identity   string // names us in leases, and our agent
	closers    []func() error
}

// folders below dataDir. Only the agent's is reachable for another user.
func (h *house) path(elem ...string) string {
	return filepath.Join(append([]string{h.cfg.DataDir}, elem...)...)
}

func build(ctx context.Context, cfg *config.Config, logger *slog.Logger) (*house, error) {
	h := &house{cfg: cfg, logger: logger, metrics: newMetrics()}
	for _, step := range []func(context.Context) error{
		h.openTraces, h.openFolders, h.openStore, h.openGit, h.openReconciler, h.openServer,
	} {
		if err := step(ctx); err != nil {
			h.close()
			return nil, err
		}
	}
	return h, nil
}

func (h *house) close() {
	for i := len(h.closers) - 1; i >= 0; i-- {
		if err := h.closers[i](); err != nil {
			h.logger.Error("part was not closed", "err", err)
		}
	}
	h.closers = nil
}

func (h *house) openTraces(ctx context.Context) error {
	if h.cfg.Telemetry.Traces == "" {
		return nil
	}
	var err error
	if h.tracer, err = newTracer(ctx, h.cfg.Telemetry.Traces); err != nil {
		return err
	}
	h.closers = append(h.closers, h.tracer.close)
	return nil
}

// openFolders makes dataDir. It may be passed through by the agent's user, and
// is otherwise nobody's business.
func (h *house) openFolders(context.Context) error {
	mode := fs.FileMode(0o700)
	accounts, err := agentAccounts(h.cfg.Agent)
	if err != nil {
		return &hintError{err, "set agent.user and agent.applyUser in holdfast.yaml"}
	}
	h.accounts = accounts
	if accounts != nil || os.Getuid() == 0 { // engines may be users of their own
		mode = 0o711
	}
	if !h.isolated() {
		h.logger.Warn("isolation is none, and plans run as the same user as the server: code in a plan can read the " +
			"server's keys; pull requests from forks are not planned")
	}
	if err := makeFolder(h.cfg.DataDir, mode); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	if err := makeFolder(h.path("run"), 0o711); err != nil {
		return fmt.Errorf("make folder of the socket: %w", err)
	}
	if accounts == nil {
		return nil
	}
	return reachable(h.cfg.DataDir)
}

// isolated reports whether what engines execute cannot be the server: agents
// start none without isolation, unless they are told to.
func (h *house) isolated() bool {
	return h.accounts != nil || h.cfg.Isolation != string(sandbox.ModeNone)
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
			return &hintError{
				fmt.Errorf("the agent's user cannot pass through %s to the data folder", at),
				"choose a dataDir such as /var/lib/holdfast, or set agent.user: root to run plans as root",
			}
		}
	}
	return nil
}

func (h *house) openStore(ctx context.Context) error {
	current, err := datastore.LoadOrCreateKey(h.cfg.Encryption.KeyFile)
	if err != nil {
		return fmt.Errorf("load encryption key: %w", err)
	}
	var older [][]byte
	for _, file := range h.cfg.Encryption.OldKeyFiles {
		key, err := datastore.LoadKey(file)
		if err != nil {
			return fmt.Errorf("load old encryption key: %w", err)
		}
		older = append(older, key)
	}
	if h.keys, err = datastore.NewKeyring(current, older...); err != nil {
		return fmt.Errorf("load encryption keys: %w", err)
	}
	h.store, err = datastore.Open(ctx, datastore.Options{
		Path: h.path("db", "holdfast.db"), Keys: h.keys, Retention: retention(h.cfg.Retention), Logger: h.logger,
	})
	if err != nil {
		return fmt.Errorf("open datastore: %w", err)
	}
	h.closers = append(h.closers, h.store.Close)
	h.metrics.watch(h.store, h.logger)
	// The database is ours alone from here on, and so is its folder.
	h.identity, err = loadOrCreateIdentity(h.path("identity"))
	return err
}

// retention is the store's, where zero means the default.
func retention(c config.Retention) datastore.Retention {
	r := datastore.Retention{Runs: c.Runs, DriftRuns: c.DriftRuns, Logs: c.Logs, Audit: c.Audit}
	for _, number := range []*int{&r.Runs, &r.DriftRuns} {
		if *number == 0 {
			*number = -1
		}
	}
	return r
}

func (h *house) openGit(context.Context) error {
	if err := h.openGitHub(); err != nil {
		return err
	}
	repos := make([]gitsource.Repository, 0, len(h.cfg.Repositories))
	for _, r := range h.cfg.Repositories {
		auth, err := h.gitAuth(r)
		if err != nil {
			return err
		}
		repos = append(repos, gitsource.Repository{Name: r.Name, URL: h.cloneURL(r), Branch: r.Branch, Auth: auth})
	}
	var err error
	h.git, err = gitsource.New(gitsource.Options{Dir: h.path("mirrors"), Repositories: repos, Logger: h.logger})
	if err != nil {
		return fmt.Errorf("open mirrors: %w", err)
	}
	return nil
}

func (h *house) openGitHub() error {
	h.githubs = make(map[string]*github.Client)
	for _, f := range h.cfg.Forges {
		opts := github.Options{
			BaseURL: f.URL, Repositories: make(map[string]string), Observe: h.metrics.called, Logger: h.logger,
		}
		for _, r := range h.cfg.Repositories {
			if r.Forge == f.Name {
				opts.Repositories[r.Name] = r.Name
			}
		}
		if f.App.ID != 0 {
			key, err := os.ReadFile(f.App.PrivateKeyFile)
			if err != nil {
				return fmt.Errorf("read private key of forge %q: %w", f.Name, err)
			}
			opts.App = &github.App{ID: f.App.ID, InstallationID: f.App.InstallationID, PrivateKey: key}
		} else {
			if _, err := f.Token.Value(); err != nil { // later it may be changed, now it must be there
				return fmt.Errorf("read token of forge %q: %w", f.Name, err)
			}
			opts.Token = func(context.Context) (string, error) { return f.Token.Value() }
		}
		client, err := github.New(opts)
		if err != nil {
			return fmt.Errorf("open forge %q: %w", f.Name, err)
		}
		h.githubs[f.Name] = client
	}
	return nil
}

// cloneURL is where Git finds a repository.
func (h *house) cloneURL(r config.Repository) string {
	if r.URL != "" {
		return r.URL
	}
	for _, f := range h.cfg.Forges {
		if host, ok := strings.CutSuffix(strings.TrimSuffix(f.URL, "/"), "/api/v3"); ok && f.Name == r.Forge {
			return host + "/" + r.Name + ".git"
		}
	}
	return "https://github.com/" + r.Name + ".git"
}

func (h *house) gitAuth(r config.Repository) (gitsource.Auth, error) {
	a := r.Auth
	switch client := h.githubs[r.Forge]; {
	case a.SSHKeyFile != "":
		ssh := gitsource.SSH{KeyFile: a.SSHKeyFile, KnownHostsFile: a.KnownHostsFile}
		if !a.SSHPassphrase.IsZero() {
			passphrase, err := a.SSHPassphrase.Value()
			if err != nil {
				return gitsource.Auth{}, fmt.Errorf("read passphrase of repository %q: %w", r.Name, err)
			}
			ssh.Passphrase = passphrase
		}
		return gitsource.Auth{SSH: ssh}, nil
	case !a.Password.IsZero():
		name := a.Username
		if name == "" {
			name = "x-access-token"
		}
		return gitsource.Auth{Basic: func(context.Context) (string, string, error) {
			password, err := a.Password.Value()
			return name, password, err
		}}, nil
	case client != nil:
		return gitsource.Auth{Basic: func(ctx context.Context) (string, string, error) {
			return client.Credential(ctx, r.Name)
		}}, nil
	default:
		return gitsource.Auth{}, nil
	}
}

func (h *house) openReconciler(ctx context.Context) error {
	opts := reconciler.Options{
		Store: h.store, Git: h.git, Forges: make(map[string]reconciler.Forge),
		Allow: bindings(h.cfg), Credentials: credentials(h.cfg), SecretSources: secretSources(h.cfg),
		Limits:         limits(h.cfg),
		Commands:       webhook.Commands,
		FingerprintKey: h.keys.Derive("fingerprints"), TokenKey: h.keys.Derive("run tokens"),
		Identity: h.identity, MaxRuns: h.cfg.Runs.Max, RunTimeout: h.cfg.Runs.Timeout,
		Lease: h.cfg.Runs.Lease, MaxRetries: h.cfg.Runs.Retries, RetryDelay: h.cfg.Runs.RetryDelay,
		MaxProvider: h.cfg.Runs.MaxPerProvider,
		MaxDrift:    h.cfg.Drift.Max, MaxIssues: h.cfg.Drift.MaxIssues,
		Metrics: h.metrics, Logger: h.logger,
	}
	if site := strings.TrimRight(h.cfg.Server.API.URL, "/"); site != "" {
		opts.LogURL = func(run string) string { return site + server.RunPage(run) }
		opts.PullRequestURL = func(ref holdfast.PullRequestRef) string { return site + server.PullRequestPage(ref) }
	}
	if h.tracer != nil {
		opts.Tracer = h.tracer
	}
	if opts.MaxRetries == 0 {
		opts.MaxRetries = -1 // zero means the default there
	}
	if opts.MaxIssues == 0 {
		opts.MaxIssues = -1 // here, too
	}
	if h.cfg.Drift.Schedule != templates.DriftOff {
		opts.DriftSchedule = h.cfg.Drift.Schedule
	}
	if err := h.openLock(&opts); err != nil {
		return err
	}
	branches := make(map[string]string)
	for _, r := range h.cfg.Repositories {
		repo := reconciler.Repository{
			Name: r.Name, Branch: r.Branch, Clusters: r.Clusters, Templates: r.Templates,
			UpgradeGroups: r.Upgrades.GroupBy,
			Local:         r.Forge == "local", Forks: r.Forks && h.isolated(), Drafts: r.Drafts, Poll: r.Poll,
			Trials: r.Trials,
		}
		if repo.Trials == 0 {
			repo.Trials = -1 // here, zero means the default
		}
		if repo.Local && repo.Poll == 0 {
			repo.Poll = time.Second
		}
		if repo.Poll == 0 {
			repo.Poll = max(5*time.Minute, pollFloor(len(h.cfg.Repositories)))
		}
		if len(r.Allow) == 0 && len(h.cfg.Repositories) > 1 && len(h.cfg.Credentials) > 0 {
			h.logger.Warn("whoever may open a pull request here can use the credentials of every project and environment: "+
				"bind it under repositories[].allow", "repo", r.Name)
		}
		branches[r.Name] = r.Branch
		opts.Repositories = append(opts.Repositories, repo)
	}
	plain, err := forgelocal.New(forgelocal.Options{Git: h.git, Store: h.store, Branches: branches})
	if err != nil {
		return err
	}
	for _, r := range h.cfg.Repositories {
		opts.Forges[r.Name] = plain
		if client := h.githubs[r.Forge]; client != nil {
			opts.Forges[r.Name] = client
		}
	}
	h.reconciler, err = reconciler.New(opts)
	return err
}

// pollFloor keeps polling below a quarter of GitHub's 5,000 calls an hour: a
// look at a repository takes two, and two more when something has changed.
func pollFloor(repositories int) time.Duration {
	const callsPerLook, callsPerHour = 4, 5000 / 4
	return time.Duration(repositories) * callsPerLook * time.Hour / callsPerHour
}

func (h *house) openLock(opts *reconciler.Options) error {
	if h.cfg.Lock.Type == "memory" {
		opts.Locker = lock.NewMemory()
		return nil
	}
	password := ""
	if !h.cfg.Lock.Redis.Password.IsZero() {
		var err error
		if password, err = h.cfg.Lock.Redis.Password.Value(); err != nil {
			return fmt.Errorf("read Redis password: %w", err)
		}
	}
	redis, err := lock.NewRedis(lock.Options{
		URL: h.cfg.Lock.Redis.URL, Password: password, Prefix: h.cfg.Lock.Redis.Prefix, Logger: h.logger,
	})
	if err != nil {
		return err
	}
	h.closers = append(h.closers, redis.Close)
	opts.Locker, opts.Waker = redis, redis
	return nil
}

func (h *house) openServer(context.Context) error {
	hooks, err := h.webhooks()
	if err != nil {
		return err
	}
	opts := server.Options{
		Dispatcher: h.reconciler.Dispatcher(), Blobs: h.store, States: h.store, Records: h.store, Commander: h.reconciler,
		Local: h.store, Posts: h.store, Webhooks: hooks, Metrics: h.metrics.handler(), Ready: h.waitsFor,
		Audit: h.store, ClaimRefused: h.metrics.claimRefused,
		Socket: server.Socket{Path: h.path("run", "agent.sock")}, Version: buildVersion(), Logger: h.logger,
	}
	if h.accounts != nil {
		opts.Socket.ChangeOwner, opts.Socket.Shared = true, true
		opts.Socket.UID, opts.Socket.GID = h.accounts.plan.uid, h.accounts.plan.gid
	}
	s := h.cfg.Server
	for _, l := range []struct {
		to      *server.Listener
		address string
		tls     config.TLS
	}{
		{&opts.Public, s.Public.Address, s.Public.TLS},
		{&opts.API, s.API.Address, s.API.TLS},
		{&opts.Agents, s.Agents.Address, s.Agents.TLS},
	} {
		l.to.Address = l.address
		if l.to.TLS, err = certificate(l.tls); err != nil {
			return err
		}
	}
	if opts.APITokens, err = h.apiTokens(); err != nil {
		return err
	}
	if opts.AgentTokens, err = h.agentTokens(); err != nil {
		return err
	}
	h.server, err = server.New(opts)
	return err
}

func (h *house) webhooks() (*webhook.Handler, error) {
	opts := webhook.Options{
		Store: h.store, Enqueue: h.enqueue, Stored: h.reconciler.CommandStored,
		Observe: h.metrics.delivered, Logger: h.logger,
	}
	for _, r := range h.cfg.Repositories {
		if r.Forge == "local" {
			continue
		}
		opts.Repositories = append(opts.Repositories, webhook.Repository{
			Name: r.Name, FullName: r.Name,
			Secret: func() []byte {
				if r.WebhookSecret.IsZero() {
					return nil
				}
				secret, err := r.WebhookSecret.Value()
				if err != nil {
					h.logger.Error("webhook secret was not read", "repo", r.Name, "err", err)
					return nil
				}
				return []byte(secret)
			},
		})
	}
	return webhook.New(opts)
}

func (h *house) enqueue(req holdfast.SourceRequest) {
	if h.tracer != nil {
		req = h.tracer.delivered(req)
	}
	h.reconciler.Enqueue(req)
}

func (h *house) waitsFor() []string {
	var out []string
	for _, repo := range h.reconciler.Ready() {
		out = append(out, "repository "+repo+" was not read yet")
	}
	return out
}

func certificate(t config.TLS) (*tls.Config, error) {
	if t.CertFile == "" {
		return nil, nil
	}
	if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		// Read again at each handshake: certificates are renewed in place.
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
			return &pair, err
		},
	}, nil
}
