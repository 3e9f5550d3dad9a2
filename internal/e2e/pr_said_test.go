package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Everybody with write access can edit everybody's comments, and GitHub continues
// to name the author alone. What somebody else has written into a comment
// commands nothing, whoever the author is, and neither does what is quoted.
func TestWordsOfOthersCommandNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	r := w.fleet()
	r.hub.SetPermission("boss", "admin")
	pr := r.open(cluster("alpha", "nodes: 1", "apply: {requires: [approved]}"))
	pr.untilPlanned()

	words := pr.say(lead, "I have not looked at this yet.")
	r.hub.EditComment(words, dev, "/holdfast approve")
	pr.untilReacted(words, holdfast.ReactionRefused)
	pr.untilReply("Refused", "the comment was edited, by dev, who is not its author")

	words = pr.say("boss", "Hello.")
	r.hub.EditComment(words, dev, "/holdfast unlock --force")
	pr.untilReacted(words, holdfast.ReactionRefused)

	pr.say(lead, "They wrote `this:\n/holdfast approve\n`\n\n<blockquote>\n\n/holdfast approve\n\n</blockquote>")

	// One's own words one may put right.
	words = pr.say(lead, "Hello.")
	r.hub.EditComment(words, lead, "/holdfast help")
	pr.untilReacted(words, holdfast.ReactionDone)

	pr.merge()
	w.untilWaiting("alpha", "NotApproved")
	if n := w.countCalls("apply alpha"); n != 0 {
		t.Errorf("the engine has applied %d times, want never", n)
	}
}

// Of a comment that somebody else has edited, and whose delivery got lost, the author's own
// next edit commands nothing that was there before.
func TestEditKeepsTheWordsOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	r := w.fleet()
	pr := r.open(cluster("alpha", "nodes: 1", "apply: {requires: [approved]}"))
	pr.untilPlanned()

	words := pr.say(lead, "I have not looked at this yet.\n\n- [ ] read")
	r.hub.Drop(1)
	r.hub.EditComment(words, dev, "/holdfast approve\n\n- [ ] read")
	r.hub.EditComment(words, lead, "/holdfast approve\n\n- [x] read")
	pr.untilReacted(words, holdfast.ReactionRefused)
	pr.untilReply("Refused", "the comment had this command before it was edited")
}

// Who polls is not told who edited a comment, and neither by its stamps that it was edited
// within the second in which it was written.
func TestEditedCommentIsPolled(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t, nil)
	r := w.addRepo("acme/fleet", settings{"poll": "1s"})
	w.start()
	pr := r.open(cluster("alpha", "nodes: 1", "apply: {requires: [approved]}"))
	pr.untilPlanned()

	words := pr.say(lead, "I have not looked at this yet.")
	pr.laterSecond()
	r.hub.Drop(1)
	r.hub.EditComment(words, dev, "/holdfast approve")
	pr.untilReacted(words, holdfast.ReactionRefused)
	pr.untilReply("/holdfast approve", "Refused", "the code host does not say by whom")

	now := time.Now().Truncate(time.Second)
	w.hub.SetNow(func() time.Time { return now })
	r.hub.Drop(2)
	words = r.hub.Comment(pr.number, lead, "I will look at this tomorrow.")
	r.hub.EditComment(words, dev, "/holdfast unlock")
	pr.untilReacted(words, holdfast.ReactionRefused)
	pr.untilReply("/holdfast unlock", "Refused", "the code host does not say by whom")
}

// A comment that approves is not an answer to a review that requests changes, not even
// to one by somebody else; only a review is.
func TestApprovalAnswersNoRequestForChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	r := w.fleet()
	r.hub.SetPermission("boss", "admin")
	pr := r.open(cluster("alpha", "nodes: 1", "apply: {requires: [approved]}"))
	pr.untilPlanned()
	pr.untilComment("nobody has approved it")
	early := pr.say(lead, "/holdfast approve")
	pr.untilReacted(early, holdfast.ReactionDone)
	pr.untilComment("lead approved by command")
	pr.review("boss", "CHANGES_REQUESTED")
	late := pr.say(lead, "/holdfast approve")
	pr.untilReacted(late, holdfast.ReactionRefused)
	pr.untilReply("Refused", "boss requested changes")

	pr.merge()
	w.untilWaiting("alpha", "NotApproved")
	if got := w.record("alpha").WaitingDetail; got != "boss requested changes" {
		t.Errorf("it waits as %q", got)
	}
	pr.review("boss", "APPROVED")
	pr.untilApplied("1 created")
}

// An approval by comment lasts as long as its comment, and as its giver's
// permission.
func TestApprovalEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	r := w.fleet()
	r.hub.SetPermission("guest", "write")
	approved := func(name, by string, afterwards func(comment int64)) *pull {
		pr := r.open(cluster(name, "nodes: 1", "apply: {requires: [approved]}"))
		pr.untilPlanned()
		word := pr.say(by, "/holdfast approve")
		pr.untilReacted(word, holdfast.ReactionDone)
		afterwards(word)
		pr.merge()
		w.untilWaiting(name, "NotApproved")
		return pr
	}
	approved("deleted", lead, func(comment int64) { r.hub.DeleteComment(comment, lead) })
	approved("edited", lead, func(comment int64) {
		r.pulls[len(r.pulls)-1].laterSecond()
		r.hub.EditComment(comment, lead, "Not yet.")
	})
	pr := approved("gone", "guest", func(int64) { r.hub.SetPermission("guest", "read") })
	pr.untilComment("**NotApproved**")
	pr.untilReacted(pr.say(lead, "/holdfast approve"), holdfast.ReactionDone)
	pr.untilApplied("1 created")
	for name, why := range map[string]string{"deleted": "its comment was deleted", "edited": "its comment was edited"} {
		if got := w.record(name).WaitingDetail; !strings.Contains(got, why) {
			t.Errorf("%s waits as %q, want it to say %q", name, got, why)
		}
	}
}

