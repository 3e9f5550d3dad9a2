package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
)

// mayDo reports whether the caller may do what takes more than the route does to clusters, and
// answers if not.
func (s *apiServer) mayDo(c *gin.Context, verb access.Verb, clusters ...string) bool {
	if !caller(c).Grants.Highest().Includes(verb.Role()) {
		s.refuseRole(c, string(verb), verb.Role())
		return false
	}
	return s.mayTouch(c, verb, clusters...)
}

// mayTouch reports whether the clusters are of the projects in which the caller may do
// something, and answers if not.
func (s *apiServer) mayTouch(c *gin.Context, verb access.Verb, clusters ...string) bool {
	return s.mayTouchFor(c, verb, holdfast.PullRequestRecord{}, clusters)
}

// mayCommand is mayDo for a command: for a pull request that names no clusters, of all
// that it affects. The command of a caller with some projects then names these: the
// pull request may affect others by the time it is carried out. Nobody of that kind has
// everything planned that a template's change would change.
func (s *apiServer) mayCommand(c *gin.Context, verb access.Verb, command *holdfast.Command) bool {
	if len(reach(c, verb)) == 0 || command.PullRequest.IsZero() {
		return s.mayDo(c, verb, command.Clusters...)
	}
	record, some, err := s.pullRequestFor(c, command.PullRequest)
	switch {
	case err != nil:
		s.fail(c, named("pull request "+command.PullRequest.String(), err))
		return false
	case command.All && !s.mayTouchProject(c, verb, ""):
		return false
	case some && len(command.Clusters) == 0:
		s.refuseScope(c, verb, command.PullRequest.String(), "the pull request affects clusters of other projects, too: name those that are meant")
		return false
	}
	plans := command.Verb == holdfast.VerbPlan || command.Verb == holdfast.VerbCancel // of samples, too
	clusters, meant := command.Clusters, command.Clusters
	if len(clusters) == 0 {
		for _, affected := range record.Clusters {
			if clusters = append(clusters, affected.Name); plans || !affected.Sample {
				meant = append(meant, affected.Name)
			}
		}
	}
	if len(clusters) == 0 {
		s.refuseScope(c, verb, command.PullRequest.String(), fmt.Sprintf("pull request %s affects no cluster", command.PullRequest))
		return false
	}
	if !s.mayTouchFor(c, verb, record, clusters) {
		return false
	}
	if command.Clusters = meant; len(meant) == 0 {
		command.Clusters = clusters // samples alone, which the command is refused for
	}
	return true
}

// seesCluster reports whether the caller sees a cluster, or the document that a pull request
// gives it.
func (s *apiServer) seesCluster(c *gin.Context, name string, document bool) (bool, error) {
	_, err := s.records(c).Cluster(c.Request.Context(), name)
	if errors.Is(err, holdfast.ErrNotFound) {
		return document, nil
	}
	return err == nil, err
}

// pullRequestFor returns a pull request that affects something which the caller sees; some
// reports that it affects something else, too. ErrNotFound if the caller sees nothing of it.
func (s *apiServer) pullRequestFor(c *gin.Context, ref holdfast.PullRequestRef) (record holdfast.PullRequestRecord, some bool, err error) {
	if record, err = s.opts.Records.PullRequest(c.Request.Context(), ref); err != nil {
		return record, false, err
	}
	none := true
	for _, affected := range record.Clusters {
		sees, err := s.seesCluster(c, affected.Name, reach(c, access.Read).has(affected.Document.Project))
		if err != nil {
			return record, false, err
		}
		none, some = none && !sees, some || !sees
	}
	if none && len(reach(c, access.Read)) > 0 {
		return holdfast.PullRequestRecord{}, false, holdfast.ErrNotFound
	}
	return record, some, nil
}

