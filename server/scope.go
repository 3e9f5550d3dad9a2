package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/statelock"
)

// scope is the projects that somebody is held to; empty: all.
type scope []string

func (p scope) has(project string) bool { return len(p) == 0 || slices.Contains(p, project) }

// nowhere is the scope of a caller that may do something in no project: no project has
// that name.
var nowhere = scope{"\x00"}

// reach is the projects in which the caller may do something.
func reach(c *gin.Context, verb access.Verb) scope {
	switch projects, all := caller(c).Grants.Projects(verb.Role()); {
	case all:
		return nil
	case len(projects) == 0:
		return nowhere
	default:
		return projects
	}
}

// hasCluster judges by the document that defines a cluster, or by the last one that was
// applied if none does.
func (p scope) hasCluster(r holdfast.ClusterRecord) bool {
	if r.Desired.Document.Name == "" {
		return p.has(r.Applied.Document.Project)
	}
	return p.has(r.Desired.Document.Project)
}

// fleetRoutes are those that name no cluster and no run in their path, and that hold
// themselves to the projects of the caller: by reading from Server.records or by
// Server.mayTouch. A caller with some projects is refused on every other one.
var fleetRoutes = map[string]bool{
	"GET /api/v1/version": true, "GET /api/v1/whoami": true, "GET /api/v1/reasons": true, "GET /api/v1/openapi.json": true,
	"GET /api/v1/clusters": true, "GET /api/v1/overview": true, "GET /api/v1/drift": true,
	"GET /api/v1/resources": true, "GET /api/v1/suspensions": true, "GET /api/v1/runs": true, "GET /api/v1/queue": true,
	"GET /api/v1/environments": true, "POST /api/v1/environments/refresh": true,
	"GET /api/v1/pullrequests": true, "GET /api/v1/pullrequests/get": true, "GET /api/v1/events": true,
	"POST /api/v1/commands": true, "POST /api/v1/reconcile": true, "POST /api/v1/upgrades": true, "POST /api/v1/proposals": true,
	"GET /api/v1/templates": true, "GET /api/v1/templates/:name": true, "GET /api/v1/templates/:name/versions/:version": true,
	"POST /api/v1/suspend": true, "POST /api/v1/resume": true,
	"GET /api/v1/tokens": true, "POST /api/v1/tokens": true, "DELETE /api/v1/tokens/:id": true,
	"POST /api/v1/sessions/once": true, "GET /api/v1/sessions": true, "DELETE /api/v1/sessions/:id": true,
}

// documentRoutes are those under a cluster that say nothing of its state.
var documentRoutes = map[string]bool{
	"/api/v1/clusters/:name": true, "/api/v1/clusters/:name/history": true, "/api/v1/clusters/:name/family": true,
}

// lockRoutes are those of the lock of a state's own backend, which a cluster may have that
// only a pull request has. They are held to the runs that the caller's token sees.
var lockRoutes = map[string]bool{
	"/api/v1/states/:cluster/lock": true, "/api/v1/states/:cluster/unlock": true,
}

// holdToScope refuses what is outside of the projects in which the caller may do what a route
// is for. What the caller may not see is not there, whatever is asked for; a change of what
// may be seen and not changed is refused with the reason, and put on record. What is read of
// a state that is of another project is refused, too.
func (s *apiServer) holdToScope(c *gin.Context, verb access.Verb) {
	if len(reach(c, access.Read)) == 0 && len(reach(c, verb)) == 0 {
		return
	}
	if run := c.Param("run"); run != "" {
		if _, err := s.records(c).Run(c.Request.Context(), run); err != nil {
			s.fail(c, named(fmt.Sprintf("run %q", run), err))
		}
		return
	}
	path := c.FullPath()
	cluster := c.Param("cluster")
	if strings.HasPrefix(path, "/api/v1/clusters/") {
		cluster = c.Param("name")
	}
	switch {
	case lockRoutes[path] && s.isProposed(c, cluster):
	case cluster != "" && c.Request.Method == http.MethodGet:
		if _, err := s.records(c).Cluster(c.Request.Context(), cluster); err != nil {
			s.fail(c, named(fmt.Sprintf("cluster %q", cluster), err))
		} else if !documentRoutes[path] {
			s.mayTouch(c, verb, cluster)
		}
	case cluster != "":
		s.mayTouch(c, verb, cluster)
	case !fleetRoutes[c.Request.Method+" "+path]:
		s.refuseScope(c, verb, "", "this is about all projects")
	}
}

