package recorded_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/recorded"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// stateWith is a state that holds a.x with an id.
func stateWith(id string) []byte {
	return fmt.Appendf(nil, `{"version": 4, "resources": [{"mode": "managed", "type": "a", "name": "x", "instances": [%s]}]}`, id)
}

// Of an engine that has ended by itself, what it was at is in the state it has saved, if
// that has what the engine has made, and not what there was before.
func TestMissing(t *testing.T) {
	t.Parallel()
	const one, two, deposed = `{"attributes": {"id": "1"}}`, `{"attributes": {"id": "2"}, "status": "tainted"}`, `{"deposed": "1a2b3c4d", "attributes": {"id": "1"}}`
	for name, c := range map[string]struct {
		before, after string
		actions       []string
		recorded      bool
	}{
		"created, and tainted":             {"", two, []string{"create"}, true},
		"its creation was given up":        {"", "", []string{"create"}, false},
		"updated":                          {one, one, []string{"update"}, true},
		"replaced":                         {one, two, []string{"delete", "create"}, true},
		"its replacement was given up":     {one, "", []string{"delete", "create"}, false},
		"the former one was put back":      {one, one, []string{"create", "delete"}, false},
		"of its replacement nothing is it": {one, deposed, []string{"create", "delete"}, false},
	} {
		document := plandoc.Document{Resources: []plandoc.Resource{{Address: "a.x", Actions: c.actions}}}
		before, err := plan.ContentsOf(stateWith(c.before))
		after, err2 := plan.ContentsOf(stateWith(c.after))
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		saved := recorded.Objects{Before: before.Objects, After: after.Objects}
		want := []string{"a.x"}
		if c.recorded {
			want = nil
		}
		if diff := gocmp.Diff(want, saved.Missing(document, []string{"a.x"})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := (recorded.Objects{}).Missing(plandoc.Document{}, []string{"a.x"}); len(got) != 1 {
		t.Errorf("of a state that nobody has read: %v", got)
	}
}

// What would be there twice is created again: with a replacement in either order, as the
// object that it destroys may be the one from before.
func TestCreatedAgain(t *testing.T) {
	t.Parallel()
	var document plandoc.Document
	for i, actions := range [][]string{{"create"}, {"create", "delete"}, {"delete", "create"}, {"update"}, {"delete"}} {
		document.Resources = append(document.Resources, plandoc.Resource{Address: fmt.Sprintf("a.x[%d]", i), Actions: actions})
	}
	again := recorded.CreatedAgain(document, protocol.AssignedResume{AnyMayExist: true}, strings.Clone)
	if diff := gocmp.Diff([]string{"a.x[0]", "a.x[1]", "a.x[2]"}, again); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// How the engine ended, and what it said, tell what an apply that failed may have created
// without its being in the state.
func TestUnrecorded(t *testing.T) {
	t.Parallel()
	const (
		gone  = "Error: Plugin did not respond\n\n  with a.x,\n  on main.tf line 1:\n\nThe plugin encountered an error, and failed to respond to the\nplugin.(*GRPCProvider).ApplyResourceChange call.\n"
		quota = "Error: quota exceeded\n\n  with a.y,\n  on main.tf line 5:\n"
	)
	for name, c := range map[string]struct {
		said   string
		exit   failure.ExitError
		status holdfast.RunStatus
		saved  string          // addresses in the state after it
		cause  holdfast.Reason // of the failure, if it is another
		want   []string
	}{
		"a provider reports errors":               {said: quota, exit: failure.ExitError{Code: 1}},
		"a provider died":                         {said: gone, exit: failure.ExitError{Code: 1}, want: []string{"a.x", "a.y"}},
		"one died, another reports":               {said: gone + quota, exit: failure.ExitError{Code: 1}, want: []string{"a.x"}},
		"one died when it had saved its object":   {said: gone + quota, exit: failure.ExitError{Code: 1}, saved: "x"},
		"the engine panicked":                     {said: "panic: runtime error: x", exit: failure.ExitError{Code: 11}, want: []string{"a.x", "a.y", "a.z"}},
		"its memory ran out":                      {said: "fatal error: out of memory", exit: failure.ExitError{Code: 2}, want: []string{"a.x", "a.y", "a.z"}},
		"it was killed at its limit":              {exit: failure.ExitError{Code: -1, Signal: syscall.SIGKILL, Memory: sandbox.Yes}, want: []string{"a.x", "a.y", "a.z"}},
		"it could not save the state":             {said: quota, exit: failure.ExitError{Code: 1}, cause: holdfast.CauseStateUnsaved, want: []string{"a.z"}},
		"it was killed, and what was done counts": {exit: failure.ExitError{Code: -1, Signal: syscall.SIGKILL}, status: holdfast.RunInterrupted, want: []string{"a.x", "a.y"}},
	} {
		progress := journal.NewProgress(nil)
		_, _ = io.WriteString(progress, "a.z: Creating...\na.z: Creation complete after 1s\na.x: Creating...\na.y: Creating...\n")
		saved := map[string]string{"a.z": "1"}
		if c.saved != "" {
			saved["a."+c.saved] = "2"
		}
		known := failure.OfEngine("apply", c.said, &c.exit)
		known.Exit = &c.exit
		known.LimitHit(&c.exit)
		known.Cause = cmp.Or(c.cause, known.Cause)
		end := recorded.End{
			Failure: known, Interrupted: c.status == holdfast.RunInterrupted,
			Begun: progress.Addresses(), Completed: progress.Completed(), Saved: recorded.Objects{After: saved},
		}
		if diff := gocmp.Diff(c.want, end.Unrecorded(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
