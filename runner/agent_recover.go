package runner

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/protocol"
)

// recover finishes the attempts of a dead predecessor: what it had not delivered is
// delivered, and an attempt without a result was interrupted. Their engines are dead:
// the kernel kills them with the agent. ctx ends the deliveries.
func (a *Agent) recover(ctx context.Context) error {
	left, err := a.kept.Left()
	if err != nil {
		return err
	}
	for _, c := range left {
		logger := a.opts.Logger.With("cluster", c.Cluster, "run", c.Run, "attempt", c.Attempt)
		s, err := a.newSession(c, logger)
		if err != nil {
			return fmt.Errorf("recover attempt %s: %w", c.Key(), err)
		}
		result, err := s.Outcome(a.opts.Executor.WorkspaceDir(s.AttemptRef))
		if err != nil {
			return fmt.Errorf("recover attempt %s: %w", c.Key(), err)
		}
		logger.Warn("attempt of a former process was found", "reason", result.Reason, "status", string(result.Status))
		a.delivering.Go(func() {
			a.bring(ctx, s, func() (protocol.Result, bool) { return result, true })
		})
	}
	return nil
}
