package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/replica"
)

func (s *systemAPI) getVersion(c *gin.Context) {
	c.JSON(http.StatusOK, v1.Version{Version: s.version, Time: s.now().UTC()})
}

func (s *systemAPI) getCaller(c *gin.Context) {
	c.JSON(http.StatusOK, v1.CallerOf(caller(c), s.sessions.FormToken(caller(c))))
}

// listReasons answers with the meanings of the reasons why something waits, was refused
// or failed.
func (s *systemAPI) listReasons(c *gin.Context) {
	p, err := pageOf(c, maxItems, maxItems, 1)
	if err != nil {
		s.fail(c, err)
		return
	}
	part, cursor := cut(p, holdfast.Reasons(), func(r holdfast.Reason) []string { return []string{string(r)} })
	answerList(s.base, c, p, part, v1.ReasonOf, cursor, nil)
}

// getDescription answers with the description of the API.
func (s *systemAPI) getDescription(c *gin.Context) {
	c.Data(http.StatusOK, "application/json; charset=utf-8", v1.OpenAPI())
}

// same is the conversion of a value that is already one of the API.
func same[T any](item T) T { return item }

func convert[From, To any](items []From, one func(From) To) []To {
	out := make([]To, len(items))
	for i, item := range items {
		out[i] = one(item)
	}
	return out
}

func (s *systemAPI) listAgents(c *gin.Context) {
	listAll(s, c, s.opts.Registry.Agents, func(a protocol.AgentStatus) string { return a.ID }, v1.AgentOf)
}

func (s *systemAPI) listReplicas(c *gin.Context) {
	listAll(s, c, s.opts.Records.Replicas, func(r replica.Replica) string { return r.Identity }, v1.ReplicaOf)
}

// listAll answers with a list of a few things, by their names.
func listAll[T, A any](s *systemAPI, c *gin.Context, all func(context.Context) ([]T, error), name func(T) string, one func(T) A) {
	p, err := pageOf(c, unsaidItems, maxItems, 1)
	if err != nil {
		s.fail(c, err)
		return
	}
	items, err := all(c.Request.Context())
	part, cursor := cut(p, items, func(item T) []string { return []string{name(item)} })
	answerList(s.base, c, p, part, one, cursor, err)
}

func (s *systemAPI) listAudit(c *gin.Context) {
	p, err := pageOf(c, unsaidItems, maxItems, 1)
	before, err2 := p.place()
	if err = errors.Join(err, err2); err != nil {
		s.fail(c, err)
		return
	}
	entries, place, err := s.opts.Records.AuditPage(c.Request.Context(), c.Query("object"), before, p.limit)
	cursor := full(p, entries, func(holdfast.AuditEntry) []string { return []string{strconv.FormatInt(place, 10)} })
	answerList(s.base, c, p, entries, v1.AuditEntryOf, cursor, err)
}

func (s *systemAPI) ready(c *gin.Context) {
	answer := v1.Readiness{Reasons: s.health.Ready(), Warnings: s.health.Lacking(), Agents: count(s.opts.Registry.Heard())}
	if s.isStopping() {
		answer.Reasons = append(answer.Reasons, "server is stopping")
	}
	answer.Ready = len(answer.Reasons) == 0
	status := http.StatusOK
	if !answer.Ready {
		status = http.StatusServiceUnavailable
	}
	c.JSON(status, answer)
}

// count leaves out who the agents are: whoever asks shows no token.
func count(agents []protocol.AgentStatus) []v1.AgentCount {
	var out []v1.AgentCount
	for _, a := range agents {
		if !a.Living {
			continue
		}
		kinds := slices.Clone(a.Kinds)
		slices.Sort(kinds)
		alike := func(c v1.AgentCount) bool { return c.Isolation == a.Isolation && slices.Equal(c.Kinds, kinds) }
		if i := slices.IndexFunc(out, alike); i >= 0 {
			out[i].Count++
			continue
		}
		out = append(out, v1.AgentCount{Kinds: kinds, Isolation: a.Isolation, Count: 1})
	}
	return out
}
