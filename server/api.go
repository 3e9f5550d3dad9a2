package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/server/fleet"
	"github.com/holdfast-dev/holdfast/server/pages"
	"github.com/holdfast-dev/holdfast/server/session"
)

// apiServer is the API's listener: who may do what, and what the handlers share.
type apiServer struct {
	*base
	opts     API
	sessions *session.Sessions
	verbs    map[string]access.Verb // of routes, by method and path
	health   Health
	version  string
	fleet    *fleet.Index
	pages    *pages.Pages
}

// The handlers, by what they are about.
type (
	systemAPI      struct{ *apiServer }
	clusterAPI     struct{ *apiServer }
	driftAPI       struct{ *apiServer }
	runAPI         struct{ *apiServer }
	pullRequestAPI struct{ *apiServer }
	templateAPI    struct{ *apiServer }
	commandAPI     struct{ *apiServer }
	lockAPI        struct{ *apiServer }
	stateAPI       struct{ *apiServer }
	pageAPI        struct{ *apiServer }
)

func (s *apiServer) routes() (http.Handler, error) {
	e := s.engine(false)
	system := &systemAPI{s}
	open := e.Group("", s.requireHost)
	open.GET("/readyz", system.ready)
	if s.health.Metrics != nil {
		open.GET("/metrics", gin.WrapH(s.health.Metrics))
	}
	if err := (&pageAPI{s}).routes(e); err != nil {
		return nil, err
	}
	s.loginRoutes(e)

	v1 := e.Group("/api/v1", s.admit, s.knownQuery())
	system.routes(v1)
	(&clusterAPI{s}).routes(v1)
	(&driftAPI{s}).routes(v1)
	(&runAPI{s}).routes(v1)
	(&pullRequestAPI{s}).routes(v1)
	(&templateAPI{s}).routes(v1)
	(&commandAPI{s}).routes(v1)
	(&lockAPI{s}).routes(v1)
	if s.opts.Runners.Records != nil {
		(&runnerAPI{s}).routes(v1)
	}
	if s.opts.Proposer != nil {
		(&proposalAPI{s}).routes(v1)
	}
	if s.opts.Rescuer != nil {
		(&stateAPI{s}).routes(v1)
	}
	if s.opts.Login.Tokens != nil && s.opts.Login.Lists != nil {
		(&tokenAPI{s}).routes(v1)
	}
	v1.GET("/events", (&eventAPI{apiServer: s}).stream)
	return e, nil
}

func (s *systemAPI) routes(api *gin.RouterGroup) {
	api.GET("/version", s.getVersion)
	api.GET("/whoami", s.getCaller)
	api.GET("/reasons", s.listReasons)
	api.GET("/openapi.json", s.getDescription)
	api.GET("/agents", s.listAgents)
	api.GET("/replicas", s.listReplicas)
	api.GET("/audit", s.listAudit)
	if s.opts.Deliveries != nil {
		api.GET("/deliveries", s.listDeliveries)
	}
}

func (s *apiServer) posted(ctx context.Context, key string) (outgoing.Post, bool, error) {
	if s.opts.Posts == nil {
		return outgoing.Post{}, false, nil
	}
	post, err := s.opts.Posts.Post(ctx, key)
	if errors.Is(err, holdfast.ErrNotFound) {
		return outgoing.Post{}, false, nil
	} else if err != nil {
		return outgoing.Post{}, false, fmt.Errorf("read post %s: %w", key, err)
	}
	return post, true, nil
}

// words lists words for people.
func words[T ~string](all []T) string {
	texts := make([]string, len(all))
	for i, word := range all {
		texts[i] = string(word)
	}
	return strings.Join(texts, ", ")
}

// wordsOf reads a parameter that may be repeated, and whose values are words that are
// known: a misspelt one would select nothing.
func wordsOf[T ~string](c *gin.Context, name string, known []T) ([]T, error) {
	var found []T
	for _, text := range c.QueryArray(name) {
		if !slices.Contains(known, T(text)) {
			return nil, badRequest("%s %.40q: want one of %s", name, text, words(known))
		}
		found = append(found, T(text))
	}
	return found, nil
}

// yes reads a parameter that is true or false; absent means false.
func yes(c *gin.Context, name string) (bool, error) {
	switch value := c.Query(name); value {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, badRequest("%s %q: want true or false", name, value)
	}
}
