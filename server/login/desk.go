package login

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

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

// Records are where a Desk keeps things; *datastore.Store is all of them.
type Records struct {
	People   People
	Keys     Keys
	Requests Requests
}

// Rules say who may do what, and for how long. All are required unless noted.
type Rules struct {
	Bindings    []access.Binding
	Tokens      []session.Token // of the configuration: nobody is called as one is
	MaxLifetime time.Duration   // of personal tokens; zero: 90 days
}

// Options are what a Desk needs. All are required unless noted.
type Options struct {
	Records  Records
	Rules    Rules
	Provider Provider        // its zero value: people log in with tokens of the configuration alone
	Show     session.Show    // the login page, which says why somebody was not let in; nil: a plain one
	Audit    session.Auditor // nil: what becomes of tokens is not recorded
	Logger   *slog.Logger    // nil discards
	Now      func() time.Time
}

// Desk logs people and command lines in. It is safe for concurrent use.
type Desk struct {
	opts     Options
	provider *provider // nil: there is none
	guesses  guesses
}

// New returns a Desk. The provider is asked for nothing yet: it may be away.
func New(opts Options) (*Desk, error) {
	if opts.Records.People == nil || opts.Records.Keys == nil || opts.Records.Requests == nil {
		return nil, errors.New("login: no records")
	}
	if opts.Rules.MaxLifetime == 0 {
		opts.Rules.MaxLifetime = 90 * 24 * time.Hour
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
	d := &Desk{opts: opts}
	if opts.Provider.Issuer == "" {
		return d, nil
	}
	var err error
	if d.provider, err = newProvider(opts.Provider, opts.Now); err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	return d, nil
}

// Grants returns the roles of a person now; ErrUnauthorized if there are none.
func (d *Desk) Grants(ctx context.Context, id access.PersonID) (access.Grants, error) {
	if d.provider == nil {
		return nil, holdfast.ErrorOf(holdfast.ErrUnauthorized, "no identity provider is configured now")
	}
	person, err := d.opts.Records.People.Person(ctx, id)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return nil, holdfast.ErrorOf(holdfast.ErrUnauthorized, "nobody of that name has logged in")
	case err != nil:
		return nil, err
	case id.Issuer != d.provider.Issuer:
		return nil, holdfast.ErrorOf(holdfast.ErrUnauthorized, "the identity provider has changed: log in again")
	}
	grants := access.GrantsFor(person, d.opts.Rules.Bindings)
	if grants.Highest() == "" {
		return nil, holdfast.ErrorOf(holdfast.ErrUnauthorized, "you no longer have a role")
	}
	return grants, nil
}

// maxName bounds how long somebody's name may be in the audit trail, in bytes.
const maxName = 100

// actor is what a person is called in the audit trail: never as a token is, nor as Holdfast.
func (d *Desk) actor(name, subject string) string {
	name = strings.TrimSpace(session.Clean(name, maxName))
	if name == "" {
		name = "person " + fmt.Sprintf("%.*q", maxName, subject)
	}
	taken := func(t session.Token) bool { return strings.EqualFold(name, t.Name) }
	if strings.EqualFold(name, "holdfast") || slices.ContainsFunc(d.opts.Rules.Tokens, taken) {
		return name + " (person)"
	}
	return name
}
