package world

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/server/fleet"
)

// World is the fleet at one moment. Its handler answers below /api/v1.
type World struct {
	Now   time.Time
	seen  int64
	lines []holdfast.ClusterSummary
	runs  []v1.Run
	plans map[string]v1.Plan
	logs  map[string]string
	pulls []v1.PullRequest
	mux   *http.ServeMux

	mu sync.Mutex // guards all of it while it answers; what is live answers without
}

// Options say what kind of fleet it is.
type Options struct {
	Now      time.Time
	Clusters int  // how many; zero: 240
	Hostile  bool // names, values and logs are what somebody would write to deceive
	Missed   bool // something changes between a page and its stream
}

// New invents a fleet.
func New(opts Options) *World {
	if opts.Clusters == 0 {
		opts.Clusters = 240
	}
	w := &World{Now: opts.Now, seen: 1, plans: map[string]v1.Plan{}, logs: map[string]string{}, mux: http.NewServeMux()}
	if opts.Missed {
		w.seen--
	}
	w.clusters(opts.Clusters)
	w.allRuns()
	w.pullRequests()
	if opts.Hostile {
		w.deceive()
	}
	w.routes()
	return w
}

// Newest is the number of the newest change that pages know.
func (w *World) Newest(context.Context) (int64, error) { return w.seen, nil }

func (w *World) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/v1/events" {
		w.mu.Lock()
		defer w.mu.Unlock()
	}
	w.mux.ServeHTTP(out, r)
}

var (
	projects  = []string{"payments", "search", "media", "ledger", "platform", "maps", "identity"}
	stages    = []string{"prod", "stage", "dev"}
	providers = []struct{ name, template string }{{"aws", "eks"}, {"azure", "aks"}, {"google", "gke"}, {"linode", "lke"}}
	regions   = []string{"eu", "us", "we", "ap"}
)

func (w *World) clusters(n int) {
	dice := rand.New(rand.NewPCG(7, 11)) //nolint:gosec // the same fleet each time
	for i := range n {
		project, stage, provider := projects[i%len(projects)], stages[dice.IntN(len(stages))], providers[dice.IntN(len(providers))]
		version := "4.2.0"
		if dice.IntN(4) == 0 {
			version = "4.1.3"
		}
		line := holdfast.ClusterSummary{
			Name: fmt.Sprintf("%s-%s-%s-%d", project, stage, regions[dice.IntN(len(regions))], i/len(projects)+1), Owner: "fleet", Project: project, Environment: stage,
			Provider: provider.name, Template: provider.template + "@" + version, Labels: map[string]string{"team": project, "tier": strconv.Itoa(dice.IntN(3))},
			Phase: holdfast.PhaseActive, UpToDate: true, Drift: holdfast.DriftNone, CheckedAt: w.Now.Add(-time.Duration(dice.IntN(50)) * time.Minute),
			UpdatedAt: w.Now.Add(-time.Duration(dice.IntN(40000)) * time.Second),
		}
		w.trouble(&line, i)
		w.lines = append(w.lines, line)
	}
	slices.SortFunc(w.lines, func(a, b holdfast.ClusterSummary) int { return strings.Compare(a.Name, b.Name) })
	w.lines = slices.CompactFunc(w.lines, func(a, b holdfast.ClusterSummary) bool { return a.Name == b.Name })
}

