package login

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/server/session"
)

// Keys are personal tokens on record; *datastore.Store is one.
type Keys interface {
	// AddPersonalToken records one; ErrConflict if its owner has very many.
	AddPersonalToken(ctx context.Context, t access.PersonalToken) error
	// PersonalToken returns the one that a hash is of. It may be over.
	PersonalToken(ctx context.Context, hash access.Hash) (access.PersonalToken, error)
	KeyLists
}

// KeyLists are what people do with their tokens.
type KeyLists interface {
	// PersonalTokens lists those of an owner; of nobody, all.
	PersonalTokens(ctx context.Context, owner string) ([]access.PersonalToken, error)
	// DeletePersonalToken forgets one of an owner, or of whomever.
	DeletePersonalToken(ctx context.Context, id, owner string) error
	// SeePersonalToken records when one was used.
	SeePersonalToken(ctx context.Context, id string, at time.Time) error
}

// tokenPrefix begins every personal token, so that scanners of secrets find them.
const tokenPrefix = "hfp_"

// tokenSeen is how old the record of a token's last use may be.
const tokenSeen = time.Hour

// Personal returns who has made a token, limited to what the token is for.
func (d *Desk) Personal(ctx context.Context, token string) (access.Principal, error) {
	if !strings.HasPrefix(token, tokenPrefix) {
		return access.Principal{}, holdfast.ErrorOf(holdfast.ErrUnauthorized, "token missing or unknown")
	}
	t, err := d.opts.Records.Keys.PersonalToken(ctx, access.HashOf(token))
	if errors.Is(err, holdfast.ErrNotFound) {
		return access.Principal{}, holdfast.ErrorOf(holdfast.ErrUnauthorized, "token missing or unknown")
	} else if err != nil {
		return access.Principal{}, err
	}
	now := d.opts.Now()
	if !now.Before(t.ExpiresAt) {
		return access.Principal{}, holdfast.ErrorOf(holdfast.ErrUnauthorized, "the token has expired: run holdfast login")
	}
	grants, err := d.ownerGrants(ctx, t.Owner)
	if err != nil {
		return access.Principal{}, err
	}
	if now.Sub(t.SeenAt) >= tokenSeen {
		if err := d.opts.Records.Keys.SeePersonalToken(ctx, t.ID, now); err != nil {
			d.opts.Logger.WarnContext(ctx, "use of a token was not recorded", "token", t.ID, "err", err)
		}
	}
	return access.Principal{Name: t.Owner.Name, Person: t.Owner.Person, Grants: grants.Within(t.Limit.Grants()), Via: access.ViaPersonal, ID: t.ID}, nil
}

// ownerGrants are the roles of an owner now.
func (d *Desk) ownerGrants(ctx context.Context, owner access.Owner) (access.Grants, error) {
	if !owner.Person.IsZero() {
		return d.Grants(ctx, owner.Person)
	}
	for _, token := range d.opts.Rules.Tokens {
		if token.Name == owner.Token && token.Proof() == owner.TokenHash {
			return access.GrantsOf(token.Role, token.Projects...), nil
		}
	}
	return nil, holdfast.ErrorOf(holdfast.ErrUnauthorized, "the token with which this one was created is no longer in the configuration")
}

// ownerOf is whose the tokens are that somebody makes.
func (d *Desk) ownerOf(who access.Principal) (access.Owner, error) {
	if !who.Person.IsZero() {
		return access.Owner{Person: who.Person, Name: who.Name}, nil
	}
	for _, token := range d.opts.Rules.Tokens {
		if token.Name == who.Name {
			return access.Owner{Token: token.Name, Name: token.Name, TokenHash: token.Proof()}, nil
		}
	}
	return access.Owner{}, holdfast.ErrorOf(holdfast.ErrForbidden, "%q cannot create tokens", who.Name)
}

// minLifetime is how long a token lasts at least.
const minLifetime = time.Minute

// check returns what is wrong with a wish, as an ErrRejected.
func (d *Desk) check(w access.Wish) error {
	switch {
	case w.Name == "" || len(w.Name) > maxName || strings.ContainsFunc(w.Name, func(r rune) bool { return r < ' ' }):
		return holdfast.ErrorOf(holdfast.ErrRejected, "a token needs a name of at most %d characters", maxName)
	case !w.Limit.Role.IsValid():
		return holdfast.ErrorOf(holdfast.ErrRejected, "role %.40q: want viewer, operator, approver or admin", string(w.Limit.Role))
	case len(w.Limit.Projects) > 100 || slices.Contains(w.Limit.Projects, "") || slices.Contains(w.Limit.Projects, access.AllProjects):
		return holdfast.ErrorOf(holdfast.ErrRejected, "projects must be names; without projects, the token is for all projects of its owner")
	case w.Lifetime < minLifetime || w.Lifetime > d.opts.Rules.MaxLifetime:
		return holdfast.ErrorOf(holdfast.ErrRejected, "a token lasts between %s and %s", minLifetime, d.opts.Rules.MaxLifetime)
	}
	return nil
}

