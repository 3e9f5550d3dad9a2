package e2e_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// The person of TestChaos knows nothing by heart: what they type is what the reason of a
// wait offers, or what the answer to that offers.

const (
	askAgain   = time.Second      // when a command that was refused is given again
	impatience = 20 * time.Second // when one that was accepted, and has changed nothing, is
)

// person is who ends the waits that do not end automatically.
type person struct {
	comments bool                 // they write on the pull request first; otherwise they use the command line
	said     map[string]remark    // by cluster, run and words
	given    map[string]time.Time // when a command line may be given again
	noted    map[string]bool      // waits that are counted already
	check    *waitCheck
}

// remark is a comment that commands.
type remark struct {
	id int64
	at time.Time
}

func newPerson(comments bool, wrong func(text string)) person {
	return person{
		comments: comments, said: make(map[string]remark), given: make(map[string]time.Time),
		noted: make(map[string]bool), check: newWaitCheck(wrong),
	}
}

// once reports whether something was not noted before.
func (p person) once(what ...any) bool {
	key := fmt.Sprint(what...)
	was := p.noted[key]
	p.noted[key] = true
	return !was
}

// help does what a person does about a cluster that is not as Git says, and says what is
// known of it. A wait that ends neither automatically nor by what is offered for it
// lasts until the patience of who waits ends, which fails the test.
func (c *chaos) help(pr *pull, name string, rec v1.Cluster) string {
	c.w.t.Helper()
	runs, last := c.w.runs(name), c.w.newestOnBranch(name)
	c.free(name, runs)
	if rec.Waiting != "" && c.person.once("waits", name, last.ID, rec.Waiting) {
		c.waits[rec.Waiting]++
	}
	if line := c.person.check.see(name, rec, runs, last); line != "" {
		c.leadOut(pr, name, rec.Waiting, last, line)
	}
	return fmt.Sprintf("%s, waits for %q (%s), for which %q is offered; last: %s %s %s; replies: %q; given: %v",
		rec.Phase, rec.Waiting, rec.WaitingDetail, rec.Waiting.Command(name), last.ID, last.Status, last.Reason, pr.replies(), c.person.given)
}

// leadOut gives the command line that the reason of a wait offers, as a comment where there
// is one for it.
func (c *chaos) leadOut(pr *pull, name string, reason holdfast.Reason, last v1.Run, line string) {
	c.w.t.Helper()
	if next := reason.Info().Next; len(next) > 0 {
		c.ask(pr, name, last, next[0], line)
	} else {
		c.give(name, last, line)
	}
}

// ask gives a command on the pull request. If that is refused, or nobody reacts, the
// command line follows: a code host whose clock was put back dates a comment before
// what it is about.
func (c *chaos) ask(pr *pull, name string, run v1.Run, verb holdfast.Verb, line string) {
	c.w.t.Helper()
	words := "/holdfast " + string(verb) + " " + name
	key := fmt.Sprint(name, run.ID, words)
	remark, said := c.person.said[key]
	reactions := c.w.fleet().hub.Reactions(remark.id)
	accepted := said && slices.Contains(reactions, string(holdfast.ReactionDone))
	if accepted {
		c.person.check.accept(name, line)
	}
	switch {
	case !c.person.comments:
		c.give(name, run, line)
	case !said && run.Status == holdfast.RunPlanned && run.PostedAt.IsZero(): // nobody has seen it yet
	case !said:
		c.commands[words[:strings.LastIndexByte(words, ' ')]]++
		c.w.t.Logf("%s is held by %s (%s): %s", name, run.ID, run.Reason, words)
		remark.id, remark.at = pr.say(dev, words), time.Now()
		c.person.said[key] = remark
	case accepted && time.Since(remark.at) < impatience:
	case slices.Contains(reactions, string(holdfast.ReactionRefused)), time.Since(remark.at) > impatience:
		c.give(name, run, line)
	}
}

// tooLate is what the command says that pushes a state while that is under way, or was done,
// and the one that releases a lock which the next run has taken since.
var tooLate = regexp.MustCompile(`pushes it already|has no state that could not be saved|changed in the meantime|, which is alive`)

// give runs a command line that is offered for a run, and returns what it prints. What is
// refused may offer another command, which is given next; otherwise it is given again.
func (c *chaos) give(name string, run v1.Run, line string) string {
	c.w.t.Helper()
	key, args := fmt.Sprint(run.ID, " ", run.Attempt, " ", line), strings.Fields(line)[1:]
	if time.Now().Before(c.person.given[key]) {
		return ""
	}
	c.commands[args[0]]++
	verb := slices.Contains([]string{"apply", "replan", "approve", "cancel"}, args[0])
	if verb {
		args = append(args, "-o", "json")
	}
	out, errs, code := c.w.cli(args...)
	c.w.t.Logf("%s after %s (%s): %d %s%s", line, run.ID, run.Reason, code, out, errs)
	switch {
	case code == 0:
		c.person.given[key] = time.Now().Add(impatience)
		c.person.check.accept(name, line)
		return out
	case code == 3, tooLate.MatchString(errs): // refused
		c.person.given[key] = time.Now().Add(askAgain)
	default:
		c.person.given[key] = time.Now().Add(askAgain)
		c.w.t.Errorf("%s, which is offered for %s: exit code %d: %s%s", line, run.ID, code, out, errs)
	}
	var refused v1.Command
	if !verb || json.Unmarshal([]byte(out), &refused) != nil {
		return out
	}
	if other := refused.Reason.Command(name); refused.Reason.Info().Effect == holdfast.Blocks && other != "" && other != line {
		return c.give(name, run, other)
	}
	return out
}

// free takes the locks from engines that were killed: those of somebody else's store end
// with nobody else. A person asks whose lock it is, makes sure that no engine is
// alive, and does what the answer says, once.
func (c *chaos) free(name string, runs []v1.Run) {
	c.w.t.Helper()
	for _, run := range runs {
		if run.Status == holdfast.RunRunning {
			return // it may be free soon
		}
		if run.Failure == nil || run.Failure.Cause != holdfast.CauseStateLocked {
			if run.Status.Done() && run.Status != holdfast.RunCanceled && run.Kind.Plans() {
				return // a lock that an earlier one met is free
			}
			continue
		}
		if len(c.w.engines()) > 0 || !c.person.once("lock", run.ID, run.Attempt) {
			return
		}
		said := c.give(name, run, run.Failure.Cause.Command(name))
		if way := release.FindStringSubmatch(said); way != nil {
			c.give(name, run, strings.TrimSpace(way[1]))
		}
		return
	}
}
