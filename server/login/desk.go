package login

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/server/session"
)

// People are on record; *datastore.Store is one.
type People interface {
	// SavePerson records who has logged in.
	SavePerson(ctx context.Context, p access.Person) error
	// Person returns somebody; ErrNotFound if they have never logged in.
	Person(ctx context.Context, id access.PersonID) (access.Person, error)
}

// Options are what a Desk needs. All are required unless noted.
type Options struct {
	People   People
	Provider Provider
	Bindings []access.Binding
	// Reserved are names that no person is called by in the audit trail: those of tokens.
	Reserved []string
	Show     session.Show // the login page, which says why somebody was not let in; nil: a plain one
	Client   *http.Client // for the provider; nil: one with a timeout of 10 s
	Logger   *slog.Logger // nil discards
	Now      func() time.Time
}

// Desk logs people in. It is safe for concurrent use.
type Desk struct {
	opts     Options
	provider *provider
}

// New returns a Desk. The provider is asked for nothing yet: it may be away.
func New(opts Options) (*Desk, error) {
	if opts.People == nil {
		return nil, errors.New("login: no people")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Show == nil {
		opts.Show = session.ShowPlain
	}
	provider, err := newProvider(opts.Provider, opts.Client, opts.Now)
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	return &Desk{opts: opts, provider: provider}, nil
}

// Grants returns the roles of a person now; ErrUnauthorized if there are none.
func (d *Desk) Grants(ctx context.Context, id access.PersonID) (access.Grants, error) {
	person, err := d.opts.People.Person(ctx, id)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return nil, holdfast.ErrorOf(holdfast.ErrUnauthorized, "nobody of that name has logged in")
	case err != nil:
		return nil, err
	case id.Issuer != d.provider.Issuer:
		return nil, holdfast.ErrorOf(holdfast.ErrUnauthorized, "the identity provider has changed: log in again")
	}
	grants := access.GrantsFor(person, d.opts.Bindings)
	if grants.Highest() == "" {
		return nil, holdfast.ErrorOf(holdfast.ErrUnauthorized, "you have no role any longer")
	}
	return grants, nil
}

// Personal returns whose a personal token is.
func (d *Desk) Personal(context.Context, string) (access.Principal, error) {
	return access.Principal{}, holdfast.ErrorOf(holdfast.ErrUnauthorized, "token missing or unknown")
}

// maxName bounds how long somebody's name may be in the audit trail, in bytes.
const maxName = 100

// actor is what a person is called in the audit trail: never as a token is, nor as Holdfast.
func (d *Desk) actor(name, subject string) string {
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, "")))
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	if name == "" {
		name = "person " + fmt.Sprintf("%.*q", maxName, subject)
	}
	for _, taken := range append([]string{"holdfast"}, d.opts.Reserved...) {
		if strings.EqualFold(name, taken) {
			return name + " (person)"
		}
	}
	return name
}
