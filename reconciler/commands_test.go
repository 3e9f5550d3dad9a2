package reconciler_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
)

func TestCommands(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before func(*fleet)
		author string
		body   string
		status holdfast.CommandStatus
		reply  string // a part of it
	}{
		"help":                      {nil, "eve", "/holdfast help", holdfast.CommandDone, "commands"},
		"unknown":                   {nil, "alice", "/holdfast unknown", holdfast.CommandRefused, "unknown command"},
		"somebody who may not":      {nil, "eve", "/holdfast plan", holdfast.CommandRefused, "write permission"},
		"a stranger":                {nil, "mallory", "/holdfast plan", holdfast.CommandRefused, "write permission"},
		"plan":                      {nil, "alice", "/holdfast plan", holdfast.CommandDone, ""},
		"plan one":                  {nil, "alice", "/holdfast plan prod", holdfast.CommandDone, ""},
		"plan another":              {nil, "alice", "/holdfast plan preprod", holdfast.CommandRefused, "does not change cluster"},
		"apply before the merge":    {nil, "alice", "/holdfast apply", holdfast.CommandRefused, "not merged"},
		"cancel nothing":            {nil, "alice", "/holdfast cancel", holdfast.CommandRefused, "nothing is queued or running"},
		"unlock nothing":            {nil, "alice", "/holdfast unlock", holdfast.CommandRefused, "nobody holds"},
		"approve what moved on":     {func(f *fleet) { f.pushUnnoticed() }, "alice", "/holdfast approve", holdfast.CommandRefused, "head has moved"},
		"apply, and the head moved": {func(f *fleet) { f.pushUnnoticed(); f.merge(1, byMerge) }, "alice", "/holdfast apply", holdfast.CommandRefused, "head has moved"},
		"cancel what runs": {func(f *fleet) {
			f.push(1, map[string]string{"infra/prod/main.tf": module("three")})
			f.claim()
		}, "alice", "/holdfast cancel", holdfast.CommandDone, ""},
		"unlock the living": {func(f *fleet) {
			f.push(1, map[string]string{"infra/prod/main.tf": module("three")})
			f.claim()
		}, "alice", "/holdfast unlock", holdfast.CommandRefused, "alive"},
		"unlock by force": {func(f *fleet) {
			f.push(1, map[string]string{"infra/prod/main.tf": module("three")})
			f.claim()
			f.forge.permission["alice"] = holdfast.PermissionAdmin
		}, "alice", "/holdfast unlock --force", holdfast.CommandDone, ""},
		"unlock by force, without being an admin": {func(f *fleet) {
			f.push(1, map[string]string{"infra/prod/main.tf": module("three")})
			f.claim()
		}, "alice", "/holdfast unlock --force", holdfast.CommandRefused, "admin permission"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := reviewed(t)
			if tt.before != nil {
				tt.before(f)
			}
			before := len(f.forge.ours())
			c := f.command(1, tt.author, tt.body)
			if c.Status != tt.status || !strings.Contains(c.Reply, tt.reply) {
				t.Errorf("it is %s, %q; want %s, %q", c.Status, c.Reply, tt.status, tt.reply)
			}
			want := map[holdfast.CommandStatus]holdfast.Reaction{
				holdfast.CommandDone: holdfast.ReactionDone, holdfast.CommandRefused: holdfast.ReactionRefused,
			}
			if got := f.forge.reactions[c.CommentID]; got != want[tt.status] {
				t.Errorf("the reaction is %q", got)
			}
			if answered := len(f.forge.ours()) > before; answered != (c.Reply != "") {
				t.Errorf("answered in words: %t, reply %q", answered, c.Reply)
			}
			// Once is enough.
			f.r.Obey(t.Context())
			f.post()
			if got, err := f.store.Command(t.Context(), c.ID); err != nil || !got.DoneAt.Equal(c.DoneAt) {
				t.Errorf("it was carried out again: %v", err)
			}
		})
	}
}

// TestOneAnswerToAComment states that nobody can make us write more comments
// than they do.
func TestOneAnswerToAComment(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	before := len(f.forge.ours())
	f.command(1, "mallory", "/holdfast help\n/holdfast dance\n/holdfast plan\n/holdfast apply")
	ours := f.forge.ours()
	if len(ours) != before+1 {
		t.Fatalf("four commands in one comment have %d answers", len(ours)-before)
	}
	for _, want := range []string{"/holdfast help", "/holdfast dance", "/holdfast plan", "/holdfast apply", "write permission"} {
		if !strings.Contains(ours[len(ours)-1].Body, want) {
			t.Errorf("the answer says nothing of %s:\n%s", want, ours[len(ours)-1].Body)
		}
	}
}

