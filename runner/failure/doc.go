// Package failure says why an attempt did not do what it was for: the one error type
// of the executor's rooms, and how an engine's words become one, with a cause, a
// hint and whether it is transient.
//
// It owns the table of symptoms, which is tried on what engines, providers and clouds
// really print. All rooms that execute attempts make its errors; the attempt turns one
// into the result. It never starts or reads anything, and redacts nothing: what it is
// given is redacted where the result is made.
package failure
