// Package logbook is what an attempt says while it is executed: its log and its steps.
//
// It owns the way of what engines print into the log: held back until it is known what in
// it is secret, redacted, bounded, and copied, so that secrets that become known late can be
// overwritten where the log is stored. It owns the steps of an attempt with their durations,
// and the progress of an apply, which is kept for the process that ends the attempt after a
// crash. An attempt has one Book; where it goes is a Session.
//
// It starts no engine and decides nothing about an attempt. Nothing goes through it that was
// not redacted.
package logbook
