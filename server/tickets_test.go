package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server"
)

// tickets are those of run-0001, of which one was exchanged by another process.
type tickets struct{}

func (tickets) Exchange(_ context.Context, ticket string, req protocol.TicketRequest) (protocol.Assignment, error) {
	switch ticket {
	case "run-0001.1.3.good":
		return protocol.Assignment{AttemptRef: holdfast.AttemptRef{Run: "run-0001", Attempt: 1, Fence: 3}, Cluster: req.Host}, nil
	case "run-0001.1.3.shown":
		return protocol.Assignment{}, fmt.Errorf("exchange: %w", holdfast.ErrConflict)
	case "run-0001.1.3.weak":
		return protocol.Assignment{}, errors.Join(&protocol.AgentIsolationError{Isolation: "none", Demanded: []string{"landlock"}})
	case "run-0001.1.3.over":
		return protocol.Assignment{}, fmt.Errorf("exchange: %w", holdfast.ErrFenced)
	default:
		return protocol.Assignment{}, holdfast.ErrUnauthorized
	}
}

func TestTickets(t *testing.T) {
	t.Parallel()
	var refused []string
	s := newServer(t, newWorld(), func(o *server.Options) {
		o.Agents.Tickets = tickets{}
		o.Agents.Refused = func(why string) { refused = append(refused, why) }
	})
	url := serve(t, s.Agents()) + "/agent/v1/tickets"
	const process = `{"process": "0123456789abcdef", "host": "pod-1"}`
	for _, test := range []struct {
		name, ticket, body string
		status             int
		words, refused     string
	}{
		{"good", "run-0001.1.3.good", process, http.StatusOK, "", ""},
		{"none", "", process, http.StatusUnauthorized, "ticket missing", "ticket"},
		{"unknown", "x", process, http.StatusUnauthorized, "ticket missing", "ticket"},
		{"of another process", "run-0001.1.3.shown", process, http.StatusForbidden, "exchanged before", "second"},
		{"weak isolation", "run-0001.1.3.weak", process, http.StatusForbidden, "weaker than the server demands", "isolation"},
		{"over", "run-0001.1.3.over", process, http.StatusConflict, "", ""},
		{"too new", "run-0001.1.3.good", `{"process": "0123456789abcdef", "protocol": 99}`, http.StatusForbidden, "upgrade the server first", "protocol"},
		{"no process", "run-0001.1.3.good", `{}`, http.StatusBadRequest, "16 to 200", ""},
	} {
		refused = nil
		got := request(t, http.MethodPost, url, test.ticket, test.body)
		if got.status != test.status || !strings.Contains(got.body, test.words) || strings.Join(refused, " ") != test.refused {
			t.Errorf("%s: %d %s, refused %v", test.name, got.status, got.body, refused)
		}
		var a protocol.Assignment
		if test.status == http.StatusOK && (json.Unmarshal([]byte(got.body), &a) != nil || a.Run != "run-0001" || a.Cluster != "pod-1") {
			t.Errorf("%s: the assignment is %s", test.name, got.body)
		}
	}
}
