package reconciler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

func TestWhoMayApprove(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.forge.permission["bob"] = holdfast.PermissionAdmin // bob has opened the pull request
	f.forge.permission["ann"] = holdfast.PermissionWrite
	for _, test := range []struct{ author, text, want string }{
		{"bob", "/holdfast approve", "your own pull request"},
		{"BOB", "/holdfast approve", "needs write permission"},
		{"ann", "/holdfast approve", ""},
	} {
		f.clock.Advance(time.Second)
		f.forge.says(1, test.author, test.text)
		f.must(f.r.PollOnce(t.Context(), infra))
		f.r.Obey(t.Context())
		refused, err := f.store.Commands(t.Context(), holdfast.CommandRefused)
		f.must(err)
		var reply string
		for _, c := range refused {
			if c.Author == test.author && c.Text == test.text {
				reply = c.Reply
			}
		}
		if test.want == "" && reply != "" || !strings.Contains(reply, test.want) {
			t.Errorf("%s says %s: refused with %q, want %q", test.author, test.text, reply, test.want)
		}
	}
	if got := f.pullRequest(1).Approvals; len(got) != 1 || got[0].By != "ann" {
		t.Errorf("approvals are %+v, want that of ann", got)
	}
}

// A code host that will not say who may command is not a reason to be silent forever.
func TestCommandIsRefusedWhilePermissionsStayUnknown(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.forge.permission["ann"] = holdfast.PermissionWrite
	f.forge.failWith("Permission", holdfast.ErrForbidden)
	f.clock.Advance(time.Second)
	f.forge.says(1, "ann", "/holdfast plan")
	f.must(f.r.PollOnce(t.Context(), infra))
	for _, test := range []struct {
		after time.Duration
		want  holdfast.CommandStatus
	}{{time.Minute, holdfast.CommandReceived}, {time.Hour, holdfast.CommandRefused}} {
		f.clock.Advance(test.after)
		f.r.Obey(t.Context())
		commands, err := f.store.Commands(t.Context(), test.want)
		f.must(err)
		if len(commands) != 1 {
			t.Errorf("after %s the command is not %s", test.after, test.want)
		}
	}
}
