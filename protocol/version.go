package protocol

import "fmt"

// Version is the version of what agents and the server say to each other. It is a separate
// number, which grows when one of them could misunderstand the other. Agents of version 1 did
// not name theirs.
const Version = 2

// PreviousVersion is the oldest version that a server still speaks. Servers are upgraded
// before agents, and runs last through that.
const PreviousVersion = Version - 1

// Check is an error if a server of this version does not speak the protocol of an
// agent. It says what to do.
func Check(version int) error {
	switch version = max(version, 1); {
	case version > Version:
		return fmt.Errorf("the agent speaks protocol %d, and this server %d and %d: upgrade the server first, or start an agent of the server's version",
			version, PreviousVersion, Version)
	case version < PreviousVersion:
		return fmt.Errorf("the agent speaks protocol %d, and this server %d and %d: upgrade the agent to the server's version",
			version, PreviousVersion, Version)
	}
	return nil
}
