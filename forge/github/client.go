package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/holdfast-dev/holdfast"
)

const (
	publicURL = "https://api.github.com/"
	// callTimeout bounds one call, with its redirects and the wait for a slot.
	callTimeout = 30 * time.Second
	// maxPages of 100 entries are read of a list; more is cut and logged.
	maxPages = 50
)

// Options are what a Client is made of.
type Options struct {
	// BaseURL is where GitHub is, as EndpointsOf reads it; empty means github.com.
	BaseURL string

	Identity

	// Repositories maps the names that Holdfast uses to GitHub's owner/name.
	Repositories map[string]string

	// MayCommand reports whether a comment may hold a command. For these GitHub is asked
	// whether they were edited in the second in which they were written; nil: it is not asked.
	MayCommand func(body string) bool

	// Transport carries the calls; nil means a pool of connections of our own.
	Transport http.RoundTripper
	// Observe is called after each call that reached the network or was
	// refused by it, for metrics. It must not block. Nil means nobody looks.
	Observe func(Call)
	Logger  *slog.Logger     // nil discards
	Now     func() time.Time // nil means time.Now
}

// Identity is who we are on GitHub.
type Identity struct {
	// Exactly one of Token and App is set. Token is asked before every call; it may
	// read a file that is rotated.
	Token func(ctx context.Context) (string, error)
	App   *App
	// Login is the user that our comments are written by, such as
	// "holdfast[bot]". Empty: GitHub is asked, once.
	Login string
	// Writes is how many calls that change something are made in a minute. Zero means
	// WritesPerMinute.
	Writes int
}

// App is a GitHub App.
type App struct {
	ID             int64
	InstallationID int64  // zero: looked up for each repository
	PrivateKey     []byte // PEM
}

// Call is one HTTP exchange with GitHub.
type Call struct {
	Method   string
	Status   int // zero: there was no answer
	Duration time.Duration
}

// Client is GitHub as the reconciler sees it. It is safe for concurrent use.
type Client struct {
	opts    Options
	at      Endpoints
	repos   map[string]repository
	sent    *statusMemory
	checks  checkMemory
	app     *account // signs with the App's key; nil without an App
	byToken *account // nil with an App

	mu            sync.Mutex
	installations map[string]int64   // by Holdfast's name
	accounts      map[int64]*account // by installation
	login         string
}

type repository struct{ owner, name string }

func (r repository) String() string { return r.owner + "/" + r.name }

// account is one credential with its own rate limit and cache.
type account struct {
	gh     *github.Client
	tokens tokens
	limits *limits
}

// New returns a Client. It makes no call.
func New(opts Options) (*Client, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Observe == nil {
		opts.Observe = func(Call) {}
	}
	if opts.Transport == nil {
		opts.Transport = newTransport()
	}
	if (opts.Token == nil) == (opts.App == nil) {
		return nil, errors.New("github: exactly one of a token and an App is needed")
	}
	at, err := EndpointsOf(opts.BaseURL)
	if err != nil {
		return nil, err
	}
	c := &Client{
		opts: opts, at: at,
		repos:         make(map[string]repository, len(opts.Repositories)),
		sent:          newStatusMemory(),
		installations: make(map[string]int64),
		accounts:      make(map[int64]*account),
		login:         opts.Login,
	}
	for name, fullName := range opts.Repositories {
		owner, repo, ok := strings.Cut(fullName, "/")
		if !ok || owner == "" || repo == "" || strings.ContainsAny(repo, "/?#%") || strings.ContainsAny(owner, "?#%") {
			return nil, fmt.Errorf("github: repository %q: %q is not owner/name", name, fullName)
		}
		c.repos[name] = repository{owner: owner, name: repo}
	}
	if opts.App == nil {
		c.byToken = c.newAccount(opts.Transport, tokenFunc(opts.Token))
		return c, nil
	}
	signer, err := appTransport(opts.Transport, *opts.App, opts.Now)
	if err != nil {
		return nil, err
	}
	c.app = c.newAccount(signer, nil)
	return c, nil
}

func newTransport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = concurrency
	t.ResponseHeaderTimeout = callTimeout
	return t
}

// newAccount returns an account whose calls go through next; nil tokens mean
// that next authenticates.
func (c *Client) newAccount(next http.RoundTripper, tokens tokens) *account {
	a := &account{tokens: tokens, limits: &limits{now: c.opts.Now}}
	a.gh = github.NewClient(&http.Client{
		Timeout: callTimeout,
		Transport: &transport{
			base: c.at.API, next: next, tokens: tokens, limits: a.limits, cache: newCache(),
			slots: make(chan struct{}, concurrency), pace: newPace(cmp.Or(c.opts.Writes, WritesPerMinute), c.opts.Now), frozen: newArchives(c.opts.Now),
			observe: c.opts.Observe, now: c.opts.Now,
		},
		CheckRedirect: checkRedirect,
	})
	a.gh.BaseURL = c.at.API
	a.gh.UserAgent = "holdfast"
	return a
}

