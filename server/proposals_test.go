package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/server"
)

// proposing stands for the reconciler: what it is asked for is in asked, and who asked for
// which pull request in requesters.
type proposing struct {
	asked      []proposals.ClusterChange
	requesters []string
	meanwhile  func() // before the code host answers; nil: nothing
}

func (p *proposing) ProposeCluster(ctx context.Context, asked proposals.ClusterChange) (proposals.ClusterOutcome, error) {
	p.asked = append(p.asked, asked)
	if p.meanwhile != nil {
		p.meanwhile()
	}
	if err := ctx.Err(); err != nil {
		return proposals.ClusterOutcome{}, err
	}
	made := proposals.ClusterOutcome{Repo: "shop", Path: "clusters/new.yaml", Document: "kind: Cluster\n"}
	switch {
	case asked.Name == "taken":
		return made, holdfast.ErrorOf(holdfast.ErrConflict, "there is a cluster %q already", asked.Name)
	case asked.Name == "away" && !asked.DryRun:
		return made, holdfast.ErrorOf(holdfast.ErrUnavailable, "the code host does not answer")
	case asked.Name == "nobody":
		return made, holdfast.ErrorOf(holdfast.ErrNotFound, "cluster %q: not found", asked.Name)
	case asked.Name == "bad":
		made.Faults = holdfast.Faults{{File: "clusters/new.yaml", Line: 6, Column: 12, Message: "spec.variables.size is wrong"}}
		return made, nil
	case asked.DryRun:
		return made, nil
	}
	made.PullRequest = holdfast.PullRequest{PullRequestRef: holdfast.PullRequestRef{Repo: "shop", Number: 9}, State: holdfast.PullRequestOpen, Branch: "holdfast/cluster/new"}
	return made, nil
}