// trouble gives some clusters something to wait for.
func (w *World) trouble(line *holdfast.ClusterSummary, i int) {
	switch {
	case i == 3:
		line.Name, line.Phase, line.Waiting, line.UpdatedAt = "ledger-prod-eu-4", holdfast.PhaseFailed, holdfast.ReasonApplyFailed, w.Now.Add(-12*time.Minute)
	case i == 8:
		line.Name, line.Phase, line.Waiting, line.UpdatedAt = "search-prod-us-14", holdfast.PhasePending, holdfast.ReasonNotApproved, w.Now.Add(-34*time.Minute)
	case i == 9:
		line.Name, line.Phase, line.Waiting, line.UpdatedAt = "media-prod-eu-2", holdfast.PhasePending, holdfast.ReasonUnreviewed, w.Now.Add(-62*time.Minute)
	case i == 0:
		line.Name, line.Phase, line.UpdatedAt = "payments-prod-eu-1", holdfast.PhaseUpdating, w.Now.Add(-12*time.Second)
	case i == 5:
		line.Name, line.Phase, line.Waiting, line.UpdatedAt = "maps-dev-we-21", holdfast.PhaseDeleting, holdfast.ReasonProtected, w.Now.Add(-5*time.Hour)
	case i%31 == 12:
		line.Drift, line.DriftCounts = holdfast.DriftFound, holdfast.DriftCounts{Changed: 1 + i%3, Gone: i % 2}
	case i%37 == 20:
		line.Phase = holdfast.PhaseProvisioning
	case i%53 == 30:
		line.Phase, line.Waiting = holdfast.PhasePending, holdfast.ReasonDependencyPending
	case i%97 == 50:
		line.Suspended = true
	case i%89 == 70:
		line.Drift = holdfast.DriftFailed
	}
}

func (w *World) routes() {
	w.mux.HandleFunc("GET /api/v1/whoami", whoami)
	w.mux.HandleFunc("GET /api/v1/version", say(v1.Version{Version: "1.0.0", Time: w.Now}))
	w.mux.HandleFunc("GET /api/v1/overview", w.overview)
	w.mux.HandleFunc("GET /api/v1/clusters", w.listClusters)
	w.mux.HandleFunc("GET /api/v1/clusters/{name}", w.cluster)
	w.mux.HandleFunc("GET /api/v1/clusters/{name}/family", w.family)
	w.mux.HandleFunc("GET /api/v1/clusters/{name}/drift", w.driftOf)
	w.mux.HandleFunc("GET /api/v1/clusters/{name}/outputs", w.outputs)
	w.mux.HandleFunc("GET /api/v1/clusters/{name}/history", w.history)
	w.mux.HandleFunc("GET /api/v1/resources", w.resources)
	w.mux.HandleFunc("GET /api/v1/drift", w.drift)
	w.mux.HandleFunc("GET /api/v1/runs", w.listRuns)
	w.mux.HandleFunc("GET /api/v1/runs/{run}", w.run)
	w.mux.HandleFunc("GET /api/v1/runs/{run}/plan", w.plan)
	w.mux.HandleFunc("GET /api/v1/runs/{run}/log", w.log)
	w.mux.HandleFunc("GET /api/v1/pullrequests", w.listPullRequests)
	w.mux.HandleFunc("GET /api/v1/pullrequests/get", w.pullRequest)
	w.mux.HandleFunc("GET /api/v1/queue", w.queue)
	w.mux.HandleFunc("GET /api/v1/agents", w.agents)
	w.mux.HandleFunc("GET /api/v1/runners", w.runners)
	w.mux.HandleFunc("GET /api/v1/templates", w.listTemplates)
	w.mux.HandleFunc("GET /api/v1/templates/{name}", w.template)
	w.mux.HandleFunc("GET /api/v1/templates/{name}/versions/{version}", templateVersion)
	w.mux.HandleFunc("GET /api/v1/audit", w.audit)
	w.mux.HandleFunc("GET /api/v1/deliveries", w.deliveries)
	w.mux.HandleFunc("GET /api/v1/suspensions", w.suspensions)
	w.mux.HandleFunc("GET /api/v1/replicas", w.replicas)
	w.mux.HandleFunc("GET /api/v1/events", events)
	w.deeds()
}

// whoami is somebody who may do more in some projects than in others.
func whoami(out http.ResponseWriter, _ *http.Request) {
	who := v1.Caller{Name: "Mira Kovač", Role: "approver", Via: "session", ID: "ses-1", FormToken: formToken}
	for project, role := range map[string]string{"payments": "operator", "search": "approver", "media": "approver", "ledger": "operator", "maps": "approver", "platform": "viewer", "identity": "viewer"} {
		who.Projects = append(who.Projects, project)
		who.Roles = append(who.Roles, v1.Grant{Project: project, Role: role})
	}
	slices.Sort(who.Projects)
	write(out, who)
}

