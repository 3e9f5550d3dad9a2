package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// verbs are the verbs that make sense without a comment to answer.
var verbs = []holdfast.Verb{
	holdfast.VerbPlan, holdfast.VerbApply, holdfast.VerbApprove, holdfast.VerbCancel, holdfast.VerbUnlock,
}

func (s *commandAPI) routes(api *gin.RouterGroup) {
	api.GET("/suspensions", s.listSuspensions)
	api.POST("/commands", s.postCommand)
	api.POST("/reconcile", s.postReconcile)
	api.POST("/clusters/:name/suspend", s.suspend(true))
	api.POST("/clusters/:name/resume", s.suspend(false))
	api.POST("/suspend", s.suspendAll(true))
	api.POST("/resume", s.suspendAll(false))
}

func (s *commandAPI) postCommand(c *gin.Context) {
	var req v1.CommandRequest
	if err := decode(c, &req, true); err != nil {
		s.fail(c, err)
		return
	}
	verb := verbOfCommand(req)
	if role := verb.Role(); !caller(c).Grants.Highest().Includes(role) {
		s.refuseRole(c, string(verb), role) // whatever it is for: it says nothing of that
		return
	}
	command, err := s.command(c, req, caller(c))
	if err != nil {
		s.fail(c, err)
		return
	}
	if !s.mayCommand(c, verb, &command) {
		return
	}
	reviewed, err := s.onlyReviewed(c, &command)
	if err != nil {
		s.fail(c, err)
		return
	}
	ctx, done := s.untilStop(c.Request.Context())
	defer done()
	ctx, cancel := context.WithTimeout(ctx, s.limits.CommandWait)
	defer cancel()
	command, err = s.opts.Commander.Command(ctx, command)
	if err != nil {
		s.fail(c, fmt.Errorf("%s: %w", req.Verb, err))
		return
	}
	if reviewed && command.Reason == holdfast.ReasonUnreviewed {
		command.Reply += "; a plan that nobody has reviewed requires the role approver"
	}
	status := http.StatusOK
	if command.Status == holdfast.CommandReceived {
		status = http.StatusAccepted
	}
	c.JSON(status, v1.CommandOf(command))
}

// onlyReviewed reports whether the caller of an apply may not approve, and limits the apply
// to what was reviewed before a merge: to name a plan is to approve it.
func (s *commandAPI) onlyReviewed(c *gin.Context, command *holdfast.Command) (bool, error) {
	projects := reach(c, access.Approve)
	if command.Verb != holdfast.VerbApply || len(projects) == 0 {
		return false, nil
	}
	may := len(command.Clusters) > 0
	records := &scopedRecords{s.opts.Records, projects}
	for _, name := range command.Clusters {
		record, err := s.opts.Records.Cluster(c.Request.Context(), name)
		if err == nil {
			may, err = records.hasState(c.Request.Context(), record)
		}
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return false, err
		}
		if may = may && err == nil; !may {
			break
		}
	}
	if !may {
		command.Shown, command.ShownHead = nil, ""
	}
	return !may, nil
}

// verbOfCommand is what a command takes.
func verbOfCommand(req v1.CommandRequest) access.Verb {
	switch {
	case req.Force:
		return access.Force
	case req.Verb == holdfast.VerbApprove:
		return access.Approve
	case req.Verb == holdfast.VerbApply:
		return access.Apply
	case req.Verb == holdfast.VerbCancel:
		return access.Cancel
	case req.Verb == holdfast.VerbUnlock:
		return access.Unlock
	default:
		return access.Plan
	}
}

