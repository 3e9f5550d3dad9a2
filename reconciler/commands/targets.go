package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
	"github.com/holdfast-dev/holdfast/rollout"
)

// permitted checks that the author may command: write permission on the code
// host, or a token of the API.
func (h *Handler) permitted(ctx context.Context, c holdfast.Command) error {
	if c.Trusted {
		return nil
	}
	forge := h.opts.Forges[c.PullRequest.Repo]
	if forge == nil {
		return refusal("the repository is not configured")
	}
	permission, err := forge.Permission(ctx, c.PullRequest.Repo, c.Author)
	barred := errors.Is(err, holdfast.ErrForbidden) || errors.Is(err, holdfast.ErrUnauthorized)
	if barred && h.opts.Now().Sub(c.CreatedAt) > permissionPatience {
		return strange{"the code host does not say who may command: its App or token needs to read members and metadata"}
	}
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("ask for the permission of %q: %w", c.Author, err)
	}
	if !permission.CanWrite() {
		return strange{refusal(fmt.Sprintf("%s needs write permission in the repository for this", c.Author))}
	}
	if c.Verb == holdfast.VerbUnlock && c.Force && permission != holdfast.PermissionAdmin {
		return refusal(fmt.Sprintf("%s needs admin permission in the repository to take a lock from a living run", c.Author))
	}
	return nil
}

// target is one cluster that a command is about.
type target struct {
	cluster string
	pr      *holdfast.PullRequestRecord // nil: the tracked branch
	barred  refusal                     // why its pull request cannot command it; empty if it can
}

func (h *Handler) targets(ctx context.Context, c holdfast.Command) ([]target, error) {
	if c.PullRequest.IsZero() {
		if len(c.Clusters) == 0 {
			return nil, refusal("name a cluster")
		}
		return h.clusterTargets(ctx, c.Clusters)
	}
	pr, err := h.opts.Store.PullRequest(ctx, c.PullRequest)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, refusal(fmt.Sprintf("pull request %s is not known (yet): does it change a watched branch?", c.PullRequest))
	} else if err != nil {
		return nil, fmt.Errorf("read pull request %s: %w", c.PullRequest, err)
	}
	var out []target
	for _, cluster := range pr.Clusters {
		if cluster.Sample && (pr.State == holdfast.PullRequestMerged || c.Verb != holdfast.VerbPlan && c.Verb != holdfast.VerbCancel) {
			continue // its merge does not apply them
		}
		if len(c.Clusters) > 0 && !slices.Contains(c.Clusters, cluster.Name) {
			continue
		}
		t := target{cluster: cluster.Name, pr: &pr}
		if !cluster.Sample {
			if t.barred, err = h.elsewhere(ctx, c.Verb, pr, cluster.Name); err != nil {
				return nil, err
			}
		}
		out = append(out, t)
	}
	for _, name := range c.Clusters {
		if !slices.ContainsFunc(out, func(t target) bool { return t.cluster == name }) {
			return nil, h.notChanged(ctx, pr, name)
		}
	}
	switch tried := slices.ContainsFunc(pr.Clusters, func(cluster holdfast.PullRequestCluster) bool { return cluster.Sample }); {
	case len(out) == 0 && tried:
		return nil, refusal("the merge applies nothing: clusters move when their documents name the new version of the template")
	case len(out) == 0:
		return nil, refusal("this pull request changes no cluster")
	}
	return out, nil
}

// elsewhere is why a pull request cannot command a cluster that it changes: the name belongs
// to another repository, or was given to one since. Whoever may write here need not be
// allowed anything there. What the pull request itself has queued can be canceled.
func (h *Handler) elsewhere(
	ctx context.Context, verb holdfast.Verb, pr holdfast.PullRequestRecord, cluster string,
) (refusal, error) {
	rec, err := h.opts.Store.Cluster(ctx, cluster)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read cluster %q: %w", cluster, err)
	case verb == holdfast.VerbCancel && pr.State != holdfast.PullRequestMerged:
		return "", nil
	}
	elsewhere, err := h.Lineage.BelongsElsewhere(ctx, pr.Repo, rec)
	switch {
	case err != nil:
		return "", err
	case elsewhere:
	case verb != holdfast.VerbUnlock || rec.Owner == pr.Repo || rec.Deletion != nil:
		return "", nil // of a name that is free there, a run may be running still
	}
	return refusal(lineage.BelongsTo(rec) + ": pull requests of another repository cannot command it"), nil
}