// newToken makes a token for an owner. Only the caller ever sees it.
func (d *Desk) newToken(owner access.Owner, w access.Wish) (string, access.PersonalToken) {
	token, now := tokenPrefix+session.NewID(), d.opts.Now().UTC()
	return token, access.PersonalToken{
		ID: "tok-" + session.NewID()[:12], Hash: access.HashOf(token), CreatedAt: now, ExpiresAt: now.Add(w.Lifetime),
		Owner: owner, Name: w.Name, Limit: w.Limit, From: w.From,
	}
}

// CreateToken makes a token for whoever asks. One that is asked for with a personal token
// allows no more than that one, and for no longer.
func (d *Desk) CreateToken(ctx context.Context, who access.Principal, w access.Wish) (string, access.PersonalToken, error) {
	if err := d.check(w); err != nil {
		return "", access.PersonalToken{}, err
	}
	owner, err := d.ownerOf(who)
	if err != nil {
		return "", access.PersonalToken{}, err
	}
	if who.Via == access.ViaPersonal {
		if err := d.within(ctx, who, owner, &w); err != nil {
			return "", access.PersonalToken{}, err
		}
	}
	token, t := d.newToken(owner, w)
	if err := d.opts.Records.Keys.AddPersonalToken(ctx, t); err != nil {
		return "", access.PersonalToken{}, err
	}
	d.record(ctx, who.Name, "token.create", t)
	return token, t, nil
}

// within holds a wish to the personal token that it is made with.
func (d *Desk) within(ctx context.Context, who access.Principal, owner access.Owner, w *access.Wish) error {
	grants, err := d.ownerGrants(ctx, owner)
	if err != nil {
		return err
	}
	for project, role := range grants.Within(w.Limit.Grants()) {
		if !who.Grants.Role(project).Includes(role) {
			return holdfast.ErrorOf(holdfast.ErrForbidden, "the token would allow more than the token that creates it: log in, or request less")
		}
	}
	own, err := d.opts.Records.Keys.PersonalTokens(ctx, owner.Key())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(own, func(t access.PersonalToken) bool { return t.ID == who.ID })
	if i < 0 {
		return holdfast.ErrorOf(holdfast.ErrUnauthorized, "token missing or unknown")
	}
	w.Lifetime = min(w.Lifetime, own[i].ExpiresAt.Sub(d.opts.Now()))
	return nil
}

// Tokens lists the caller's tokens; with all, everybody's.
func (d *Desk) Tokens(ctx context.Context, who access.Principal, all bool) ([]access.PersonalToken, error) {
	if all {
		return d.opts.Records.Keys.PersonalTokens(ctx, "")
	}
	owner, err := d.ownerOf(who)
	if err != nil {
		return nil, err
	}
	return d.opts.Records.Keys.PersonalTokens(ctx, owner.Key())
}

// DeleteToken deletes a token of the caller; with all, anybody's.
func (d *Desk) DeleteToken(ctx context.Context, who access.Principal, id string, all bool) error {
	key := ""
	if !all {
		owner, err := d.ownerOf(who)
		if err != nil {
			return err
		}
		key = owner.Key()
	}
	if err := d.opts.Records.Keys.DeletePersonalToken(ctx, id, key); err != nil {
		return err
	}
	d.record(ctx, who.Name, "token.delete", access.PersonalToken{ID: id})
	return nil
}

// record puts into the audit trail what became of a token, with the origin of the context.
func (d *Desk) record(ctx context.Context, actor, action string, t access.PersonalToken) {
	detail := ""
	if t.Name != "" {
		detail = fmt.Sprintf("%s: %s in %s until %s", t.Name, t.Limit.Role, projectsOf(t.Limit), t.ExpiresAt.Format(time.RFC3339))
	}
	if d.opts.Audit == nil {
		return
	}
	if err := d.opts.Audit.Audit(ctx, holdfast.NewAuditEntry(d.opts.Now(), actor, action, t.ID, detail)); err != nil {
		d.opts.Logger.ErrorContext(ctx, "token was not recorded in the audit trail", "token", t.ID, "action", action, "err", err)
	}
}

func projectsOf(l access.Limit) string {
	if len(l.Projects) == 0 {
		return "all projects"
	}
	return strings.Join(l.Projects, ", ")
}