func (s *commandAPI) command(c *gin.Context, req v1.CommandRequest, who access.Principal) (holdfast.Command, error) {
	ctx := c.Request.Context()
	if !slices.Contains(verbs, req.Verb) {
		return holdfast.Command{}, badRequest("verb %q: want plan, apply, approve, cancel or unlock", req.Verb)
	}
	command := holdfast.Command{
		ID:          holdfast.NewID("cmd", s.now()),
		PullRequest: holdfast.PullRequestRef(req.PullRequest),
		Author:      who.Name,
		Trusted:     true,
		Verb:        req.Verb,
		Clusters:    req.Clusters,
		Force:       req.Force,
		All:         req.All,
		Shown:       req.Shown,
		Text:        commandText(req),
		Status:      holdfast.CommandReceived,
		CreatedAt:   s.now().UTC(),

		CommandGiver: holdfast.CommandGiver{Origin: holdfast.OriginOf(ctx), Owner: who.Owner(), Person: !who.Person.IsZero()},
	}
	switch {
	case req.Shown != nil && (req.Verb != holdfast.VerbApply && req.Verb != holdfast.VerbApprove || req.Run != ""):
		return command, badRequest("shown is only for apply and approve, and cannot be combined with run")
	case req.All && (req.Verb != holdfast.VerbPlan || req.PullRequest.IsZero() || len(req.Clusters) > 0):
		return command, badRequest("all is only for a plan of a whole pull request")
	case req.Run != "" && (!req.PullRequest.IsZero() || len(req.Clusters) > 0):
		return command, badRequest("a run implies its cluster and pull request: give it alone")
	case req.Run != "":
		run, err := s.records(c).Run(ctx, req.Run)
		if err != nil {
			return command, named(fmt.Sprintf("run %q", req.Run), err)
		}
		// A request that names a run means the plan of that run, whatever has been
		// planned since.
		command.PullRequest, command.Clusters = run.PullRequest, []string{run.Cluster}
		command.Shown, command.ShownHead = []string{run.ID}, run.Revision
	case !req.PullRequest.IsZero() && req.PullRequest.Repo == "":
		return command, badRequest("pull request %d has no repo", req.PullRequest.Number)
	case req.PullRequest.IsZero() && len(req.Clusters) == 0:
		return command, badRequest("command has no target: give a pull request, clusters or a run")
	}
	return command, nil
}

// commandText is the command as it would be written in a comment, for the records.
func commandText(req v1.CommandRequest) string {
	words := []string{"/holdfast", string(req.Verb)}
	for _, cluster := range req.Clusters {
		words = append(words, "-c", cluster)
	}
	if req.Run != "" {
		words = append(words, req.Run)
	}
	if req.Force {
		words = append(words, "--force")
	}
	if req.All {
		words = append(words, "--all")
	}
	return strings.Join(words, " ")
}

func (s *commandAPI) postReconcile(c *gin.Context) {
	var req v1.ReconcileRequest
	if err := decode(c, &req, true); err != nil {
		s.fail(c, err)
		return
	}
	given := 0
	for _, is := range []bool{req.Repo != "", req.Cluster != "", req.All} {
		if is {
			given++
		}
	}
	if given != 1 {
		s.fail(c, badRequest("give one of repo, cluster and all to reconcile"))
		return
	}
	if req.Cluster == "" && !s.mayTouchProject(c, access.Reconcile, "") || req.Cluster != "" && !s.mayTouch(c, access.Reconcile, req.Cluster) {
		return
	}
	if err := s.opts.Commander.Reconcile(c.Request.Context(), req.Repo, req.Cluster); err != nil {
		switch {
		case !errors.Is(err, holdfast.ErrNotFound):
			err = fmt.Errorf("reconcile %s: %w", req.Repo+req.Cluster, err)
		case req.Repo != "":
			err = missing(fmt.Sprintf("no repository %q is watched", req.Repo), hintRepositories)
		default:
			err = named(fmt.Sprintf("cluster %q", req.Cluster), err)
		}
		s.fail(c, err)
		return
	}
	c.JSON(http.StatusAccepted, struct{}{})
}

func (s *commandAPI) suspend(suspended bool) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx, name := c.Request.Context(), c.Param("name")
		var req v1.SuspendClusterRequest
		if c.Request.ContentLength != 0 {
			if err := decode(c, &req, true); err != nil {
				s.fail(c, err)
				return
			}
		}
		record, err := s.opts.Commander.Suspend(ctx, name, suspended, caller(c).Name, req.Reason)
		if err != nil {
			s.failCluster(c, err)
			return
		}
		c.JSON(http.StatusOK, s.clusterOf(record))
	}
}

