package logbook

import (
	"io"

	"github.com/holdfast-dev/holdfast/protocol"
)

// Session is where a log and its steps go. It can be a Masker and a ProgressKeeper, too.
type Session interface {
	// Log takes what is logged, without secrets. Writing never waits for the
	// server and never fails for its sake.
	Log() io.Writer
	// Step says what the attempt does now.
	Step(name string)
}

// Masker is a Session whose log is stored as it comes: what is known to be secret
// only later can still be taken out of it.
type Masker interface {
	// MaskLog has these parts of all that was written to the log overwritten where it
	// is stored. It is called once at most, after the last Write.
	MaskLog(spans []protocol.LogSpan)
}

// ProgressKeeper is a Session that outlives its process: whoever brings an attempt to its
// end that was killed knows what its apply had begun, and what it had completed.
type ProgressKeeper interface {
	// NoteProgress keeps a line of the apply's output that says so. It never fails: what
	// cannot be kept is known to be missing. It is called by one goroutine at a time.
	NoteProgress(line string)
	// EndProgress says that the engine has ended, and that all it said was noted.
	EndProgress()
}
