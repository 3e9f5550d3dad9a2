package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
)

// Store keeps sessions; *datastore.Store is one.
type Store interface {
	// AddSession records a login.
	AddSession(ctx context.Context, session access.Session) error
	// Session returns that with an id or, without one, that whose cookie has, or had before it
	// was rotated last, what the hash is of; ErrNotFound if there is none. It may be over.
	Session(ctx context.Context, id string, hash access.Hash) (access.Session, error)
	// SaveSession records a rotation and when it was seen; ErrConflict if the hash is no
	// longer what it was.
	SaveSession(ctx context.Context, session access.Session, was access.Hash) error
	// EndSession forgets one. One that is gone is not an error.
	EndSession(ctx context.Context, id string) error
}

// People know what people may do; *login.Desk is one.
type People interface {
	// Grants returns the roles of a person now; ErrUnauthorized if the person is not known.
	Grants(ctx context.Context, person access.PersonID) (access.Grants, error)
	// Personal returns who has made a token, limited to what the token is for; ErrUnauthorized
	// if it is not one, or is over.
	Personal(ctx context.Context, token string) (access.Principal, error)
}

// Auditor keeps what was done; *datastore.Store is one.
type Auditor interface {
	Audit(ctx context.Context, entry holdfast.AuditEntry) error
}

// Options are what Sessions need. All are required unless noted.
type Options struct {
	Store  Store   // nil: there are no sessions, only tokens
	People People  // nil: nobody logs in but with a token of the configuration
	Tokens []Token // of the configuration
	Key    []byte  // secret, the same for all replicas; makes tokens of forms
	Times  Times
	Audit  Auditor      // nil: logins are only logged
	Logger *slog.Logger // nil discards
	Now    func() time.Time
}

// Times bound sessions. A zero means the default.
type Times struct {
	Idle     time.Duration // without a request; 8h
	Absolute time.Duration // since the login, whatever is done; 24h
	Rotate   time.Duration // until the cookie gets another id; 15m
	Check    time.Duration // between looks whether an answer that takes long may continue; 5s
}

// grace is how long what was sent before a rotation may still arrive.
const grace = time.Minute

// seenEvery is how old the record of the last request may be.
const seenEvery = time.Minute

// Sessions are the logins. It is safe for concurrent use.
type Sessions struct {
	opts  Options
	cross *http.CrossOriginProtection
}

// New returns Sessions, or an error that names what is missing.
func New(opts Options) (*Sessions, error) {
	if err := CheckTokens(opts.Tokens); err != nil {
		return nil, err
	}
	if opts.Store != nil && len(opts.Key) < 16 {
		return nil, errors.New("no key for sessions")
	}
	for _, bound := range []struct {
		of   *time.Duration
		time time.Duration
	}{{&opts.Times.Idle, 8 * time.Hour}, {&opts.Times.Absolute, 24 * time.Hour}, {&opts.Times.Rotate, 15 * time.Minute}, {&opts.Times.Check, 5 * time.Second}} {
		if *bound.of == 0 {
			*bound.of = bound.time
		}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Sessions{opts: opts, cross: http.NewCrossOriginProtection()}, nil
}

// On reports whether there are sessions.
func (s *Sessions) On() bool { return s.opts.Store != nil }

// Check is how often an answer that takes long is to ask Still.
func (s *Sessions) Check() time.Duration { return s.opts.Times.Check }

// errNobody is what a request without a good credential gets.
func errNobody(text string) error { return holdfast.ErrorOf(holdfast.ErrUnauthorized, "%s", text) }

// Of returns who makes a request: by its bearer token if it has one, otherwise by its cookie,
// which it renews when that is due. ErrUnauthorized if it is nobody.
func (s *Sessions) Of(w http.ResponseWriter, r *http.Request) (access.Principal, error) {
	if bearer := Bearer(r); bearer != "" {
		return s.ofBearer(r.Context(), bearer)
	}
	session, err := s.shown(r)
	if err != nil {
		return access.Principal{}, err
	}
	who, err := s.owner(r.Context(), session)
	if err != nil {
		return access.Principal{}, err
	}
	return who, s.renew(w, r, session)
}

func (s *Sessions) ofBearer(ctx context.Context, bearer string) (access.Principal, error) {
	if token, ok := find(s.opts.Tokens, bearer); ok {
		return token.principal(), nil
	}
	if s.opts.People != nil {
		return s.opts.People.Personal(ctx, bearer)
	}
	return access.Principal{}, errNobody("token missing or unknown")
}

// shown returns the session whose cookie a request has, if it is not over.
func (s *Sessions) shown(r *http.Request) (access.Session, error) {
	id := cookieOf(r)
	if id == "" || !s.On() {
		return access.Session{}, errNobody("token missing or unknown")
	}
	session, err := s.opts.Store.Session(r.Context(), "", access.HashOf(id))
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return access.Session{}, errNobody("session is over: log in again")
	case err != nil:
		return access.Session{}, err
	}
	return session, s.living(session)
}

// living is an error if a session is over.
func (s *Sessions) living(session access.Session) error {
	now := s.opts.Now()
	if !now.Before(session.ExpiresAt) || now.Sub(session.SeenAt) >= s.opts.Times.Idle {
		return errNobody("session is over: log in again")
	}
	return nil
}

