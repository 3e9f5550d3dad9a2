package server

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/server/claimant"
	"github.com/holdfast-dev/holdfast/server/fleet"
	"github.com/holdfast-dev/holdfast/server/session"
)

// Server serves the listeners. Its handlers are safe for concurrent use.
type Server struct {
	*base
	listen Listeners
	public http.Handler
	api    http.Handler
	agents http.Handler

	mu     sync.Mutex
	intake []*endpoint // public and API
	work   []*endpoint // agents and states
	bound  bool

	stop sync.Once // closes base.stopping
}

// New returns a Server that listens nowhere yet, or an error that names what is
// missing.
func New(opts Options) (*Server, error) {
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	opts.setDefaults()

	// Gin's mode is its own global and only decides whether it prints its
	// routes on standard output, which belongs to whoever started us.
	gin.SetMode(gin.ReleaseMode)
	shared := &base{
		limits: opts.Limits, log: opts.System.Logger, now: opts.System.Now, audit: opts.Audit, stopping: make(chan struct{}),
	}
	login := opts.API.Login
	sessions, err := session.New(session.Options{
		Store: login.Sessions, People: login.People, Tokens: opts.API.Tokens, Key: login.Key, Times: login.Times,
		Audit: opts.Audit, Logger: opts.System.Logger, Now: opts.System.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("server: API tokens: %w", err)
	}
	api := &apiServer{
		base: shared, opts: opts.API, sessions: sessions, verbs: rights(), health: opts.Health, version: opts.System.Version,
		fleet: &fleet.Index{Source: opts.API.Records},
	}
	routes, err := api.routes()
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return &Server{
		base: shared, listen: opts.Listen,
		public: shared.publicRoutes(opts.Webhooks, opts.Agents.Issuer), api: routes, agents: newAgentServer(shared, opts.Agents).routes(),
	}, nil
}

// check returns what is missing, or not right.
func (o Options) check() error {
	for _, need := range []struct {
		what  string
		there bool
	}{
		{"dispatcher", o.Agents.Dispatcher != nil},
		{"registry", o.Agents.Registry != nil && o.API.Registry != nil},
		{"blobs", o.Agents.Blobs != nil && o.API.Artefacts != nil},
		{"states", o.Agents.States != nil},
		{"records", o.API.Records != nil && o.Agents.Runs != nil},
		{"commander", o.API.Commander != nil},
	} {
		if !need.there {
			return errors.New("no " + need.what)
		}
	}
	if err := claimant.Check(o.Agents.Tokens); err != nil {
		return fmt.Errorf("agent tokens: %w", err)
	}
	return nil
}

// Public returns the handler of the public listener.
func (s *Server) Public() http.Handler { return s.public }

// API returns the handler of the API's listener.
func (s *Server) API() http.Handler { return s.api }

// Agents returns the handler of the agents' listeners.
func (s *Server) Agents() http.Handler { return s.agents }

func (s *base) publicRoutes(webhooks http.Handler, issuer Issuer) http.Handler {
	e := s.engine(false)
	if issuer != nil {
		for _, path := range issuer.Paths() {
			e.Any(path, gin.WrapH(issuer))
		}
	}
	if webhooks != nil {
		e.Any("/webhooks/*path", func(c *gin.Context) {
			if s.isStopping() {
				s.fail(c, holdfast.ErrorOf(holdfast.ErrUnavailable, "server is stopping"))
				return
			}
			webhooks.ServeHTTP(c.Writer, c.Request)
		})
	}
	return e
}
