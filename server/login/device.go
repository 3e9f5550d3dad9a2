package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/server/session"
)

// Requests are command lines that ask to be logged in; *datastore.Store is one.
type Requests interface {
	AddLoginRequest(ctx context.Context, r access.LoginRequest) error
	// LoginRequest returns the one whose secret, or whose code, a hash is of.
	LoginRequest(ctx context.Context, hash access.Hash) (access.LoginRequest, error)
	// AnswerLogin records an answer; ErrConflict if there is one already.
	AnswerLogin(ctx context.Context, r access.LoginRequest) error
	// FinishLogin exchanges an allowed request for a token, once.
	FinishLogin(ctx context.Context, r access.LoginRequest, t access.PersonalToken) error
}

// The paths of command lines that log in.
const (
	devicePath = session.DevicePath
	// BrowserPath is where a command line sends its own machine's browser.
	BrowserPath = devicePath + "/cli"
	answerPath  = devicePath + "/answer"
	// CommandsPath takes the request of a command line without a browser.
	CommandsPath = session.LoginPath + "/commands"
	// TokenPath exchanges what was allowed for a token.
	TokenPath = session.LoginPath + "/token"
)

const (
	codeTime   = 10 * time.Minute // for a person to type it
	returnTime = time.Minute      // for a browser to lead back
	pollEvery  = 2 * time.Second
	// letters have neither vowels nor what is easily taken for another.
	letters = "BCDFGHJKLMNPQRSTVWXZ"
)

// ask is what a command line asks for.
type ask struct {
	Name      string   `json:"name"`
	Challenge string   `json:"challenge"` // base64url of the SHA-256 of its verifier
	Role      string   `json:"role"`
	Projects  []string `json:"projects"`
	Seconds   int64    `json:"seconds"` // how long the token is to last
}

func (a ask) wish(from string) access.Wish {
	return access.Wish{Name: a.Name, Limit: access.Limit{Role: access.Role(a.Role), Projects: a.Projects}, Lifetime: time.Duration(a.Seconds) * time.Second, From: from}
}

// request checks what a command line asks for.
func (d *Desk) request(a ask, from string) (access.LoginRequest, error) {
	wish := a.wish(from)
	if a.Seconds <= 0 || a.Seconds > int64(d.opts.Rules.MaxLifetime/time.Second) {
		wish.Lifetime = 0 // which check refuses; a product that is too large may look small
	}
	if err := d.check(wish); err != nil {
		return access.LoginRequest{}, err
	}
	if raw, err := base64.RawURLEncoding.DecodeString(a.Challenge); err != nil || len(raw) != sha256.Size {
		return access.LoginRequest{}, holdfast.ErrorOf(holdfast.ErrRejected, "challenge is not a SHA-256 as base64url")
	}
	return access.LoginRequest{Challenge: a.Challenge, Name: wish.Name, Limit: wish.Limit, Lifetime: wish.Lifetime, From: from}, nil
}

// postCommand begins the login of a command line that has no browser.
func (p pages) postCommand(w http.ResponseWriter, r *http.Request) {
	var a ask
	if !readJSON(w, r, &a) {
		return
	}
	request, err := p.request(a, session.Address(r))
	if err != nil {
		answerError(w, err)
		return
	}
	secret, code := session.NewID(), newCode()
	request.Secret, request.Code, request.ExpiresAt = access.HashOf(secret), access.HashOf(code), p.opts.Now().Add(codeTime)
	if err := p.opts.Records.Requests.AddLoginRequest(r.Context(), request); err != nil {
		answerError(w, err)
		return
	}
	answerJSON(w, http.StatusOK, map[string]any{
		"secret": secret, "code": code, "path": devicePath, "interval": int(pollEvery.Seconds()), "expiresIn": int(codeTime.Seconds()),
	})
}

// postToken exchanges what a person has allowed for a token.
func (p pages) postToken(w http.ResponseWriter, r *http.Request) {
	var shown struct{ Secret, Verifier string }
	if !readJSON(w, r, &shown) {
		return
	}
	request, err := p.opts.Records.Requests.LoginRequest(r.Context(), access.HashOf(shown.Secret))
	hash := sha256.Sum256([]byte(shown.Verifier))
	challenge := base64.RawURLEncoding.EncodeToString(hash[:])
	switch {
	case errors.Is(err, holdfast.ErrNotFound), err == nil && request.Secret != access.HashOf(shown.Secret),
		err == nil && subtle.ConstantTimeCompare([]byte(challenge), []byte(request.Challenge)) != 1:
		answerError(w, holdfast.ErrorOf(holdfast.ErrNotFound, "this login has ended: start again"))
		return
	case err != nil:
		answerError(w, err)
		return
	case request.Denied:
		answerError(w, holdfast.ErrorOf(holdfast.ErrForbidden, "the login was denied"))
		return
	case request.Owner == nil:
		answerJSON(w, http.StatusAccepted, map[string]any{"interval": int(pollEvery.Seconds())})
		return
	}
	token, t := p.newToken(*request.Owner, access.Wish{Name: request.Name, Limit: request.Limit, Lifetime: request.Lifetime, From: request.From})
	if err := p.opts.Records.Requests.FinishLogin(r.Context(), request, t); err != nil {
		answerError(w, err)
		return
	}
	ctx := holdfast.WithOrigin(r.Context(), session.Address(r)+", login of a command line")
	p.record(ctx, request.Owner.Name, "token.create", t)
	answerJSON(w, http.StatusOK, map[string]any{"token": token, "id": t.ID, "name": t.Owner.Name, "expiresAt": t.ExpiresAt})
}

