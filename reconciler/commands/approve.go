package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/gate"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// approve records that a head may be applied, and lets what waited for that continue.
// Without a pull request it applies to the plans that clusters wait with.
func (h *Handler) approve(ctx context.Context, c *holdfast.Command, targets []target) (string, error) {
	pr := targets[0].pr
	if pr == nil {
		return h.each(ctx, c, targets, h.approveCluster)
	}
	switch {
	case c.CommentID != "" && c.ShownHead != pr.Head:
		return "", errMoved
	case c.CommentID != "" && len(c.Shown) == 0:
		return "", refusal("no plan had been shown when you wrote this; wait for the plan and review it")
	}
	if err := h.requested(ctx, pr.PullRequest, *c); err != nil {
		return "", err
	}
	now, err := h.Gates.Fresh(ctx, *pr)
	if err != nil {
		return "", err
	}
	if err := objected(now); err != nil {
		return "", err
	}
	own := slices.DeleteFunc(slices.Clone(targets), func(t target) bool { return t.barred != "" })
	clusters, moved, err := h.shownNow(ctx, *c, own)
	if err != nil {
		return "", err
	}
	if len(clusters) > 0 {
		if err := h.addApproval(ctx, *pr, *c, c.Shown, clusters); err != nil {
			return "", err
		}
		h.Publisher.Show(pr.PullRequestRef)
	}
	return h.each(ctx, c, targets, func(ctx context.Context, c holdfast.Command, t target) (string, error) {
		if err := moved[t.cluster]; err != nil {
			return "", err
		}
		h.Agenda.RequestCluster(t.cluster)
		if c.CommentID != "" { // its pull request shows it
			return approved, nil
		}
		return h.approvedShown(ctx, c, t)
	})
}

// requested refuses to approve what the giver of a command has proposed: as its author, who may
// have the same name with the API as on the code host, or by asking for it through Holdfast.
func (h *Handler) requested(ctx context.Context, pr holdfast.PullRequest, c holdfast.Command) error {
	if strings.EqualFold(c.Author, pr.Author) {
		return refusal("you cannot approve your own pull request; ask someone else with write permission")
	}
	if c.Owner == "" {
		return nil
	}
	owners, err := h.opts.Store.Requesters(ctx, pr.PullRequestRef)
	if err != nil {
		return err
	}
	if slices.Contains(owners, c.Owner) {
		return refusal(fmt.Sprintf("you asked for #%d through Holdfast; someone else has to approve it", pr.Number))
	}
	return nil
}

// objected refuses to approve what a review asks to be changed.
func objected(pr holdfast.PullRequestRecord) error {
	by := gate.Objectors(pr)
	if len(by) == 0 {
		return nil
	}
	return refusal(strings.Join(by, " and ") + " requested changes in a review: they must review again, or the review must be dismissed")
}

// shownNow returns the clusters of which an approval counts, and why it does not for the
// others. One in a comment is taken as it was written: the comment with the plans says for
// which of them it counts. One through the API has no such place, and is refused for plans
// that are not, or no longer, those of the pull request.
func (h *Handler) shownNow(ctx context.Context, c holdfast.Command, targets []target) ([]string, map[string]error, error) {
	if c.CommentID != "" {
		return clustersOf(targets), nil, nil
	}
	if len(c.Shown) == 0 {
		return nil, nil, refusal("no plan is shown in the pull request now: wait for the plan comment and review it. If it was " +
			"edited or deleted, Holdfast posts it again; `holdfast describe pullrequest` shows whether the code host refuses that")
	}
	var clusters []string
	moved := make(map[string]error)
	for _, t := range targets {
		runs, err := history.PullRequest(ctx, h.opts.Store, t.pr.PullRequestRef, t.cluster)
		if err != nil {
			return nil, nil, err
		}
		if t.pr.State == holdfast.PullRequestMerged {
			branch, err := history.Branch(ctx, h.opts.Store, t.cluster)
			if err != nil {
				return nil, nil, err
			}
			runs = slices.Concat(branch, runs)
		}
		good := slices.DeleteFunc(runs, func(run holdfast.Run) bool { return run.Sample || !run.Status.Good() })
		newest := decision.Newest(good)
		known := slices.ContainsFunc(good, func(run holdfast.Run) bool { return slices.Contains(c.Shown, run.ID) })
		switch {
		case newest.ID == "":
			moved[t.cluster] = refusal("it has no plan")
		case !known, t.pr.State != holdfast.PullRequestMerged && !gate.IsOf(c.Shown, *t.pr, newest, good):
			moved[t.cluster] = refuseFor(holdfast.ReasonPlanMoved, "the newest plan is `"+newest.ID+"`")
		default:
			clusters = append(clusters, t.cluster)
		}
	}
	return clusters, moved, nil
}

