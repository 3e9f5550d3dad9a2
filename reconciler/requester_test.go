package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// Who has asked for a change through Holdfast does not approve it, before the merge or after.
func TestWhoAskedDoesNotApprove(t *testing.T) {
	t.Parallel()
	const anna, otto = "https://id.example.com 42", "https://id.example.com 43"
	for name, approve := range map[string]func(f *fleet, owner string) holdfast.Command{
		"the pull request": func(f *fleet, owner string) holdfast.Command {
			f.forge.says(1, "dave", "in the next second")
			return f.commands(holdfast.Command{
				Author: "somebody", Verb: holdfast.VerbApprove, PullRequest: onePR, CommandGiver: holdfast.CommandGiver{Owner: owner},
			})
		},
		"the plan that waits": func(f *fleet, owner string) holdfast.Command {
			names := []string{"prod"}
			return f.commands(holdfast.Command{
				Author: "somebody", Verb: holdfast.VerbApprove, Clusters: names, Shown: f.planned(holdfast.VerbApprove, names),
				CommandGiver: holdfast.CommandGiver{Owner: owner},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gated(t)
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(good)
			f.must(f.store.AddRequester(t.Context(), onePR, anna))
			if name == "the plan that waits" {
				f.merge(1, byMerge)
			}
			if c := approve(f, anna); c.Status != holdfast.CommandRefused || !strings.Contains(c.Reply, "you asked for #1 through Holdfast") {
				t.Errorf("who asked: %s (%s) %s", c.Status, c.Reason, c.Reply)
			}
			if pr, err := f.store.PullRequest(t.Context(), onePR); err != nil || len(pr.Approvals) > 0 {
				t.Errorf("approvals are %+v, %v", pr.Approvals, err)
			}
			if c := approveAs(f, name, "Bob"); c.Status != holdfast.CommandRefused || !strings.Contains(c.Reply, "your own pull request") {
				t.Errorf("its author: %s (%s) %s", c.Status, c.Reason, c.Reply)
			}
			if c := approve(f, otto); c.Status != holdfast.CommandDone {
				t.Errorf("somebody else: %s (%s) %s", c.Status, c.Reason, c.Reply)
			}
		})
	}
}

// approveAs approves through the API, with a token of that name.
func approveAs(f *fleet, what, name string) holdfast.Command {
	names := []string{"prod"}
	if what == "the plan that waits" {
		return f.commands(holdfast.Command{Author: name, Verb: holdfast.VerbApprove, Clusters: names, Shown: f.planned(holdfast.VerbApprove, names)})
	}
	return f.commands(holdfast.Command{Author: name, Verb: holdfast.VerbApprove, PullRequest: onePR})
}
