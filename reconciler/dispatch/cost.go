package dispatch

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// costOf is what a plan changes of the monthly price. It is estimated here and not by the agent,
// which has seen more of the plan, as all prices are here: those of the price book are nobody
// else's business, and agents of two versions would have two tables. An apply of what was
// reviewed costs what was shown then, whatever prices have done since.
func (r results) costOf(ctx context.Context, run holdfast.Run, matched string, document plandoc.Document) *holdfast.Cost {
	if r.pricer == nil {
		return nil
	}
	if matched != "" {
		shown, err := r.store.Run(ctx, matched)
		switch {
		case err != nil: // it is not worth the outcome
			r.logger.WarnContext(ctx, "cost of a reviewed plan is not known", "run", run.ID, "plan", matched, "err", err)
		case shown.Cost != nil:
			return shown.Cost
		}
	}
	return r.pricer.Cost(run.Document, document)
}

// briefCost is what a run keeps of the cost of its plan.
func briefCost(c *holdfast.Cost) *holdfast.Cost {
	if c == nil {
		return nil
	}
	brief := c.Brief()
	return &brief
}
