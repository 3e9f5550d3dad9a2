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
)

// apiServer is the API's listener: who may do what, and what the handlers share.
type apiServer struct {
	*base
	opts    API
	health  Health
	version string
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

func (s *apiServer) routes() http.Handler {
	e := s.engine(false)
	system := &systemAPI{s}
	open := e.Group("", s.requireHost)
	open.GET("/readyz", system.ready)
	if s.health.Metrics != nil {
		open.GET("/metrics", gin.WrapH(s.health.Metrics))
	}
	(&pageAPI{s}).routes(e)

	v1 := e.Group("/api/v1")
	known := s.knownQuery()
	view, operate := v1.Group("", s.requireRole(RoleViewer), known), v1.Group("", s.requireRole(RoleOperator), known)
	system.routes(view)
	(&clusterAPI{s}).routes(view, operate)
	(&driftAPI{s}).routes(view, operate)
	(&runAPI{s}).routes(view)
	(&pullRequestAPI{s}).routes(view)
	(&templateAPI{s}).routes(view, operate)
	(&commandAPI{s}).routes(view, operate)
	(&lockAPI{s}).routes(view, operate)
	if s.opts.Runners.Records != nil {
		(&runnerAPI{s}).routes(view, operate)
	}
	if s.opts.Rescuer != nil {
		(&stateAPI{s}).routes(view, operate)
	}
	view.GET("/events", (&eventAPI{apiServer: s}).stream)
	return e
}

func (s *systemAPI) routes(view *gin.RouterGroup) {
	view.GET("/version", s.getVersion)
	view.GET("/whoami", s.getCaller)
	view.GET("/reasons", s.listReasons)
	view.GET("/openapi.json", s.getDescription)
	view.GET("/agents", s.listAgents)
	view.GET("/replicas", s.listReplicas)
	view.GET("/audit", s.listAudit)
}

func (s *apiServer) posted(ctx context.Context, key string) (holdfast.Post, bool, error) {
	if s.opts.Posts == nil {
		return holdfast.Post{}, false, nil
	}
	post, err := s.opts.Posts.Post(ctx, key)
	if errors.Is(err, holdfast.ErrNotFound) {
		return holdfast.Post{}, false, nil
	} else if err != nil {
		return holdfast.Post{}, false, fmt.Errorf("read post %s: %w", key, err)
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
