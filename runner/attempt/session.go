package attempt

import (
	"context"
	"io"

	"github.com/holdfast-dev/holdfast"
)

// Session is what the execution of one attempt asks of its surroundings: the server's
// side of a run. An agent's Session uses the protocol; a plan on a laptop has a local
// one. It is safe for concurrent use. It can be a StateWriter, a
// StateWatcher, a logbook.Masker, a logbook.ProgressKeeper and an idtoken.Source, too.
type Session interface {
	Artefacts
	Reports
	// StateAddress returns the URL, user and password of the state endpoint for
	// the engine's http backend.
	StateAddress() (addr, user, password string)
}

// Artefacts are what runs leave to others.
type Artefacts interface {
	// Bundle returns the root module's tar, gzip. If the server answers, but cannot
	// give it for ten minutes, that is an error. While the server is unreachable it
	// waits, at most until ctx is done.
	Bundle(ctx context.Context, digest holdfast.Digest) (io.ReadCloser, error)
	// StoredArtefact returns an artefact of a run of the same cluster, a
	// holdfast.ErrNotFound if there is none. It waits as Bundle does.
	StoredArtefact(ctx context.Context, run, name string) (io.ReadCloser, error)
	// PutArtefact keeps data as the attempt's artefact name. It returns before the server
	// has it, when it is kept as well as the attempt is: an apply that has begun loses
	// none by a power cut, and what has not begun can be made again.
	PutArtefact(ctx context.Context, name string, data io.Reader) error
}

// Reports are what is shown of an attempt while it is executed.
type Reports interface {
	// Log takes the engine's output, redacted. Writing never waits for the server and
	// never fails because of it.
	Log() io.Writer
	// Step says what the attempt does now: prepare, init, plan, apply, ...
	Step(name string)
	// MayApply reports whether the engine's apply may begin now. Once it has returned
	// true the attempt counts as applying: call it right before the engine is started,
	// and again after a while if it returns false.
	MayApply() bool
	// Unkept is why the last MayApply returned false although the server agrees: what has to
	// be on disk before an apply begins could not be written there. Nil: it was not that.
	Unkept() error
}

// StateWriter is a Session that has another credential for the engine that
// applies: whoever has the one of StateAddress can read the state and lock it,
// and not write it.
type StateWriter interface {
	// WriteAddress is as StateAddress, for an apply only. The password is empty if
	// the attempt must not write.
	WriteAddress() (addr, user, password string)
}

// StateWatcher is a Session that sees the state which the engine reads and writes,
// since it sits between the engine and its backend.
type StateWatcher interface {
	// WatchState makes the session call saw with every state that goes to the
	// engine, before the engine has it, and with every one that comes from it.
	// saw may be called by several goroutines at once and must not keep its
	// argument.
	WatchState(saw func(state []byte))
}
