package main

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/internal/testenv/freeusers"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// TestSlotUsersAreOneAgents: an agent whose engines would be users of another agent's does not
// start, and says which setting keeps them apart.
func TestSlotUsersAreOneAgents(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("not root: engines have no users of their own")
		return
	}
	first := freeusers.Of(t, 7)
	other := slotUsers{first: first + 3, count: 4}
	if err := other.hold(sandbox.ModeUsers); err != nil {
		t.Fatal(err)
	}
	defer other.release()

	users := slotUsers{first: first, count: 4}
	flags := isolationFlags{wanted: "auto", firstUser: first}
	_, mode, err := flags.open(t.Context(), &users, []holdfast.RunKind{holdfast.RunPlan}, slog.New(slog.DiscardHandler))
	if !errors.Is(err, sandbox.ErrUserHeld) {
		t.Fatalf("the agent starts: mode %q, %v", mode, err)
	}
	for _, want := range []string{"--slot-user", "--slots", "agent.slotUsers"} {
		if !strings.Contains(hint.Of(err), want) {
			t.Errorf("hint %q does not name %s", hint.Of(err), want)
		}
	}
	// A probing start takes nobody's life in modes with namespaces, as when serve adopts agents.
	probed := slotUsers{first: first + 3, count: 1}
	if err := probed.holdToKill(sandbox.ModeRange); err != nil {
		t.Errorf("a probing start next to an agent: %v", err)
	}
	if err := probed.holdToKill(sandbox.ModeUsers); !errors.Is(err, sandbox.ErrUserHeld) {
		t.Errorf("a probing start that would kill an agent's engines: %v", err)
	}
}