// pushUnnoticed moves the head of pull request 1 on, with the comment still
// showing the plan of the former one.
func (f *fleet) pushUnnoticed() {
	f.t.Helper()
	f.push(1, map[string]string{"infra/prod/main.tf": module("three")})
}

func TestCommandWaitsForTheCodeHost(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.forge.failWith("Permission", holdfast.ErrUnavailable)
	c := f.command(1, "alice", "/holdfast plan")
	if c.Status != holdfast.CommandReceived {
		t.Fatalf("it is %s though nobody knows whether alice may", c.Status)
	}
	f.forge.failWith("Permission", nil)
	f.r.Obey(t.Context())
	if got, err := f.store.Command(t.Context(), c.ID); err != nil || got.Status != holdfast.CommandDone {
		t.Errorf("it is %s, %v", got.Status, err)
	}
}

// TestACommandThatWasTakenBack: it has waited, its comment says something else by now, and
// no delivery has told of that.
func TestACommandThatWasTakenBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(f *fleet, at int) // the comment at a place
		says   string                 // the refusal; empty: it is done
	}{
		"as it was": {func(*fleet, int) {}, ""},
		"deleted":   {func(f *fleet, at int) { f.forge.comments[at].ID = "gone" }, "the comment was deleted"},
		"edited": {func(f *fleet, at int) {
			f.forge.comments[at].Body, f.forge.comments[at].UpdatedAt = "not yet", f.clock.Now()
		}, "the comment was edited"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := reviewed(t)
			if c := f.command(1, "alice", "/holdfast plan"); c.Status != holdfast.CommandDone || f.forge.count("Comment of alice") != 0 {
				t.Fatalf("carried out at once it is %s, after %d more calls", c.Status, f.forge.count("Comment of alice"))
			}
			f.executeAll(good)
			f.forge.failWith("Permission", holdfast.ErrUnavailable)
			c := f.command(1, "alice", "/holdfast plan")
			at := slices.IndexFunc(f.forge.comments, func(said holdfast.Comment) bool { return said.ID == c.CommentID })
			f.clock.Advance(time.Second)
			test.change(f, at)
			f.forge.failWith("Permission", nil)
			f.r.Obey(t.Context())
			got, err := f.store.Command(t.Context(), c.ID)
			if f.must(err); (got.Status == holdfast.CommandDone) != (test.says == "") || !strings.Contains(got.Reply, test.says) {
				t.Errorf("it is %s: %q", got.Status, got.Reply)
			}
		})
	}
}

// TestCommandsStayInOrder: what was said after a command that has to be tried again waits
// for that.
func TestCommandsStayInOrder(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.forge.failWith("Permission", holdfast.ErrUnavailable)
	first := f.command(1, "alice", "/holdfast plan")
	second := f.command(1, "alice", "/holdfast help") // which needs no permission
	if first.Status != holdfast.CommandReceived || second.Status != holdfast.CommandReceived {
		t.Errorf("they are %s and %s", first.Status, second.Status)
	}
	f.forge.failWith("Permission", nil)
	f.r.Obey(t.Context())
	for _, c := range []holdfast.Command{first, second} {
		if got, err := f.store.Command(t.Context(), c.ID); err != nil || got.Status != holdfast.CommandDone {
			t.Errorf("%s is %s, %v", c.Verb, got.Status, err)
		}
	}
}

// edits has somebody edit our comment on the pull request, and returns what it said.
func (f *fleet) edits(body string) (before string) {
	for i := range f.forge.comments {
		if c := &f.forge.comments[i]; c.Bot {
			before, c.Body, c.UpdatedAt = c.Body, body, f.clock.Now()
		}
	}
	return before
}

// TestCommandBelowAnEditedPlan: our comment was edited when a command was written, and
// had been written again by the time the command is carried out.
func TestCommandBelowAnEditedPlan(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.clock.Advance(time.Second)
	f.edits("nothing to see")
	c := commandsOf(f.forge.says(1, "alice", "/holdfast approve"))[0]
	_, err := f.store.StoreCommand(t.Context(), c)
	f.must(err)
	f.clock.Advance(time.Second)
	f.lookAt(1)
	f.post()
	if body := f.forge.ours()[0].Body; !strings.Contains(body, "to change") && !strings.Contains(body, "to create") {
		t.Fatalf("our comment was not written again: %s", body)
	}
	f.r.Obey(t.Context())
	got, err := f.store.Command(t.Context(), c.ID)
	if err != nil || got.Status != holdfast.CommandRefused || !strings.Contains(got.Reply, "edited or deleted the comment with the plans") {
		t.Errorf("it is %s %q, %v", got.Status, got.Reply, err)
	}
}

