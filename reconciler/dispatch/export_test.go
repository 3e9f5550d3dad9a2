package dispatch

import (
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Checked is what is taken of a result that an agent has sent.
func Checked(run holdfast.Run, result protocol.Result) (protocol.Result, string) {
	return checked(run, result)
}
