package runner

import (
	"github.com/holdfast-dev/holdfast/runner/attempt"
	"github.com/holdfast-dev/holdfast/runner/failure"
)

// The executor's part of the face: it is package attempt's.
type (
	// Executor executes attempts at runs on this machine.
	Executor = attempt.Executor
	// ExecutorOptions say where and how attempts are executed.
	ExecutorOptions = attempt.Options
	// Engines say where engines come from, and what they are given.
	Engines = attempt.Engines
	// Waits are how long an attempt waits for others.
	Waits = attempt.Waits
	// Limits bound what attempts make.
	Limits = attempt.Limits
	// Isolation is how engines are kept from the agent, from one another and from
	// the machine.
	Isolation = attempt.Isolation
	// Session is what the execution of one attempt asks of its surroundings.
	Session = attempt.Session
	// StopError is the cause with which an attempt's context is canceled.
	StopError = failure.StopError
)

// NewExecutor returns an Executor, or an error that names what is wrong.
func NewExecutor(opts ExecutorOptions) (*Executor, error) { return attempt.NewExecutor(opts) }
