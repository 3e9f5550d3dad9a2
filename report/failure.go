package report

import "github.com/holdfast-dev/holdfast"

// FailureText returns why a run failed, what it had done before, and what can
// be done now, as plain text for a terminal. It is empty if the run did not fail.
func FailureText(run holdfast.Run) string {
	if run.Failure == nil {
		return ""
	}
	return oneLine(run.Failure.Summary) + "\n"
}
