package publish

import (
	"context"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/report"
)

// labelsKey is the key of the labels of a pull request.
func labelsKey(ref holdfast.PullRequestRef) string { return "labels:" + ref.String() }

// wantLabels labels an open pull request, where that is configured. While its plans are
// being made it keeps the labels that it has, and after the merge it does so for good.
func (p *Publisher) wantLabels(ctx context.Context, view report.PullRequest) error {
	pr := view.PullRequest
	if labels := p.opts.Settings.Labels; labels == nil || !labels(pr.Repo) || pr.State != holdfast.PullRequestOpen {
		return nil
	}
	if _, can := p.opts.Forges[pr.Repo].(Labeler); !can {
		return nil
	}
	wanted, known := report.Labels(view)
	if !known {
		return nil
	}
	key := labelsKey(pr.PullRequestRef)
	if len(wanted) == 0 {
		if post, err := p.opts.Store.Post(ctx, key); err != nil || post.Wanted == 0 {
			return nil // it has none of ours
		}
	}
	return p.want(ctx, outgoing.Post{Key: key, Kind: outgoing.PostLabels, Repo: pr.Repo, PullRequest: pr.PullRequestRef, Body: strings.Join(wanted, "\n")})
}

// putLabels makes the labels of a pull request those that are wanted.
func putLabels(ctx context.Context, forge Forge, post outgoing.Post) error {
	labeler, ok := forge.(Labeler)
	if !ok {
		return nil
	}
	return labeler.SetLabels(ctx, post.PullRequest, report.LabelNames(), strings.Fields(post.Body))
}