// approved begins the answer to whoever has approved the plan of a cluster.
const approved = "approved"

// approvedShown is the answer to whoever has approved what a pull request shows of a
// cluster: which plan that was and, after the merge, what the cluster waits for still.
func (h *Handler) approvedShown(ctx context.Context, c holdfast.Command, t target) (string, error) {
	runs, err := history.PullRequest(ctx, h.opts.Store, t.pr.PullRequestRef, t.cluster)
	if err != nil {
		return "", err
	}
	seen := slices.IndexFunc(runs, func(run holdfast.Run) bool { return slices.Contains(c.Shown, run.ID) })
	word := approved
	if seen >= 0 {
		word = fmt.Sprintf("%s `%s`, the plan of #%d", approved, runs[seen].ID, t.pr.Number)
	}
	if t.pr.State != holdfast.PullRequestMerged {
		return word, nil
	}
	still, err := h.stillWaits(ctx, t.cluster)
	return word + still, err
}

// stillWaits says what an apply of a cluster waits for after an approval, and for whom;
// empty if it waits for nothing.
func (h *Handler) stillWaits(ctx context.Context, cluster string) (string, error) {
	rec, err := h.opts.Store.Cluster(ctx, cluster)
	if errors.Is(err, holdfast.ErrNotFound) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("read cluster %q: %w", cluster, err)
	}
	runs, err := history.Branch(ctx, h.opts.Store, cluster)
	if err != nil {
		return "", err
	}
	merges, err := h.Decider.Merges(ctx, rec, runs)
	if err != nil {
		return "", err
	}
	var lacks []string
	byNewest := rec.Waiting.Info().Does == holdfast.AppliesShown // whoever asks for that applies the newest plan
	for _, merge := range merges {
		missing := merge.Missing
		if byNewest {
			missing = merge.NewestMissing
		}
		for _, name := range slices.Sorted(maps.Keys(missing)) {
			pr, err := h.opts.Store.PullRequest(ctx, merge.Review.PullRequest)
			if err != nil {
				return "", fmt.Errorf("read pull request %s: %w", merge.Review.PullRequest, err)
			}
			lacks = append(lacks, fmt.Sprintf("#%d lacks `%s`: %s (%s)", pr.Number, name, missing[name], whoseWord(pr)))
		}
	}
	if rec.Waiting != "" && rec.Waiting != holdfast.ReasonManual && !rec.Waiting.OfGate() {
		lacks = append(lacks, rec.Waiting.Refusal(rec.WaitingDetail))
	}
	if len(lacks) == 0 {
		return "", nil
	}
	return "; the cluster still waits: " + strings.Join(lacks, "; "), nil
}

// whoseWord says who can meet the condition that a merged pull request lacks.
func whoseWord(pr holdfast.PullRequestRecord) string {
	if by := gate.Objectors(pr); len(by) > 0 {
		return "for " + strings.Join(by, " and ")
	}
	return "for someone with write permission other than " + cmp.Or(pr.Author, "its author")
}

