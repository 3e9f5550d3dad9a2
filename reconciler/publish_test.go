package reconciler_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

func TestOneCommentWhateverHappens(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	if n := len(f.forge.ours()); n != 1 {
		t.Fatalf("%d comments after the plan", n)
	}
	f.push(1, map[string]string{"infra/prod/main.tf": module("three")})
	f.executeAll(good)
	f.merge(1, byMerge)
	f.executeAll(good)
	if n := len(f.forge.ours()); n != 1 {
		t.Errorf("%d comments in the end", n)
	}
	pr := f.forge.get(1)
	if got := f.forge.status(pr.Head, holdfast.ContextPlan); got != holdfast.StatusSuccess {
		t.Errorf("%s is %q", holdfast.ContextPlan, got)
	}
	if got := f.forge.status(pr.MergeCommit, holdfast.ContextApply); got != holdfast.StatusSuccess {
		t.Errorf("%s is %q", holdfast.ContextApply, got)
	}
}

func TestCallsDoNotGrowWithClusters(t *testing.T) {
	t.Parallel()
	calls := func(clusters int) map[string]int {
		files := twoClusters()
		change := map[string]string{}
		for i := range clusters {
			name := fmt.Sprintf("c-%d", i)
			files["clusters/"+name+".yaml"], files["infra/"+name+"/main.tf"] = document(name), module("one")
			change["infra/"+name+"/main.tf"] = module("two")
		}
		f := newFleet(t, files)
		f.adopt()
		f.open(1, change)
		f.post()
		for a := f.claim(); a.Run != ""; a = f.claim() {
			f.finish(a, planned(a))
			f.post() // as busily as can be
		}
		f.post()
		f.forge.mu.Lock()
		defer f.forge.mu.Unlock()
		return f.forge.calls
	}
	few, many := calls(2), calls(12)
	for call, n := range many {
		if n > few[call] {
			t.Errorf("%s is called %d times for 12 clusters, %d times for 2", call, n, few[call])
		}
	}
}

func TestProgressIsReported(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two"), "infra/preprod/main.tf": module("two")})
	f.post()
	head := f.forge.get(1).Head
	if got := f.forge.status(head, holdfast.ContextPlan); got != holdfast.StatusPending {
		t.Errorf("the status is %q while it is planned", got)
	}
	if n := len(f.forge.ours()); n != 0 {
		t.Errorf("%d comments before there is anything to tell", n)
	}
	f.clock.Advance(time.Minute)
	f.execute(planned)
	f.post()
	if n := len(f.forge.ours()); n != 1 {
		t.Errorf("%d comments after a minute", n)
	}
	f.executeAll(good)
	if got := f.forge.status(head, holdfast.ContextPlan); got != holdfast.StatusSuccess {
		t.Errorf("the status is %q in the end", got)
	}
}

