// Package confined evaluates policies in its own process, which is this program, started
// again.
//
// It owns that process: what it may use of memory, processors and time, how much it may answer,
// and that it ends with whoever started it (Evaluator); and what runs in it (Serve). Agents and
// the commands for people who write policies call it. What becomes of a policy that uses up one
// of the limits is in the report as that policy's fault: it is never an answer.
//
// It decides nothing, and knows neither rules nor results: package policy does.
package confined
