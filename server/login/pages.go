package login

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"golang.org/x/oauth2"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/server/session"
)

// The paths of the exchange with the provider.
const (
	startPath = session.LoginPath + "/provider"
	// CallbackPath is where the provider sends people back to.
	CallbackPath = session.LoginPath + "/callback"
)

// attempt is a login that has begun, kept in the browser that began it.
type attempt struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Next     string `json:"p"`
}

const attemptCookie = "__Host-holdfast-login"

// attemptTime is how long somebody may take to log in at the provider.
const attemptTime = 10 * time.Minute

// Handler answers the requests of the exchange and of command lines, and begins sessions.
func (d *Desk) Handler(sessions *session.Sessions) http.Handler {
	p := pages{d, sessions}
	mux := http.NewServeMux()
	if d.provider != nil {
		mux.HandleFunc("GET "+startPath, p.start)
		mux.HandleFunc("GET "+CallbackPath, p.callback)
	}
	mux.HandleFunc("POST "+CommandsPath, p.postCommand)
	mux.HandleFunc("POST "+TokenPath, p.postToken)
	mux.HandleFunc("GET "+devicePath, p.getDevice)
	mux.HandleFunc("POST "+devicePath, p.postDevice)
	mux.HandleFunc("POST "+answerPath, p.postAnswer)
	mux.HandleFunc("GET "+BrowserPath, p.getBrowser)
	mux.HandleFunc("POST "+BrowserPath, p.postBrowser)
	return mux
}

type pages struct {
	*Desk
	sessions *session.Sessions
}

// start sends the browser to the provider.
func (p pages) start(w http.ResponseWriter, r *http.Request) {
	a := attempt{State: session.NewID(), Nonce: session.NewID(), Verifier: oauth2.GenerateVerifier(), Next: session.LocalPath(r.URL.Query().Get("next"))}
	to, err := p.provider.start(r.Context(), a)
	if err != nil {
		p.fail(w, r, a.Next, err)
		return
	}
	data, _ := json.Marshal(a) // texts: cannot fail
	setAttempt(w, base64.RawURLEncoding.EncodeToString(data), attemptTime)
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// callback handles the provider's answer.
func (p pages) callback(w http.ResponseWriter, r *http.Request) {
	a, ok := attemptOf(r)
	setAttempt(w, "", -1) // a state is good once
	query := r.URL.Query()
	switch {
	case !ok, subtle.ConstantTimeCompare([]byte(a.State), []byte(query.Get("state"))) != 1:
		p.fail(w, r, a.Next, holdfast.ErrorOf(holdfast.ErrForbidden, "this login was started elsewhere, or has expired: start again"))
		return
	case query.Get("error") != "":
		p.fail(w, r, a.Next, holdfast.ErrorOf(holdfast.ErrForbidden, "the identity provider says %.60q", query.Get("error")))
		return
	}
	said, err := p.provider.finish(r.Context(), a, query.Get("code"))
	if err != nil {
		p.fail(w, r, a.Next, err)
		return
	}
	person := p.person(said)
	if err := p.opts.Records.People.SavePerson(r.Context(), person); err != nil {
		p.fail(w, r, a.Next, err)
		return
	}
	if _, err := p.Grants(r.Context(), person.ID); errors.Is(err, holdfast.ErrUnauthorized) {
		p.fail(w, r, a.Next, p.stranger(person, said))
		return
	} else if err != nil {
		p.fail(w, r, a.Next, err)
		return
	}
	if err := p.sessions.Begin(w, r, access.Session{Person: person.ID, Name: person.Name}); err != nil {
		p.fail(w, r, a.Next, err)
		return
	}
	http.Redirect(w, r, session.LocalPath(a.Next), http.StatusSeeOther)
}

// stranger says what is missing to whoever has no role.
func (p pages) stranger(person access.Person, said claims) error {
	why := ""
	if _, known := said.list(p.provider.GroupsClaim); !known && p.provider.GroupsClaim != "" {
		why = "; the identity provider says nothing of your groups (claim " + p.provider.GroupsClaim + ")"
	}
	return holdfast.ErrorOf(holdfast.ErrForbidden, "%s has no role here%s. An administrator can bind one to subject %.100q", person.Name, why, person.ID.Subject)
}

// fail shows why nobody was logged in. What is trouble of ours is only logged.
func (p pages) fail(w http.ResponseWriter, r *http.Request, next string, err error) {
	status, text := http.StatusInternalServerError, "Internal error: see the server's log."
	switch {
	case errors.Is(err, holdfast.ErrForbidden):
		status, text = http.StatusForbidden, err.Error()
	case errors.Is(err, holdfast.ErrUnavailable):
		status, text = http.StatusServiceUnavailable, err.Error()
		w.Header().Set("Retry-After", "5")
	}
	p.opts.Logger.WarnContext(r.Context(), "nobody was logged in", "from", session.Address(r), "err", err)
	p.opts.Show(w, status, session.PageOf(r, text, next, p.provider.Name))
}

func attemptOf(r *http.Request) (a attempt, ok bool) {
	cookie, err := r.Cookie(attemptCookie)
	if err != nil {
		return a, false
	}
	data, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || json.Unmarshal(data, &a) != nil || a.State == "" || a.Nonce == "" || a.Verifier == "" {
		return attempt{}, false
	}
	return a, true
}

func setAttempt(w http.ResponseWriter, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: attemptCookie, Value: value, Path: "/", MaxAge: int(age.Seconds()), Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}
