package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/agentkey"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/launchdesk"
)

const agentsURL = "https://agents.example.com"

// documents are runners in force.
type documents struct {
	mu   sync.Mutex
	list map[string]runnerspec.Runner
}

func (d *documents) Runner(_ context.Context, name string) (runnerspec.Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.list[name]
	if !ok {
		return runnerspec.Record{}, fmt.Errorf("runner %q: %w", name, holdfast.ErrNotFound)
	}
	return runnerspec.Record{Document: r}, nil
}

func (d *documents) set(r runnerspec.Runner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list[r.Name] = r
}

func newAgentKey(t *testing.T) (key agentkey.Key, public string) {
	t.Helper()
	key, err := agentkey.Generate()
	if err == nil {
		public, err = key.PublicPEM()
	}
	if err != nil {
		t.Fatal(err)
	}
	return key, public
}

// tokenOf is what an agent shows a server with a key.
func tokenOf(t *testing.T, key agentkey.Key, agent, address string, at time.Time) string {
	t.Helper()
	signer, err := agentkey.New(key, agent, address, func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	token, err := signer.Token()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// keyed is a server with runners of several types that have keys.
func keyed(t *testing.T, w *world, docs *documents, refused *[]string) string {
	t.Helper()
	return serve(t, newServer(t, w, guarded(w), func(o *server.Options) {
		o.Agents.Keys = server.Keys{Runners: docs, Address: agentsURL + "/"}
		o.Agents.Refused = func(why string) { w.look(func() { *refused = append(*refused, why) }) }
		o.Agents.Launches = launchdesk.New(launchdesk.Options{
			Launches: idleLaunches{}, Runs: w, Now: func() time.Time { return now },
			Settings: func(context.Context, runnerspec.Runner) (protocol.LaunchSettings, error) {
				return protocol.LaunchSettings{Installation: "here"}, nil
			},
			Limits: func(holdfast.Cluster) holdfast.RunLimits { return holdfast.RunLimits{} },
		})
	}).Agents())
}

// idleLaunches have nothing to launch.
type idleLaunches struct{ launchdesk.Launches }

func (idleLaunches) ClaimLaunch(context.Context, string, string) (holdfast.Run, string, error) {
	return holdfast.Run{}, "", holdfast.ErrNotFound
}

func TestClaimsByKey(t *testing.T) {
	t.Parallel()
	key, public := newAgentKey(t)
	second, secondPublic := newAgentKey(t)
	other, otherPublic := newAgentKey(t)
	docs := &documents{list: map[string]runnerspec.Runner{
		"far":  {Name: "far", Type: runnerspec.Remote, Keys: []string{public, secondPublic}},
		"east": {Name: "east", Type: runnerspec.KubernetesAgent, Keys: []string{public}},
		"eu":   {Name: "eu", Type: runnerspec.Remote, Keys: []string{otherPublic}},
		"jobs": {Name: "jobs", Type: runnerspec.Kubernetes, Keys: []string{public}},
	}}
	for name, test := range map[string]struct {
		token, path, body string
		status            int
		words, refused    string
	}{
		"its own":               {tokenOf(t, key, "far/1", agentsURL, now), "claims", `{"agent":"far/1"}`, 204, "", ""},
		"named as the runner":   {tokenOf(t, key, "far", agentsURL, now), "claims", `{"agent":"far"}`, 204, "", ""},
		"another key of it":     {tokenOf(t, second, "far/2", agentsURL, now), "claims", `{"agent":"far/2","kinds":["plan"]}`, 204, "", ""},
		"says that it is there": {tokenOf(t, key, "far/1", agentsURL, now), "presence", `{"agent":"far/1"}`, 204, "", ""},
		"as another agent":      {tokenOf(t, key, "far/1", agentsURL, now), "claims", `{"agent":"far/2"}`, 403, `signed for agent \"far/1\"`, "agent"},
		"as one of a token":     {tokenOf(t, key, "far/1", agentsURL, now), "claims", `{"agent":"here/plan"}`, 403, "signed for agent", "agent"},
		"a kind that is not":    {tokenOf(t, key, "far/1", agentsURL, now), "claims", `{"agent":"far/1","kinds":["x"]}`, 403, "may claim", "kind"},
		"of another runner":     {tokenOf(t, other, "far/1", agentsURL, now), "claims", `{"agent":"far/1"}`, 401, "no runner has the key", "key"},
		"of no runner":          {tokenOf(t, key, "nowhere/1", agentsURL, now), "claims", `{"agent":"nowhere/1"}`, 401, "no runner has the key", "key"},
		"of a type without":     {tokenOf(t, key, "jobs/1", agentsURL, now), "claims", `{"agent":"jobs/1"}`, 401, "no runner has the key", "key"},
		"a longer name":         {tokenOf(t, key, "farther/1", agentsURL, now), "claims", `{"agent":"farther/1"}`, 401, "no runner has the key", "key"},
		"for another server":    {tokenOf(t, key, "far/1", "https://other.example.com", now), "claims", `{"agent":"far/1"}`, 401, "this server is", "key"},
		"expired":               {tokenOf(t, key, "far/1", agentsURL, now.Add(-6*time.Minute)), "claims", `{"agent":"far/1"}`, 401, "expired 1m0s ago", "key"},
		"of the future":         {tokenOf(t, key, "far/1", agentsURL, now.Add(time.Minute)), "claims", `{"agent":"far/1"}`, 401, "clock is ahead", "key"},
		"an id of a token":      {tokenOf(t, other, "eu/1", agentsURL, now), "claims", `{"agent":"eu/1"}`, 403, `have the token \"eu\"`, "agent"},
		"launches, as it may":   {tokenOf(t, key, "east/1", agentsURL, now), "launches/settings", `{}`, 200, `"installation":"here"`, ""},
		"launches nothing now":  {tokenOf(t, key, "east/1", agentsURL, now), "launches/claims", `{}`, 204, "", ""},
		"launches what is not":  {tokenOf(t, key, "east/1", agentsURL, now), "launches/x", `{}`, 404, "no such path", ""},
		"launches and claims":   {tokenOf(t, key, "east/1", agentsURL, now), "claims", `{"agent":"east/1"}`, 403, "its agents launch Jobs", "kind"},
		"claims and launches":   {tokenOf(t, key, "far/1", agentsURL, now), "launches/settings", `{}`, 403, "its agents claim runs", "kind"},
		"launches by a token":   {"plan-token", "launches/settings", `{}`, 403, "have a key", "kind"},
		"launches by nothing":   {"", "launches/settings", `{}`, 401, "missing or unknown", "token"},
		"launches too newly":    {tokenOf(t, key, "east/1", agentsURL, now), "launches/settings", `{"protocol":99}`, 403, "upgrade the server first", "protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, refused := newWorld(), []string{}
			url := keyed(t, w, docs, &refused)
			body := test.body
			if !strings.HasPrefix(test.path, "launches") {
				body = saying(body)
			}
			got := request(t, http.MethodPost, url+"/agent/v1/"+test.path, test.token, body)
			w.look(func() {
				if got.status != test.status || !strings.Contains(got.body, test.words) || strings.Join(refused, " ") != test.refused {
					t.Errorf("%d %s, refused %v", got.status, got.body, refused)
				}
				if test.path != "claims" || test.status != 204 {
					return
				}
				c := w.claimed[0]
				if c.Runner != "far" || !slices.Equal(c.Bound, holdfast.AgentKinds()) || c.Projects != nil {
					t.Errorf("claimed %+v", c)
				}
			})
		})
	}
}

// A key that is removed from the document ends at once what it is used for: a claim that waits,
// too.
func TestKeyIsRemoved(t *testing.T) {
	t.Parallel()
	key, public := newAgentKey(t)
	docs := &documents{list: map[string]runnerspec.Runner{"far": {Name: "far", Type: runnerspec.Remote, Keys: []string{public}}}}
	w, refused := newWorld(), []string{}
	url := keyed(t, w, docs, &refused) + "/agent/v1/claims"
	token := tokenOf(t, key, "far/1", agentsURL, now)
	answered := make(chan answer)
	go func() {
		answered <- request(t, http.MethodPost, url, token, saying(fmt.Sprintf(`{"agent":"far/1","wait":%d}`, 30*time.Second)))
	}()
	for len(w.noted()) == 0 { // it waits
		time.Sleep(time.Millisecond)
	}
	docs.set(runnerspec.Runner{Name: "far", Type: runnerspec.Remote})
	if got := <-answered; got.status != http.StatusUnauthorized || !strings.Contains(got.body, "the key was removed") {
		t.Errorf("the one that waits: %d %s", got.status, got.body)
	}
	w.claims <- protocol.Assignment{}
	if got := request(t, http.MethodPost, url, token, saying(`{"agent":"far/1"}`)); got.status != http.StatusUnauthorized {
		t.Errorf("the next one: %d %s", got.status, got.body)
	}
}

// A launcher does not see what is not its runner's, and its runner's keys neither.
func TestLauncherIsToldNoKeys(t *testing.T) {
	t.Parallel()
	key, public := newAgentKey(t)
	docs := &documents{list: map[string]runnerspec.Runner{"east": {Name: "east", Type: runnerspec.KubernetesAgent, Keys: []string{public}}}}
	w, refused := newWorld(), []string{}
	got := request(t, http.MethodPost, keyed(t, w, docs, &refused)+"/agent/v1/launches/settings", tokenOf(t, key, "east", agentsURL, now), `{}`)
	var settings protocol.LaunchSettings
	if err := json.Unmarshal([]byte(got.body), &settings); err != nil || settings.Runner.Name != "east" || len(settings.Runner.Keys) > 0 {
		t.Errorf("%d %s: %v", got.status, got.body, err)
	}
}
