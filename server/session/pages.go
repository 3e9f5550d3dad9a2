package session

import (
	"errors"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
)

// The paths of the pages.
const (
	LoginPath  = "/login"
	LogoutPath = "/logout"
	DevicePath = "/device" // where a person types the code that a command line shows
)

// Page is what the login page shows.
type Page struct {
	Error    string // why the last try failed; empty: there was none, or it did not
	Next     string // the path to continue to
	Provider string // the identity provider's name; empty: there is none
	Insecure bool   // browsers refuse the cookie here: it is plain HTTP, and not this machine
	Code     string // begins a session once somebody says so, without anything else; empty: there is none
}

// Show writes the login page with a status.
type Show func(w http.ResponseWriter, status int, page Page)

// Handler answers GET and POST of LoginPath, and POST of LogoutPath. A nil show is a plain
// page; provider is the name of the identity provider, empty without one.
func (s *Sessions) Handler(show Show, provider string) http.Handler {
	if show == nil {
		show = ShowPlain
	}
	p := pages{s, show, provider}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+LoginPath, p.getLogin)
	mux.HandleFunc("POST "+LoginPath, p.postLogin)
	mux.HandleFunc("POST "+LogoutPath, p.postLogout)
	mux.HandleFunc("GET "+OncePath, p.getOnce)
	mux.HandleFunc("POST "+OncePath, p.postOnce)
	return mux
}

type pages struct {
	*Sessions
	show     Show
	provider string
}

func (p pages) page(r *http.Request, text, next string) Page {
	return PageOf(r, text, next, p.provider)
}

// PageOf is the login page for a request: with why the last try failed, and the name of the
// identity provider.
func PageOf(r *http.Request, text, next, provider string) Page {
	return Page{Error: text, Next: LocalPath(next), Provider: provider, Insecure: insecure(r)}
}

func (p pages) getLogin(w http.ResponseWriter, r *http.Request) {
	next := r.URL.Query().Get("next")
	if _, err := p.Of(w, r); err == nil {
		http.Redirect(w, r, LocalPath(next), http.StatusSeeOther)
		return
	}
	p.show(w, http.StatusOK, p.page(r, "", next))
}

// postLogin exchanges a token of the configuration for a session.
func (p pages) postLogin(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	next := r.PostFormValue("next")
	if err := p.SameSite(r); err != nil {
		p.show(w, http.StatusForbidden, p.page(r, "This request comes from another site.", next))
		return
	}
	token, ok := find(p.opts.Tokens, strings.TrimSpace(r.PostFormValue("token")))
	if !ok {
		p.show(w, http.StatusUnauthorized, p.page(r, "Unknown token.", next))
		return
	}
	err := p.Begin(w, r, access.Session{Name: token.Name, Token: token.Name, TokenHash: token.Proof()})
	if err != nil {
		p.opts.Logger.ErrorContext(r.Context(), "session was not begun", "err", err)
		p.show(w, http.StatusServiceUnavailable, p.page(r, "Holdfast cannot store the session now. Try again in a moment.", next))
		return
	}
	http.Redirect(w, r, LocalPath(next), http.StatusSeeOther)
}

func (p pages) postLogout(w http.ResponseWriter, r *http.Request) {
	who, err := p.Of(w, r)
	if err == nil {
		err = p.Guard(w, r, who)
	}
	if errors.Is(err, holdfast.ErrForbidden) {
		p.show(w, http.StatusForbidden, p.page(r, err.Error(), ""))
		return
	}
	if err := p.End(w, r); err != nil {
		p.opts.Logger.ErrorContext(r.Context(), "session was not ended", "err", err)
		p.show(w, http.StatusServiceUnavailable, p.page(r, "Holdfast cannot end the session now. Try again in a moment.", ""))
		return
	}
	http.Redirect(w, r, LoginPath, http.StatusSeeOther)
}

// LocalPath is a path of this server that somebody asked to continue to; / for anything
// else.
func LocalPath(next string) string {
	u, err := url.Parse(next)
	switch {
	case err != nil, u.Scheme != "", u.Host != "", u.User != nil, u.Opaque != "",
		!strings.HasPrefix(next, "/"), strings.HasPrefix(next, "//"),
		strings.ContainsAny(next, "\\\x00\t\r\n"),
		u.Path == LoginPath, strings.HasPrefix(u.Path, LoginPath+"/"), u.Path == LogoutPath, strings.HasPrefix(u.Path, "/api/"):
		return "/"
	}
	// Rebuilt from what was parsed: a browser must read the same as we do.
	if strings.HasPrefix(u.EscapedPath(), "//") {
		return "/"
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery, Fragment: u.Fragment}).String()
}

// insecure reports whether browsers refuse a cookie that is for HTTPS alone. A proxy in front
// that speaks it says so.
func insecure(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	here := host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
	return r.TLS == nil && !here && r.Header.Get("X-Forwarded-Proto") != "https"
}

var plain = template.Must(template.New("login").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Log in · Holdfast</title></head>
<body><main><h1>Holdfast</h1>
{{with .Error}}<p role="alert">{{.}}</p>{{end}}
{{if .Insecure}}<p role="alert">Browsers refuse to log in over plain HTTP: use https, or localhost.</p>{{end}}
{{if .Code}}<form method="post" action="/login/once"><input type="hidden" name="code" value="{{.Code}}"><p><button autofocus>Sign in to Holdfast</button></p></form>
{{else}}{{if .Provider}}<p><a href="/login/provider?next={{.Next}}">Log in with {{.Provider}}</a></p>{{end}}
<form method="post" action="/login">
<input type="hidden" name="next" value="{{.Next}}">
<p><label>Token <input type="password" name="token" autocomplete="off" required></label></p>
<p><button>Log in</button></p>
</form>{{end}}</main></body></html>
`))

// ShowPlain is a login page without any style.
func ShowPlain(w http.ResponseWriter, status int, page Page) {
	Harmless(w.Header())
	w.WriteHeader(status)
	_ = plain.Execute(w, page) // the peer has gone
}

// Harmless sets what keeps a page of forms from being framed, cached or named in a
// Referer.
func Harmless(h http.Header) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}
