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
		all[c.Name] = gatesOf(pr, c, append(decision.Merged(in.Merges), in.Cluster.Applied, in.Last), plans, v.opts.Settings.Now())
	}
	return all, nil
}

// gatesOf are those of a cluster in an open pull request, given what was applied last and
// its plans.
func gatesOf(
	pr holdfast.PullRequestRecord, c holdfast.PullRequestCluster, last []holdfast.Applied, plans []holdfast.Run, now time.Time,
) []holdfast.Gate {
	requires, lifted := decision.Required(c.Document, last...)
	terms := gate.Terms{Cluster: c.Name, Requires: requires, Lifted: lifted, Details: decision.Terms(c.Document, last...), Now: now}
	return gate.Of(pr, terms, decision.Newest(plans), plans)
}
