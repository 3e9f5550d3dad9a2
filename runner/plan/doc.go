// Package plan reads what an engine says of a plan, `show -json`, and makes a
// plandoc.Document of it: canonical, with everything secret replaced by
// marks. It also knows what a plan is made of (Input), and says in words how
// that differs from what was reviewed.
//
// The runner calls it, inside the agent. It reads the engine's JSON as a stream
// and holds one resource of it at a time. It starts nothing, writes nothing, and
// never decides whether a plan is applied.
package plan
