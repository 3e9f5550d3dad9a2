package dispatch

import "github.com/holdfast-dev/holdfast"

// Checked is what is taken of a result that an agent has sent.
func Checked(run holdfast.Run, result holdfast.Result) (holdfast.Result, string) {
	return checked(run, result)
}