// The stamps of GitHub have seconds. What was shown in the second in which
// somebody approved, they may not have seen.
func TestApprovalInTheSecondOfThePlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	now := time.Now().Truncate(time.Second)
	w.hub.SetNow(func() time.Time { return now })
	w.start()
	r := w.fleet()
	pr := r.open(cluster("alpha", "nodes: 1", "apply: {requires: [approved]}"))
	pr.untilPlanned()
	word := r.hub.Comment(pr.number, lead, "/holdfast approve")
	pr.untilReacted(word, holdfast.ReactionRefused)
	r.hub.Review(pr.number, lead, "APPROVED")
	pr.merge()
	w.untilWaiting("alpha", "NotApproved")
	if got, want := w.record("alpha").WaitingDetail, "lead approved before this plan was shown"; got != want {
		t.Errorf("it waits as %q, want %q", got, want)
	}
	w.hub.SetNow(func() time.Time { return now.Add(2 * time.Second) })
	r.hub.Review(pr.number, lead, "APPROVED")
	pr.untilApplied("1 created")
}

// A merge that passed over what protects the branch waits for somebody else's word.
func TestMergePastProtection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	r := w.fleet()
	pr := r.open(cluster("alpha", "nodes: 1", "apply: {requires: [mergeable]}"))
	pr.untilPlanned()
	r.hub.SetMergeable(pr.number, "blocked")
	r.hub.Review(pr.number, stranger, "COMMENTED")
	w.until("the forge's word is on record", func() (bool, string) {
		return w.pullRequest(pr.number).Blocked == "blocked", ""
	})
	pr.merge()
	w.untilWaiting("alpha", "NotMergeable")
	if got := w.record("alpha").WaitingDetail; !strings.Contains(got, `before the merge, the code host last reported it as not mergeable: "blocked"`) {
		t.Errorf("it waits as %q", got)
	}
	own := pr.say(dev, "/holdfast approve")
	pr.untilReacted(own, holdfast.ReactionRefused)
	pr.say(lead, "/holdfast approve")
	pr.untilApplied("1 created")
}

// Everybody with write access can edit our comment, too, and nobody sees that they
// did. It is written again, and what was said meanwhile was said of something else: an
// approval is refused, a merge waits.
func TestEditedPlansAreNotReviewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.useApp()
	w.start()
	r := w.fleet()
	harmless := func(pr *pull) {
		for _, c := range r.hub.Comments(pr.number) {
			if c.Author == w.robot && !strings.Contains(c.Body, "<!-- holdfast:reply:") {
				r.hub.EditComment(c.ID, dev, strings.ReplaceAll(pr.comment(), "to create", "to leave alone"))
			}
		}
	}

	pr := r.open(cluster("alpha", "nodes: 1", "apply: {requires: [approved]}"))
	pr.untilPlanned("1 to create")
	shown := pr.comment()
	pr.laterSecond()
	r.hub.Drop(1)
	harmless(pr)
	word := r.hub.Comment(pr.number, lead, "/holdfast approve") // at once, before a look notices the edit
	pr.untilReacted(word, holdfast.ReactionRefused)
	pr.untilReply("Refused", "edited or deleted the comment with the plans")
	w.until("the comment is as it was", func() (bool, string) {
		body := pr.comment()
		return body == shown, body
	})
	harmless(pr)
	w.until("the comment is as it was again", func() (bool, string) {
		body := pr.comment()
		return body == shown, body
	})
	pr.laterSecond()
	word = pr.say(lead, "/holdfast approve")
	pr.untilReacted(word, holdfast.ReactionDone)
	pr.merge()
	pr.untilApplied("1 created")

	pr = r.open(cluster("beta", "nodes: 1"))
	pr.untilPlanned("1 to create")
	r.hub.Drop(1)
	harmless(pr)
	pr.merge()
	w.untilWaiting("beta", holdfast.ReasonUnreviewed)
	if n := w.countCalls("apply beta"); n != 0 {
		t.Errorf("%d applies began", n)
	}
	pr.untilComment("**Unreviewed**", "1 to create")
}

// Nobody has read a plan whose comment was deleted, whatever the review says that was
// given before it was there again.
func TestDeletedPlansAreNotReviewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	r := w.fleet()
	pr := r.open(cluster("alpha", "nodes: 1", "apply: {requires: [approved]}"))
	pr.untilPlanned("1 to create")
	pr.untilReacted(pr.say(dev, "/holdfast plan"), holdfast.ReactionDone)
	w.until("the plan is made again", func() (bool, string) {
		n := w.countCalls("plan alpha")
		return n == 2, fmt.Sprint(n)
	})
	pr.untilPlanned("1 to create")
	pr.laterSecond()
	r.hub.Drop(1)
	for _, c := range r.hub.Comments(pr.number) {
		r.hub.DeleteComment(c.ID, dev)
	}
	r.hub.Review(pr.number, lead, "APPROVED")
	pr.untilComment("1 to create", "lead approved before this plan was shown")
	pr.laterSecond()
	r.hub.Review(pr.number, lead, "APPROVED")
	pr.merge()
	pr.untilApplied("1 created")
}
