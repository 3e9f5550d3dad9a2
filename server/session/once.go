package session

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
)

// OncePath is the page that takes a code, which begins one session.
const OncePath = LoginPath + "/once"

// onceTime is how long a code is good.
const onceTime = 10 * time.Minute

// oncePrefix keeps a code from being a cookie: what is kept of it is another hash.
const oncePrefix = "once "

// Once returns the path of a page by which whoever has a token of the configuration begins a
// session in a browser, once and within ten minutes, without typing it there. Nobody else gets
// one: a personal token may be for less than its owner may.
func (s *Sessions) Once(ctx context.Context, who access.Principal) (path string, until time.Time, err error) {
	if who.Via != access.ViaToken || !s.On() {
		return "", until, holdfast.ErrorOf(holdfast.ErrForbidden, "a code to log in is for tokens of the configuration")
	}
	var proof access.Hash
	for _, token := range s.opts.Tokens {
		if token.Name == who.ID {
			proof = token.Proof()
		}
	}
	code, now := NewID(), s.opts.Now().UTC()
	session := access.Session{
		ID: "once-" + NewID()[:12], Hash: access.HashOf(oncePrefix + code), CreatedAt: now, SeenAt: now, RotatedAt: now, ExpiresAt: now.Add(onceTime),
		Name: who.Name, Token: who.ID, TokenHash: proof, Agent: "a code to log in",
	}
	if err := s.opts.Store.AddSession(ctx, session); err != nil {
		return "", until, err
	}
	return OncePath + "?" + url.Values{"code": {code}}.Encode(), session.ExpiresAt, nil
}

// getOnce asks before it uses up a code: programs that look at links must not.
func (p pages) getOnce(w http.ResponseWriter, r *http.Request) {
	page := p.page(r, "", "")
	page.Code = r.URL.Query().Get("code")
	p.show(w, http.StatusOK, page)
}

// postOnce begins the session of a code.
func (p pages) postOnce(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if err := p.SameSite(r); err != nil {
		p.show(w, http.StatusForbidden, p.page(r, "Another site has made this request.", ""))
		return
	}
	session, err := p.claim(r.Context(), r.PostFormValue("code"))
	switch {
	case errors.Is(err, holdfast.ErrUnauthorized):
		p.show(w, http.StatusUnauthorized, p.page(r, "This code was used already, or is too old: get another one with holdfast console.", ""))
		return
	case err == nil:
		err = p.Begin(w, r, access.Session{Name: session.Name, Token: session.Token, TokenHash: session.TokenHash})
	}
	if err != nil {
		p.opts.Logger.ErrorContext(r.Context(), "session was not begun", "err", err)
		p.show(w, http.StatusServiceUnavailable, p.page(r, "Holdfast cannot store the session now. Try again in a moment.", ""))
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// claim uses up a code; ErrUnauthorized if it is not one, or was used.
func (s *Sessions) claim(ctx context.Context, code string) (access.Session, error) {
	session, err := s.opts.Store.Session(ctx, "", access.HashOf(oncePrefix+code))
	if errors.Is(err, holdfast.ErrNotFound) {
		err = errNobody("no such code")
	}
	if err != nil {
		return session, err
	}
	if err := s.living(session); err != nil {
		return session, err
	}
	if _, err := s.owner(ctx, session); err != nil {
		return session, err
	}
	was := session.Hash
	session.Hash, session.Former = access.HashOf(NewID()), access.Hash{}
	if err := s.opts.Store.SaveSession(ctx, session, was); errors.Is(err, holdfast.ErrConflict) {
		return session, errNobody("somebody else has used it")
	} else if err != nil {
		return session, err
	}
	return session, s.opts.Store.EndSession(ctx, session.ID)
}
