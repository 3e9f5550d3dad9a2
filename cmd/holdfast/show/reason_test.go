package show

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// TestHelpText: each command is said once, with the cluster's name, in lines that fit.
func TestHelpText(t *testing.T) {
	t.Parallel()
	for reason, want := range map[holdfast.Reason]string{
		"":                           "",
		holdfast.ReasonUnreviewed:    "holdfast apply prod-eu: applies exactly\nthe plan that is shown",
		holdfast.ReasonSuspended:     "An operator resumes them with `holdfast\nresume prod-eu`",
		holdfast.ReasonMissing:       "Restore it, or remove it in a commit in\nwhich every file can be read and every\nname is defined once",
		holdfast.ReasonNotApproved:   "holdfast approve prod-eu: approves it",
		holdfast.ReasonAgentSilent:   "holdfast unlock prod-eu: ends the run\nonce its engine is certainly dead; what\nremains is planned again\nBring the agent back, or make sure that\nits engine is dead",
		holdfast.ReasonWindowClosed:  "",
		holdfast.Reason("FromLater"): "",
	} {
		if got := (&table.Printer{Width: 56}).Filled(helpText(reason, "prod-eu")); got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
	if got := meaningText("FromLater"); got != "from later" {
		t.Errorf("the meaning of a reason that a newer server knows = %q", got)
	}
}
