package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
)

// headerLogAttempt says which attempt's log an answer is.
const headerLogAttempt = "Holdfast-Attempt"

// attemptPoll is how often a follower of a run that has not begun looks again.
const attemptPoll = 500 * time.Millisecond

// getLog streams an attempt's log: what there is, or with follow=true all until
// the attempt ends. A run that has not begun is waited for.
func (s *runAPI) getLog(c *gin.Context) {
	attempt, err := strconv.Atoi(c.DefaultQuery("attempt", "0"))
	offset, err2 := strconv.ParseInt(c.DefaultQuery("offset", "0"), 10, 64)
	follow, err3 := strconv.ParseBool(c.DefaultQuery("follow", "false"))
	if errors.Join(err, err2, err3) != nil || attempt < 0 || offset < 0 {
		s.fail(c, badRequest("want attempt and offset as numbers, follow as true or false"))
		return
	}
	ctx, done := s.whileAllowed(c)
	defer done()
	attempt, err = s.awaitAttempt(ctx, c.Param("run"), attempt, follow)
	if err != nil {
		s.fail(c, named(fmt.Sprintf("log of run %q", c.Param("run")), err))
		return
	}
	c.Header("Content-Type", "text/plain; charset=utf-8")
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header(headerLogAttempt, strconv.Itoa(attempt))
	if attempt == 0 {
		c.Status(http.StatusOK) // not begun: its log is empty
		return
	}
	s.streamLog(ctx, c, attempt, offset, follow)
}

// awaitAttempt returns the number of the attempt that is meant: given, or the
// last one. It is zero if none has begun; with follow it waits for one.
func (s *runAPI) awaitAttempt(ctx context.Context, id string, attempt int, follow bool) (int, error) {
	for {
		run, err := s.opts.Records.Run(ctx, id)
		switch {
		case err != nil:
			return 0, err
		case attempt > 0 && attempt <= run.Attempt:
			return attempt, nil
		case attempt == 0 && run.Attempt > 0:
			return run.Attempt, nil
		case attempt > 0 && (run.Status.Done() || !follow):
			return 0, missing(fmt.Sprintf("run %q has no attempt %d", id, attempt), "")
		case run.Status.Done() || !follow:
			return 0, nil
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(attemptPoll):
		}
	}
}

func (s *runAPI) streamLog(ctx context.Context, c *gin.Context, attempt int, offset int64, follow bool) {
	id := c.Param("run")
	for first := true; ; first = false {
		// The first look does not wait, so that the answer begins at once.
		part, err := s.opts.Artefacts.Log(ctx, id, attempt, offset, follow && !first)
		switch {
		case ctx.Err() != nil && c.Request.Context().Err() == nil:
			// The server stops, or the follower may no longer read. Cut off, so that they
			// know that there is more.
			panic(http.ErrAbortHandler)
		case ctx.Err() != nil:
			return // the reader has gone
		case err != nil && first:
			s.fail(c, fmt.Errorf("read log of run %q: %w", id, err))
			return
		case err != nil:
			s.log.WarnContext(ctx, "log was cut off", "run", id, "attempt", attempt, "err", err)
			panic(http.ErrAbortHandler)
		}
		if first {
			c.Status(http.StatusOK)
		}
		if len(part.Data) > 0 {
			if _, err := c.Writer.Write(part.Data); err != nil {
				return // the reader has gone
			}
		}
		if first || len(part.Data) > 0 {
			c.Writer.Flush()
		}
		if part.Done || !follow && part.Next == offset {
			return
		}
		offset = part.Next
	}
}