// suspendAll stops or allows runs of a project's clusters, or of all.
func (s *commandAPI) suspendAll(suspended bool) gin.HandlerFunc {
	return func(c *gin.Context) {
		var req v1.SuspendRequest
		if err := decode(c, &req, true); err != nil {
			s.fail(c, err)
			return
		}
		if (req.Project != "") == req.All {
			s.fail(c, badRequest("give one of project and all"))
			return
		}
		if !s.mayTouchProject(c, access.Suspend, req.Project) {
			return
		}
		suspension := holdfast.Suspension{
			Project: req.Project, By: caller(c).Name, Reason: req.Reason, At: s.now().UTC(),
		}
		if err := s.opts.Commander.SuspendAll(c.Request.Context(), suspension, suspended); err != nil {
			s.fail(c, notSuspended(req.Project, suspended, err))
			return
		}
		c.JSON(http.StatusOK, v1.SuspensionOf(suspension))
	}
}

// notSuspended is why the clusters of a project (empty: all clusters) were not suspended,
// or not resumed.
func notSuspended(project string, suspended bool, err error) error {
	what := "all clusters"
	if project != "" {
		what = fmt.Sprintf("project %q", project)
	}
	switch {
	case !errors.Is(err, holdfast.ErrNotFound):
		return fmt.Errorf("%s: %w", what, err)
	case suspended:
		return noClusters(project)
	case project == "":
		return missing("there is no suspension of all clusters", "`holdfast get suspensions` lists what is suspended")
	default:
		return missing(what+" is not suspended", "`holdfast get suspensions` lists what is suspended")
	}
}

// noClusters says that a project (empty: all of them) has none.
func noClusters(project string) error {
	what := "all clusters"
	if project != "" {
		what = fmt.Sprintf("project %q", project)
	}
	return missing(what+" has no clusters", "`holdfast get clusters` lists clusters")
}

// listSuspensions answers with those of many clusters first, then, unless
// many=true asks for these alone, with clusters that are suspended one by one.
func (s *commandAPI) listSuspensions(c *gin.Context) {
	many, err := yes(c, "many")
	p, err2 := pageOf(c, unsaidItems, maxItems, 2)
	if err = errors.Join(err, err2); err != nil {
		s.fail(c, err)
		return
	}
	ctx := c.Request.Context()
	records := s.records(c)
	of, err := records.Suspensions(ctx)
	if err != nil {
		s.fail(c, err)
		return
	}
	var answers []v1.Suspension
	for _, suspension := range of {
		answers = append(answers, v1.SuspensionOf(suspension))
	}
	// A project's name sorts before those of clusters, which have none.
	key := func(s v1.Suspension) []string { return []string{s.Cluster, s.Project} }
	if many {
		part, cursor := cut(p, answers, key)
		answerList(s.base, c, p, part, same, cursor, nil)
		return
	}
	clusters, err := suspendedClusters(ctx, records, p.part(0), p.limit+1)
	answers = append(answers, clusters...)
	part, cursor := cut(p, answers, key)
	answerList(s.base, c, p, part, same, cursor, err)
}

// suspendedClusters returns the first clusters after a name that are suspended one by one, at most
// limit. It goes through the fleet in parts, and reads no record that is not asked for.
func suspendedClusters(ctx context.Context, records Records, after string, limit int) ([]v1.Suspension, error) {
	var found []v1.Suspension
	filter := holdfast.ClusterFilter{After: after, Limit: maxItems}
	for {
		summaries, err := records.ClusterSummaries(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, summary := range summaries {
			if !summary.Suspended {
				continue
			}
			record, err := records.Cluster(ctx, summary.Name)
			if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
				return nil, err
			}
			found = append(found, v1.Suspension{
				Cluster: summary.Name, Reason: record.SuspendedWhy, By: record.SuspendedBy, At: record.SuspendedAt,
			})
			if len(found) >= limit {
				return found, nil
			}
		}
		if len(summaries) < filter.Limit {
			return found, nil
		}
		filter.After = summaries[len(summaries)-1].Name
	}
}
