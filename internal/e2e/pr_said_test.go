package e2e_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// Everybody with write access can edit everybody's comments, and GitHub goes on
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

// Who polls is not told who edited a comment.
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
	pr.untilReply("Refused", "the code host does not say by whom")
}