// notChanged says why nothing can be done to a cluster by way of a pull request.
func (h *Handler) notChanged(ctx context.Context, pr holdfast.PullRequestRecord, name string) error {
	if slices.ContainsFunc(pr.Clusters, func(cluster holdfast.PullRequestCluster) bool { return cluster.Name == name }) {
		return refusal(fmt.Sprintf("the merge does not change cluster %q; its plan only shows the effect of the new template", name))
	}
	impacts, err := h.opts.Store.Impacts(ctx, pr.PullRequestRef)
	if err != nil {
		return fmt.Errorf("read impact of %s: %w", pr.PullRequestRef, err)
	}
	for _, impact := range impacts {
		for _, group := range impact.Groups {
			if slices.ContainsFunc(group.Clusters, func(cluster rollout.ImpactCluster) bool { return cluster.Name == name }) {
				return refusal(fmt.Sprintf("the merge leaves cluster %q as it is, and no plan shows what the new template would do to it: `/holdfast plan --all` plans all", name))
			}
		}
	}
	return refusal(fmt.Sprintf("this pull request does not change cluster %q", name))
}

// clusterTargets takes names of clusters, and nothing else: the permission of the
// command's author was checked for clusters by these names.
func (h *Handler) clusterTargets(ctx context.Context, names []string) ([]target, error) {
	var out []target
	for _, name := range names {
		if _, err := h.opts.Store.Cluster(ctx, name); errors.Is(err, holdfast.ErrNotFound) {
			return nil, refusal(fmt.Sprintf("there is no cluster %q", name))
		} else if err != nil {
			return nil, fmt.Errorf("read cluster %q: %w", name, err)
		}
		out = append(out, target{cluster: name})
	}
	return out, nil
}

// each does one thing for every target. If it is refused for all of them the
// command is refused; otherwise what was refused is reported.
func (h *Handler) each(
	ctx context.Context, c *holdfast.Command, targets []target,
	do func(context.Context, holdfast.Command, target) (string, error),
) (string, error) {
	var done, idle, refused []string
	var reason holdfast.Reason
	var failed error
	for _, t := range targets {
		word, err := h.once(ctx, *c, t, do)
		var no refusal
		switch {
		case errors.Is(err, errUpToDate) && asksForGit(*c): // as it is
			c.UpToDate = append(c.UpToDate, t.cluster)
			done = append(done, fmt.Sprintf("`%s`: %s", t.cluster, upToDate))
		case errors.Is(err, errIdle) && len(targets) > 1:
			idle = append(idle, t.cluster)
		case errors.As(err, &no):
			c.Refused = append(c.Refused, t.cluster)
			reason = cmp.Or(reason, reasonOf(err))
			refused = append(refused, fmt.Sprintf("`%s`: %s", t.cluster, no))
		case err != nil && c.CommentID != "": // which is tried again
			failed = err
		case err != nil && len(done) == 0:
			return "", err // nothing of it was done
		case err != nil:
			c.Refused = append(c.Refused, t.cluster)
			refused = append(refused, fmt.Sprintf("`%s`: %s", t.cluster, failedWith(err)))
		case word != "":
			done = append(done, fmt.Sprintf("`%s`: %s", t.cluster, word))
		}
	}
	if failed != nil {
		return "", failed
	}
	for _, cluster := range idle {
		if word := fmt.Sprintf("`%s`: %s", cluster, errIdle); len(done) > 0 {
			done = append(done, word)
		} else {
			c.Refused, refused = append(c.Refused, cluster), append(refused, word)
		}
	}
	if len(refused) == len(targets) {
		return "", reasoned{refusal(strings.Join(refused, "\n")), reason}
	}
	c.Reason = reason
	if len(refused) == 0 && c.CommentID != "" {
		return "", nil // the comment of the pull request shows it
	}
	return strings.Join(slices.Concat(done, refused), "\n"), nil
}