func TestApplyOfAPlanThatIsNotShown(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	f.execute(func(a protocol.Assignment) protocol.Result {
		result := planned(a)
		result.Reason = holdfast.ReasonPlanChanged
		return result
	})
	// The comment does not show it yet.
	comment := f.forge.says(1, "alice", "/holdfast apply")
	c := commandsOf(comment)[0]
	_, err := f.store.StoreCommand(t.Context(), c)
	f.must(err)
	f.post()
	f.r.Obey(t.Context())
	f.settle()
	if got, err := f.store.Command(t.Context(), c.ID); err != nil || got.Status != holdfast.CommandRefused {
		t.Errorf("it is %s: %s %v", got.Status, got.Reply, err)
	}
	if got := f.newest("prod"); got.Status != holdfast.RunPlanned {
		t.Errorf("the newest run is %s %s", got.Kind, got.Status)
	}
}

func TestCommandsOfTheAPI(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.look()
	f.executeAll(good)
	if c := f.api("root", holdfast.VerbPlan, "nowhere"); c.Status != holdfast.CommandRefused || !strings.Contains(c.Reply, `"nowhere"`) {
		t.Errorf("an unknown cluster: %s %s", c.Status, c.Reply)
	}
	if c := f.api("root", holdfast.VerbApply); c.Status != holdfast.CommandRefused {
		t.Errorf("no cluster: %s %s", c.Status, c.Reply)
	}
	stale := f.newest("prod")
	if c := f.api("root", holdfast.VerbPlan, "prod"); c.Status != holdfast.CommandDone {
		t.Errorf("a plan: %s %s", c.Status, c.Reply)
	}
	f.executeAll(good)
	if c := f.ofRun("root", holdfast.VerbApply, stale); c.Status != holdfast.CommandRefused {
		t.Errorf("an older plan: %s %s", c.Status, c.Reply)
	}
	f.suspend("prod", true, "root", "")
	if c := f.api("root", holdfast.VerbApply, "prod"); c.Status != holdfast.CommandRefused || !strings.Contains(c.Reply, "suspended") || c.Reason != holdfast.ReasonSuspended {
		t.Errorf("while suspended: %s %s (%s)", c.Status, c.Reply, c.Reason)
	}
	f.suspend("prod", false, "root", "")
	if c := f.ofRun("root", holdfast.VerbApply, f.newest("prod")); c.Status != holdfast.CommandDone {
		t.Errorf("the newest plan: %s %s", c.Status, c.Reply)
	}
	if got := f.newest("prod"); got.Kind != holdfast.RunApply || got.Shown == "" || got.Actor != "root" {
		t.Errorf("the newest run is %+v", got)
	}
	// Suspending takes back what is queued; letting go brings it again.
	f.suspend("preprod", true, "root", "")
	f.settle()
	if got := f.cluster("preprod").Waiting; got != holdfast.ReasonSuspended {
		t.Errorf("preprod waits for %q", got)
	}
}

func TestUnlock(t *testing.T) {
	t.Parallel()
	f := newFleet(t, foreignState())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.merge(1, byMerge)
	a := f.claim()
	holder, run, alive, err := f.r.Lock(t.Context(), "prod")
	if err != nil || run.ID != a.Run || !alive || !strings.HasPrefix(holder.Owner, a.Run) {
		t.Fatalf("the lock is held by %+v of %s, alive %t, %v", holder, run.ID, alive, err)
	}
	if err := f.r.Unlock(t.Context(), "prod", "root", false); !errors.Is(err, holdfast.ErrLocked) {
		t.Errorf("a living holder lost its lock: %v", err)
	}
	f.clock.Advance(time.Hour)
	f.must(f.r.Unlock(t.Context(), "prod", "root", false))
	f.settle()
	got, err := f.store.Run(t.Context(), a.Run)
	f.must(err)
	if got.Status != holdfast.RunInterrupted || !got.Begun {
		t.Errorf("the run is %s, begun %t", got.Status, got.Begun)
	}
	// Whether its engine still works is unknown: nothing continues automatically.
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonApplyFailed {
		t.Errorf("it waits for %q", rec.Waiting)
	}
	if err := f.r.Unlock(t.Context(), "prod", "root", true); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("nothing to unlock: %v", err)
	}
}

