package attempt

import (
	"cmp"
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
	"github.com/holdfast-dev/holdfast/runner/redact"
	"github.com/holdfast-dev/holdfast/runner/sandbox"

	"github.com/holdfast-dev/holdfast/runner/plan"
)

// stateWith is a state that holds a.x with an id.
func stateWith(id string) []byte {
	return fmt.Appendf(nil, `{"version": 4, "resources": [{"mode": "managed", "type": "a", "name": "x", "instances": [%s]}]}`, id)
}

// For an engine that has ended on its own, what it was at is in the state it has saved,
// if that has what the engine has made, and not what there was before.
func TestNotIn(t *testing.T) {
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
		tr := &attempt{stateView: &stateView{}}
		tr.document = plandoc.Document{Resources: []plandoc.Resource{{Address: "a.x", Actions: c.actions}}}
		tr.pulled = stateWith(c.before)
		after, err := plan.ContentsOf(stateWith(c.after))
		if err != nil {
			t.Fatal(err)
		}
		(&applying{tr}).noteSaved(nil, after)
		want := []string{"a.x"}
		if c.recorded {
			want = nil
		}
		if diff := gocmp.Diff(want, tr.notIn(tr.saved, []string{"a.x"})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := (&attempt{}).notIn(savedObjects{}, []string{"a.x"}); len(got) != 1 {
		t.Errorf("of a state that nobody has read: %v", got)
	}
}

// What would be there twice is created again: with a replacement in either order, as the
// object that it destroys may be the one from before.
func TestCreatedAgain(t *testing.T) {
	t.Parallel()
	tr := &attempt{a: protocol.Assignment{AssignedResume: protocol.AssignedResume{AnyMayExist: true}}, logbook: &logbook{redact: redact.New(nil)}}
	for i, actions := range [][]string{{"create"}, {"create", "delete"}, {"delete", "create"}, {"update"}, {"delete"}} {
		tr.document.Resources = append(tr.document.Resources, plandoc.Resource{Address: fmt.Sprintf("a.x[%d]", i), Actions: actions})
	}
	if diff := gocmp.Diff([]string{"a.x[0]", "a.x[1]", "a.x[2]"}, tr.createdAgain()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A state in a file is one only where that outlives the run.
func TestCheckLocalState(t *testing.T) {
	t.Parallel()
	o := Isolation{ReadOnly: []string{"/srv/read"}, Writable: []string{"/srv/states", "/srv/one.tfstate"}}
	for path, kept := range map[string]bool{
		`"/srv/states/a.tfstate"`: true, `"/srv/one.tfstate"`: true,
		`"/tmp/a.tfstate"`: false, `"/srv/states/../a.tfstate"`: false, `"/srv/read/a.tfstate"`: false, `"a.tfstate"`: false, `null`: false,
	} {
		err := checkLocalState(fmt.Appendf(nil, `{"backend": {"type": "local", "config": {"path": %s}}}`, path), o)
		if kept != (err == nil) || err != nil && !strings.Contains(err.Error(), strings.Trim(path, `"nul`)) {
			t.Errorf("a state in %s: %v", path, err)
		}
	}
	if err := checkLocalState([]byte(`{"backend": {"type": "s3", "config": {"bucket": "b"}}}`), o); err != nil {
		t.Error(err)
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
		status holdfast.RunStatus // default errored
		saved  string             // addresses in the state after it
		cause  holdfast.Reason    // of the failure, if it is another
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
		tr := &attempt{progress: journal.NewProgress(nil)}
		_, _ = io.WriteString(tr.progress, "a.z: Creating...\na.z: Creation complete after 1s\na.x: Creating...\na.y: Creating...\n")
		tr.result.Status = cmp.Or(c.status, holdfast.RunErrored)
		tr.saved.after = map[string]string{"a.z": "1"}
		if c.saved != "" {
			tr.saved.after["a."+c.saved] = "2"
		}
		known := failure.OfEngine("apply", c.said, &c.exit)
		known.Exit = &c.exit
		known.LimitHit(&c.exit)
		known.Cause = cmp.Or(c.cause, known.Cause)
		if diff := gocmp.Diff(c.want, tr.unrecorded(t.Context(), known, tr.progress.Addresses()), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
