package server_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/server"
)

// places are two runners, a rule and two environments.
type places struct{ asked []string }

func (*places) Runners(context.Context) ([]runnerspec.Record, error) {
	return []runnerspec.Record{{
		Document: runnerspec.Runner{Name: "eu", Type: runnerspec.Remote, MaxRuns: 3},
		Place:    runnerspec.DocumentPlace{Repo: "platform", Path: "runners.yaml", Line: 1, Revision: "abc"},
		Faults:   holdfast.Faults{{File: "runners.yaml", Message: "it is gone"}},
	}}, nil
}

func (*places) RunnerRules(context.Context) ([]runnerspec.RuleRecord, error) {
	return []runnerspec.RuleRecord{
		{Document: runnerspec.Rule{Name: "prod", Runner: "eu", Project: "payments"}}, {Document: runnerspec.Rule{Name: "rest", Runner: "local"}},
	}, nil
}

func (*places) Environments(_ context.Context, filter holdfast.EnvironmentFilter) (out []holdfast.Environment, err error) {
	for _, env := range []holdfast.Environment{
		{EnvironmentKey: holdfast.EnvironmentKey{Project: "payments", Name: "production"}, Runner: "eu", Rule: "prod", PinnedAt: now},
		{EnvironmentKey: holdfast.EnvironmentKey{Project: "web", Name: "production"}, Runner: "local", PinnedAt: now},
	} {
		if (filter.Runner == "" || filter.Runner == env.Runner) && (len(filter.Projects) == 0 || slices.Contains(filter.Projects, env.Project)) {
			out = append(out, env)
		}
	}
	return out, nil
}

func (p *places) RefreshRunner(_ context.Context, env holdfast.EnvironmentKey, dry bool, actor string) (before, after holdfast.Environment, err error) {
	p.asked = append(p.asked, fmt.Sprintf("refresh %s %t by %s", env, dry, actor))
	switch env.Name {
	case "busy":
		return before, after, &holdfast.EnvironmentBusyError{Environment: env, Run: "run-1", Cluster: "prod-eu"}
	case "none":
		return before, after, fmt.Errorf("a runner rule for environment %s: %w", env, holdfast.ErrNotFound)
	}
	return holdfast.Environment{EnvironmentKey: env, Runner: "local"}, holdfast.Environment{EnvironmentKey: env, Runner: "eu", Rule: "prod"}, nil
}

func (p *places) ProposeRunner(_ context.Context, asked proposals.RunnerChange) (proposals.RunnerOutcome, error) {
	p.asked = append(p.asked, fmt.Sprintf("%s %s by %s", asked.Change, asked.Name, asked.By))
	if asked.Name == "bad" {
		return proposals.RunnerOutcome{}, holdfast.Faults{{File: "runners/bad.yaml", Line: 6, Column: 12, Message: "spec.maxRuns is wrong"}}
	}
	return proposals.RunnerOutcome{Path: "runners/eu.yaml", PullRequest: holdfast.PullRequest{
		PullRequestRef: holdfast.PullRequestRef{Repo: "platform", Number: 7}, State: holdfast.PullRequestOpen, Branch: "holdfast/runner/eu",
	}}, nil
}

