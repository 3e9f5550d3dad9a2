package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server"
)

var (
	reading = []holdfast.RunKind{holdfast.RunPlan, holdfast.RunDrift}
	writing = []holdfast.RunKind{holdfast.RunApply, holdfast.RunDestroy}
)

// saying is the body of a claim, which the fields of body are a part of.
func saying(body string) string {
	return strings.TrimSuffix(body, "}") + `,"process":"p","folder":"f"}`
}

// guarded has an agent next to it that plans, one that applies, and a token that agents
// elsewhere share.
func guarded(w *world) func(*server.Options) {
	return func(o *server.Options) {
		o.Agents.Tokens = []server.AgentToken{
			{Name: "local/plan", SHA256: server.HashToken("plan-token"), Agent: "here/plan", Kinds: reading},
			{Name: "local/apply", SHA256: server.HashToken("apply-token"), Agent: "here/apply", Kinds: writing},
			{Name: "eu", SHA256: server.HashToken("eu-token"), Kinds: reading, Projects: []string{"payments"}},
			{Name: "eu/apply", SHA256: server.HashToken("eu-apply-token"), Kinds: writing},
			{Name: "eu/apply/far", SHA256: server.HashToken("far-token"), Kinds: writing},
			{Name: "here", SHA256: server.HashToken("here-token"), Kinds: everyKind},
		}
		o.Audit = w
	}
}

// TestClaimsAreBoundToTheirToken: a claim for more than its token allows is
// refused as a whole, never narrowed, and put on record.
func TestClaimsAreBoundToTheirToken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		token, body string
		want        int
		text        string                 // of a refusal
		claimed     *protocol.ClaimRequest // what the dispatcher is asked for
	}{
		"its own kinds":                   {"plan-token", `{"agent":"here/plan","kinds":["plan"]}`, 204, "", &protocol.ClaimRequest{Agent: "here/plan", Kinds: []holdfast.RunKind{"plan"}, Bound: reading}},
		"no kinds":                        {"plan-token", `{"agent":"here/plan"}`, 204, "", &protocol.ClaimRequest{Agent: "here/plan", Kinds: reading, Bound: reading}},
		"no kinds of an apply":            {"apply-token", `{"agent":"here/apply","kinds":[]}`, 204, "", &protocol.ClaimRequest{Agent: "here/apply", Kinds: writing, Bound: writing}},
		"applies":                         {"plan-token", `{"agent":"here/plan","kinds":["apply"]}`, 403, "may claim plan, drift, not", nil},
		"applies, too":                    {"plan-token", `{"agent":"here/plan","kinds":["plan","drift","destroy"]}`, 403, `not \"destroy\"`, nil},
		"plans":                           {"apply-token", `{"agent":"here/apply","kinds":["plan"]}`, 403, "may claim apply, destroy", nil},
		"a kind of its own":               {"plan-token", `{"agent":"here/plan","kinds":["everything"]}`, 403, "may claim", nil},
		"as another agent":                {"plan-token", `{"agent":"here/apply","kinds":["plan"]}`, 403, `that of agent`, nil},
		"as part of its id":               {"plan-token", `{"agent":"here/plan/2"}`, 403, `that of agent`, nil},
		"one that shares":                 {"eu-token", `{"agent":"eu/1"}`, 204, "", &protocol.ClaimRequest{Agent: "eu/1", Kinds: reading, Bound: reading, Projects: []string{"payments"}}},
		"the only one":                    {"eu-token", `{"agent":"eu"}`, 204, "", &protocol.ClaimRequest{Agent: "eu", Kinds: reading, Bound: reading, Projects: []string{"payments"}}},
		"projects of its own":             {"eu-token", `{"agent":"eu","projects":["billing"],"Projects":["billing"]}`, 204, "", &protocol.ClaimRequest{Agent: "eu", Kinds: reading, Bound: reading, Projects: []string{"payments"}}},
		"a name that is longer":           {"eu-token", `{"agent":"eu-2"}`, 403, "for agents with the id", nil},
		"as one beside us":                {"eu-token", `{"agent":"here/plan"}`, 403, "for agents with the id", nil},
		"below, as one beside us":         {"here-token", `{"agent":"here/apply"}`, 403, "have another token", nil},
		"below, as nobody else":           {"here-token", `{"agent":"here/1"}`, 204, "", &protocol.ClaimRequest{Agent: "here/1", Kinds: everyKind, Bound: everyKind}},
		"the name of another token":       {"eu-token", `{"agent":"eu/apply"}`, 403, "have another token", nil},
		"below the name of another token": {"eu-token", `{"agent":"eu/apply/1"}`, 403, "have another token", nil},
		"below that of a third one":       {"eu-apply-token", `{"agent":"eu/apply/far/1"}`, 403, "have another token", nil},
		"above its name":                  {"eu-apply-token", `{"agent":"eu"}`, 403, "for agents with the id", nil},
		"beside its name":                 {"eu-apply-token", `{"agent":"eu/1"}`, 403, "for agents with the id", nil},
		"its name, below another":         {"eu-apply-token", `{"agent":"eu/apply"}`, 204, "", &protocol.ClaimRequest{Agent: "eu/apply", Kinds: writing, Bound: writing}},
		"below its name, below another":   {"far-token", `{"agent":"eu/apply/far/1"}`, 204, "", &protocol.ClaimRequest{Agent: "eu/apply/far/1", Kinds: writing, Bound: writing}},
		"a name that begins as another's": {"eu-token", `{"agent":"eu/applying"}`, 204, "", &protocol.ClaimRequest{Agent: "eu/applying", Kinds: reading, Bound: reading, Projects: []string{"payments"}}},
		"an id with a slash too many":     {"eu-token", `{"agent":"eu//apply"}`, 400, "nothing before or after", nil},
		"an id that ends with a slash":    {"eu-token", `{"agent":"eu/"}`, 400, "nothing before or after", nil},
		"an id that colours terminals":    {"eu-token", `{"agent":"eu/\u001b[31m"}`, 400, "characters other than ASCII letters", nil},
		"an id that is long":              {"eu-token", `{"agent":"eu/` + strings.Repeat("x", 300) + `"}`, 400, "more than 200 bytes", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			refused := []string{}
			url := serve(t, newServer(t, w, guarded(w), func(o *server.Options) {
				o.Agents.Refused = func(why string) { w.look(func() { refused = append(refused, why) }) }
			}).Agents())
			got := request(t, "POST", url+"/agent/v1/claims", tc.token, saying(tc.body))
			if got.status != tc.want || !strings.Contains(got.body, tc.text) {
				t.Fatalf("answer %d %s, want %d with %q", got.status, got.body, tc.want, tc.text)
			}
			w.look(func() {
				if tc.claimed == nil && tc.want == http.StatusBadRequest {
					if len(w.claimed) > 0 {
						t.Errorf("claimed %+v", w.claimed)
					}
					return
				}
				if tc.claimed == nil {
					if len(w.claimed) > 0 || len(refused) != 1 || len(w.audit) != 1 || w.audit[0].Action != "claim.refuse" {
						t.Errorf("claimed %+v, refused %q, on record: %+v", w.claimed, refused, w.audit)
					}
					return
				}
				tc.claimed.Process, tc.claimed.Folder, tc.claimed.Runner = "p", "f", holdfast.LocalRunner
				if diff := cmp.Diff([]protocol.ClaimRequest{*tc.claimed}, w.claimed); diff != "" || len(refused)+len(w.audit) > 0 {
					t.Errorf("claimed (-want +got):\n%s; refused %q, on record: %+v", diff, refused, w.audit)
				}
			})
		})
	}
}

