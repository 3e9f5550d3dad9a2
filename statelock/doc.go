// Package statelock is what is known of locks that engines have on states: in Holdfast's own
// backend (StateLock), and in backends that others have (BackendLock), of which only what an
// engine printed is known.
//
// datastore keeps our own, server answers engines about them; reconciler/rescue releases locks
// of other backends when somebody asks for it, report and reconciler/decision say who has them.
// It is pure, and knows the vocabulary and nobody else. Locks between replicas are in package
// lock.
package statelock