func TestRunners(t *testing.T) {
	t.Parallel()
	w, p := fleet(), &places{}
	w.agents = []protocol.AgentStatus{{ID: "eu/1", Living: true, Runner: "eu"}, {ID: "eu/2", Runner: "eu"}, {ID: "here", Living: true}}
	s := newServer(t, w, func(o *server.Options) { o.API.Runners = server.Runners{Records: p, Operator: p} })
	url := serve(t, s.API()) + "/api/v1/"
	get := func(path, token string) answer { return request(t, "GET", url+path, token, "") }

	list := decoded[v1.List[v1.Runner]](t, get("runners", viewerToken)).Items
	if len(list) != 2 || list[0].Name != "local" || list[0].Agents != 1 || list[0].Environments != 1 || list[0].Spec != nil ||
		list[1].Agents != 1 || list[1].Environments != 1 || string(list[1].Spec) != `{"maxRuns":3}` || len(list[1].Faults) != 1 {
		t.Errorf("runners are %+v", list)
	}
	eu := decoded[v1.RunnerDetail](t, get("runners/eu", viewerToken))
	if eu.Place.Repo != "platform" || len(eu.Rules) != 1 || len(eu.Pinned) != 1 || !slices.Equal(eu.IDs, []string{"eu/1"}) {
		t.Errorf("runner eu is %+v", eu)
	}
	if got := get("runners/asia", viewerToken); got.status != http.StatusNotFound || !strings.Contains(got.body, `runner \"asia\"`) {
		t.Errorf("a runner that there is not: %d %s", got.status, got.body)
	}
	for query, want := range map[string]string{"": "payments web", "?runner=eu": "payments", "?project=web": "web", "?project=other": ""} {
		var names []string
		for _, env := range decoded[v1.List[v1.Environment]](t, get("environments"+query, viewerToken)).Items {
			names = append(names, env.Project)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("environments%s are of %q, want %q", query, got, want)
		}
	}

	for body, want := range map[string]struct {
		status int
		text   string
	}{
		`{"project":"payments","environment":"production","dryRun":true}`: {200, `"runner":"eu"`},
		`{"project":"payments","environment":"busy"}`:                     {409, "run run-1 of prod-eu is running"},
		`{"project":"payments","environment":"none"}`:                     {404, "runner rule"},
		`{"project":"payments","cluster":"none"}`:                         {400, "cluster"},
	} {
		if got := request(t, "POST", url+"environments/refresh", operatorToken, body); got.status != want.status || !strings.Contains(got.body, want.text) {
			t.Errorf("refresh %s: %d %s", body, got.status, got.body)
		}
	}
	if got := request(t, "POST", url+"runners", operatorToken, `{"name":"eu","change":"update","set":["maxRuns=4"]}`); got.status != 200 ||
		!strings.Contains(got.body, `"number":7`) {
		t.Errorf("a proposal: %d %s", got.status, got.body)
	}
	if got := request(t, "POST", url+"runners", operatorToken, `{"name":"bad","change":"create"}`); got.status != 400 ||
		!strings.Contains(got.body, "runners/bad.yaml:6:12: spec.maxRuns is wrong") {
		t.Errorf("a wrong proposal: %d %s", got.status, got.body)
	}
	for _, path := range []string{"environments/refresh", "runners"} {
		if got := request(t, "POST", url+path, viewerToken, `{}`); got.status != http.StatusForbidden {
			t.Errorf("a viewer may POST /%s: %d", path, got.status)
		}
	}
}

// TestRunnersOfProjects: a token of a project sees and moves the environments of that alone, and
// runners are the fleet's.
func TestRunnersOfProjects(t *testing.T) {
	t.Parallel()
	w, p := fleet(), &places{}
	s := newServer(t, w, func(o *server.Options) {
		o.Audit, o.API.Runners = w, server.Runners{Records: p, Operator: p}
		o.API.Tokens = append(o.API.Tokens,
			server.Token{Name: "pay", Role: access.Admin, SHA256: server.HashToken(paymentsToken), Projects: []string{"payments"}})
	})
	url := serve(t, s.API()) + "/api/v1/"
	for query, want := range map[string]int{"": 1, "?project=payments": 1, "?project=web": 0, "?runner=local": 0} {
		got := request(t, "GET", url+"environments"+query, paymentsToken, "")
		if n := len(decoded[v1.List[v1.Environment]](t, got).Items); n != want || strings.Contains(got.body, "web") {
			t.Errorf("environments%s: %s", query, got.body)
		}
	}
	refresh := func(project string) answer {
		return request(t, "POST", url+"environments/refresh", paymentsToken, `{"project":"`+project+`","environment":"production"}`)
	}
	if got := refresh("payments"); got.status != 200 {
		t.Errorf("a refresh of its own: %d %s", got.status, got.body)
	}
	if got := refresh("web"); got.status != http.StatusNotFound || len(p.asked) != 1 {
		t.Errorf("a refresh of another project's: %d %s, %q", got.status, got.body, p.asked)
	}
	for _, path := range []string{"runners", "runners/eu"} {
		if got := request(t, "GET", url+path, paymentsToken, ""); got.status != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := request(t, "POST", url+"runners", paymentsToken, `{"name":"eu","change":"delete"}`); got.status != http.StatusForbidden || len(p.asked) != 1 {
		t.Errorf("a proposal: %d %s, %q", got.status, got.body, p.asked)
	}
}
