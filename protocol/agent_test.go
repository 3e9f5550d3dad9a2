package protocol_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

func TestCheckAgentID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"eu": "", "eu/plan-1": "", "Host_7.example.com:8443/agent@2+x": "",
		"":                       "is empty",
		"a b":                    "has characters other than ASCII letters",
		"a\x00":                  "has characters other than ASCII letters",
		"a\xff":                  "has characters other than ASCII letters",
		"team/\u0430pply":        "has characters other than ASCII letters", // begins with a Cyrillic a
		"team\u200d/apply":       "has characters other than ASCII letters",
		"/a":                     "has a slash with nothing before or after it",
		"a//b":                   "has a slash with nothing before or after it",
		strings.Repeat("a", 201): "has more than 200 bytes",
	} {
		err := protocol.CheckAgentID(id)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("CheckAgentID(%q) = %v, want %q", id, err, want)
		}
	}
}

// A host of any name can have an agent next to its server.
func TestAgentIDOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"vm-7.local": "vm-7.local", "bücher host": "b-cher-host", "": ""} {
		if got := protocol.AgentIDOf(text); got != want {
			t.Errorf("AgentIDOf(%q) = %q, want %q", text, got, want)
		}
	}
}

// Who may apply puts states right, too, and who may plan releases locks.
func TestAgentsOfEachKind(t *testing.T) {
	t.Parallel()
	for kind, want := range map[holdfast.RunKind]holdfast.RunKind{
		holdfast.RunPlan: holdfast.RunPlan, holdfast.RunApply: holdfast.RunApply, holdfast.RunDrift: holdfast.RunDrift,
		holdfast.RunDestroy: holdfast.RunDestroy, holdfast.RunState: holdfast.RunApply, holdfast.RunUnlock: holdfast.RunPlan,
	} {
		for _, bound := range holdfast.AgentKinds() {
			req := protocol.ClaimRequest{Bound: []holdfast.RunKind{bound}}
			if got := req.MayHave(holdfast.Run{Kind: kind}); got != (bound == want) {
				t.Errorf("an agent with a token for %s may have runs of kind %s: %t", bound, kind, got)
			}
		}
	}
}
