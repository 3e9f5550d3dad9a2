package commands

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/record"
)

// desk counts what is written for commands.
type desk struct {
	records
	Publisher
	replies, reactions, finished, audited int
}

func (d *desk) FinishCommand(context.Context, holdfast.Command) error { d.finished++; return nil }
func (d *desk) Reply(context.Context, holdfast.Command) error         { d.replies++; return nil }
func (d *desk) React(context.Context, holdfast.Command, holdfast.Reaction) error {
	d.reactions++
	return nil
}

// trail is where the desk's audit entries go.
type trail struct {
	record.Store
	desk *desk
}

func (t trail) Audit(context.Context, holdfast.AuditEntry) error { t.desk.audited++; return nil }

// Whoever may not command cannot have us write as often as they do; who may is heard
// however often.
func TestStrangersAreAnsweredAFewTimes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		permission holdfast.Permission
		command    holdfast.Command
		answers    int // of 20
	}{
		"a stranger":                {holdfast.PermissionRead, holdfast.Command{Verb: holdfast.VerbPlan}, 3},
		"a stranger who needs help": {holdfast.PermissionRead, holdfast.Command{Verb: holdfast.VerbHelp}, 3},
		"who mistypes":              {holdfast.PermissionNone, holdfast.Command{Verb: holdfast.VerbUnknown}, 3},
		"who edits":                 {holdfast.PermissionRead, holdfast.Command{Verb: holdfast.VerbPlan, Barred: "edited"}, 3},
		"a colleague":               {holdfast.PermissionWrite, holdfast.Command{Verb: holdfast.VerbHelp}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, now := &desk{}, noon
			h := handler(records{}, host{permission: test.permission, base: "main"})
			h.opts.Now = func() time.Time { return now }
			h.opts.Logger = slog.New(slog.DiscardHandler)
			h.opts.Store, h.Publisher = d, d
			h.Records = record.NewWriter(record.Options{Store: trail{desk: d}, Logger: h.opts.Logger, Now: h.opts.Now})
			execute := func(author string, times int) {
				for i := range times {
					c := test.command
					c.ID, c.CommentID, c.Author, c.PullRequest = fmt.Sprint("c", i), fmt.Sprint(i), author, ref
					if _, err := h.execute(t.Context(), c); err != nil {
						t.Fatal(err)
					}
				}
			}
			execute("mallory", 20)
			if d.replies != test.answers || d.reactions != 2*test.answers || d.finished != 20 || d.audited != 20 {
				t.Errorf("of 20 commands %d have replies, %d reactions, %d an end and %d a record, want %d replies, two reactions each, all the rest",
					d.replies, d.reactions, d.finished, d.audited, test.answers)
			}
			execute("ann", 1)
			now = now.Add(strangerWindow)
			execute("mallory", 1)
			if d.replies != test.answers+2 {
				t.Errorf("another author, and later the same one, have %d replies", d.replies-test.answers)
			}
		})
	}
}
