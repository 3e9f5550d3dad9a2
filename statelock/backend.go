package statelock

import (
	"context"
	"regexp"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// BackendLock is the lock of a state's own backend, as an engine printed it that
// did not get it.
type BackendLock struct {
	ID string `json:"id"`
	// Who holds it, and since when; empty where the engine does not print that.
	Who     string    `json:"who,omitempty"`
	Created time.Time `json:"created,omitzero"`
	// Run is the run that found it.
	Run string `json:"run,omitempty"`
	// Dead is the run of ours that probably left it: it ended without releasing it, and
	// the lock was made while it ran, as far as the clocks agree. Empty if there is
	// none, and the lock may be anybody's.
	Dead string `json:"dead,omitempty"`
}

// BackendUnlock asks for the release of a lock of a state's own backend.
type BackendUnlock struct {
	Cluster string
	Lock    string // its ID
	Actor   string // who asks
	Force   bool   // release it whoever may hold it
	Sees    SeesRun
}

// SeesRun reports whether who asks for something may see a run, and have its code executed;
// nil: all runs.
type SeesRun func(ctx context.Context, run holdfast.Run) (bool, error)

var (
	// PostgreSQL does not say who holds a lock: "Lock Info" is the one that was asked
	// for. It ends with the session that holds it, so that no engine can leave it.
	lockOfSession = lazily(`(Workspace is already locked: |Already locked for workspace creation: )`)
	// Of an http backend Terraform prints the ID of the lock that is held in its error
	// message only: its "Lock Info" is the lock that it asked for itself. OpenTofu
	// prints the one that is held in both places. Long lines are wrapped.
	lockHeld    = lazily(`already locked:\s+ID=([A-Za-z0-9][A-Za-z0-9:/_.+=-]{0,199})`)
	lockID      = lazily(`(?s)Lock Info:.{0,80}?\bID:\s+([A-Za-z0-9][A-Za-z0-9:/_.+=-]{0,199})`)
	lockWho     = lazily(`(?s)Lock Info:.{0,600}?\bWho:\s+(\S{1,200})`)
	lockCreated = lazily(`(?s)Lock Info:.{0,900}?\bCreated:\s+(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) \+0000 UTC`)
)

// lazily returns what finds the first group of an expression; empty if there is none. It
// is compiled when it is first used: it is large, and few commands need it.
func lazily(expr string) func(text string) string {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
	return func(text string) string {
		if found := compiled().FindStringSubmatch(text); found != nil {
			return found[1]
		}
		return ""
	}
}

// Of returns the lock of the backend that a run did not get, as its engine
// printed it; false if the failure is another, or names none.
func Of(run holdfast.Run) (BackendLock, bool) {
	f := run.Failure
	if f == nil || f.Cause != holdfast.CauseStateLocked || holdfast.OwnState(run.StateLocation) {
		return BackendLock{}, false
	}
	texts := []string{f.Detail}
	for _, d := range f.Diagnostics {
		texts = append(texts, d.Detail)
	}
	for _, text := range texts {
		switch id, held := lockID(text), lockHeld(text); {
		case lockOfSession(text) != "": // no engine can leave it
		case held != "" && held != id:
			return BackendLock{ID: held, Run: run.ID}, true
		case id != "":
			created, _ := time.Parse("2006-01-02 15:04:05", lockCreated(text)) // zero if it is not there
			return BackendLock{ID: id, Who: lockWho(text), Created: created, Run: run.ID}, true
		}
	}
	return BackendLock{}, false
}