func (p *proposing) TemplateVersion(_ context.Context, name, version string) (holdfast.TemplateDetail, error) {
	if version != "1.0.0" {
		return holdfast.TemplateDetail{}, holdfast.ErrorOf(holdfast.ErrNotFound, "template %s %s cannot be used: there is no such tag", name, version)
	}
	return holdfast.TemplateDetail{
		Name: name, Version: version, Required: []string{"size"}, Rules: []holdfast.TemplateRule{{Message: "a large one needs three zones"}},
		Schema: map[string]any{"type": "object", "properties": map[string]any{
			"size":  map[string]any{"type": "string", "enum": []any{"small", "large"}, "description": "How large <b>"},
			"nodes": map[string]any{"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
			"zones": map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
			"open":  map[string]any{"type": "boolean"},
			"key":   map[string]any{"type": "string", "writeOnly": true},
		}},
		Providers: []holdfast.TemplateProvider{{Name: "aws", Regions: []string{"eu-1", "us-1"}, Defaults: map[string]any{"nodes": 5}}},
	}, nil
}

func (p *proposing) AddRequester(ctx context.Context, ref holdfast.PullRequestRef, owner string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.requesters = append(p.requesters, ref.String()+" "+owner)
	return nil
}

// TestProposals: what is asked for is handed over with whoever asks, who is on record as
// the requester; faults are said, and no pull request is recorded for a dry run.
func TestProposals(t *testing.T) {
	t.Parallel()
	p := &proposing{}
	s := newServer(t, fleet(), func(o *server.Options) { o.API.Proposer, o.API.Asked = p, p })
	url := serve(t, s.API()) + "/api/v1/proposals"
	for _, tc := range []struct {
		body, token string
		status      int
		says        string
	}{
		{`{"change":"create","cluster":"new","template":"eks","version":"1.0","variables":{"n":3,"zones":["a"],"gone":null},"set":["drift.schedule=1h"]}`, operatorToken, 200, `"number":9`},
		{`{"change":"create","cluster":"new","template":"eks","dryRun":true}`, operatorToken, 200, `"document":"kind: Cluster\n"`},
		{`{"change":"create","cluster":"bad","dryRun":true}`, operatorToken, 200, `"line":6,"column":12`},
		{`{"change":"create","cluster":"bad"}`, operatorToken, 400, "clusters/new.yaml:6:12"},
		{`{"change":"create","cluster":"taken"}`, operatorToken, 409, "already"},
		{`{"change":"delete","cluster":"nobody"}`, operatorToken, 404, "not found"},
		{`{"change":"create","cluster":"new"}`, viewerToken, 403, "requires operator"},
		{`{"change":"create","cluster":"new","approve":true}`, operatorToken, 400, "approve"},
	} {
		if got := request(t, http.MethodPost, url, tc.token, tc.body); got.status != tc.status || !strings.Contains(got.body, tc.says) {
			t.Errorf("%s = %d %s", tc.body, got.status, got.body)
		}
	}
	if got := strings.Join(p.asked[0].Set, " "); got != `template.name="eks" template.version="1.0" variables.gone= variables.n=3 variables.zones=["a"] drift.schedule=1h` || p.asked[0].By == "" {
		t.Errorf("asked for %+v", p.asked[0])
	}
	if len(p.requesters) != 1 || !strings.HasPrefix(p.requesters[0], "shop#9 token ") {
		t.Errorf("requesters are %q", p.requesters)
	}
}

// TestProposalsOfOneProject: who may propose in one project asks for no more, and does not
// change what is of another.
func TestProposalsOfOneProject(t *testing.T) {
	t.Parallel()
	w, p := fleet(), &proposing{}
	s := scoped(t, w, func(o *server.Options) { o.API.Proposer = p })
	url := serve(t, s.API()) + "/api/v1/proposals"
	if got := request(t, http.MethodPost, url, webToken, `{"change":"update","cluster":"prod-eu","set":["region=x"]}`); got.status != http.StatusNotFound || len(p.asked) > 0 {
		t.Errorf("a change of another project's = %d %s", got.status, got.body)
	}
	if got := request(t, http.MethodPost, url, webToken, `{"change":"create","cluster":"new"}`); got.status != 200 || len(p.asked) != 1 || strings.Join(p.asked[0].Projects, " ") != "web" {
		t.Errorf("a new one = %d %s, asked for %+v", got.status, got.body, p.asked)
	}
}

// TestTemplatesOfOneProject: templates are for all, and what other projects use of them is in
// no count.
func TestTemplatesOfOneProject(t *testing.T) {
	t.Parallel()
	w := fleet()
	w.templates = []rollout.TemplateStatus{{
		Name: "eks", Repo: "shop", Versions: []rollout.TemplateRelease{{Version: "1.0.0", Clusters: 2}},
		Users: []rollout.TemplateUse{{Cluster: "prod-eu", Version: "1.0.0"}, {Cluster: "web-eu", Version: "1.0.0"}},
	}}
	s := scoped(t, w)
	w.summaries = append(w.summaries, holdfast.ClusterSummary{Name: "web-eu", Project: "web"})
	url := serve(t, s.API()) + "/api/v1/templates"
	for _, path := range []string{"", "/eks"} {
		if got := request(t, http.MethodGet, url+path, webToken, ""); got.status != 200 || strings.Contains(got.body, "prod-eu") || !strings.Contains(got.body, "web-eu") || !strings.Contains(got.body, `"clusters":1`) {
			t.Errorf("%s of one project = %d %s", path, got.status, got.body)
		}
		if got := request(t, http.MethodGet, url+path, globalToken, ""); !strings.Contains(got.body, "prod-eu") || !strings.Contains(got.body, `"clusters":2`) {
			t.Errorf("%s of both projects = %d %s", path, got.status, got.body)
		}
	}
}

// TestWhoGoesAwayHasAsked: whoever does not wait for the answer is on record as who has asked.
func TestWhoGoesAwayHasAsked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := &proposing{meanwhile: cancel}
	s := newServer(t, fleet(), func(o *server.Options) { o.API.Proposer, o.API.Asked = p, p })
	req := httptest.NewRequestWithContext(ctx, "POST", "/api/v1/proposals", strings.NewReader(`{"change":"create","cluster":"new","template":"eks"}`))
	req.Header.Set("Authorization", "Bearer "+operatorToken)
	got := httptest.NewRecorder()
	s.API().ServeHTTP(got, req)
	if len(p.requesters) != 1 || ctx.Err() == nil {
		t.Errorf("%q have asked: %d %s", p.requesters, got.Code, got.Body)
	}
}

// TestNumbersOfProposals: a number is the one that was sent, to the last digit.
func TestNumbersOfProposals(t *testing.T) {
	t.Parallel()
	p := &proposing{}
	url := serve(t, newServer(t, fleet(), func(o *server.Options) { o.API.Proposer = p }).API())
	got := request(t, "POST", url+"/api/v1/proposals", operatorToken, `{"change":"create","cluster":"new","dryRun":true,"variables":{"id":12345678901234567890,"n":1.10}}`)
	if got.status != http.StatusOK || len(p.asked) != 1 || strings.Join(p.asked[0].Set, "|") != "variables.id=12345678901234567890|variables.n=1.10" {
		t.Errorf("%d %s: asked for %+v", got.status, got.body, p.asked)
	}
}