// isProposed reports whether no tracked branch has ever had a cluster.
func (s *apiServer) isProposed(c *gin.Context, cluster string) bool {
	_, err := s.opts.Records.Cluster(c.Request.Context(), cluster)
	return errors.Is(err, holdfast.ErrNotFound)
}

// seesRun is which runs the caller may do with what the route is for.
func (s *apiServer) seesRun(c *gin.Context) statelock.SeesRun {
	if projects := reach(c, s.verbOf(c)); len(projects) > 0 {
		return (&scopedRecords{s.opts.Records, projects}).seesRun
	}
	return nil
}

// records are what the caller may see.
func (s *apiServer) records(c *gin.Context) Records {
	if projects := reach(c, access.Read); len(projects) > 0 {
		return &scopedRecords{s.opts.Records, projects}
	}
	return s.opts.Records
}

// scopedRecords are those of some projects: the others do not exist for whoever reads
// them.
type scopedRecords struct {
	Records
	projects scope
}

func (r *scopedRecords) Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error) {
	record, err := r.Records.Cluster(ctx, name)
	if err != nil {
		return record, err
	}
	if has, err := r.hasState(ctx, record); err != nil || has {
		return record, err
	}
	return r.projects.partOf(record)
}

// Clusters leaves out those whose state is of another project.
func (r *scopedRecords) Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error) {
	read := func() ([]holdfast.ClusterRecord, error) { return r.Records.Clusters(ctx, filter) }
	return readOn(0, 0, read, nil, func(c holdfast.ClusterRecord) (bool, error) { return r.hasState(ctx, c) })
}

// readOn reads a list in parts of most items until limit of them are seen; on makes the next
// part begin after an item.
func readOn[T any](limit, most int, read func() ([]T, error), on func(last T), sees func(T) (bool, error)) ([]T, error) {
	var kept []T
	for {
		part, err := read()
		if err != nil {
			return nil, err
		}
		for _, item := range part {
			if seen, err := sees(item); err != nil {
				return nil, err
			} else if seen {
				kept = append(kept, item)
			}
		}
		if most == 0 || len(part) < most || len(kept) >= limit {
			return kept[:min(len(kept), cmp.Or(limit, len(kept)))], nil
		}
		on(part[len(part)-1])
	}
}

func (r *scopedRecords) ClusterSummaries(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterSummary, error) {
	read := func() ([]holdfast.ClusterSummary, error) { return r.Records.ClusterSummaries(ctx, filter) }
	on := func(last holdfast.ClusterSummary) { filter.After = last.Name }
	sees := func(c holdfast.ClusterSummary) (bool, error) { return r.projects.has(c.Project), nil }
	return readOn(filter.Limit, filter.Limit, read, on, sees)
}

func (r *scopedRecords) Resources(ctx context.Context, filter holdfast.ResourceFilter) ([]holdfast.Resource, error) {
	filter.Projects, filter.Limit = r.projects, cmp.Or(filter.Limit, maxItems)
	read := func() ([]holdfast.Resource, error) { return r.Records.Resources(ctx, filter) }
	on := func(last holdfast.Resource) { filter.After.Cluster, filter.After.Address = last.Cluster, last.Address }
	var of string // the cluster that owns is about: its resources follow one another
	var owns bool
	return readOn(filter.Limit, filter.Limit, read, on, func(resource holdfast.Resource) (_ bool, err error) {
		if of != resource.Cluster {
			of = resource.Cluster
			owns, err = r.ownsStateOf(ctx, of)
		}
		return owns, err
	})
}

// Suspensions are those of the projects, and that of all clusters.
func (r *scopedRecords) Suspensions(ctx context.Context) ([]holdfast.Suspension, error) {
	suspensions, err := r.Records.Suspensions(ctx)
	outside := func(s holdfast.Suspension) bool { return s.Project != "" && !r.projects.has(s.Project) }
	return slices.DeleteFunc(slices.Clone(suspensions), outside), err // others may read the same ones
}

func (r *scopedRecords) Run(ctx context.Context, id string) (holdfast.Run, error) {
	run, err := r.Records.Run(ctx, id)
	if err != nil {
		return run, err
	}
	if sees, err := r.seesRun(ctx, run); err != nil || !sees {
		return holdfast.Run{}, cmp.Or(err, holdfast.ErrNotFound)
	}
	return run, nil
}

