package server_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server"
)

// TestProtocolOfAgents: those of the server's protocol and of the previous one, which named none,
// may claim. Others are refused with what to do.
func TestProtocolOfAgents(t *testing.T) {
	t.Parallel()
	w, log, refused := newWorld(), &strings.Builder{}, []string{}
	url := serve(t, newServer(t, w, guarded(w), func(o *server.Options) {
		o.System.Logger = slog.New(slog.NewTextHandler(log, nil))
		o.Agents.Refused = func(why string) { w.look(func() { refused = append(refused, why) }) }
	}).Agents())
	post := func(path, version string) answer {
		t.Helper()
		return request(t, "POST", url+"/agent/v1/"+path, "plan-token", `{"agent":"here/plan"`+version+`,"process":"p","folder":"f"}`)
	}
	for _, path := range []string{"claims", "presence"} {
		for _, spoken := range []string{"", fmt.Sprintf(`,"protocol":%d`, protocol.Version)} {
			if got := post(path, spoken); got.status != http.StatusNoContent {
				t.Errorf("%s with %q: %d %s", path, spoken, got.status, got.body)
			}
		}
		got := post(path, fmt.Sprintf(`,"protocol":%d`, protocol.Version+1))
		if got.status != http.StatusForbidden || !strings.Contains(got.body, "upgrade the server first") {
			t.Errorf("%s of a newer agent: %d %s", path, got.status, got.body)
		}
	}
	if fmt.Sprint(refused) != "[protocol protocol]" || !strings.Contains(log.String(), "upgrade the server first") {
		t.Errorf("counted %q, and the log says %s", refused, log)
	}
}
