// Conditions of an apply, for callers that ask elsewhere than in a pull request's comment.

package publish

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/gate"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// Gates returns the conditions of apply.requires of an open pull request, by cluster: those
// that its comment shows, as they are now. Samples have none, and a pull request that is not
// open has none.
func (v *viewer) Gates(ctx context.Context, pr holdfast.PullRequestRecord) (map[string][]holdfast.Gate, error) {
	if pr.State != holdfast.PullRequestOpen {
		return nil, nil
	}
	all := make(map[string][]holdfast.Gate, len(pr.Clusters))
	for _, c := range pr.Clusters {
		if c.Sample {
			continue
		}
		in, _, err := v.opts.Fleet.Foresee(ctx, pr, c)
		if err != nil {
			return nil, err
		}
		plans, err := history.PullRequest(ctx, v.opts.Store, pr.PullRequestRef, c.Name)
		if err != nil {
			return nil, err
		}
		all[c.Name] = gatesOf(pr, c.Name, c.Document, in.Binding(), decision.Newest(plans), plans, v.opts.Settings.Now())
	}
	return all, nil
}

// gatesOf are the conditions of a cluster's apply, by its document and those that bind it as
// well, and whether a pull request meets them for a plan. Runs are those that approvals may be of.
func gatesOf(
	pr holdfast.PullRequestRecord, cluster string, document holdfast.Cluster, binding []holdfast.Applied,
	plan holdfast.Run, runs []holdfast.Run, now time.Time,
) []holdfast.Gate {
	requires, lifted := decision.Required(document, binding...)
	terms := gate.Terms{Cluster: cluster, Requires: requires, Lifted: lifted, Details: decision.Terms(document, binding...), Now: now}
	return gate.Of(pr, terms, plan, runs)
}