// newCode is eight letters with a hyphen in the middle.
func newCode() string {
	var code strings.Builder
	for i := range 8 {
		if i == 4 {
			code.WriteByte('-')
		}
		code.WriteByte(letters[pick(len(letters))])
	}
	return code.String()
}

// pick is a number below n, each as likely as the others.
func pick(n int) int {
	var b [1]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		if int(b[0]) < 256/n*n {
			return int(b[0]) % n
		}
	}
}

// typed is a code as it was shown, however it was typed.
func typed(code string) string {
	code = strings.Map(func(r rune) rune {
		if strings.ContainsRune(letters, r) {
			return r
		}
		return -1
	}, strings.ToUpper(code))
	if len(code) != 8 {
		return ""
	}
	return code[:4] + "-" + code[4:]
}

// somebody returns who has logged in in a browser; it answers if nobody has, or if a form may
// be another site's.
func (p pages) somebody(w http.ResponseWriter, r *http.Request) (access.Principal, bool) {
	who, err := p.sessions.Of(w, r)
	if err == nil && who.Via != access.ViaSession {
		err = holdfast.ErrorOf(holdfast.ErrForbidden, "this page is for browsers")
	}
	if err == nil {
		err = p.sessions.Guard(w, r, who)
	}
	switch {
	case err == nil:
		return who, true
	case errors.Is(err, holdfast.ErrUnauthorized) && r.Method == http.MethodGet:
		http.Redirect(w, r, session.LoginPath+"?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
	case errors.Is(err, holdfast.ErrUnauthorized):
		p.say(w, http.StatusUnauthorized, devicePage{Error: "Your session is over. Log in again, then type the code again."})
	case errors.Is(err, holdfast.ErrForbidden):
		p.say(w, http.StatusForbidden, devicePage{Error: err.Error()})
	default:
		p.opts.Logger.ErrorContext(r.Context(), "could not serve request", "path", r.URL.Path, "err", err)
		p.say(w, http.StatusInternalServerError, devicePage{Error: "Internal error: see the server's log."})
	}
	return access.Principal{}, false
}

// getDevice asks for the code.
func (p pages) getDevice(w http.ResponseWriter, r *http.Request) {
	if who, ok := p.somebody(w, r); ok {
		p.say(w, http.StatusOK, devicePage{FormToken: p.sessions.FormToken(who), Who: who.Name})
	}
}

// postDevice shows what the command line with a code asks for.
func (p pages) postDevice(w http.ResponseWriter, r *http.Request) {
	who, ok := p.somebody(w, r)
	if !ok {
		return
	}
	request, ok := p.waiting(w, r, who)
	if !ok {
		return
	}
	p.say(w, http.StatusOK, devicePage{
		FormToken: p.sessions.FormToken(who), Who: who.Name, Ask: &request, Code: typed(r.PostFormValue("code")), Roles: rolesOf(who.Grants.Within(request.Limit.Grants())),
	})
}

// waiting is the request with the code that somebody has typed; it answers if there is none.
func (p pages) waiting(w http.ResponseWriter, r *http.Request, who access.Principal) (access.LoginRequest, bool) {
	again := devicePage{FormToken: p.sessions.FormToken(who), Who: who.Name}
	if !p.guesses.may(who.ID, p.opts.Now()) {
		again.Error = "Too many wrong codes. Wait ten minutes."
		p.say(w, http.StatusTooManyRequests, again)
		return access.LoginRequest{}, false
	}
	request, err := p.opts.Records.Requests.LoginRequest(r.Context(), access.HashOf(typed(r.PostFormValue("code"))))
	switch {
	case errors.Is(err, holdfast.ErrNotFound) || err == nil && request.Code != access.HashOf(typed(r.PostFormValue("code"))):
		p.guesses.wrong(who.ID, p.opts.Now())
		again.Error = "No command line is waiting with this code. A code is valid for ten minutes."
		p.say(w, http.StatusNotFound, again)
	case err != nil:
		p.opts.Logger.ErrorContext(r.Context(), "login request was not read", "err", err)
		again.Error = "Holdfast cannot read the request now. Try again in a moment."
		p.say(w, http.StatusServiceUnavailable, again)
	case request.Owner != nil || request.Denied:
		again.Error = "This request was answered already."
		p.say(w, http.StatusConflict, again)
	default:
		return request, true
	}
	return access.LoginRequest{}, false
}

// postAnswer allows or denies what the command line with a code asks for.
func (p pages) postAnswer(w http.ResponseWriter, r *http.Request) {
	who, ok := p.somebody(w, r)
	if !ok {
		return
	}
	request, ok := p.waiting(w, r, who)
	if !ok {
		return
	}
	owner, err := p.ownerOf(who)
	if request.Denied = r.PostFormValue("answer") != "allow"; !request.Denied {
		request.Owner = &owner
	}
	if err == nil {
		err = p.opts.Records.Requests.AnswerLogin(r.Context(), request)
	}
	done := devicePage{Who: who.Name, Done: "The command line is logged in. You can close this page."}
	switch {
	case err != nil:
		p.say(w, http.StatusConflict, devicePage{Who: who.Name, Error: "This request was answered already, or has expired."})
		return
	case request.Denied:
		done.Done = "Denied. The command line gets no token."
	}
	p.say(w, http.StatusOK, done)
}

// getBrowser shows what a command line on the machine of the browser asks for.
func (p pages) getBrowser(w http.ResponseWriter, r *http.Request) {
	who, ok := p.somebody(w, r)
	if !ok {
		return
	}
	back, request, err := p.fromQuery(r.URL.Query(), session.Address(r))
	if err != nil {
		p.say(w, http.StatusBadRequest, devicePage{Who: who.Name, Error: err.Error()})
		return
	}
	page := devicePage{
		FormToken: p.sessions.FormToken(who), Who: who.Name, Ask: &request, Query: r.URL.RawQuery, Roles: rolesOf(who.Grants.Within(request.Limit.Grants())),
	}
	p.sayFor(w, http.StatusOK, page, back)
}

// postBrowser allows it, and leads back to the command line.
func (p pages) postBrowser(w http.ResponseWriter, r *http.Request) {
	who, ok := p.somebody(w, r)
	if !ok {
		return
	}
	query, err := url.ParseQuery(r.PostFormValue("query"))
	if err != nil {
		p.say(w, http.StatusBadRequest, devicePage{Who: who.Name, Error: "The request cannot be read."})
		return
	}
	back, request, err := p.fromQuery(query, session.Address(r))
	if err != nil {
		p.say(w, http.StatusBadRequest, devicePage{Who: who.Name, Error: err.Error()})
		return
	}
	values := url.Values{"state": {query.Get("state")}}
	if r.PostFormValue("answer") == "allow" {
		owner, err := p.ownerOf(who)
		code := session.NewID()
		request.Secret, request.Owner, request.ExpiresAt = access.HashOf(code), &owner, p.opts.Now().Add(returnTime)
		if err == nil {
			err = p.opts.Records.Requests.AddLoginRequest(r.Context(), request)
		}
		if err != nil {
			p.opts.Logger.ErrorContext(r.Context(), "login of a command line was not recorded", "err", err)
			p.say(w, http.StatusServiceUnavailable, devicePage{Who: who.Name, Error: "Holdfast cannot record this now. Try again in a moment."})
			return
		}
		values.Set("code", code)
	} else {
		values.Set("error", "access_denied")
	}
	back.RawQuery = values.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

// fromQuery reads what a command line has put into an address, and where it waits: on this
// machine, and nowhere else.
func (d *Desk) fromQuery(query url.Values, from string) (back *url.URL, request access.LoginRequest, err error) {
	if back, err = loopback(query.Get("redirect")); err != nil {
		return nil, request, err
	}
	seconds, err := strconv.ParseInt(query.Get("seconds"), 10, 64)
	if err != nil || len(query.Get("state")) < 16 || len(query.Get("state")) > 200 {
		return nil, request, holdfast.ErrorOf(holdfast.ErrRejected, "the address is incomplete: run holdfast login again")
	}
	projects := slices.DeleteFunc(slices.Clone(query["project"]), func(p string) bool { return p == "" })
	request, err = d.request(ask{Name: query.Get("name"), Challenge: query.Get("challenge"), Role: query.Get("role"), Projects: projects, Seconds: seconds}, from)
	return back, request, err
}

// loopback is an address of this machine that a command line listens at. Not a name: that
// could lead elsewhere.
func loopback(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err == nil && u.Scheme == "http" && u.User == nil && u.Path == "/callback" && u.RawQuery == "" && u.Fragment == "" {
		host, port, err := net.SplitHostPort(u.Host)
		number, err2 := strconv.Atoi(port)
		if (host == "127.0.0.1" || host == "::1") && errors.Join(err, err2) == nil && number > 0 && number < 1<<16 {
			return u, nil
		}
	}
	return nil, holdfast.ErrorOf(holdfast.ErrRejected, "no command line is waiting on this machine")
}

// guesses bounds how often one session may type a code that is wrong.
type guesses struct {
	mu     sync.Mutex
	wrongs map[string][]time.Time
}

const maxWrong = 10

func (g *guesses) may(session string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	recent := slices.DeleteFunc(g.wrongs[session], func(at time.Time) bool { return now.Sub(at) > codeTime })
	if len(recent) == 0 {
		delete(g.wrongs, session)
		return true
	}
	g.wrongs[session] = recent
	return len(recent) < maxWrong
}

func (g *guesses) wrong(session string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wrongs == nil || len(g.wrongs) > 10_000 {
		g.wrongs = make(map[string][]time.Time)
	}
	g.wrongs[session] = append(g.wrongs[session], now)
}

func readJSON(w http.ResponseWriter, r *http.Request, to any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<10))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(to); err != nil {
		answerError(w, holdfast.ErrorOf(holdfast.ErrRejected, "body is not valid: %v", err))
		return false
	}
	return true
}

func answerJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the peer has gone
}

// answerError answers with what a command line shows.
func answerError(w http.ResponseWriter, err error) {
	status, text := http.StatusInternalServerError, "internal error: see the server's log"
	for kind, code := range map[error]int{
		holdfast.ErrRejected: http.StatusBadRequest, holdfast.ErrNotFound: http.StatusNotFound, holdfast.ErrForbidden: http.StatusForbidden,
		holdfast.ErrConflict: http.StatusConflict, holdfast.ErrUnavailable: http.StatusServiceUnavailable,
	} {
		if errors.Is(err, kind) {
			status, text = code, err.Error()
		}
	}
	answerJSON(w, status, map[string]any{"title": http.StatusText(status), "status": status, "detail": text})
}

// devicePage is what the pages of command lines show.
type devicePage struct {
	Who, FormToken, Error, Done string
	Ask                         *access.LoginRequest // to be allowed or denied; nil: the code is asked for
	Code, Query, Roles          string
}

// rolesOf are roles in words.
func rolesOf(grants access.Grants) string {
	var words []string
	for _, project := range slices.Sorted(maps.Keys(grants)) {
		where := project
		if project == access.AllProjects {
			where = "all projects"
		}
		words = append(words, string(grants[project])+" in "+where)
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

var deviceTemplate = template.Must(template.New("device").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Log in a command line · Holdfast</title></head>
<body><main><h1>Log in a command line</h1>
{{with .Error}}<p role="alert">{{.}}</p>{{end}}
{{if .Done}}<p role="status">{{.Done}}</p>
{{else if .Ask}}
<p>A command line asks for a token that acts as <strong>{{.Who}}</strong>:</p>
<dl><dt>It calls itself</dt><dd>{{.Ask.Name}}</dd><dt>It asks from</dt><dd>{{.Ask.From}}</dd><dt>Role</dt><dd>{{.Roles}}</dd><dt>For</dt><dd>{{.Ask.Lifetime}}</dd></dl>
<p>Allow it only if you have just run <code>holdfast login</code> there.</p>
<form method="post" action="{{if .Query}}/device/cli{{else}}/device/answer{{end}}">
<input type="hidden" name="csrf" value="{{.FormToken}}">
{{if .Query}}<input type="hidden" name="query" value="{{.Query}}">{{else}}<input type="hidden" name="code" value="{{.Code}}">{{end}}
<p><button name="answer" value="allow">Allow</button> <button name="answer" value="deny">Deny</button></p>
</form>
{{else if .FormToken}}
<form method="post" action="/device">
<input type="hidden" name="csrf" value="{{.FormToken}}">
<p><label>The code that the command line shows <input name="code" autocomplete="off" autocapitalize="characters" maxlength="12" required></label></p>
<p><button>Continue</button></p>
</form>
{{end}}</main></body></html>
`))

func (p pages) say(w http.ResponseWriter, status int, page devicePage) {
	p.sayFor(w, status, page, nil)
}

// sayFor writes a page whose form may lead back to a command line.
func (p pages) sayFor(w http.ResponseWriter, status int, page devicePage, back *url.URL) {
	session.Harmless(w.Header())
	if back != nil {
		policy := w.Header().Get("Content-Security-Policy")
		w.Header().Set("Content-Security-Policy", strings.Replace(policy, "form-action 'self'", fmt.Sprintf("form-action 'self' http://%s", back.Host), 1))
	}
	w.WriteHeader(status)
	_ = deviceTemplate.Execute(w, page) // the peer has gone
}
