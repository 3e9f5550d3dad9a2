package server

import (
	"context"
	"io"
	"net/http"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/statelock"
)

// What the listeners ask of the others. A missing record is a
// holdfast.ErrNotFound.

// Dispatcher hands runs to agents; *dispatch.Dispatcher is one.
type Dispatcher interface {
	// Claim waits up to req.Wait for a run; ErrNotFound if there is none, a
	// *protocol.AgentTakenError if another living process has the agent's id.
	Claim(ctx context.Context, req protocol.ClaimRequest) (protocol.Assignment, error)
	// Authorize checks an attempt's token (see protocol.FormatRunToken; token is
	// the whole of it): ErrUnauthorized if it is not that attempt's. It is
	// ErrFenced only if the token is genuine and the attempt is over: the state
	// that such an attempt still uploads is kept in quarantine, and it may
	// release its own state lock. The run is returned in both cases.
	Authorize(ctx context.Context, ref holdfast.AttemptRef, token string) (holdfast.RunBrief, error)
	Heartbeat(ctx context.Context, ref holdfast.AttemptRef, beat protocol.Heartbeat) (protocol.HeartbeatReply, error)
	Finish(ctx context.Context, ref holdfast.AttemptRef, result protocol.Result) error
}

// Issuer signs tokens by which runs prove to clouds who they are; *issuer.Issuer is one.
type Issuer interface {
	// Issue returns a token of the current attempt at a run; ErrForbidden if the
	// configuration gives it no identity for that audience.
	Issue(ctx context.Context, run holdfast.Run, audience string) (protocol.IdentityToken, error)
	// Paths are those of the documents by which others verify tokens, which it serves.
	Paths() []string
	http.Handler
}

// AttemptRecords are what requests of agents are held against; *datastore.Store is one.
type AttemptRecords interface {
	Run(ctx context.Context, id string) (holdfast.Run, error)
	// Brief is Run without decoding the record.
	Brief(ctx context.Context, id string) (holdfast.RunBrief, error)
}

// Registry knows the agents, and the runs that wait for them; *dispatch.Dispatcher is one.
type Registry interface {
	// Queue returns the runs that wait to be handed out, in their order, behind a
	// position: those of projects, or without any all. A limit bounds them.
	Queue(ctx context.Context, filter holdfast.QueueFilter) ([]holdfast.QueuedRun, error)
	// Present records that an agent is there and wants no run now; a
	// *protocol.AgentTakenError if another living process has its id.
	Present(ctx context.Context, req protocol.ClaimRequest) error
	// Heard returns the agents that were heard of, without their runs. It does not
	// block.
	Heard() []protocol.AgentStatus
	// Agents returns them, by id, with the runs that they execute.
	Agents(ctx context.Context) ([]protocol.AgentStatus, error)
}

// Auditor keeps what was done and refused; *datastore.Store is one.
type Auditor interface {
	Audit(ctx context.Context, entry holdfast.AuditEntry) error
}

// Blobs are what runs start from and leave behind; *datastore.Store is one.
type Blobs interface {
	Files
	// AppendLog stores data at offset and returns the offset that it expects
	// next: less than offset+len(data) if something before is missing, and what
	// is stored already is not stored twice.
	AppendLog(ctx context.Context, ref holdfast.AttemptRef, offset int64, data []byte) (next int64, err error)
	// MaskLog overwrites parts of what is stored.
	MaskLog(ctx context.Context, ref holdfast.AttemptRef, spans []protocol.LogSpan) error
}

// Files are bundles, artefacts and states.
type Files interface {
	Bundle(ctx context.Context, digest holdfast.Digest) (io.ReadCloser, error)
	Artefact(ctx context.Context, run, name string) (io.ReadCloser, error)
	PutArtefact(ctx context.Context, ref holdfast.AttemptRef, name string, data io.Reader) error
	// OpenUnsaved opens a state that an engine could not save.
	OpenUnsaved(ctx context.Context, u holdfast.UnsavedState) (io.ReadCloser, error)
}

// States is Holdfast's own state backend; *datastore.Store is one.
type States interface {
	// State returns the newest version; ErrNotFound if there is none.
	State(ctx context.Context, location string) ([]byte, holdfast.StateVersion, error)
	// PutState stores a version. A *statelock.StateLockedError if another lock id
	// holds the state; ErrFenced if the attempt is over: the data is kept in
	// quarantine all the same.
	PutState(ctx context.Context, write holdfast.StateWrite) (holdfast.StateVersion, error)
	LockState(ctx context.Context, location string, lock statelock.StateLock) error
	// UnlockState releases the lock with that id, if by's attempt holds it. ErrLocked
	// if the lock is another one or another's.
	UnlockState(ctx context.Context, location, id string, by holdfast.AttemptRef) error
}