func say(answer any) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) { write(out, answer) }
}

func write(out http.ResponseWriter, answer any) {
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(answer) // the reader may have gone
}

func missing(out http.ResponseWriter, what string) {
	out.WriteHeader(http.StatusNotFound)
	write(out, v1.ProblemOf(http.StatusNotFound, what+": not found", ""))
}

// events is a stream in which nothing happens.
func events(out http.ResponseWriter, r *http.Request) {
	out.Header().Set("Content-Type", "text/event-stream")
	_, _ = out.Write([]byte("id:1\nevent:ready\ndata:{}\n\n"))
	_ = http.NewResponseController(out).Flush()
	<-r.Context().Done()
}

func filter(r *http.Request) fleet.Filter {
	q := r.URL.Query()
	f := fleet.Filter{Provider: q.Get("provider"), Search: q.Get("q")}
	f.Project, f.Environment, f.Template = q.Get("project"), q.Get("environment"), q.Get("template")
	f.Phase, f.Waiting, f.Drift, f.After = holdfast.Phase(q.Get("phase")), holdfast.Reason(q.Get("waiting")), holdfast.DriftStatus(q.Get("drift")), q.Get("cursor")
	f.Limit, _ = strconv.Atoi(q.Get("limit"))
	return f
}

func counts(in []fleet.Count) []v1.FacetCount {
	var out []v1.FacetCount
	for _, c := range in {
		out = append(out, v1.FacetCount{Value: c.Value, Count: c.N})
	}
	return out
}

func (w *World) overview(out http.ResponseWriter, r *http.Request) {
	f := filter(r)
	o := f.Overview(w.lines)
	answer := v1.Overview{
		Total: o.Total, Matching: o.Matching, Projects: counts(o.Projects), Environments: counts(o.Environments), Providers: counts(o.Providers),
		Templates: counts(o.Templates), Phases: counts(o.Phases), Drift: counts(o.Drift), NeedsTotal: len(o.Waiting),
	}
	details := map[holdfast.Reason]string{
		holdfast.ReasonApplyFailed: "quota for c7i.xlarge is reached in eu-central-1; retrying will not help",
		holdfast.ReasonNotApproved: "replaces the control plane; needs one of platform-leads",
		holdfast.ReasonUnreviewed:  "direct push to main by ci-bot; 3 resources would change",
		holdfast.ReasonProtected:   "its document was removed in fleet#470; 64 resources",
	}
	for _, line := range o.Waiting {
		answer.Needs = append(answer.Needs, v1.Need{Cluster: line.Name, Phase: line.Phase, Reason: line.Waiting, Detail: details[line.Waiting], Since: line.UpdatedAt, Run: w.planOf(line.Name)})
	}
	write(out, answer)
}

// planOf is the run whose plan waits.
func (w *World) planOf(cluster string) string {
	for _, r := range w.runs {
		if r.Cluster == cluster && r.Kind == holdfast.RunPlan && r.Status == holdfast.RunPlanned {
			return r.ID
		}
	}
	return ""
}

func (w *World) listClusters(out http.ResponseWriter, r *http.Request) {
	f := filter(r)
	part := f.Select(w.lines)
	answer := v1.List[v1.ClusterSummary]{Items: []v1.ClusterSummary{}}
	for _, line := range part {
		answer.Items = append(answer.Items, v1.ClusterSummaryOf(line))
	}
	if len(part) == f.Limit {
		answer.Next = part[len(part)-1].Name
	}
	write(out, answer)
}

func (w *World) line(name string) (holdfast.ClusterSummary, bool) {
	i := slices.IndexFunc(w.lines, func(l holdfast.ClusterSummary) bool { return l.Name == name })
	if i < 0 {
		return holdfast.ClusterSummary{}, false
	}
	return w.lines[i], true
}
