package gitsource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/holdfast-dev/holdfast"
)

// MaxFileSize is the size in bytes of the largest file that a Tree reads.
const MaxFileSize = 10 << 20

// Options are what a Source needs. All are required unless noted.
type Options struct {
	// Dir is the folder of the mirrors. It is created if needed, for its owner
	// only. One Source at a time should use it; two do not destroy anything.
	Dir string

	// Repositories are those that can be asked for. Names are unique.
	Repositories []Repository

	// Timeout bounds one fetch as a whole; zero means 15 min.
	Timeout time.Duration
	// IdleTimeout ends a fetch from which nothing came for this long; zero means 1 min.
	IdleTimeout time.Duration

	Logger *slog.Logger // nil discards
}

// Repository is a Git repository and how to reach it.
type Repository struct {
	Name string // as in holdfast.yaml

	// URL is https, http, ssh (also as host:path), file, or a path on disk. It
	// carries no password and no query: see Auth.
	URL string

	// Branch is the tracked branch. It is fetched like the others, and may be
	// empty.
	Branch string

	Auth Auth
}

// Auth is a credential for one repository: Basic for http and https, SSH for
// ssh. The zero value is for repositories that everybody may read, and for those
// on disk.
type Auth struct {
	// Basic returns user and password, and is asked again for every fetch and push: the
	// password may be a token that expires soon. Nil: none are sent. To push they
	// have to be of somebody who may write.
	Basic func(ctx context.Context) (user, password string, err error)

	SSH SSH
}

// SSH is a private key and what is known about the host.
type SSH struct {
	KeyFile        string // PEM; read at every fetch
	Passphrase     string // of the key; empty if it has none
	KnownHostsFile string // as OpenSSH writes it; a host that is not in it is refused
}

// Source reads the repositories that it was made for. It is safe for concurrent
// use, and starts nothing that outlives a call.
type Source struct {
	mirrors map[string]*mirror
	logger  *slog.Logger
}

// New returns a Source, or an error that names everything wrong with opts. It
// makes the folder, and reaches for no repository yet.
func New(opts Options) (*Source, error) {
	if opts.Dir == "" {
		return nil, errors.New("gitsource: no folder for mirrors")
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("gitsource: %w", err)
	}
	if opts.Timeout == 0 {
		opts.Timeout = 15 * time.Minute
	}
	if opts.IdleTimeout == 0 {
		opts.IdleTimeout = time.Minute
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Source{mirrors: map[string]*mirror{}, logger: opts.Logger}
	client := newHTTPClient()
	var faults []error
	for _, repo := range opts.Repositories {
		r, err := newRemote(repo, client)
		if err == nil && s.mirrors[repo.Name] != nil {
			err = errors.New("named twice")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("gitsource: repository %q: %w", repo.Name, err))
			continue
		}
		r.timeout, r.idle = opts.Timeout, opts.IdleTimeout
		s.mirrors[repo.Name] = newMirror(dir, repo.Name, r, opts.Logger)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("gitsource: %w", err)
	}
	return s, nil
}

func (s *Source) mirror(repo string) (*mirror, error) {
	m, ok := s.mirrors[repo]
	if !ok {
		return nil, holdfast.ErrorOf(holdfast.ErrNotFound, "repository %q is not configured", repo)
	}
	return m, nil
}

// newRemote checks where a repository is and how it is reached.
func newRemote(repo Repository, client transport.Transport) (*remote, error) {
	if repo.Name == "" {
		return nil, errors.New("no name")
	}
	if repo.URL == "" {
		return nil, errors.New("no URL")
	}
	r := &remote{auth: repo.Auth, http: client}
	if strings.Contains(repo.URL, "://") {
		u, err := url.Parse(repo.URL)
		if err != nil {
			return nil, errors.New("URL cannot be parsed") // the cause would print it
		}
		if _, has := u.User.Password(); has || u.RawQuery != "" || u.Fragment != "" {
			return nil, errors.New("URL with a password, a query or a fragment: credentials have a place of their own")
		}
		if u.User != nil && u.Scheme != "ssh" {
			return nil, errors.New("URL with a user: credentials have a place of their own")
		}
	}
	endpoint, err := transport.NewEndpoint(repo.URL)
	if err != nil {
		return nil, fmt.Errorf("URL: %w", err)
	}
	r.endpoint = endpoint
	switch endpoint.Protocol {
	case "http", "https", "file":
		if repo.Auth.SSH != (SSH{}) {
			return nil, fmt.Errorf("SSH key for a %s URL", endpoint.Protocol)
		}
	case "ssh":
		if repo.Auth.SSH.KeyFile == "" || repo.Auth.SSH.KnownHostsFile == "" {
			return nil, errors.New("an ssh URL needs a key file and a known_hosts file")
		}
	default:
		return nil, fmt.Errorf("URL of scheme %q: want https, http, ssh, file or a path", endpoint.Protocol)
	}
	if repo.Auth.Basic != nil && endpoint.Protocol != "http" && endpoint.Protocol != "https" {
		return nil, fmt.Errorf("user and password for a %s URL", endpoint.Protocol)
	}
	return r, nil
}

// newHTTPClient is go-git's transport over our own client, whose connections and limits
// are not those of everybody in the process.
func newHTTPClient() transport.Transport {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 4
	return githttp.NewClient(&http.Client{Transport: &guard{base: base}})
}