// mayTouchFor judges clusters by what is on record, by what a pull request that the caller
// sees would make of them, and by the clusters that they continue under another name: all of
// it must be of the projects in which the caller may do that.
func (s *apiServer) mayTouchFor(c *gin.Context, verb access.Verb, pr holdfast.PullRequestRecord, clusters []string) bool {
	projects := reach(c, verb)
	if len(projects) == 0 {
		return true
	}
	ctx, records := c.Request.Context(), &scopedRecords{s.opts.Records, projects}
	for _, name := range clusters {
		i := slices.IndexFunc(pr.Clusters, func(of holdfast.PullRequestCluster) bool { return of.Name == name })
		sees, err := s.seesCluster(c, name, i >= 0 && reach(c, access.Read).has(pr.Clusters[i].Document.Project))
		if err != nil || !sees {
			s.fail(c, named(fmt.Sprintf("cluster %q", name), cmp.Or(err, holdfast.ErrNotFound)))
			return false
		}
		record, err := s.opts.Records.Cluster(ctx, name)
		has := errors.Is(err, holdfast.ErrNotFound) && i >= 0 // the pull request adds it
		if err == nil {
			has, err = records.hasState(ctx, record)
		}
		switch why := fmt.Sprintf("cluster %q is of another", name); {
		case err != nil && !has:
			s.fail(c, named(fmt.Sprintf("cluster %q", name), err))
			return false
		case !has && projects.hasCluster(record):
			s.refuseScope(c, verb, name, "the state of "+why)
			return false
		case !has, i >= 0 && !projects.has(pr.Clusters[i].Document.Project):
			s.refuseScope(c, verb, name, why)
			return false
		}
		former := []string{record.Desired.Document.RenamedFrom}
		if i >= 0 {
			former = append(former, pr.Clusters[i].Document.RenamedFrom)
		}
		outside, err := records.continues(ctx, record, former...)
		if err != nil {
			s.fail(c, err)
			return false
		}
		if outside != "" {
			s.refuseScope(c, verb, name, fmt.Sprintf("cluster %q continues %q, which is of another", name, outside))
			return false
		}
	}
	return true
}

// mayTouchProject is mayTouch for a project; empty: all. One that the caller does not see has
// no clusters.
func (s *apiServer) mayTouchProject(c *gin.Context, verb access.Verb, project string) bool {
	projects := reach(c, verb)
	switch {
	case len(projects) == 0, project != "" && projects.has(project):
		return true
	case project != "" && !reach(c, access.Read).has(project):
		s.fail(c, noClusters(project))
	default:
		s.refuseScope(c, verb, project, "this affects clusters of other projects")
	}
	return false
}

func (s *apiServer) refuseScope(c *gin.Context, verb access.Verb, object, why string) {
	who := caller(c)
	text := fmt.Sprintf("%s %q is for project %s: %s", kindOf(who), who.Name, strings.Join(reach(c, verb), ", "), why)
	if !who.Person.IsZero() {
		text = fmt.Sprintf("%s may %s in project %s: %s", who.Name, verb, strings.Join(reach(c, verb), ", "), why)
	}
	s.refuse(c, http.StatusForbidden, text, "ask an administrator of Holdfast for a role in that project")
	if c.Request.Method != http.MethodGet {
		s.record(c.Request.Context(), holdfast.NewAuditEntry(s.now(), who.Name, "api.refuse", object, c.Request.Method+" "+c.Request.URL.Path+": "+text))
	}
}

// record puts what was done or refused into the audit trail, with the origin of the context.
func (s *apiServer) record(ctx context.Context, entry holdfast.AuditEntry) {
	if s.audit == nil {
		return
	}
	entry.Origin = holdfast.OriginOf(ctx)
	if err := s.audit.Audit(ctx, entry); err != nil {
		s.log.ErrorContext(ctx, "what was done is not in the audit trail", "action", entry.Action, "err", err)
	}
}

// asked records that the caller has asked for what a pull request proposes.
func (s *apiServer) asked(c *gin.Context, ref holdfast.PullRequestRef) error {
	if s.opts.Asked == nil || ref.Number == 0 {
		return nil
	}
	ctx, cancel := outlasting(c)
	defer cancel()
	return s.opts.Asked.AddRequester(ctx, ref, caller(c).Owner())
}

// proposeTime is how long a code host may take for a pull request.
const proposeTime = 2 * time.Minute

// outlasting is the context of a request for a pull request. A caller that disconnects before the
// answer does not end it: nobody would be recorded as its requester, and the caller could approve it.
func outlasting(c *gin.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Request.Context()), proposeTime)
}