// The clock is set back, so that the last sign of life is of a time that has not come yet: the
// lock of an agent that is heard of stays, and that of a silent one can be taken away.
func TestUnlockAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, foreignState())
	f.adopt()
	a := f.applyOf(1, "two")
	f.must(f.r.Sweep(t.Context(), 0))
	f.clock.Advance(-24 * time.Hour)
	if err := f.r.Unlock(t.Context(), a.Cluster, "root", false); !errors.Is(err, holdfast.ErrLocked) {
		t.Errorf("a living holder lost its lock: %v", err)
	}
	f.must(f.r.Sweep(t.Context(), time.Hour))
	f.settle()
	if rec := f.cluster(a.Cluster); rec.Waiting != holdfast.ReasonAgentSilent {
		t.Fatalf("%s waits for %q", a.Cluster, rec.Waiting)
	}
	f.must(f.r.Unlock(t.Context(), a.Cluster, "root", false))
}

// TestRefusedForSome: who asks for several clusters is told which it was refused
// for. One that has nothing to cancel is as it was asked to be, if others had.
func TestRefusedForSome(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.adopt()
	f.suspend("prod", true, "root", "")
	c := f.api("alice", holdfast.VerbPlan, "preprod", "prod")
	if c.Status != holdfast.CommandDone || len(c.Refused) != 1 || c.Refused[0] != "prod" {
		t.Errorf("replan: %s %q, refused for %q; want it refused for prod alone", c.Status, c.Reply, c.Refused)
	}
	c = f.api("alice", holdfast.VerbCancel, "preprod", "prod")
	if c.Status != holdfast.CommandDone || len(c.Refused) != 0 || !strings.Contains(c.Reply, "`prod`: nothing is queued or running") {
		t.Errorf("cancel: %s %q, refused for %q; want it refused for none", c.Status, c.Reply, c.Refused)
	}
	c = f.api("alice", holdfast.VerbCancel, "preprod", "prod")
	if c.Status != holdfast.CommandRefused || len(c.Refused) != 2 {
		t.Errorf("cancel: %s %q, refused for %q; want it refused for both", c.Status, c.Reply, c.Refused)
	}
}

// A cancel in a merged pull request is about what follows from its merge.
func TestCancelInAMergedPullRequest(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	f.executeAll(good)
	f.open(2, map[string]string{"infra/prod/main.tf": module("three")})
	f.executeAll(good)
	f.post()
	f.merge(2, byMerge)
	a := f.claim()
	if c := f.command(1, "alice", "/holdfast cancel"); c.Status != holdfast.CommandRefused || !strings.Contains(c.Reply, "nothing is queued") {
		t.Errorf("cancel in the one that was applied: %s %q", c.Status, c.Reply)
	}
	if run, err := f.store.Run(t.Context(), a.Run); err != nil || run.Cancel != "" {
		t.Errorf("the apply of the other one is canceled: %q %v", run.Cancel, err)
	}
	if c := f.command(2, "alice", "/holdfast cancel"); c.Status != holdfast.CommandDone {
		t.Errorf("cancel in its own: %s %q", c.Status, c.Reply)
	}
}

// TestCanceledTwice: who cancels what is about to end is told that it was canceled already.
func TestCanceledTwice(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	a := f.claim()
	for _, want := range []string{"1 run canceled", "1 run canceled already, and is about to end"} {
		if c := f.api("alice", holdfast.VerbCancel, "prod"); c.Status != holdfast.CommandDone || c.Reply != "`prod`: "+want {
			t.Errorf("cancel: %s %q, want %q", c.Status, c.Reply, want)
		}
		if run := f.newest("prod"); run.ID != a.Run || !strings.HasPrefix(run.Detail, "canceled by alice at "+noon.Format(time.DateOnly)) {
			t.Errorf("as long as it runs it says %q", run.Detail)
		}
	}
	result := good(a)
	result.Status = holdfast.RunCanceled
	f.finish(a, result)
	if run, err := f.store.Run(t.Context(), a.Run); err != nil || run.Status != holdfast.RunCanceled || run.Reason != holdfast.ReasonCanceled || run.Detail != "" {
		t.Errorf("it has ended as %s (%s): %q, %v", run.Status, run.Reason, run.Detail, err)
	}
}

