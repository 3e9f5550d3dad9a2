package holdfast

import "fmt"

// Protocol is the version of what agents and the server say to each other. It is a number of
// its own, which grows when one of them could misunderstand the other. Agents of version 1 did
// not name theirs.
const Protocol = 2

// PreviousProtocol is the oldest version that a server still speaks. Servers are upgraded
// before agents, and runs last through that.
const PreviousProtocol = Protocol - 1

// CheckProtocol is an error if a server of this version does not speak the protocol of an
// agent. It says what to do.
func CheckProtocol(version int) error {
	switch version = max(version, 1); {
	case version > Protocol:
		return fmt.Errorf("the agent speaks protocol %d, and this server %d and %d: upgrade the server first, or start an agent of the server's version",
			version, PreviousProtocol, Protocol)
	case version < PreviousProtocol:
		return fmt.Errorf("the agent speaks protocol %d, and this server %d and %d: upgrade the agent to the server's version",
			version, PreviousProtocol, Protocol)
	}
	return nil
}
