// Package recorded says what of an apply is in the state, and what may exist without being
// in it.
//
// It owns whether a plan's changes must leave another state (Changes), which objects are
// missing in the state that a failed apply has saved (Objects), what such an apply may have
// created unrecorded, by how its engine ended (End), and what a later plan would therefore
// create a second time (CreatedAgain). An attempt asks it after each apply, and about each
// plan that follows one that died.
//
// It is pure: it reads plan documents, states and addresses that it is given, starts no
// engine, and changes no state.
package recorded