// TestClaimsSayWhoTheyAre: without a process and a folder a claim is of nobody that
// could be told from another one.
func TestClaimsSayWhoTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld()
	url := serve(t, newServer(t, w, guarded(w)).Agents())
	for _, path := range []string{"claims", "presence"} {
		for _, body := range []string{
			`{"agent":"eu/1"}`, `{"agent":"eu/1","process":"p"}`, `{"agent":"eu/1","folder":"f"}`, `{"agent":"eu/1","process":" ","folder":"\t"}`,
		} {
			got := request(t, "POST", url+"/agent/v1/"+path, "eu-token", body)
			if got.status != http.StatusBadRequest || !strings.Contains(got.body, "no process or no folder") {
				t.Errorf("%s %s: %d %s", path, body, got.status, got.body)
			}
		}
	}
	w.look(func() {
		if len(w.claimed) > 0 {
			t.Errorf("claimed %+v", w.claimed)
		}
	})
}

// TestAmbiguousAgentTokens: names that could not be a part of an id, and ids that two
// tokens are bound to.
func TestAmbiguousAgentTokens(t *testing.T) {
	t.Parallel()
	token := func(name, agent string) server.AgentToken {
		return server.AgentToken{Name: name, SHA256: server.HashToken(name), Agent: agent, Kinds: reading}
	}
	for want, tokens := range map[string][]server.AgentToken{
		`"team/": its name has a slash`:  {token("team/", "")},
		`both that of agent "here/plan"`: {token("one", "here/plan"), token("two", "here/plan")},
		"":                               {token("team", ""), token("team/apply", ""), token("local/agent", "team/plan")},
	} {
		opts := options(newWorld())
		opts.Agents.Tokens = tokens
		_, err := server.New(opts)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestRefusedClaimsAreCountedAndRecordedOnceAMinute: who asks again and again
// does not fill the audit trail.
func TestRefusedClaimsAreCountedAndRecordedOnceAMinute(t *testing.T) {
	t.Parallel()
	w, clock, refused := newWorld(), now, []string{}
	url := serve(t, newServer(t, w, guarded(w), func(o *server.Options) {
		o.Agents.Refused = func(why string) { w.look(func() { refused = append(refused, why) }) }
		o.System.Now = func() (at time.Time) { w.look(func() { at = clock }); return at }
	}).Agents())
	ask := func(token, body string) { request(t, "POST", url+"/agent/v1/claims", token, saying(body)) }
	for range 5 {
		ask("plan-token", `{"agent":"here/plan","kinds":["apply"]}`)
	}
	ask("plan-token", `{"agent":"here/apply"}`)
	ask("stolen", `{"agent":"here/apply"}`)
	w.look(func() { clock = clock.Add(61 * time.Second) })
	ask("plan-token", `{"agent":"here/plan","kinds":["apply"]}`)
	w.look(func() {
		var entries []string
		for _, e := range w.audit {
			entries = append(entries, e.Actor+" "+e.Action+" "+e.Object)
		}
		want := []string{
			`local/plan claim.refuse agent "here/plan"`, `local/plan claim.refuse agent "here/apply"`, `local/plan claim.refuse agent "here/plan"`,
		}
		if !slices.Equal(entries, want) {
			t.Errorf("on record: %q", entries)
		}
		if want := []string{"kind", "kind", "kind", "kind", "kind", "agent", "token", "kind"}; !slices.Equal(refused, want) {
			t.Errorf("counted %q", refused)
		}
	})
}

// TestEveryRouteWithEveryToken: a credential opens its own routes and no other;
// to be on the same machine opens none.
func TestEveryRouteWithEveryToken(t *testing.T) {
	t.Parallel()
	w := newWorld()
	other := applyRun("run-other")
	other.Cluster, other.StateLocation, other.Bundle = "staging", "clusters/staging", holdfast.DigestOf([]byte("other"))
	tokens := map[string]string{
		"none": "", "garbage": "x", "viewer": viewerToken, "operator": operatorToken, "admin": adminToken,
		"plan agent": "plan-token", "apply agent": "apply-token",
		"own attempt": w.start(applyRun("run-1")), "another attempt": w.start(other), "a plan": w.start(planRun("run-plan")),
		"forged": protocol.FormatRunToken(holdfast.AttemptRef{Run: "run-1", Attempt: 1, Fence: 10}, "guess"),
	}
	s := newServer(t, w, guarded(w))
	handlers := map[string]http.Handler{"agents": s.Agents(), "api": s.API()}
	fill := strings.NewReplacer(
		":run", "run-1", ":attempt", "1", ":name", "document", ":digest", string(holdfast.DigestOf([]byte("bundle"))),
		"*location", "clusters/prod-eu", ":number", "1", ":cluster", "prod-eu", ":project", "payments", ":call", "claims", ":template", "web",
	)
	open := []string{"/healthz", "/readyz", "/metrics", "/assets/*path"}
	routes := 0
	for listener, handler := range handlers {
		url := serve(t, handler)
		for _, route := range handler.(*gin.Engine).Routes() {
			if slices.Contains(open, route.Path) {
				continue
			}
			routes++
			for who, token := range tokens {
				var admitted bool
				body := `{}`
				switch {
				case listener == "api":
					admitted = who == "admin" || who == "operator" || who == "viewer" // as far as their roles go
				case route.Path == "/agent/v1/claims", route.Path == "/agent/v1/presence":
					admitted = who == "plan agent" || who == "apply agent"
					body = saying(`{"agent":"here/` + strings.TrimSuffix(who, " agent") + `"}`)
				case strings.HasPrefix(route.Path, "/agent/v1/launches/"): // for keys: see TestClaimsByKey
				case route.Path == "/agent/v1/tickets": // a ticket is not among them: see TestTickets
				case strings.Contains(route.Path, "/attempts/"):
					admitted = who == "own attempt"
				default: // what a run may read, or keep in the state of its cluster
					admitted = who == "own attempt" || who == "a plan"
				}
				got := request(t, route.Method, url+fill.Replace(route.Path), token, body)
				known := got.status != http.StatusUnauthorized && (got.status != http.StatusForbidden || listener == "api" && admitted)
				plansState := who == "a plan" && strings.Contains(route.Path, "/state/") // it may not write
				if known != admitted && !plansState || plansState && got.status == http.StatusUnauthorized {
					t.Errorf("%s %s with the token of %s: %d %s", route.Method, route.Path, who, got.status, got.body)
				}
			}
		}
	}
	if routes < 30 {
		t.Errorf("only %d routes were looked at", routes)
	}
}