// approveCluster approves the plan that a cluster waits with. The named plan is that one,
// or that one was made since; where nothing is named the approval is of what pull requests
// had shown before. What waited for a person to look at it is applied then, unless the
// cluster is applied by command: an approval is not enough.
func (h *Handler) approveCluster(ctx context.Context, c holdfast.Command, t target) (string, error) {
	rec, err := h.opts.Store.Cluster(ctx, t.cluster)
	if err != nil {
		return "", fmt.Errorf("read cluster %q: %w", t.cluster, err)
	}
	runs, err := history.Branch(ctx, h.opts.Store, t.cluster)
	if err != nil {
		return "", err
	}
	planned, err := h.Decider.PlannedRun(ctx, t.cluster)
	if err != nil {
		return "", err
	}
	byHand := slices.ContainsFunc(decision.Conditions(rec.Desired.Document, rec.Applied, decision.LastApplied(rec, runs)),
		func(s holdfast.ApplySettings) bool { return s.Manual })
	switch {
	case planned == "" && !byHand:
		return h.applyFor(ctx, c, t) // which says why
	case planned == "" && rec.Waiting != "":
		return "", refuseFor(rec.Waiting, rec.WaitingDetail)
	case planned == "":
		return "", refusal("it has no plan that needs approval")
	case c.Shown != nil && !slices.Contains(c.Shown, planned):
		return "", refuseFor(holdfast.ReasonPlanMoved, "what waits is `"+planned+"`")
	case rec.Waiting == holdfast.ReasonSuspended:
		return "", refuseFor(rec.Waiting, rec.WaitingDetail)
	}
	merges, err := h.Decider.Merges(ctx, rec, runs)
	if err != nil {
		return "", err
	}
	reviewed := slices.ContainsFunc(merges, func(m decision.Merge) bool { return m.Review.Run == planned })
	for _, merge := range merges {
		if len(merge.Missing)+len(merge.NewestMissing) == 0 {
			continue
		}
		pr, err := h.opts.Store.PullRequest(ctx, merge.Review.PullRequest)
		if err != nil {
			return "", fmt.Errorf("read pull request %s: %w", merge.Review.PullRequest, err)
		}
		if err := objected(pr); err != nil {
			return "", err
		}
		if err := h.requested(ctx, pr.PullRequest, c); err != nil {
			return "", err
		}
		var seen []string
		if c.Shown != nil {
			seen = []string{planned}
			if own := merge.Review.Run; reviewed && own != "" && own != planned { // an earlier merge is in the plan
				seen = append(seen, own)
			}
		}
		if err := h.addApproval(ctx, pr, c, seen, []string{t.cluster}); err != nil {
			return "", err
		}
	}
	if !byHand && !rec.Waiting.OfGate() {
		return h.applyFor(ctx, c, t)
	}
	h.Agenda.RequestCluster(t.cluster)
	still, err := h.stillWaits(ctx, t.cluster)
	if byHand && still == "" {
		still = "; `holdfast apply " + t.cluster + "` applies it"
	}
	return fmt.Sprintf("%s `%s`%s", approved, planned, still), err
}

// addApproval records a command's approval of what runs have planned for clusters: for
// no others, whatever else was shown.
func (h *Handler) addApproval(
	ctx context.Context, seen holdfast.PullRequestRecord, c holdfast.Command, runs, clusters []string,
) error {
	approval := holdfast.Approval{
		By: c.Author, Head: seen.Head, At: c.CreatedAt.UTC(), Runs: runs, Clusters: clusters,
		CommentID: c.CommentID, Said: c.Said, Person: c.Person, Waiver: c.Waiver,
	}
	for {
		pr, err := h.opts.Store.PullRequest(ctx, seen.PullRequestRef)
		if err != nil {
			return fmt.Errorf("read pull request %s: %w", seen.PullRequestRef, err)
		}
		pr.Approvals = append(pr.Approvals, approval)
		_, err = h.opts.Store.SavePullRequest(ctx, pr)
		if !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
	}
}

func clustersOf(targets []target) []string {
	clusters := make([]string, len(targets))
	for i, t := range targets {
		clusters[i] = t.cluster
	}
	return clusters
}
