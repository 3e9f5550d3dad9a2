package pages

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/server/pages/call"
)

// Options are what pages need. All are required unless noted.
type Options struct {
	API     http.Handler // answers /api/v1, and decides who may see what
	Version string
	Logger  *slog.Logger                         // nil discards
	Now     func() time.Time                     // nil means time.Now
	Newest  func(context.Context) (int64, error) // the number of the newest change, as events have it
}

// Pages answers with pages. It is safe for concurrent use.
type Pages struct {
	opts Options
	mux  *http.ServeMux
	logs *logs
}

// New returns the pages, or an error that names what is missing.
func New(opts Options) (*Pages, error) {
	if opts.API == nil || opts.Newest == nil {
		return nil, errors.New("pages: no API, or no newest change")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	p := &Pages{opts: opts, mux: http.NewServeMux(), logs: newLogs()}
	p.routes()
	return p, nil
}

// ActPath takes the forms of buttons.
const ActPath = "/act"

// views are the pages, by their patterns.
var views = map[string]func(*visit) (console.View, error){
	"GET /{$}":                             (*visit).fleet,
	"GET /clusters/{name}":                 (*visit).cluster,
	"GET /runs/{run}":                      (*visit).run,
	"GET /pullrequests":                    (*visit).pullRequests,
	"GET /pullrequests/{number}/{repo...}": (*visit).pullRequest,
	"GET /queue":                           (*visit).queue,
	"GET /drift":                           (*visit).driftList,
	"GET /templates":                       (*visit).templates,
	"GET /templates/{name}":                (*visit).template,
	"GET /audit":                           (*visit).audit,
	"GET /settings":                        (*visit).settings,
	"GET /deliveries":                      (*visit).deliveries,
	"GET " + NewPath:                       (*visit).newCluster,
	"GET /clusters/{name}/change":          (*visit).changeCluster,
}

// logParts are the addresses of parts of a log, by their patterns.
var logParts = map[string]func(*Pages, http.ResponseWriter, *http.Request){
	"GET /runs/{run}/lines":   (*Pages).logWindow,
	"GET /runs/{run}/log.txt": (*Pages).rawLog,
}

// ginParameter is how gin writes what a pattern of net/http has in braces.
var ginParameter = strings.NewReplacer("GET ", "", "{$}", "", "{repo...}", "*repo", "{", ":", "}", "")

// Paths are those of all pages, as routes of the server.
func Paths() []string {
	var paths []string
	for pattern := range views {
		paths = append(paths, ginParameter.Replace(pattern))
	}
	for pattern := range logParts {
		paths = append(paths, ginParameter.Replace(pattern))
	}
	slices.Sort(paths)
	return paths
}

func (p *Pages) routes() {
	p.mux.Handle("GET "+console.AssetPath, console.Assets())
	for pattern, show := range views {
		p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if text := texts[pattern]; text != nil && !forBrowser(r) {
				p.serveText(w, r, text)
				return
			}
			p.serve(w, r, show)
		})
	}
	for pattern, part := range logParts {
		p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { part(p, w, r) })
	}
	p.mux.HandleFunc("POST /theme", p.setTheme)
	p.mux.HandleFunc("POST "+ActPath, p.act)
	p.mux.HandleFunc("POST "+NewPath, p.postNew)
}

// ServeHTTP answers a request for a page or an asset.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// visit is one request for a page.
type visit struct {
	*call.API
	pages *Pages
	r     *http.Request
	now   time.Time
	who   v1.Caller
	frame console.Frame
}

// serve shows a page to people that the API knows; others are asked to sign in.
func (p *Pages) serve(w http.ResponseWriter, r *http.Request, show func(*visit) (console.View, error)) {
	v := p.visit(r)
	err := v.Get("/whoami", nil, &v.who)
	var view console.View
	if err == nil {
		v.frame.Who, v.frame.Form = console.Who{Name: v.who.Name, Role: role(v.who)}, v.who.FormToken
		v.navigate()
		v.frame.Said = saidTo(w, r)
		v.frame.Seen, err = p.opts.Newest(r.Context()) // before reading: what changes meanwhile is asked for again
	}
	if err == nil {
		view, err = show(v)
	}
	switch {
	case call.Is(err, http.StatusUnauthorized):
		http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
	case err != nil:
		p.fail(w, v, err)
	default:
		p.respond(w, r, http.StatusOK, v.frame, view)
	}
}

func (p *Pages) visit(r *http.Request) *visit {
	now := p.opts.Now()
	return &visit{
		API: call.As(r, p.opts.API), pages: p, r: r, now: now,
		frame: console.Frame{Self: r.URL.RequestURI(), Theme: theme(r), Now: now, Version: p.opts.Version, Stream: true},
	}
}

// Login shows the page to sign in.
func (p *Pages) Login(w http.ResponseWriter, r *http.Request, status int, view console.LoginView) {
	frame := console.Frame{Title: "Sign in", Theme: theme(r), Now: p.opts.Now(), Version: p.opts.Version, Alone: true}
	p.respond(w, r, status, frame, view)
}

// fail shows why there is no page.
func (p *Pages) fail(w http.ResponseWriter, v *visit, err error) {
	var problem *call.ProblemError
	if !errors.As(err, &problem) {
		p.opts.Logger.ErrorContext(v.r.Context(), "could not show page", "path", v.r.URL.Path, "err", err)
		problem = call.Refusal(http.StatusInternalServerError, "", "The server's log says why.")
	}
	v.frame.Title, v.frame.Stream = problem.Title, false
	if len(v.frame.Nav) == 0 {
		v.frame.Alone = true
	}
	p.respond(w, v.r, problem.Status, v.frame, console.ProblemView{
		Status: problem.Status, Title: problem.Title, Detail: problem.Detail, Hint: problem.Hint, Command: problem.Command,
		Back: console.Link{Text: "Back to the fleet", Href: "/"},
	})
}

// respond sends a page. It is for one person, at one moment: no cache keeps it.
func (p *Pages) respond(w http.ResponseWriter, r *http.Request, status int, frame console.Frame, view console.View) {
	var b bytes.Buffer
	if err := console.Render(&b, frame, view); err != nil {
		p.opts.Logger.ErrorContext(r.Context(), "could not render page", "path", r.URL.Path, "err", err)
		http.Error(w, "internal error: see the server's log", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	Guard(h)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Add("Vary", "Accept-Encoding, Cookie, Accept, HX-Request")
	body := b.Bytes()
	if len(body) > 1400 && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = packed(body)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the reader may have gone
}

// Guard sets the headers that all pages have.
func Guard(h http.Header) {
	h.Set("Content-Security-Policy", console.Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

func packed(body []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // a level that exists
	_, _ = w.Write(body)                            // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// role says what somebody may do, and where.
func role(who v1.Caller) string {
	if n := len(who.Projects); n > 0 {
		return who.Role + ", " + console.Plural(n, "project")
	}
	return who.Role
}
