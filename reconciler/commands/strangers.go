package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

const (
	// strangerAnswers is how many commands of one author in one pull request are
	// answered within strangerWindow before it is known that they may command.
	strangerAnswers = 3
	strangerWindow  = 10 * time.Minute
	// strangersKept bounds the authors that are counted.
	strangersKept = 4096
)

// strangers counts who was answered without being known to have a permission: whoever
// may comment could have us write as often as they do, and the code host takes few writes.
type strangers struct {
	mu       sync.Mutex
	answered map[stranger][]time.Time
}

type stranger struct {
	in     holdfast.PullRequestRef
	author string
}

// strange is a refusal of somebody who may not command.
type strange struct{ refusal }

func (s strange) Unwrap() error { return s.refusal }

// full reports whether an author has had the answers that strangers get.
func (s *strangers) full(c holdfast.Command, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.recent(c, now)) >= strangerAnswers
}

// count counts an answer.
func (s *strangers) count(c holdfast.Command, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered == nil || len(s.answered) >= strangersKept {
		s.answered = make(map[stranger][]time.Time) // the worst that can come of it is a few more answers
	}
	s.answered[stranger{c.PullRequest, c.Author}] = append(s.recent(c, now), now)
}

func (s *strangers) recent(c holdfast.Command, now time.Time) []time.Time {
	var recent []time.Time
	for _, at := range s.answered[stranger{c.PullRequest, c.Author}] {
		if now.Sub(at) < strangerWindow {
			recent = append(recent, at)
		}
	}
	return recent
}

// unanswered refuses a command on record alone, and reports that it did: its author has
// been answered often enough, and may not command.
func (h *Handler) unanswered(ctx context.Context, c *holdfast.Command) (bool, error) {
	if c.Trusted || c.CommentID == "" || !h.strangers.full(*c, h.opts.Now()) {
		return false, nil
	}
	var refused refusal
	switch err := h.permitted(ctx, *c); {
	case err == nil:
		return false, nil
	case !errors.As(err, &refused):
		return false, err
	}
	c.Status, c.Reply, c.DoneAt = holdfast.CommandRefused, string(refused), h.opts.Now()
	if err := h.opts.Store.FinishCommand(ctx, *c); err != nil {
		return false, fmt.Errorf("record command %s: %w", c.ID, err)
	}
	h.opts.Logger.InfoContext(ctx, "command was refused without an answer: its author may not command, and had several answers",
		"command", c.ID, "pull_request", c.PullRequest.String(), "author", c.Author)
	h.Records.Audit(ctx, c.Author, "command."+string(c.Verb), commandObject(*c), strings.TrimSpace(string(c.Status)+" "+c.Reply))
	return true, nil
}

// asksNobody reports whether a command is answered without asking who may command.
func asksNobody(c holdfast.Command) bool {
	return c.Barred != "" || c.Verb == holdfast.VerbHelp || c.Verb == holdfast.VerbUnknown
}
