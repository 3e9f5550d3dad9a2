// Package hint gives errors what a person can do about them.
//
// It owns nothing but that. The commands and their rooms make such errors; the command
// line writes the hint on its own line, behind the error. An error of another type
// takes part by a method Hint. A hint is never part of the error's text, and nothing is
// decided by it.
package hint