// What helps is named as it is written where the command came from.
func TestRefusalNamesTheCommandOfItsPlace(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.repo.Commit(master, "change", map[string]string{"infra/prod/main.tf": module("two")})
	f.look()
	f.executeAll(failing)
	if c := f.apply("prod"); c.Status != holdfast.CommandRefused || !strings.Contains(c.Reply, "`holdfast replan prod`") || strings.Contains(c.Reply, "/holdfast") {
		t.Errorf("in a terminal: %s: %s", c.Status, c.Reply)
	}
	f.open(1, map[string]string{"infra/prod/main.tf": module("three")})
	f.executeAll(failing)
	if c := f.command(1, "alice", "/holdfast apply prod"); c.Status != holdfast.CommandRefused || strings.Contains(c.Reply, "`holdfast ") {
		t.Errorf("in a comment: %s: %s", c.Status, c.Reply)
	}
}

// failingStore fails to list runs, and to record what came of commands, while it is told to.
type failingStore struct {
	reconciler.Store
	failing, forgetful bool
	of                 string // fails to list the runs of this cluster only
}

func (s *failingStore) Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error) {
	if s.failing && (s.of == "" || s.of == filter.Cluster) {
		return nil, holdfast.ErrUnavailable
	}
	return s.Store.Runs(ctx, filter)
}

func (s *failingStore) FinishCommand(ctx context.Context, c holdfast.Command) error {
	if s.forgetful {
		return holdfast.ErrUnavailable
	}
	return s.Store.FinishCommand(ctx, c)
}

// A command of the API that was answered with an error is not carried out later, whoever
// looks: whoever gave it was told that it failed.
func TestACommandOfTheAPIThatFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		forgetful bool
		before    func(f *fleet) // the next pass
	}{
		"at once":                 {},
		"that is not on record":   {forgetful: true},
		"of a server that died":   {forgetful: true, before: func(f *fleet) { f.restart(); f.clock.Advance(2 * time.Minute) }},
		"of one that just died":   {before: func(f *fleet) { f.restart() }},
		"long ago, by a live one": {forgetful: true, before: func(f *fleet) { f.clock.Advance(time.Hour) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			store := &failingStore{Store: f.store}
			f.restart(func(opts *reconciler.Options) { opts.Store = store })
			f.adopt()
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			run := f.newest("prod")
			store.failing, store.forgetful = true, test.forgetful
			c, err := f.r.Command(t.Context(), holdfast.Command{Author: "root", Trusted: true, Verb: holdfast.VerbCancel, PullRequest: onePR})
			if store.failing, store.forgetful = false, false; err == nil {
				t.Fatal("it did not fail")
			}
			if test.before != nil {
				test.before(f)
			}
			f.r.Obey(t.Context())
			f.settle()
			if got, err := f.store.Command(t.Context(), c.ID); err != nil || got.Status != holdfast.CommandRefused || !strings.Contains(got.Reply, "not retried") {
				t.Errorf("it is %s: %q, %v", got.Status, got.Reply, err)
			}
			f.expectRun(run.ID, holdfast.RunQueued, run.Reason)
		})
	}
}

// What was done, and is only not on record as done, is not an error. Nor is what was done in
// part: who gives that again would be refused for what was done.
func TestACommandOfTheAPIThatIsDone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	store := &failingStore{Store: f.store}
	f.restart(func(opts *reconciler.Options) { opts.Store = store })
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two"), "infra/preprod/main.tf": module("two")})
	cancel := func(cluster ...string) holdfast.Command {
		c, err := f.r.Command(t.Context(), holdfast.Command{
			Author: "root", Trusted: true, Verb: holdfast.VerbCancel, PullRequest: onePR, Clusters: cluster,
		})
		if store.failing, store.forgetful = false, false; err != nil || c.Status != holdfast.CommandDone {
			t.Fatalf("it is %s: %s, %v", c.Status, c.Reply, err)
		}
		return c
	}
	store.failing, store.of = true, "prod" // the second one
	if c := cancel(); !slices.Equal(c.Refused, []string{"prod"}) || !strings.Contains(c.Reply, "not retried") {
		t.Errorf("refused for %v: %s", c.Refused, c.Reply)
	}
	store.forgetful = true
	c := cancel("prod")
	f.r.Obey(t.Context())
	if got, err := f.store.Command(t.Context(), c.ID); err != nil || got.Status != holdfast.CommandDone {
		t.Errorf("on record it is %s: %q, %v", got.Status, got.Reply, err)
	}
}