// seesRun needs also the state, of which its plan is: that of its cluster, or of the cluster
// that one with a new name continues.
func (r *scopedRecords) seesRun(ctx context.Context, run holdfast.Run) (bool, error) {
	if from := run.Document.RenamedFrom; from != "" {
		if sees, err := r.seesRenamed(ctx, run.Cluster, from); err != nil || !sees {
			return false, err
		}
	}
	owns, err := r.ownsStateOf(ctx, run.Cluster)
	return owns && r.projects.has(run.Document.Project), err
}

func (r *scopedRecords) Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error) {
	filter.Projects, filter.Limit = r.projects, cmp.Or(filter.Limit, unsaidItems)
	read := func() ([]holdfast.Run, error) { return r.Records.Runs(ctx, filter) }
	on := func(last holdfast.Run) { filter.After = holdfast.RunMark{CreatedAt: last.CreatedAt, ID: last.ID} }
	return readOn(filter.Limit, filter.Limit, read, on, func(run holdfast.Run) (bool, error) { return r.seesRun(ctx, run) })
}

// queue leaves out what is of other projects in a part of the queue.
func (r *scopedRecords) queue(ctx context.Context, part []holdfast.QueuedRun) ([]holdfast.QueuedRun, error) {
	read := func() ([]holdfast.QueuedRun, error) { return part, nil }
	return readOn(0, 0, read, nil, func(q holdfast.QueuedRun) (bool, error) { return r.seesRun(ctx, q.Run) })
}

func (r *scopedRecords) PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequestRecord, error) {
	record, err := r.Records.PullRequest(ctx, ref)
	if err != nil {
		return record, err
	}
	if sees, err := r.seesPullRequest(ctx, record); err != nil || !sees {
		return holdfast.PullRequestRecord{}, cmp.Or(err, holdfast.ErrNotFound)
	}
	return record, nil
}

func (r *scopedRecords) PullRequests(ctx context.Context, filter holdfast.PullRequestFilter) ([]holdfast.PullRequestRecord, error) {
	limit := filter.Limit
	filter.Limit = maxItems
	read := func() ([]holdfast.PullRequestRecord, error) { return r.Records.PullRequests(ctx, filter) }
	on := func(last holdfast.PullRequestRecord) { filter.After = last.PullRequestRef }
	return readOn(limit, maxItems, read, on, func(p holdfast.PullRequestRecord) (bool, error) { return r.seesPullRequest(ctx, p) })
}

// Changes leaves out what is of other projects, and what has gone with all that said of
// which project it was.
func (r *scopedRecords) Changes(ctx context.Context, after int64, limit int) ([]holdfast.Change, error) {
	changes, err := r.Records.Changes(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	for i, change := range changes {
		seen, err := r.sees(ctx, change)
		if err != nil {
			return nil, err
		}
		if !seen {
			// Only its number stays, so that who follows does not read it again.
			changes[i] = holdfast.Change{Seq: change.Seq}
		}
	}
	return changes, nil
}

func (r *scopedRecords) sees(ctx context.Context, change holdfast.Change) (bool, error) {
	var err error
	switch change.Kind {
	case holdfast.ChangeCluster:
		_, err = r.Cluster(ctx, change.Name)
	case holdfast.ChangeRun:
		_, err = r.Run(ctx, change.Name)
	case holdfast.ChangePullRequest:
		at := strings.LastIndex(change.Name, "#")
		number, fault := strconv.Atoi(change.Name[at+1:])
		if at < 0 || fault != nil {
			return false, nil
		}
		_, err = r.PullRequest(ctx, holdfast.PullRequestRef{Repo: change.Name[:at], Number: number})
	default:
		return false, nil
	}
	if errors.Is(err, holdfast.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// within leaves out of a family what is of other projects, and all behind it.
func (r *scopedRecords) within(ctx context.Context, relations []holdfast.Relation) ([]holdfast.Relation, error) {
	var out []holdfast.Relation
	for _, relation := range relations {
		_, err := r.Cluster(ctx, relation.Name)
		if errors.Is(err, holdfast.ErrNotFound) {
			continue
		}
		if err == nil {
			relation.Relations, err = r.within(ctx, relation.Relations)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, relation)
	}
	return out, nil
}

// familyFor is what the caller's token may see of a family.
func (s *apiServer) familyFor(c *gin.Context, family holdfast.Family) (holdfast.Family, error) {
	scoped, ok := s.records(c).(*scopedRecords)
	if !ok {
		return family, nil
	}
	parents, err := scoped.within(c.Request.Context(), family.Parents)
	if err != nil {
		return family, err
	}
	dependents, err := scoped.within(c.Request.Context(), family.Dependents)
	return holdfast.Family{Parents: parents, Dependents: dependents}, err
}
