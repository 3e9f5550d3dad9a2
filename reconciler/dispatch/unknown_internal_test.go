package dispatch

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// An agent that lives and was never at work on an attempt has not died of it.
func TestUnknown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		process, step string
		want          string
	}{
		"never taken":              {"p1", "", "its agent did not take it"},
		"it was at work on it":     {"p1", "plan", "the agent died, or cannot reach the server"},
		"another process is there": {"p2", "", "the agent died, or cannot reach the server"},
	} {
		run := holdfast.Run{}
		run.AgentProcess, run.Step = "p1", c.step
		got := unknown(run, protocol.ClaimRequest{Process: c.process})
		if got.Failure.Summary != c.want || got.Reason != holdfast.ReasonAgentKilled || !got.Failure.Transient {
			t.Errorf("%s: %+v", name, got.Failure)
		}
	}
}
