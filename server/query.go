package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// knownQuery returns a handler that refuses parameters which an operation does not have
// in the description of the API: a misspelt filter would select everything, and whoever
// gives a parameter expects that it does something. So would one that cannot be read,
// which net/url leaves out.
func (s *apiServer) knownQuery() gin.HandlerFunc {
	described := make(map[string][]string) // by method and route
	route := strings.NewReplacer("{", ":", "}", "")
	for _, op := range v1.Operations() {
		described[op.Method+" /api/v1"+route.Replace(op.Path)] = op.Parameters()
	}
	return func(c *gin.Context) {
		query, err := url.ParseQuery(c.Request.URL.RawQuery)
		if err != nil {
			s.fail(c, badRequest("query is not valid: %v", err))
			return
		}
		known := described[c.Request.Method+" "+c.FullPath()]
		for _, name := range slices.Sorted(maps.Keys(query)) {
			if !slices.Contains(known, name) {
				s.fail(c, unknownParameter(name, known))
				return
			}
		}
	}
}

func unknownParameter(name string, known []string) error {
	hint := "it takes no parameters"
	if len(known) > 0 {
		hint = "one of: " + strings.Join(known, ", ")
	}
	return &badRequestError{status: http.StatusBadRequest, text: fmt.Sprintf("unknown parameter %q", name), hint: hint}
}
