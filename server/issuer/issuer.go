package issuer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server/issuer/claims"
)

// Options are what an Issuer needs. All are required unless noted.
type Options struct {
	URL   string // "iss" of tokens: see CheckURL
	Store Store
	Times Times
	Runs  Runs
	// Replaces is a URL that tokens were issued with before: without it, a URL other than
	// the recorded one is refused. Optional.
	Replaces string
	// Issued is notified of each token, and Refused of each that was not given, with its
	// reason as a label of metrics. Both are optional.
	Issued  func(ctx context.Context, token Issued)
	Refused func(reason string)
	Logger  *slog.Logger // nil discards
}

// Times are durations. All are required.
type Times struct {
	Token    time.Duration // a token
	Rotate   time.Duration // a key signs; zero: forever
	Announce time.Duration // a key is published before it signs
}

// Issued is a token that was given, without what would be secret of it.
type Issued struct {
	Kind string // of the identity: aws, gcp, azure or vault; runner: the server's own
	claims.Claims
}

// Store keeps the keys; *datastore.Store is one.
type Store interface {
	// Issuer returns what is on record, with the time of the records' clock.
	Issuer(ctx context.Context) (holdfast.Issuer, error)
	// SaveIssuer records URL and time; an ErrConflict if the record is not was.
	SaveIssuer(ctx context.Context, was, is holdfast.Issuer) error
	// AddIssuerKey is an ErrConflict if there is a key with its number.
	AddIssuerKey(ctx context.Context, key holdfast.IssuerKey) error
	RemoveIssuerKey(ctx context.Context, number int64) error
}

// Runs say what runs may have tokens for, and where they come from.
type Runs interface {
	// Identities are the identities that the configuration gives to runs of a kind of a
	// cluster.
	Identities(c holdfast.Cluster, kind holdfast.RunKind) (protocol.Identities, error)
	Origin(run holdfast.Run) claims.Origin
}

// Issuer signs tokens. It is safe for concurrent use.
type Issuer struct {
	opts  Options
	paths [2]string // of discovery and JWKS

	marking sync.Mutex
	marked  bool // it is on record that tokens were issued; guarded by marking

	ring atomic.Pointer[ring]
}

// Why a token is refused, as the metric says it.
const (
	RefusedAudience = "audience" // the configuration gives the run no such identity
	RefusedURL      = "issuer"   // another replica has recorded another URL
)

// MovedError says that tokens were issued with another URL.
type MovedError struct{ Recorded, Configured string }

func (e *MovedError) Error() string {
	return fmt.Sprintf("tokens were issued as %s, and server.issuer.url is %s: clouds that trust the former would accept none of the tokens",
		e.Recorded, e.Configured)
}

// New returns an Issuer whose keys are there: the first one is made if there is none. It is a
// *MovedError if tokens were issued with another URL.
func New(ctx context.Context, opts Options) (*Issuer, error) {
	if err := CheckURL(opts.URL); err != nil {
		return nil, fmt.Errorf("issuer: URL %w", err)
	}
	if opts.Store == nil || opts.Runs == nil || opts.Times.Token <= 0 || opts.Times.Announce < 0 {
		return nil, errors.New("issuer: no store, no runs or no times")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	at, err := url.Parse(opts.URL)
	if err != nil {
		return nil, fmt.Errorf("issuer: %w", err)
	}
	i := &Issuer{opts: opts, paths: [2]string{at.Path + discoveryPath, at.Path + jwksPath}}
	if err := i.claimURL(ctx); err != nil {
		return nil, err
	}
	if err := i.Refresh(ctx); err != nil {
		return nil, fmt.Errorf("open issuer: %w", err)
	}
	return i, nil
}

// CheckURL returns what is wrong with the URL of an issuer: clouds compare it byte by byte
// with what was registered, and AWS accepts no port.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "":
		return errors.New("must be of the form https://HOST")
	case u.Port() != "" || strings.HasSuffix(u.Host, ":"):
		return errors.New("must not name a port: clouds fetch the keys from port 443")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#"):
		return errors.New("must have neither a user nor a query nor a fragment")
	case strings.HasSuffix(u.Path, "/"):
		return errors.New("must not end with a slash: clouds compare it byte by byte")
	case u.String() != text || strings.ToLower(u.Host) != u.Host || strings.Contains(u.Path, "//") || u.RawPath != "":
		return errors.New("must be written plainly, its host in lower case")
	}
	return nil
}

