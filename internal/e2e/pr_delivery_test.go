package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Webhooks get lost. Polling finds what they would have told: a pull request, a
// command, a merge.
func TestLostWebhooksCostTimeOnly(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t, nil)
	fleet := w.addRepo("acme/fleet", settings{"poll": "300ms"})
	w.start()
	fleet.hub.Drop(1000)

	pr := fleet.open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("1 to create")
	pr.push(cluster("alpha", "nodes: 2"))
	pr.untilPlanned("2 to create")
	help := pr.say(dev, "/holdfast help")
	pr.untilReacted(help, holdfast.ReactionDone)
	pr.untilReply("/holdfast approve")
	pr.merge()
	pr.untilApplied("2 created")
	for _, d := range fleet.hub.Deliveries() {
		if !d.Dropped {
			t.Errorf("a delivery of %s has arrived", d.Event)
		}
	}
}

// Deliveries come twice. Nothing is done, or said, twice.
func TestDoubledDeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	fleet := w.fleet()

	pr := fleet.open(cluster("alpha", "nodes: 1"))
	fleet.hub.Redeliver("pull_request")
	pr.untilPlanned("1 to create")
	fleet.hub.Redeliver("pull_request")

	command := pr.say(dev, "/holdfast plan")
	fleet.hub.Redeliver("issue_comment")
	pr.untilReacted(command, holdfast.ReactionDone)
	fleet.hub.Redeliver("issue_comment")
	w.untilIdle()
	if n := w.countCalls("plan alpha"); n != 2 {
		t.Errorf("the engine has planned %d times, want twice: for the pull request, and as asked", n)
	}

	pr.untilPlanned("1 to create")
	pr.merge()
	fleet.hub.Redeliver("pull_request")
	fleet.hub.Redeliver("push")
	pr.untilApplied("1 created")
	fleet.hub.Redeliver("push")
	fleet.hub.Redeliver("issue_comment") // the old plan command, after the merge
	w.untilIdle()
	if n := w.countCalls("apply alpha"); n != 1 {
		t.Errorf("the engine has applied %d times, want once", n)
	}
	if n := len(w.runs("alpha")); n != 3 {
		t.Errorf("alpha has %d runs, want 3", n)
	}
	pr.comment() // ends the test if there are two
	for _, d := range fleet.hub.Deliveries() {
		if d.Status/100 != 2 {
			t.Errorf("a delivery of %s was answered with %d", d.Event, d.Status)
		}
	}
}

// Who commands needs to be allowed to write, and every command is answered.
func TestCommandsAreAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickToCancel)
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("1 to create")
	plans := w.countCalls("plan alpha")

	for _, c := range []struct{ login, body, says string }{
		{stranger, "/holdfast plan", "needs write permission"},
		{"nobody-knows", "/holdfast apply", "needs write permission"},
		{dev, "/holdfast plna", "Did you mean `/holdfast plan`?"},
		{dev, "/holdfast plan -c omega", "does not change cluster"},
		{dev, "/holdfast cancel", "nothing is queued or running"},
		{dev, "/holdfast unlock", "nobody holds the lock"},
	} {
		before := len(pr.replies())
		id := pr.say(c.login, c.body)
		pr.untilReacted(id, holdfast.ReactionRefused)
		w.until(c.body+" is answered once", func() (bool, string) {
			return len(pr.replies()) == before+1, "no answer"
		})
		pr.untilReply(c.says)
	}
	pr.say(dev, "What would `/holdfast plan` do?\n\n> /holdfast plan\n")
	help := pr.say(dev, "/holdfast help")
	pr.untilReacted(help, holdfast.ReactionDone)
	w.untilIdle()
	if n := w.countCalls("plan alpha"); n != plans {
		t.Errorf("the engine has planned %d times more, want never", n-plans)
	}

	w.hold("plan", "alpha")
	pr.say(dev, "Once more, please.\n\n/holdfast plan")
	w.untilHeld("plan", "alpha")
	cancel := pr.say(dev, "/holdfast cancel")
	pr.untilReacted(cancel, holdfast.ReactionDone)
	w.fleet().untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure, "Canceled")
	w.release("plan", "alpha")
}

// The number of calls to GitHub does not grow with a pull request's clusters.
func TestCallsDoNotGrowWithClusters(t *testing.T) {
	t.Parallel()
	var took time.Duration
	count := func(names ...string) int {
		began := time.Now()
		defer func() { took = time.Since(began) }()
		w := newWorld(t, nil)
		w.start()
		var all []files
		for _, name := range names {
			all = append(all, cluster(name, "nodes: 1"))
		}
		w.hub.ResetCalls()
		pr := w.fleet().open(join(all...))
		pr.untilPlanned("to create")
		pr.merge()
		pr.untilApplied("created")
		pr.untilComment("and applied")
		t.Logf("%d clusters: %v", len(names), w.hub.Calls())
		return w.hub.CallCount()
	}
	one := count("a0")
	ten := count("b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9")
	// A plan or an apply that lasts longer is worth a word of progress, each ten seconds.
	if progress := 2 + 2*int(took/(10*time.Second)); ten > one+progress {
		t.Errorf("%d calls for ten clusters in %s, %d for one", ten, took, one)
	}
}

// A delivery that is not GitHub's is refused, and does nothing.
func TestForgedDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	w.fleet().hub.SetWebhook(w.hooks+"/webhooks/github", "a guess")
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	deliveries := w.fleet().hub.Deliveries()
	if last := deliveries[len(deliveries)-1]; last.Status != http.StatusUnauthorized {
		t.Errorf("a forged delivery was answered with %d, want 401", last.Status)
	}
	w.fleet().hub.SetWebhook(w.hooks+"/webhooks/github", webhookSecret)
	w.fleet().hub.Redeliver("pull_request")
	pr.untilPlanned("1 to create")
}

// A repository that was renamed is watched as before: GitHub redirects calls and
// delivers with the new name, and the log says what to change.
func TestRenamedRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("1 to create")
	w.fleet().hub.Rename("acme/renamed")
	pr.push(cluster("alpha", "nodes: 2"))
	pr.untilPlanned("2 to create")
	pr.merge()
	pr.untilApplied("2 created")
	w.until("the log says that the repository was renamed", func() (bool, string) {
		log := w.log.all()
		return strings.Contains(log, "repository was renamed") && strings.Contains(log, "acme/renamed"), log
	})
}

// A plan comment that somebody deletes comes back.
func TestDeletedCommentComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("1 to create")
	before := pr.comment()
	for _, c := range pr.r.hub.Comments(pr.number) {
		pr.r.hub.DeleteComment(c.ID, dev)
	}
	pr.untilComment("1 to create", "terraform_data.node[0]")
	if now := pr.comment(); now != before {
		t.Errorf("it says another thing than before:\n%s", now)
	}
	pr.push(cluster("alpha", "nodes: 2"))
	pr.untilPlanned("2 to create")
}
