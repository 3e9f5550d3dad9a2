package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// pricedRuns are runs that are on record, and prices.
type pricedRuns struct {
	Store
	runs  map[string]holdfast.Run
	price string
}

func (p pricedRuns) Run(_ context.Context, id string) (holdfast.Run, error) {
	run, ok := p.runs[id]
	if !ok {
		return run, fmt.Errorf("run %s: %w", id, holdfast.ErrNotFound)
	}
	return run, nil
}

func (p pricedRuns) Cost(holdfast.Cluster, plandoc.Document) *holdfast.Cost {
	return &holdfast.Cost{Prices: holdfast.CostPrices{ID: p.price}}
}

// An apply costs what its reviewed plan said, whatever prices have done since.
func TestCostOfAnApply(t *testing.T) {
	t.Parallel()
	shown := holdfast.Run{RunOutcome: holdfast.RunOutcome{Cost: &holdfast.Cost{Prices: holdfast.CostPrices{ID: "then"}}}}
	p := pricedRuns{runs: map[string]holdfast.Run{"run-1": shown, "run-2": {}}, price: "now"}
	r := results{store: p, pricer: p, logger: slog.New(slog.DiscardHandler)}
	for matched, want := range map[string]string{"": "now", "run-1": "then", "run-2": "now", "run-gone": "now"} {
		got := r.costOf(t.Context(), holdfast.Run{}, matched, plandoc.Document{})
		if got == nil || got.Prices.ID != want {
			t.Errorf("matched %q: got %+v, want the prices of %s", matched, got, want)
		}
	}
	r.pricer = nil
	if got := r.costOf(t.Context(), holdfast.Run{}, "", plandoc.Document{}); got != nil {
		t.Errorf("without prices: got %+v", got)
	}
}