func TestStatusesEnd(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do   func(*fleet)
		want holdfast.StatusState
	}{
		"planned":      {func(f *fleet) { f.executeAll(good) }, holdfast.StatusSuccess},
		"failed":       {func(f *fleet) { f.executeAll(failing) }, holdfast.StatusFailure},
		"canceled":     {func(f *fleet) { f.command(1, "alice", "/holdfast cancel") }, holdfast.StatusFailure},
		"closed":       {func(f *fleet) { f.change(1, func(pr *holdfast.PullRequest) { pr.State = holdfast.PullRequestClosed }) }, holdfast.StatusError},
		"not affected": {func(f *fleet) { f.push(1, map[string]string{"infra/prod/main.tf": module("one")}) }, holdfast.StatusSuccess},
		"conflict": {func(f *fleet) {
			f.repo.Commit(master, "meanwhile", map[string]string{"infra/prod/main.tf": module("three")})
			f.look()
		}, holdfast.StatusFailure},
		"faulty": {func(f *fleet) { f.push(1, map[string]string{"clusters/prod.yaml": "kind: ["}) }, holdfast.StatusFailure},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.post()
			tt.do(f)
			f.post()
			if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != tt.want {
				t.Errorf("the status is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDirectPushHasAStatus(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	pushed := holdfast.Revision(f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("two")}))
	f.look()
	f.executeAll(good)
	if got := f.forge.status(pushed, holdfast.ContextApply); got != holdfast.StatusPending {
		t.Errorf("the status of what waits is %q", got)
	}
	f.api("root", holdfast.VerbApply, "prod")
	f.executeAll(good)
	if got := f.forge.status(pushed, holdfast.ContextApply); got != holdfast.StatusSuccess {
		t.Errorf("the status of what was applied is %q", got)
	}
}

func TestDirectRemovalHasAStatus(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	pushed := holdfast.Revision(f.repo.Commit(master, "push", map[string]string{"clusters/prod.yaml": gitserver.Delete}))
	f.look()
	f.executeAll(withEngine)
	if got := f.forge.status(pushed, holdfast.ContextApply); got != holdfast.StatusPending {
		t.Errorf("the status of what waits is %q", got)
	}
	f.api("root", holdfast.VerbApply, "prod")
	f.executeAll(withEngine)
	if rec := f.cluster("prod"); rec.Phase != holdfast.PhaseDeleted {
		t.Fatalf("the cluster is %s", rec.Phase)
	}
	if got := f.forge.status(pushed, holdfast.ContextApply); got != holdfast.StatusSuccess {
		t.Errorf("the status of what was destroyed is %q", got)
	}
}

func TestNothingIsPostedTwice(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.forge.lose = 1 // it is there, but we do not hear of it
	f.executeAll(good)
	f.clock.Advance(time.Minute)
	f.post()
	if n := len(f.forge.ours()); n != 1 {
		t.Errorf("%d comments after an answer was lost", n)
	}
	if run := f.newest("prod"); run.PostedAt.IsZero() {
		t.Error("the plan does not count as posted")
	}
	calls := f.forge.count("PutComment") + f.forge.count("SetStatus")
	f.lookAt(1)
	f.look()
	f.r.Resume(t.Context())
	f.settle()
	f.post()
	if again := f.forge.count("PutComment") + f.forge.count("SetStatus"); again != calls {
		t.Errorf("%d calls for what is there already", again-calls)
	}
}

func TestPostWaitsForTheRateLimit(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	retryAt := f.clock.Now().Add(20 * time.Minute)
	f.forge.failWith("SetStatus", &holdfast.RateLimitError{RetryAt: retryAt, Err: holdfast.ErrForbidden})
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.post()
	before := f.forge.count("SetStatus")
	f.clock.Advance(15 * time.Minute)
	f.post()
	if f.forge.count("SetStatus") != before {
		t.Error("it was tried before the limit has ended")
	}
	f.forge.failWith("SetStatus", nil)
	f.clock.Advance(10 * time.Minute)
	f.post()
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != holdfast.StatusPending {
		t.Errorf("after the limit the status is %q", got)
	}
}

// A post that was deferred for long is not given up by the first answer that it gets.
func TestPostOutlastsRateLimits(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	limit := func() {
		f.forge.failWith("SetStatus", &holdfast.RateLimitError{RetryAt: f.clock.Now().Add(time.Minute), Err: errors.New("other writes come first")})
	}
	limit()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	for range 12 {
		limit()
		f.post()
		f.clock.Advance(time.Minute)
	}
	f.forge.failWith("SetStatus", holdfast.ErrNotFound)
	f.post()
	f.forge.failWith("SetStatus", nil)
	f.clock.Advance(time.Minute)
	f.post()
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != holdfast.StatusPending {
		t.Errorf("after the limits, and one answer that it is not found, the status is %q", got)
	}
}

func TestPostGivesUpOnWhatIsGone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.forge.failWith("SetStatus", holdfast.ErrNotFound)
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	tries := func() int {
		for range 40 {
			f.post()
			f.clock.Advance(10 * time.Minute)
		}
		return f.forge.count("SetStatus")
	}
	first := tries()
	if first < 2 {
		t.Errorf("it was tried %d times only", first)
	}
	if again := tries(); again != first {
		t.Errorf("it is tried for ever: %d, then %d times", first, again)
	}
}

func TestPoll(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.must(f.r.PollOnce(t.Context(), infra))
	f.settle()
	f.post()

	// Nothing new: only the branch is looked at.
	f.must(f.r.PollOnce(t.Context(), infra))
	if n := f.r.Sources(); n != 1 {
		t.Errorf("%d looks are asked for when nothing has happened", n)
	}
	f.settle()

	// An approving review, which only the time of the last change tells of.
	pr := f.forge.get(1)
	pr.Approved = true
	f.forge.set(pr)
	f.must(f.r.PollOnce(t.Context(), infra))
	f.settle()
	if !f.pullRequest(1).Approved {
		t.Error("the review was not noticed")
	}

	// Commands whose deliveries were lost, an edited comment, and a bot's.
	f.forge.says(1, "alice", "/holdfast plan")
	edited := f.forge.says(1, "alice", "hello")
	f.forge.mu.Lock()
	for i := range f.forge.comments {
		if c := &f.forge.comments[i]; c.ID == edited.ID {
			c.Body, c.UpdatedAt = "/holdfast cancel\n/holdfast unlock", f.clock.Now()
		}
	}
	bot := holdfast.Comment{ID: "bot", PullRequest: edited.PullRequest, Author: "bot", Bot: true, Body: "/holdfast apply", UpdatedAt: f.clock.Now()}
	f.forge.comments = append(f.forge.comments, bot)
	f.forge.mu.Unlock()
	for range 2 {
		f.must(f.r.PollOnce(t.Context(), infra))
	}
	stored, err := f.store.Commands(t.Context(), holdfast.CommandReceived)
	f.must(err)
	var got []string
	for _, c := range stored {
		got = append(got, string(c.Verb)+" "+c.Barred)
	}
	if fmt.Sprintf("%q", got) != `["plan " "cancel the comment was edited"]` {
		t.Errorf("commands %q, want the plan, and the first one of the edited comment, once, to be refused", got)
	}
	f.command(1, "alice", "/holdfast help")
	if all := fmt.Sprint(f.forge.ours()); strings.Count(all, "the comment was edited") != 1 {
		t.Errorf("the refusal is not there once:\n%s", all)
	}
}

// Without deliveries a comment that somebody has deleted in a quiet pull request is missed
// within a few polls, none of which asks for the comments of all that are open.
func TestPollMissesADeletedComment(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	const open = 12
	for n := 1; n <= open; n++ {
		f.open(n, map[string]string{"infra/prod/main.tf": module(fmt.Sprint("text-", n))})
	}
	f.executeAll(good)
	poll := func() (asked int) {
		before := f.forge.count("Comment")
		f.must(f.r.PollOnce(t.Context(), infra))
		asked = f.forge.count("Comment") - before
		f.settle()
		f.post()
		return asked
	}
	poll()
	f.forge.delete(open)
	for range 3 {
		if asked := poll(); asked == 0 || asked > open/2 {
			t.Errorf("a poll asks for %d comments with %d open pull requests", asked, open)
		}
	}
	if f.forge.comment(open) == "" {
		t.Error("after three polls the comment is not written again")
	}
}

// A comment that cannot be read keeps no other one from being missed, poll after poll.
func TestPollMissesADeletedCommentNextToAnUnreadableOne(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	for n := 1; n <= 2; n++ {
		f.open(n, map[string]string{"infra/prod/main.tf": module(fmt.Sprint("text-", n))})
	}
	f.executeAll(good)
	for _, c := range f.forge.ours() {
		if c.PullRequest.Number == 1 {
			f.forge.failWith("Comment "+c.ID, errors.New("the code host answered 500"))
		}
	}
	f.forge.delete(2)
	for range 3 {
		f.must(f.r.PollOnce(t.Context(), infra))
		f.settle()
		f.post()
	}
	if f.forge.comment(2) == "" {
		t.Error("after three polls the comment is not written again")
	}
}

// A list of comments that is cut is read to its end within one look, and what bots
// write is passed over once.
func TestPollReadsListsThatAreCut(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.must(f.r.PollOnce(t.Context(), infra))
	f.forge.mu.Lock()
	at := f.clock.Now()
	for i := range 25 {
		at = at.Add(time.Minute)
		f.forge.comments = append(f.forge.comments, holdfast.Comment{
			ID: fmt.Sprint("bot-", i), PullRequest: holdfast.PullRequestRef{Repo: infra, Number: 1}, Author: "ci", Bot: true, CreatedAt: at, UpdatedAt: at,
		})
	}
	at = at.Add(time.Minute)
	f.forge.comments = append(f.forge.comments, holdfast.Comment{
		ID: "26", PullRequest: holdfast.PullRequestRef{Repo: infra, Number: 1}, Author: "alice", Body: "/holdfast plan", CreatedAt: at, UpdatedAt: at,
	})
	f.forge.atMost = 10
	f.forge.mu.Unlock()
	f.must(f.r.PollOnce(t.Context(), infra))
	stored, err := f.store.Commands(t.Context(), holdfast.CommandReceived)
	f.must(err)
	if len(stored) != 1 {
		t.Errorf("%d commands were found behind two full lists, want 1", len(stored))
	}
	source, err := f.store.RepositoryState(t.Context(), infra)
	f.must(err)
	if !source.CommentsSeen.Equal(at) {
		t.Errorf("seen until %s, want %s", source.CommentsSeen, at)
	}

	at = at.Add(time.Hour)
	f.forge.mu.Lock()
	f.forge.comments = append(f.forge.comments, holdfast.Comment{
		ID: "27", PullRequest: holdfast.PullRequestRef{Repo: infra, Number: 1}, Author: "ci", Bot: true, CreatedAt: at, UpdatedAt: at,
	})
	f.forge.mu.Unlock()
	f.must(f.r.PollOnce(t.Context(), infra))
	source, err = f.store.RepositoryState(t.Context(), infra)
	f.must(err)
	if !source.CommentsSeen.Equal(at) {
		t.Errorf("after a bot's comment: seen until %s, want %s", source.CommentsSeen, at)
	}
}

func TestPollKeepsWhereItIs(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.must(f.r.PollOnce(t.Context(), infra))
	f.look() // writes the same record
	source, err := f.store.RepositoryState(t.Context(), infra)
	f.must(err)
	if source.CommentsSeen.IsZero() || source.PolledAt.IsZero() || source.Head == "" {
		t.Errorf("the record is %+v", source)
	}
}

func TestStartAsksForEverything(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.repo.Commit(master, "while away", map[string]string{"infra/preprod/main.tf": module("two")})
	f.mergeUnnoticed(1, byMerge)
	f.restart()
	if missing := f.r.Ready(); len(missing) != 1 {
		t.Errorf("it is ready without %v", missing)
	}
	f.must(f.r.PollOnce(t.Context(), infra))
	f.r.Resume(t.Context())
	f.settle()
	if got := f.newest("prod"); got.Kind != holdfast.RunApply {
		t.Errorf("prod: the newest run is %s %s (%s)", got.Kind, got.Status, got.Reason)
	}
	if got := f.newest("preprod"); got.Reason != holdfast.ReasonUnreviewed {
		t.Errorf("preprod: the newest run is %s %s (%s)", got.Kind, got.Status, got.Reason)
	}
	if missing := f.r.Ready(); len(missing) > 0 {
		t.Errorf("it is not ready: %v", missing)
	}
}

func TestStartLeavesTheClustersOfOthersAlone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	_, err := f.store.SaveCluster(t.Context(), holdfast.ClusterRecord{
		Name: "old", Owner: "no-longer-watched", Desired: holdfast.Desired{Revision: "b", SourceDigest: newDigest},
	})
	f.must(err)
	f.r.Resume(t.Context())
	f.settle() // would be an error: its repository cannot be read
	f.expectRuns("old")
}