// claimURL records our URL, unless tokens were issued with another one.
func (i *Issuer) claimURL(ctx context.Context) error {
	for {
		was, err := i.opts.Store.Issuer(ctx)
		if err != nil {
			return fmt.Errorf("open issuer: %w", err)
		}
		if was.URL == i.opts.URL {
			i.marked = !was.IssuedAt.IsZero()
			return nil
		}
		if !was.IssuedAt.IsZero() && was.URL != i.opts.Replaces {
			return &MovedError{Recorded: was.URL, Configured: i.opts.URL}
		}
		err = i.opts.Store.SaveIssuer(ctx, was, holdfast.Issuer{URL: i.opts.URL})
		if err == nil && !was.IssuedAt.IsZero() {
			i.opts.Logger.WarnContext(ctx, "issuer of tokens has another URL from now on", "was", was.URL, "url", i.opts.URL)
		}
		if !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
	}
}

// mark records, before the first token leaves, that tokens were issued with our URL.
func (i *Issuer) mark(ctx context.Context) error {
	i.marking.Lock()
	defer i.marking.Unlock()
	for !i.marked {
		was, err := i.opts.Store.Issuer(ctx)
		if err != nil {
			return err
		}
		if was.URL != i.opts.URL {
			return &MovedError{Recorded: was.URL, Configured: i.opts.URL}
		}
		if was.IssuedAt.IsZero() {
			err = i.opts.Store.SaveIssuer(ctx, was, holdfast.Issuer{URL: was.URL, IssuedAt: was.Now})
		}
		switch {
		case err == nil:
			i.marked = true
		case !errors.Is(err, holdfast.ErrConflict):
			return err
		}
	}
	return nil
}

// Issue returns a token of the current attempt at a run, for an audience that the
// configuration gives to it; an ErrForbidden for any other.
func (i *Issuer) Issue(ctx context.Context, run holdfast.Run, audience string) (protocol.IdentityToken, error) {
	identities, err := i.opts.Runs.Identities(run.Document, run.Kind)
	if err != nil {
		return protocol.IdentityToken{}, fmt.Errorf("issue token: %w", err)
	}
	kind := kindOf(identities, audience)
	if kind == "" {
		i.refused(RefusedAudience)
		return protocol.IdentityToken{}, fmt.Errorf("a %s run of this project and environment has no identity for audience %.200q: %w",
			run.Kind, audience, holdfast.ErrForbidden)
	}
	said := claims.Of(run, i.opts.Runs.Origin(run))
	if kind == "aws" && identities.AWS.SessionTags {
		said = said.Tagged()
	}
	return i.sign(ctx, kind, said, audience)
}

// IssueRunner returns a token of the server itself, by which it starts the runs of a runner.
// Only the server calls it: no listener leads here.
func (i *Issuer) IssueRunner(ctx context.Context, origin claims.Origin, audience string) (protocol.IdentityToken, error) {
	return i.sign(ctx, claims.PhaseRunner, claims.OfRunner(origin), audience)
}

// sign addresses claims to an audience, and makes the token.
func (i *Issuer) sign(ctx context.Context, kind string, of claims.Claims, audience string) (protocol.IdentityToken, error) {
	if err := i.mark(ctx); err != nil {
		i.refused(RefusedURL)
		return protocol.IdentityToken{}, fmt.Errorf("issue token: %w", err)
	}
	ring := i.ring.Load()
	now := ring.now()
	said := of.For(i.opts.URL, audience, rand.Text(), now, i.opts.Times.Token)
	token, err := ring.sign(said, now)
	if err != nil {
		return protocol.IdentityToken{}, fmt.Errorf("issue token: %w", err)
	}
	if i.opts.Issued != nil {
		i.opts.Issued(ctx, Issued{Kind: kind, Claims: said})
	}
	return protocol.IdentityToken{Token: token, Lifetime: i.opts.Times.Token}, nil
}

func (i *Issuer) refused(why string) {
	if i.opts.Refused != nil {
		i.opts.Refused(why)
	}
}

// kindOf is the kind of the identity whose tokens have that audience, empty if there is none.
func kindOf(identities protocol.Identities, audience string) string {
	for _, kind := range []string{"aws", "gcp", "azure", "vault"} {
		if of, ok := identities.Audiences()[kind]; ok && of == audience && audience != "" {
			return kind
		}
	}
	return ""
}

// refreshEvery is how often the keys are read again, and retryEvery the same after a failure.
const (
	refreshEvery = time.Minute
	retryEvery   = 10 * time.Second
)

// Run keeps the keys up to date until ctx is done.
func (i *Issuer) Run(ctx context.Context) {
	pause, failed := refreshEvery, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		err := i.Refresh(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			i.opts.Logger.WarnContext(ctx, "keys of the issuer were not read again: those that were read last are used", "err", err)
		}
		pause, failed = refreshEvery, err != nil
		if failed {
			pause = retryEvery
		}
	}
}

// Paths are those of the two documents that others read.
func (i *Issuer) Paths() []string { return i.paths[:] }

// ServeHTTP answers with discovery or JWKS, from memory.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.serve(w, r)
}
