package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// permissionPatience is how long a command waits while the code host refuses to say who
// may command: a credential may be renewed, or it may be lacking.
const permissionPatience = 15 * time.Minute

// execute does what a command asks for, or refuses it with a reason; either way
// it is answered. An error means that it has to be tried again.
func (h *Handler) execute(ctx context.Context, c holdfast.Command) (holdfast.Command, error) {
	ctx = holdfast.WithOrigin(ctx, c.Origin)
	if other, err := h.forAnotherEntry(ctx, c); err != nil {
		return c, err
	} else if other != "" {
		// Nothing about it in the pull request, where that one answers.
		c.Status, c.Reply, c.DoneAt = holdfast.CommandRefused, "obeyed by repository "+other, h.opts.Now()
		if err := h.opts.Store.FinishCommand(ctx, c); err != nil {
			return c, fmt.Errorf("record command %s: %w", c.ID, err)
		}
		return c, nil
	}
	if quiet, err := h.unanswered(ctx, &c); err != nil || quiet {
		return c, err
	}
	if err := h.Publisher.React(ctx, c, holdfast.ReactionSeen); err != nil {
		return c, err
	}
	reply, err := h.carryOut(ctx, &c)
	if asksNobody(c) || errors.As(err, new(strange)) {
		h.strangers.count(c, h.opts.Now())
	}
	var refused refusal
	switch {
	case errors.As(err, &refused):
		c.Status, c.Reply, c.Reason = holdfast.CommandRefused, string(refused), reasonOf(err)
		if c.Trusted {
			c.Reply = inTerminal(c)
		}
	case err != nil:
		return c, fmt.Errorf("%s: %w", c.Verb, err)
	default:
		c.Status, c.Reply = holdfast.CommandDone, reply
	}
	c.DoneAt = h.opts.Now()
	if err := h.answer(ctx, c); err != nil {
		return c, err
	}
	if err := h.opts.Store.FinishCommand(ctx, c); err != nil {
		return c, fmt.Errorf("record command %s: %w", c.ID, err)
	}
	h.Records.Audit(ctx, c.Author, "command."+string(c.Verb), commandObject(c), strings.TrimSpace(string(c.Status)+" "+c.Reply))
	return c, nil
}

func commandObject(c holdfast.Command) string {
	if c.PullRequest.IsZero() {
		return strings.Join(c.Clusters, " ")
	}
	return c.PullRequest.String()
}

// refusal is why a command is not done.
type refusal string

func (r refusal) Error() string { return string(r) }

// reasoned is a refusal that has one of the reasons.
type reasoned struct {
	refusal
	reason holdfast.Reason
}

func (r reasoned) Unwrap() error { return r.refusal }

// refuseFor refuses for a reason, in its words.
func refuseFor(reason holdfast.Reason, detail string) error {
	return reasoned{refusal(reason.Refusal(detail)), reason}
}

// inTerminal is the reply to a command that did not come as a comment: what helps is
// named as it is written in a terminal.
func inTerminal(c holdfast.Command) string {
	next, cluster := c.Reason.Info().Next, ""
	if len(next) == 0 {
		return c.Reply
	}
	if len(c.Clusters) == 1 {
		cluster = c.Clusters[0]
	}
	return strings.ReplaceAll(c.Reply, "`/holdfast "+string(next[0])+"`", "`"+c.Reason.Command(cluster)+"`")
}

// reasonOf returns the reason of a refusal; empty if it has none.
func reasonOf(err error) holdfast.Reason {
	var r reasoned
	errors.As(err, &r)
	return r.reason
}

const upToDate = "it is up to date: nothing to apply"

// asksForGit reports whether a command of the API is about what Git says of clusters,
// and not about the plan of a run, which has a head.
func asksForGit(c holdfast.Command) bool {
	return c.CommentID == "" && (len(c.Shown) == 0 || c.ShownHead == "")
}

// errUpToDate refuses an apply in a comment; people who ask for one on the command line
// get what they want.
var errUpToDate error = reasoned{refusal(upToDate), holdfast.ReasonUpToDate}

// answer acknowledges a comment's command, with words where they are needed.
func (h *Handler) answer(ctx context.Context, c holdfast.Command) error {
	if c.CommentID == "" {
		return nil
	}
	reaction := holdfast.ReactionDone
	if c.Status == holdfast.CommandRefused {
		reaction = holdfast.ReactionRefused
	}
	if c.Reply != "" {
		if err := h.Publisher.Reply(ctx, c); err != nil {
			return err
		}
	}
	return h.Publisher.React(ctx, c, reaction)
}

// carryOut executes the command and returns what to report about it, if anything.
func (h *Handler) carryOut(ctx context.Context, c *holdfast.Command) (string, error) {
	if c.Barred != "" {
		return "", refusal(c.Barred)
	}
	if c.Verb == holdfast.VerbHelp {
		return "available commands", nil
	}
	if c.Verb == holdfast.VerbUnknown {
		return "", refusal("unknown command")
	}
	if err := h.permitted(ctx, *c); err != nil {
		return "", err
	}
	if err := h.stillSaid(ctx, *c); err != nil {
		return "", err
	}
	if !c.PullRequest.IsZero() && (c.Verb == holdfast.VerbPlan || c.Verb == holdfast.VerbApply) {
		if err := h.Publisher.Retry(ctx, c.PullRequest); err != nil {
			return "", err
		}
	}
	if c.All {
		return h.planAll(ctx, *c)
	}
	ofShown := c.Verb == holdfast.VerbApply || c.Verb == holdfast.VerbWaive
	if c.CommentID != "" && ofShown || !c.PullRequest.IsZero() && c.Verb == holdfast.VerbApprove {
		if err := h.stillShown(ctx, *c); err != nil {
			return "", err
		}
	}
	targets, err := h.targets(ctx, *c)
	if err != nil {
		return "", err
	}
	switch c.Verb {
	case holdfast.VerbPlan:
		return h.each(ctx, c, targets, h.planFor)
	case holdfast.VerbApply:
		return h.each(ctx, c, targets, h.applyFor)
	case holdfast.VerbApprove:
		return h.approve(ctx, c, targets)
	case holdfast.VerbWaive:
		return waiving{h}.waive(ctx, c, targets)
	case holdfast.VerbCancel:
		return h.each(ctx, c, targets, h.cancelFor)
	case holdfast.VerbUnlock:
		return h.each(ctx, c, targets, func(ctx context.Context, c holdfast.Command, t target) (string, error) {
			return h.unlockFor(ctx, c, t)
		})
	default:
		return "", refusal(fmt.Sprintf("%q is not a command", c.Verb))
	}
}
