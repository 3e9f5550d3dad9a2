// Package attempt executes one attempt at a run: it has the bundle unpacked into a
// workspace, chooses the engine, initialises, plans, compares the plan with what was
// reviewed, applies, and reads the outputs.
//
// It owns what engines are given and how they see it, and how a failure becomes a result.
// An attempt is steps (initializing, planning, applying, stateJob) over what they share: a
// space, a logbook and a view of the state. Agents and the offline commands call Executor;
// what it needs of them is a Session. It never speaks to a server, never applies a plan that
// it has not made itself in the same attempt, and lets nothing out that is not redacted.
package attempt
