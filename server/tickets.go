package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server/lobby"
	"github.com/holdfast-dev/holdfast/server/session"
)

// Tickets gives assignments to what was started for an attempt; dispatch.Launches is one.
type Tickets interface {
	// Exchange is an ErrUnauthorized if the ticket is not one, an ErrFenced if its attempt is
	// over, an ErrConflict if another process has shown it before.
	Exchange(ctx context.Context, ticket string, req protocol.TicketRequest) (protocol.Assignment, error)
}

// Why the exchange of a ticket is refused, as the metric says it.
const (
	refusedTicket = "ticket" // it is not one, or not good any longer
	refusedSecond = "second" // another process has shown it before
)

const noTicket = "ticket missing or unknown"

// exchange answers a ticket with the assignment that it stands for.
func (s *agentServer) exchange(c *gin.Context) {
	ticket := session.Bearer(c.Request)
	if _, _, ok := protocol.ParseRunToken(ticket); !ok || s.opts.Tickets == nil {
		s.refuseTicket(c, "", protocol.TicketRequest{}, refusedTicket, noTicket)
		s.fail(c, holdfast.ErrorOf(holdfast.ErrUnauthorized, noTicket))
		return
	}
	var req protocol.TicketRequest
	if err := decode(c, &req, false); err != nil {
		s.fail(c, err)
		return
	}
	for _, word := range []*string{&req.Host, &req.Version, &req.Platform, &req.Isolation} {
		*word = plainWord(*word)
	}
	if err := protocol.Check(req.Protocol); err != nil {
		s.refuseTicket(c, "", req, refusedProtocol, err.Error())
		s.fail(c, holdfast.ErrorOf(holdfast.ErrForbidden, "%s", err.Error()))
		return
	}
	if len(req.Process) < 16 || len(req.Process) > 200 {
		s.fail(c, badRequest("the process names itself by 16 to 200 characters"))
		return
	}
	ctx, cancel := saving(c)
	defer cancel()
	assignment, err := s.opts.Tickets.Exchange(ctx, ticket, req)
	var weak *protocol.AgentIsolationError
	switch {
	case err == nil:
		lobby.Known(c.Request.Context())
		c.JSON(http.StatusOK, assignment)
	case errors.As(err, &weak):
		s.refuseTicket(c, ticket, req, refusedIsolation, weak.Error())
		s.fail(c, weak)
	case errors.Is(err, holdfast.ErrConflict):
		text := "the ticket was exchanged before, by another process"
		s.refuseTicket(c, ticket, req, refusedSecond, text)
		s.fail(c, holdfast.ErrorOf(holdfast.ErrForbidden, "%s", text))
	case errors.Is(err, holdfast.ErrUnauthorized):
		s.refuseTicket(c, "", req, refusedTicket, noTicket)
		s.fail(c, holdfast.ErrorOf(holdfast.ErrUnauthorized, noTicket))
	default:
		s.fail(c, fmt.Errorf("exchange ticket: %w", err))
	}
}

// refuseTicket counts a refused exchange, and puts it on record.
func (s *agentServer) refuseTicket(c *gin.Context, ticket string, req protocol.TicketRequest, why, text string) {
	name := ""
	if ref, _, ok := protocol.ParseRunToken(ticket); ok {
		name = "ticket/" + ref.Owner() // it was genuine, or is not one of ours
	}
	s.refuseClaim(c, name, req.Host, why, text)
}
