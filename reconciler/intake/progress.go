package intake

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"
)

// progressEvery is how often the log says how far the taking-in of a repository is.
const progressEvery = 5 * time.Second

// What has become of the clusters that are counted, one after the other.
const (
	progressRead     = "read"
	progressRecorded = "recorded"
)

// tally is how far the taking-in of a repository is: with many clusters, the first time
// takes minutes. It is safe for concurrent use.
type tally struct {
	repo   string
	logger *slog.Logger
	now    func() time.Time

	mu       sync.Mutex // guards what follows
	what     string     // has become of those that are done
	done, of int        // clusters
	saidAt   time.Time
}

// tallyEvery is how many clusters are counted before somebody looks at the clock.
const tallyEvery = 100

func newTally(repo string, logger *slog.Logger, now func() time.Time) *tally {
	return &tally{repo: repo, logger: logger, now: now, saidAt: now()}
}

// set notes how many clusters are read or recorded. Those that count side by side may come
// in any order.
func (t *tally) set(ctx context.Context, what string, done, of int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if what == t.what && done < t.done {
		return
	}
	t.what, t.done, t.of = what, done, of
	if done%tallyEvery != 0 {
		return
	}
	if now := t.now(); now.Sub(t.saidAt) >= progressEvery {
		t.saidAt = now
		t.logger.InfoContext(ctx, "repository is being taken in", "repo", t.repo, "progress", t.text())
	}
}

// String is how far it is, in words; empty if nothing was counted yet.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text()
}

func (t *tally) text() string {
	if t.of == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s clusters %s", grouped(t.done), grouped(t.of), t.what)
}

// grouped is a number with its thousands apart.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
