package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
)

// planAll has every cluster planned that a pull request's change of a template
// would change, not only samples.
func (h *Handler) planAll(ctx context.Context, c holdfast.Command) (string, error) {
	if c.PullRequest.IsZero() {
		return "", refusal("--all is about a pull request that changes a template")
	}
	repo := h.repos[c.PullRequest.Repo]
	unlock := h.Looking.Lock(holdfast.Request{PullRequest: c.PullRequest})
	defer unlock()
	rec, err := h.opts.Store.PullRequest(ctx, c.PullRequest)
	if errors.Is(err, holdfast.ErrNotFound) {
		return "", refusal(fmt.Sprintf("pull request %s is not known (yet): does it change a watched branch?", c.PullRequest))
	} else if err != nil {
		return "", fmt.Errorf("read pull request %s: %w", c.PullRequest, err)
	}
	impacts, err := h.opts.Store.Impacts(ctx, c.PullRequest)
	switch {
	case err != nil:
		return "", fmt.Errorf("read impact of %s: %w", c.PullRequest, err)
	case rec.State != holdfast.PullRequestOpen:
		return "", refusal("the pull request is no longer open")
	case rec.Reason != "":
		return "", reasoned{refusal("nothing is planned of this pull request: " + rec.Reason.Refusal("")), rec.Reason}
	case len(impacts) == 0:
		return "", refusal("this pull request changes no template: plan plans all that it changes")
	case repo.Samples < 0:
		return "", refusal("holdfast.yaml has no clusters planned for this repository's templates: repositories[].samples")
	}
	rec.AllSamples = true
	if _, err := h.opts.Store.SavePullRequest(ctx, rec); err != nil {
		return "", fmt.Errorf("record pull request %s: %w", rec.PullRequestRef, err)
	}
	h.Agenda.Look(agenda.Look{Repo: rec.Repo, Number: rec.Number, Known: true})
	return "", nil
}
