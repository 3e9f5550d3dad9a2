package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/outgoing"
)

func (s *pullRequestAPI) routes(api *gin.RouterGroup) {
	api.GET("/pullrequests", s.listPullRequests)
	api.GET("/pullrequests/get", s.getPullRequest)
}

func (s *pullRequestAPI) listPullRequests(c *gin.Context) {
	filter := holdfast.PullRequestFilter{Repo: c.Query("repo"), Cluster: c.Query("cluster")}
	states := []holdfast.PullRequestState{holdfast.PullRequestOpen, holdfast.PullRequestClosed, holdfast.PullRequestMerged}
	var err error
	if filter.States, err = wordsOf(c, "state", states); err != nil {
		s.fail(c, err)
		return
	}
	p, err := pageWithFields[v1.PullRequest](c, unsaidItems, maxItems, 2)
	number, err2 := p.number(0)
	if err = errors.Join(err, err2); err != nil {
		s.fail(c, err)
		return
	}
	filter.Limit, filter.After = p.limit, holdfast.PullRequestRef{Number: int(number), Repo: p.part(1)}
	records, err := s.records(c).PullRequests(c.Request.Context(), filter)
	key := func(r holdfast.PullRequestRecord) []string { return []string{strconv.Itoa(r.Number), r.Repo} }
	answerList(s.base, c, p, records, v1.PullRequestOf, full(p, records, key), err)
}

func (s *pullRequestAPI) getPullRequest(c *gin.Context) {
	ctx := c.Request.Context()
	ref, err := pullRequestOf(c)
	if err == nil && ref.IsZero() {
		err = badRequest("number of the pull request is missing")
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	record, err := s.records(c).PullRequest(ctx, ref)
	if err != nil {
		s.fail(c, named("pull request "+ref.String(), err))
		return
	}
	answer := v1.PullRequestDetail{PullRequest: v1.PullRequestOf(record)}
	if answer.Comments, err = s.comments(ctx, ref); err == nil {
		answer.Statuses, err = s.statuses(ctx, record)
	}
	if err == nil {
		answer.Gates, err = s.gates(ctx, record)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	if answer.Refused, answer.Delayed, err = s.troubledPosts(ctx, ref); err != nil {
		s.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, answer)
}

// gates are those of the clusters that the caller may see, in the order of the pull request.
func (s *pullRequestAPI) gates(ctx context.Context, record holdfast.PullRequestRecord) ([]v1.Gate, error) {
	found, err := s.opts.Commander.PullRequestGates(ctx, record)
	if err != nil {
		return nil, fmt.Errorf("read what an apply of %s requires: %w", record.PullRequestRef, err)
	}
	var gates []v1.Gate
	for _, c := range record.Clusters {
		for _, g := range found[c.Name] {
			gates = append(gates, v1.GateOf(c.Name, g))
		}
	}
	return gates, nil
}

// troubledPosts are the posts of a pull request that the forge refuses, or that are
// tried again.
func (s *pullRequestAPI) troubledPosts(
	ctx context.Context, ref holdfast.PullRequestRef,
) (refused []v1.RefusedPost, delayed []v1.DelayedPost, err error) {
	posts, err := s.opts.Posts.Posts(ctx, outgoing.PostFilter{PullRequest: ref})
	if err != nil {
		return nil, nil, fmt.Errorf("list posts of %s: %w", ref, err)
	}
	for _, post := range posts {
		waits := post.LastError != ""                                                 // it was tried, or deferred
		said := post.Kind == outgoing.PostReply || post.Kind == outgoing.PostReaction // to one person: reported if it waits
		if !post.GivenUp && (post.Wanted <= post.Posted || said && !waits) {
			continue
		}
		what := "of " + ref.String()
		switch post.Kind {
		case outgoing.PostStatus, outgoing.PostCheck:
			what = post.Status.Context + " of " + post.Status.Revision.Short()
		case outgoing.PostReaction:
			what = string(post.Reaction) + " at comment " + post.CommentID
		default: // one comment, answers, an issue
		}
		if post.GivenUp {
			refused = append(refused, v1.RefusedPost{Kind: post.Kind, What: what, Reason: post.LastError})
		} else {
			delayed = append(delayed, v1.DelayedPost{Kind: post.Kind, What: what, Reason: v1.NotPosted(post), RetryAt: post.NotBefore})
		}
	}
	return refused, delayed, nil
}

// comments returns those of the local forge, otherwise the one that we posted
// elsewhere.
func (s *pullRequestAPI) comments(ctx context.Context, ref holdfast.PullRequestRef) ([]v1.Comment, error) {
	if s.opts.Local != nil {
		comments, err := s.opts.Local.LocalComments(ctx, ref)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return nil, fmt.Errorf("read comments of %s: %w", ref, err)
		}
		if len(comments) > 0 {
			return convert(comments, v1.CommentOf), nil
		}
	}
	post, ok, err := s.posted(ctx, "comment:"+ref.String())
	if err != nil || !ok || post.Body == "" {
		return nil, err
	}
	return []v1.Comment{{
		ID: post.ExternalID, Author: "holdfast", Bot: true,
		Body: post.Body, CreatedAt: post.PostedAt, UpdatedAt: post.PostedAt, NotPosted: v1.NotPosted(post),
	}}, nil
}

func (s *pullRequestAPI) statuses(ctx context.Context, record holdfast.PullRequestRecord) ([]v1.CommitStatus, error) {
	var statuses []v1.CommitStatus
	revisions := slices.Compact([]holdfast.Revision{record.Head, record.MergeCommit})
	for _, rev := range revisions {
		if rev == "" {
			continue
		}
		of, err := s.statusesOf(ctx, record.Repo, rev)
		if err != nil {
			return nil, fmt.Errorf("read statuses of %s: %w", rev.Short(), err)
		}
		statuses = append(statuses, of...)
	}
	return statuses, nil
}

func (s *pullRequestAPI) statusesOf(ctx context.Context, repo string, rev holdfast.Revision) ([]v1.CommitStatus, error) {
	if s.opts.Local != nil {
		statuses, err := s.opts.Local.LocalStatuses(ctx, repo, rev)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return nil, err
		}
		if len(statuses) > 0 {
			return convert(statuses, v1.CommitStatusOf), nil
		}
	}
	var statuses []v1.CommitStatus
	for _, name := range []string{holdfast.ContextPlan, holdfast.ContextApply} {
		post, ok, err := s.posted(ctx, fmt.Sprintf("status:%s:%s:%s", repo, rev, name))
		if err != nil {
			return nil, err
		}
		if ok {
			statuses = append(statuses, v1.PostedStatusOf(post))
		}
	}
	return statuses, nil
}

// pullRequestOf reads repo and number; no number is the tracked branch.
func pullRequestOf(c *gin.Context) (holdfast.PullRequestRef, error) {
	ref := holdfast.PullRequestRef{Repo: c.Query("repo")}
	if ref.Repo == "" {
		return ref, badRequest("repo of the pull request is missing")
	}
	number := c.Query("number")
	if number == "" {
		return ref, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return ref, badRequest("number %q: want that of a pull request", number)
	}
	ref.Number = n
	return ref, nil
}