// checkRedirect follows the redirects of renamed repositories. A write that
// would turn into a read is not followed: it would look like a success.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 5 {
		return errors.New("too many redirects")
	}
	if req.Method != via[0].Method {
		return fmt.Errorf("redirect of a %s", via[0].Method)
	}
	return nil
}

// account returns the account for a repository and the repository on GitHub.
func (c *Client) account(ctx context.Context, name string) (*account, repository, error) {
	repo, ok := c.repos[name]
	if !ok {
		return nil, repository{}, fmt.Errorf("repository %q: %w", name, holdfast.ErrNotFound)
	}
	if c.byToken != nil {
		return c.byToken, repo, nil
	}
	id := c.opts.App.InstallationID
	if id == 0 {
		var err error
		if id, err = c.installation(ctx, name, repo); err != nil {
			return nil, repo, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.accounts[id]
	if !ok {
		a = c.newAccount(c.opts.Transport, &installationTokens{apps: c.app.gh.Apps, id: id, now: c.opts.Now, busy: make(chan struct{}, 1)})
		c.accounts[id] = a
	}
	return a, repo, nil
}

// installation returns the id of the App's installation on a repository.
func (c *Client) installation(ctx context.Context, name string, repo repository) (int64, error) {
	c.mu.Lock()
	id := c.installations[name]
	c.mu.Unlock()
	if id != 0 {
		return id, nil
	}
	found, _, err := c.app.gh.Apps.FindRepositoryInstallation(ctx, repo.owner, repo.name)
	if err != nil {
		return 0, fmt.Errorf("find the App's installation on %s: %w", repo, translate(ctx, err))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.installations[name] = found.GetID()
	return found.GetID(), nil
}

// forget makes the next call look the installation up again: the App may have
// been removed and installed again.
func (c *Client) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.accounts, c.installations[name])
	delete(c.installations, name)
}

// do makes calls for a repository and puts what failed into words.
func (c *Client) do(ctx context.Context, name, what string, calls func(gh *github.Client, repo repository) error) error {
	a, repo, err := c.account(ctx, name)
	if err == nil {
		err = translate(ctx, calls(a.gh, repo))
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, errNoInstallation) {
		c.forget(name)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Credential returns the user and password with which Git may read a
// repository now. An App's password ends within the hour: ask for each fetch.
func (c *Client) Credential(ctx context.Context, repo string) (user, password string, err error) {
	a, _, err := c.account(ctx, repo)
	if err != nil {
		return "", "", fmt.Errorf("credential for %q: %w", repo, err)
	}
	token, err := a.tokens.token(ctx)
	if err != nil {
		if errors.Is(err, errNoInstallation) {
			c.forget(repo)
		}
		return "", "", fmt.Errorf("credential for %q: %w", repo, translate(ctx, err))
	}
	return "x-access-token", token, nil
}

// Login returns who we are on GitHub, such as "holdfast[bot]".
func (c *Client) Login(ctx context.Context) (string, error) {
	c.mu.Lock()
	login := c.login
	c.mu.Unlock()
	if login != "" {
		return login, nil
	}
	if c.app != nil {
		app, _, err := c.app.gh.Apps.Get(ctx, "")
		if err != nil {
			return "", fmt.Errorf("read our App: %w", translate(ctx, err))
		}
		login = app.GetSlug() + "[bot]"
	} else {
		user, _, err := c.byToken.gh.Users.Get(ctx, "")
		if err != nil {
			return "", fmt.Errorf("read our user: %w", translate(ctx, err))
		}
		login = user.GetLogin()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.login = login
	return login, nil
}

// Repository is a repository as GitHub has it now.
type Repository struct {
	ID       int64  // which stays when it is renamed
	FullName string // which need not be the one that is configured
	Archived bool   // nothing can be written
}

// Repository reads a repository.
func (c *Client) Repository(ctx context.Context, name string) (Repository, error) {
	var repo Repository
	err := c.do(ctx, name, fmt.Sprintf("read repository %q", name), func(gh *github.Client, on repository) error {
		found, _, err := gh.Repositories.Get(ctx, on.owner, on.name)
		repo = Repository{ID: found.GetID(), FullName: found.GetFullName(), Archived: found.GetArchived()}
		return err
	})
	return repo, err
}

// Quota is what is left of an hour's calls.
type Quota struct {
	Limit     int // zero: not known yet
	Remaining int
	Reset     time.Time // when Remaining is Limit again
	// RetryAt is set while GitHub refuses calls: nothing is asked before.
	RetryAt time.Time
	// WriteAt is set while GitHub refuses writes alone.
	WriteAt time.Time
}

// Quota returns what the last answer said about the credential that is used
// for a repository. It makes no call; the zero Quota means not known yet.
func (c *Client) Quota(repo string) Quota {
	if c.byToken != nil {
		return c.byToken.limits.read()
	}
	id := c.opts.App.InstallationID
	c.mu.Lock()
	if id == 0 {
		id = c.installations[repo]
	}
	a := c.accounts[id]
	c.mu.Unlock()
	if a == nil {
		return Quota{}
	}
	return a.limits.read()
}
