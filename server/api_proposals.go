package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/proposals"
)

// Proposer makes pull requests of what people ask for; *reconciler.Reconciler is one.
type Proposer interface {
	// ProposeCluster makes a pull request that changes the document of a cluster. What is wrong
	// with it are the faults of the answer; with any there is no pull request.
	ProposeCluster(ctx context.Context, p proposals.ClusterChange) (proposals.ClusterOutcome, error)
	// TemplateVersion returns what a version of a template says to those who make clusters
	// from it; ErrNotFound if it cannot be used.
	TemplateVersion(ctx context.Context, name, version string) (holdfast.TemplateDetail, error)
}

type proposalAPI struct{ *apiServer }

func (s *proposalAPI) routes(api *gin.RouterGroup) {
	api.POST("/proposals", s.propose)
	api.GET("/templates/:name/versions/:version", s.getTemplateVersion)
}

func (s *proposalAPI) getTemplateVersion(c *gin.Context) {
	found, err := s.opts.Proposer.TemplateVersion(c.Request.Context(), c.Param("name"), c.Param("version"))
	if err != nil {
		s.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, v1.TemplateDetailOf(found))
}

func (s *proposalAPI) propose(c *gin.Context) {
	var req v1.ClusterProposal
	if err := decode(c, &req, true); err != nil {
		s.fail(c, err)
		return
	}
	if req.Change != proposals.Create && !s.mayTouch(c, access.Propose, req.Cluster) {
		return
	}
	p := req.Proposal()
	p.By, p.Projects = caller(c).Name, reach(c, access.Propose)
	ctx := c.Request.Context()
	if !p.DryRun {
		lasting, cancel := outlasting(c)
		defer cancel()
		ctx = lasting
	}
	made, err := s.opts.Proposer.ProposeCluster(ctx, p)
	if err == nil {
		err = s.asked(c, made.PullRequest.PullRequestRef)
	}
	var faults holdfast.Faults
	switch {
	case errors.As(err, &faults):
		s.fail(c, badRequest("%v", err))
	case err != nil:
		s.fail(c, err)
	case len(made.Faults) > 0 && !req.DryRun:
		s.fail(c, badRequest("%v", made.Faults))
	default:
		c.JSON(http.StatusOK, v1.ProposedClusterOf(made))
	}
}
