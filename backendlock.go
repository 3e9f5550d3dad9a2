package holdfast

import (
	"regexp"
	"time"
)

// BackendLock is the lock of a state's own backend, as an engine has told of it
// that did not get it.
type BackendLock struct {
	ID      string    `json:"id"`
	Who     string    `json:"who,omitempty"`
	Created time.Time `json:"created,omitzero"`
	// Run is the run that came upon it.
	Run string `json:"run,omitempty"`
	// Dead is the run of ours that probably left it: it ended without a word, and the
	// lock was made while it ran, as far as the clocks agree. Empty if there is none,
	// and the lock may be anybody's.
	Dead string `json:"dead,omitempty"`
}

var (
	lockID      = regexp.MustCompile(`(?s)Lock Info:.{0,80}?\bID:\s+([A-Za-z0-9][A-Za-z0-9:/_.+=-]{0,199})`)
	lockWho     = regexp.MustCompile(`(?s)Lock Info:.{0,600}?\bWho:\s+(\S{1,200})`)
	lockCreated = regexp.MustCompile(`(?s)Lock Info:.{0,900}?\bCreated:\s+(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) \+0000 UTC`)
)

// LockOf returns the lock of the backend that a run did not get, as its engine
// printed it; false if the failure is another, or names none.
func LockOf(run Run) (BackendLock, bool) {
	f := run.Failure
	if f == nil || f.Cause != CauseStateLocked || OwnState(run.StateLocation) {
		return BackendLock{}, false
	}
	texts := []string{f.Detail}
	for _, d := range f.Diagnostics {
		texts = append(texts, d.Detail)
	}
	for _, text := range texts {
		id := lockID.FindStringSubmatch(text)
		if id == nil {
			continue
		}
		lock := BackendLock{ID: id[1], Run: run.ID}
		if who := lockWho.FindStringSubmatch(text); who != nil {
			lock.Who = who[1]
		}
		if created := lockCreated.FindStringSubmatch(text); created != nil {
			lock.Created, _ = time.Parse("2006-01-02 15:04:05", created[1])
		}
		return lock, true
	}
	return BackendLock{}, false
}
