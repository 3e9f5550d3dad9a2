package server

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/rollout"
)

// exactVersion is how a version that is not a constraint begins.
var exactVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)

func (s *templateAPI) routes(api *gin.RouterGroup) {
	api.GET("/templates", s.listTemplates)
	api.GET("/templates/:name", s.getTemplate)
	api.POST("/upgrades", s.postUpgrade)
}

// listTemplates answers with the templates that the repositories publish.
func (s *templateAPI) listTemplates(c *gin.Context) {
	p, err := pageOf(c, unsaidItems, maxItems, 2)
	if err != nil {
		s.fail(c, err)
		return
	}
	found, err := s.templatesFor(c, "")
	key := func(t rollout.TemplateStatus) []string { return []string{t.Name, t.Repo} }
	slices.SortStableFunc(found, func(a, b rollout.TemplateStatus) int { return slices.Compare(key(a), key(b)) })
	part, cursor := cut(p, found, key)
	answerList(s.base, c, p, part, v1.TemplateOf, cursor, err)
}

// templatesFor are the templates with those of their users that the caller sees: what others
// use is in no count.
func (s *templateAPI) templatesFor(c *gin.Context, name string) ([]rollout.TemplateStatus, error) {
	found, err := s.opts.Commander.Templates(c.Request.Context(), name)
	projects := reach(c, access.Read)
	if err != nil || len(projects) == 0 {
		return found, err
	}
	lines, err := s.fleet.Lines(c.Request.Context())
	if err != nil {
		return nil, err
	}
	sees := make(map[string]bool)
	for i := range lines {
		sees[lines[i].Name] = projects.has(lines[i].Project)
	}
	out := slices.Clone(found)
	for i := range out {
		t := &out[i]
		t.Users = slices.DeleteFunc(slices.Clone(t.Users), func(u rollout.TemplateUse) bool { return !sees[u.Cluster] })
		t.Versions = slices.Clone(t.Versions)
		for v := range t.Versions {
			t.Versions[v].Clusters = 0
			for _, u := range t.Users {
				if u.Version == t.Versions[v].Version {
					t.Versions[v].Clusters++
				}
			}
		}
	}
	return out, nil
}

// getTemplate answers with one, and all that is known of its versions and users.
func (s *templateAPI) getTemplate(c *gin.Context) {
	found, err := s.templatesFor(c, c.Param("name"))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("template %q: %w", c.Param("name"), holdfast.ErrNotFound)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, v1.TemplateOf(found[0]))
}

// postUpgrade answers with the pull requests in which newer versions are
// proposed.
func (s *templateAPI) postUpgrade(c *gin.Context) {
	var req v1.UpgradeRequest
	if err := decode(c, &req, true); err != nil {
		s.fail(c, err)
		return
	}
	given := 0
	for _, is := range []bool{len(req.Clusters) > 0, len(req.Labels) > 0, req.All} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		s.fail(c, badRequest("give one of clusters, labels and all to upgrade"))
		return
	case req.To != "" && !exactVersion.MatchString(req.To):
		s.fail(c, badRequest("version %q to upgrade to: want an exact one, such as 1.5.0", req.To))
		return
	}
	if len(req.Clusters) == 0 && !s.mayTouchProject(c, access.Propose, "") || !s.mayTouch(c, access.Propose, req.Clusters...) {
		return
	}
	ctx, cancel := outlasting(c)
	defer cancel()
	upgrades, err := s.opts.Commander.Upgrade(ctx, req.Request(caller(c).Name))
	for _, upgrade := range upgrades {
		err = errors.Join(err, s.asked(c, holdfast.PullRequestRef{Repo: upgrade.Repo, Number: upgrade.PullRequest}))
	}
	answerList(s.base, c, page{}, upgrades, v1.UpgradeOf, "", err)
}