// owner says who has logged in, with the roles of now.
func (s *Sessions) owner(ctx context.Context, session access.Session) (access.Principal, error) {
	who := access.Principal{Name: session.Name, Person: session.Person, Via: access.ViaSession, ID: session.ID}
	if session.Person.IsZero() {
		for _, token := range s.opts.Tokens {
			if token.Name == session.Token && token.Proof() == session.TokenHash {
				who.Grants = token.principal().Grants
				return who, nil
			}
		}
		return access.Principal{}, errNobody("the token of this session is no longer in the configuration: log in again")
	}
	if s.opts.People == nil {
		return access.Principal{}, errNobody("no identity provider is configured now: log in again")
	}
	var err error
	who.Grants, err = s.opts.People.Grants(ctx, session.Person)
	return who, err
}

// renew gives the cookie another id when that is due, and records that the session was seen.
// What cannot be recorded now is recorded with the next request.
func (s *Sessions) renew(w http.ResponseWriter, r *http.Request, session access.Session) error {
	now, was, next := s.opts.Now(), session.Hash, ""
	aged := now.Sub(session.RotatedAt)
	switch former := access.HashOf(cookieOf(r)) == session.Former; {
	case former && aged < grace, now.Sub(session.SeenAt) < seenEvery && aged < s.opts.Times.Rotate && !former:
		return nil
	case former, aged >= s.opts.Times.Rotate:
		// One that shows the former id this long after the rotation has not got the answer.
		next = NewID()
		session.Former, session.Hash, session.RotatedAt = access.HashOf(cookieOf(r)), access.HashOf(next), now
	case aged >= grace:
		session.Former = access.Hash{} // the browser has the new one
	}
	session.SeenAt = now
	err := s.opts.Store.SaveSession(r.Context(), session, was)
	switch {
	case errors.Is(err, holdfast.ErrConflict):
		return nil // another request of the same browser has done it
	case err != nil:
		s.opts.Logger.WarnContext(r.Context(), "session was not renewed", "session", session.ID, "err", err)
	case next != "":
		setCookie(w, next, session.ExpiresAt.Sub(now))
	}
	return nil
}

// Still is an error if whoever made a request that is still being answered is not who they
// were, or has other roles by now.
func (s *Sessions) Still(r *http.Request, was access.Principal) error {
	ctx := r.Context()
	var now access.Principal
	var err error
	if was.Via == access.ViaSession {
		var session access.Session
		if session, err = s.opts.Store.Session(ctx, was.ID, access.Hash{}); errors.Is(err, holdfast.ErrNotFound) {
			err = errNobody("session is over: log in again")
		}
		if err == nil {
			err = s.living(session)
		}
		if err == nil {
			now, err = s.owner(ctx, session)
		}
	} else {
		now, err = s.ofBearer(ctx, Bearer(r))
	}
	if err == nil && !was.Same(now) {
		err = errNobody("your roles have changed: send the request again")
	}
	return err
}

// Begin logs somebody in: it ends the session whose cookie the request has, if any, and sets
// a new one. The session needs a Person, or a Token with its hash, and a Name.
func (s *Sessions) Begin(w http.ResponseWriter, r *http.Request, session access.Session) error {
	if former, err := s.shown(r); err == nil {
		if err := s.opts.Store.EndSession(r.Context(), former.ID); err != nil {
			return err
		}
	}
	id, now := NewID(), s.opts.Now().UTC()
	session.ID, session.Hash = "ses-"+NewID()[:12], access.HashOf(id)
	session.CreatedAt, session.SeenAt, session.RotatedAt = now, now, now
	session.ExpiresAt = now.Add(s.opts.Times.Absolute)
	session.From, session.Agent = Address(r), Clean(r.UserAgent(), 200)
	if err := s.opts.Store.AddSession(r.Context(), session); err != nil {
		return err
	}
	setCookie(w, id, s.opts.Times.Absolute)
	s.audit(r, session, "session.begin", session.Agent)
	return nil
}

// End logs out whoever has the request's cookie. Without a session it only forgets the cookie.
func (s *Sessions) End(w http.ResponseWriter, r *http.Request) error {
	session, err := s.shown(r)
	if err == nil {
		if err := s.opts.Store.EndSession(r.Context(), session.ID); err != nil {
			return err
		}
		s.audit(r, session, "session.end", "")
	}
	setCookie(w, "", -1)
	w.Header().Set("Clear-Site-Data", `"cache", "storage"`)
	return nil
}

func (s *Sessions) audit(r *http.Request, session access.Session, action, detail string) {
	who := access.Principal{Name: session.Name, Person: session.Person, Via: access.ViaSession, ID: session.ID}
	s.opts.Logger.InfoContext(r.Context(), "session has begun or ended", "action", action, "actor", who.Name, "session", session.ID)
	if s.opts.Audit == nil {
		return
	}
	entry := holdfast.NewAuditEntry(s.opts.Now(), who.Name, action, session.ID, detail)
	entry.Origin = Origin(r, who)
	if err := s.opts.Audit.Audit(r.Context(), entry); err != nil {
		s.opts.Logger.ErrorContext(r.Context(), "login was not recorded", "err", fmt.Errorf("%s: %w", action, err))
	}
}
