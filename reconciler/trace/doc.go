// Package trace joins what Holdfast does to the delivery that caused it.
//
// A Memory remembers, for each thing that people look at, the trace of what was last
// heard of it, so that plans, applies and posts appear under the delivery. Intake,
// the queueing of runs and the outbox ask it. It keeps no more than it must, and
// nothing depends on what it has forgotten.
package trace
