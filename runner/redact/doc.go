// Package redact keeps secrets out of everything that leaves an agent: it finds
// known values in the forms in which programs print them, and what is named like
// a secret.
//
// The runner and its rooms call it. It reads and writes nothing itself, and
// it never decides what happens to a run.
package redact
