// Package dispatch hands queued runs to agents and records how they end.
//
// It owns the life of an attempt: its claim (lock first, then the record), its
// credential, its heartbeats and the renewal of its lock, the sweep for agents
// that are silent, the record of its end with the retries that follow, and the
// resources that an ended run leaves.
// It knows which agents live, lets one process have an agent's id at a time, refuses
// agents whose isolation is too weak, and says of queued runs that no agent executes
// them.
// Claims that wait for the same runs wait at one counter: one of them looks at the queue on
// behalf of all, so that what a claim costs does not depend on how many agents wait.
//
// The server calls Claim, Authorize, Heartbeat and Finish for agents. The
// reconciler calls the rest, says through Fleet what an attempt starts from, and
// reports there what has changed.
//
// It never decides which run there should be, never reads Git and never talks to
// a forge.
package dispatch
