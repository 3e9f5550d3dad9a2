package serve

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/forge/github"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/webhook"
)

func (s *services) openGitHub() error {
	s.githubs = make(map[string]*github.Client)
	for _, f := range s.cfg.Forges {
		opts := github.Options{
			BaseURL: f.URL, Repositories: make(map[string]string), Observe: s.metrics.Called, Logger: s.logger, Now: s.clock.Now,
			MayCommand: func(body string) bool { return len(webhook.ParseCommands(body)) > 0 },
		}
		opts.Writes = f.WritesPerMinute
		for _, r := range s.cfg.Repositories {
			if r.Forge == f.Name {
				opts.Repositories[r.Name] = r.FullName()
			}
		}
		if f.App.ID != 0 {
			key, err := os.ReadFile(f.App.PrivateKeyFile)
			if err != nil {
				return fmt.Errorf("read private key of code host %q: %w", f.Name, err)
			}
			opts.App = &github.App{ID: f.App.ID, InstallationID: f.App.InstallationID, PrivateKey: key}
		} else {
			if _, err := f.Token.Value(); err != nil { // later it may be changed, now it must be there
				return fmt.Errorf("read token of code host %q: %w", f.Name, err)
			}
			opts.Token = func(context.Context) (string, error) { return f.Token.Value() }
		}
		client, err := github.New(opts)
		if err != nil {
			return fmt.Errorf("open code host %q: %w", f.Name, err)
		}
		s.githubs[f.Name] = client
	}
	return nil
}

// otherBranches returns, by repository, the branches that others at the same URL
// track.
func otherBranches(repos []config.Repository) map[string][]string {
	others := make(map[string][]string)
	for _, r := range repos {
		for _, other := range repos {
			if other.Name != r.Name && other.URL != "" && other.URL == r.URL && other.Branch != r.Branch {
				others[r.Name] = append(others[r.Name], other.Branch)
			}
		}
	}
	return others
}

// entriesOf returns the names of the entries that are the same repository on a code
// host as r, in the order of the configuration.
func entriesOf(repos []config.Repository, r config.Repository) []string {
	var names []string
	for _, other := range repos {
		if r.SameAs(other) {
			names = append(names, other.Name)
		}
	}
	return names
}

// furtherBranch is GitHub for an entry of a repository that another entry before it
// tracks too. A commit can be in both branches, so that its statuses need their own
// contexts.
type furtherBranch struct {
	*github.Client
	branch string
}

// SetStatus implements reconciler.Forge.
func (f furtherBranch) SetStatus(ctx context.Context, repo string, status holdfast.CommitStatus) error {
	status.Context = contextOf(status.Context, f.branch)
	return f.Client.SetStatus(ctx, repo, status)
}

// PutCheck implements publish.Checker.
func (f furtherBranch) PutCheck(ctx context.Context, repo string, status holdfast.CommitStatus, faults holdfast.Faults) error {
	status.Context = contextOf(status.Context, f.branch)
	return f.Client.PutCheck(ctx, repo, status, faults)
}

// contextOf is the context of a status of a further branch.
func contextOf(context, branch string) string { return context + "/" + branch }

// shownPosts are the posts as their code hosts have them: statuses of a further
// branch under its context.
type shownPosts struct {
	store   server.Posts
	further map[string]string // branches by repository
}

func (s *services) shownPosts() shownPosts {
	p := shownPosts{store: s.store, further: make(map[string]string)}
	for _, r := range s.cfg.Repositories {
		if s.githubs[r.Forge] != nil && entriesOf(s.cfg.Repositories, r)[0] != r.Name {
			p.further[r.Name] = r.Branch
		}
	}
	return p
}

// Post implements server.Posts.
func (p shownPosts) Post(ctx context.Context, key string) (outgoing.Post, error) {
	post, err := p.store.Post(ctx, key)
	return p.shown(post), err
}

// Posts implements server.Posts.
func (p shownPosts) Posts(ctx context.Context, filter outgoing.PostFilter) ([]outgoing.Post, error) {
	posts, err := p.store.Posts(ctx, filter)
	for i := range posts {
		posts[i] = p.shown(posts[i])
	}
	return posts, err
}

func (p shownPosts) shown(post outgoing.Post) outgoing.Post {
	if branch := p.further[post.Repo]; branch != "" && post.Status.Context != "" {
		post.Status.Context = contextOf(post.Status.Context, branch)
	}
	return post
}

// clone is how Git reads a repository.
type clone struct {
	url string
	// foreign: the URL is of another host than the forge, whose credential is not
	// sent there.
	foreign bool
}

// cloneOf returns how Git reads a repository. The configuration is valid.
func cloneOf(cfg *config.Config, r config.Repository) clone {
	for _, f := range cfg.Forges {
		if f.Name != r.Forge {
			continue
		}
		at, err := github.EndpointsOf(f.URL)
		switch {
		case err != nil: // said when the forge is opened
		case r.URL == "":
			return clone{url: at.Web.String() + "/" + r.FullName() + ".git"}
		default:
			return clone{url: r.URL, foreign: !at.OwnsURL(r.URL)}
		}
	}
	return clone{url: r.URL}
}

func (s *services) gitAuth(r config.Repository, from clone) (gitsource.Auth, error) {
	a := r.Auth
	switch client := s.githubs[r.Forge]; {
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
	case client != nil && !from.foreign:
		return gitsource.Auth{Basic: func(ctx context.Context) (string, string, error) {
			return client.Credential(ctx, r.Name)
		}}, nil
	default:
		return gitsource.Auth{}, nil
	}
}

// DescribeForges writes which addresses the forges and repositories of a valid
// configuration resolve to, and where its blobs are.
func DescribeForges(w io.Writer, cfg *config.Config) {
	if url := cfg.Datastore.Blobs.URL; url != "" {
		fmt.Fprintf(w, "blobs: %s\n", url)
	}
	for _, f := range cfg.Forges {
		if at, err := github.EndpointsOf(f.URL); err == nil {
			fmt.Fprintf(w, "code host %s: API %s\n", f.Name, at.API)
		}
	}
	for _, r := range cfg.Repositories {
		from := cloneOf(cfg, r)
		note := foreignNote(r, from)
		if note != "" {
			note = " (" + note + ")"
		}
		if entries := entriesOf(cfg.Repositories, r); len(entries) > 1 && entries[0] != r.Name {
			note += fmt.Sprintf(", statuses %s and %s", contextOf(holdfast.ContextPlan, r.Branch), contextOf(holdfast.ContextApply, r.Branch))
		}
		fmt.Fprintf(w, "repository %s: %s%s\n", r.Name, from.url, note)
	}
}

func foreignNote(r config.Repository, from clone) string {
	if !from.foreign || !r.Auth.Password.IsZero() || r.Auth.SSHKeyFile != "" {
		return ""
	}
	return fmt.Sprintf("not on code host %s: its credential is not sent there; set repositories[].auth", r.Forge)
}
