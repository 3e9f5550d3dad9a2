package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// waiving is the Handler as far as policies are waived.
type waiving struct{ *Handler }

// waive records that a policy does not count for what a pull request shows, for this head only.
// The people who may are named in the policy: its owners, by name, and never the author of the
// pull request. Whatever is not known, such as who is in a team, lets nobody.
func (h waiving) waive(ctx context.Context, c *holdfast.Command, targets []target) (string, error) {
	pr := targets[0].pr
	switch {
	case pr == nil || c.CommentID == "":
		return "", refusal("a policy is waived by a comment on a pull request")
	case strings.EqualFold(c.Author, pr.Author):
		return "", refusal("you cannot waive a policy for your own pull request; ask another of its owners")
	case c.ShownHead != pr.Head:
		return "", errMoved
	case len(c.Shown) == 0:
		return "", refusal("no plan had been shown when you wrote this; wait for the plan and review it")
	}
	if err := h.requested(ctx, pr.PullRequest, *c); err != nil {
		return "", err
	}
	refused := make(map[string]error)
	var clusters []string
	for _, t := range targets {
		if t.barred != "" {
			continue
		}
		no, err := h.mayWaive(ctx, *c, t)
		if err != nil {
			return "", err
		}
		if refused[t.cluster] = no; no == nil {
			clusters = append(clusters, t.cluster)
		}
	}
	if len(clusters) > 0 {
		if err := h.addApproval(ctx, *pr, *c, c.Shown, clusters); err != nil {
			return "", err
		}
		h.Publisher.Show(pr.PullRequestRef)
	}
	return h.each(ctx, c, targets, func(_ context.Context, c holdfast.Command, t target) (string, error) {
		if err := refused[t.cluster]; err != nil {
			return "", err
		}
		h.Agenda.RequestCluster(t.cluster)
		return "waived " + c.Waives, nil
	})
}

// mayWaive says why somebody may not waive a policy for a cluster; nil if they may.
func (h waiving) mayWaive(ctx context.Context, c holdfast.Command, t target) (no, err error) {
	i := slices.IndexFunc(t.pr.Clusters, func(p holdfast.PullRequestCluster) bool { return p.Name == t.cluster })
	if i < 0 {
		return refusal("the pull request does not affect it"), nil
	}
	documents, err := h.documents(ctx, t.pr.Clusters[i])
	if err != nil {
		return nil, err
	}
	policy, found, err := h.Policies.Policy(ctx, c.Waives, documents...)
	switch {
	case err != nil:
		return refusal(fmt.Sprintf("its policies cannot be read: %v", err)), nil
	case !found:
		return refusal(fmt.Sprintf("it has no policy `%s`", c.Waives)), nil
	case policy.Strict:
		return refusal(fmt.Sprintf("the policy `%s` says `waivable: false`: nobody may waive it", c.Waives)), nil
	}
	var people []string
	for _, owner := range policy.Owners {
		name, ok := strings.CutPrefix(owner, "@")
		if !ok || strings.Contains(name, "/") { // a mail address, or a team
			continue
		}
		if strings.EqualFold(name, c.Author) {
			return nil, nil
		}
		people = append(people, name)
	}
	if len(people) == 0 {
		return refusal(fmt.Sprintf("the policy `%s` names no person among its owners, and who is in a team is not known here: nobody may waive it", c.Waives)), nil
	}
	return refusal(fmt.Sprintf("only its owners may waive the policy `%s`: %s", c.Waives, strings.Join(people, ", "))), nil
}

// documents are those by which a cluster has policies: what is proposed of it, and what was last
// applied, or begun.
func (h waiving) documents(ctx context.Context, c holdfast.PullRequestCluster) ([]holdfast.Cluster, error) {
	documents := []holdfast.Cluster{c.Document}
	rec, err := h.opts.Store.Cluster(ctx, c.Name)
	if errors.Is(err, holdfast.ErrNotFound) {
		return documents, nil
	} else if err != nil {
		return nil, fmt.Errorf("read cluster %q: %w", c.Name, err)
	}
	branch, err := history.Branch(ctx, h.opts.Store, c.Name)
	if err != nil {
		return nil, err
	}
	for _, applied := range []holdfast.Applied{rec.Applied, decision.LastApplied(rec, branch)} {
		if applied.Run != "" {
			documents = append(documents, applied.Document)
		}
	}
	return documents, nil
}
