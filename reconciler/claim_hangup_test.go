package reconciler_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// hangUp cancels the call of an agent that has just got a run.
type hangUp struct {
	reconciler.Store
	cancel atomic.Pointer[context.CancelFunc]
}

func (s *hangUp) ClaimRun(ctx context.Context, id string, agent protocol.AgentRef, now time.Time, limit int) (holdfast.Run, error) {
	run, err := s.Store.ClaimRun(ctx, id, agent, now, limit)
	if cancel := s.cancel.Swap(nil); cancel != nil {
		(*cancel)()
	}
	return run, err
}

// An agent that dies while it claims a run is not a fault of the run.
func TestAnAgentHangsUpWhileItClaims(t *testing.T) {
	t.Parallel()
	store := &hangUp{}
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")},
		func(o *reconciler.Options) {
			store.Store = o.Store
			o.Store = store
		})
	f.look()
	ctx, cancel := context.WithCancel(t.Context())
	store.cancel.Store(&cancel)
	_, _ = f.r.Dispatcher().Claim(ctx, protocol.ClaimRequest{Agent: "agent"}) // nobody hears the answer
	runs, err := f.store.Runs(t.Context(), holdfast.RunFilter{Cluster: "prod"})
	f.must(err)
	if len(runs) != 1 || runs[0].Status != holdfast.RunRunning {
		t.Errorf("the run is %+v, want it running until its lease ends", runs)
	}
}
