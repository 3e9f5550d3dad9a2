// Package migration moves a state from its present place to another one, and proves that it is
// the same there: it plans at the current place, copies the state, and plans at the new one.
// Both plans have no changes, and the state at the current place is still what was copied.
//
// It owns that order, what makes two states the same, and what is never written over. An
// attempt calls it, and does for it what needs an engine: to read, write and plan at either
// place. Nothing is removed at the current place, which counts until the server has the
// result: whatever dies in between can be begun again from the start.
package migration