// TestWhatCannotBeShownIsNotReviewed: a plan that destroys more than fits a comment
// makes the status an error, and is not applied by the merge.
func TestWhatCannotBeShownIsNotReviewed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	a := f.claim()
	plan := holdfast.Plan{Counts: holdfast.Counts{Delete: 5000}}
	for i := range 5000 {
		plan.Changes = append(plan.Changes, holdfast.ResourceChange{
			Address: fmt.Sprintf("aws_instance.node-%d-of-many", i), Type: "aws_instance", Action: holdfast.ActionDelete,
		})
	}
	raw, err := json.Marshal(plan)
	f.must(err)
	f.must(f.store.PutArtefact(t.Context(), a.AttemptRef, protocol.ArtefactPlan, bytes.NewReader(raw)))
	f.finish(a, planned(a))
	f.post()
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != holdfast.StatusError {
		t.Errorf("%s is %q", holdfast.ContextPlan, got)
	}
	f.merge(1, byMerge)
	f.executeAll(planned)
	f.expectRuns("prod", "plan no_changes", "plan planned", "plan planned")
	if got := f.cluster("prod").Waiting; got != holdfast.ReasonUnreviewed {
		t.Errorf("prod waits with %q, want %s", got, holdfast.ReasonUnreviewed)
	}
}
