package main

import (
	"errors"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// slotUsers are the users that an agent's engines run as, held for its life: of two agents
// that had the same, one could kill the engines of the other, and code in its plans could
// read what the other's applies hold.
type slotUsers struct {
	first, count int
	free         func() // nil: they are not held
}

// hold holds the users, if that has not been done.
func (u *slotUsers) hold(sandbox.Mode) error {
	if u.free != nil {
		return nil
	}
	free, err := sandbox.HoldUsers(u.first, u.count)
	if errors.Is(err, sandbox.ErrUserHeld) {
		return hint.New(err, "give each agent of this machine --slot-user with a range of its own, as long as it has --slots; agents that serve starts have those of agent.slotUsers in holdfast.yaml")
	}
	if err == nil {
		u.free = free
	}
	return err
}

// holdToKill is hold in the one mode in which a start ends with the end of all that its user
// has. In others a probing start harms no agent that lives.
func (u *slotUsers) holdToKill(mode sandbox.Mode) error {
	if mode != sandbox.ModeUsers {
		return nil
	}
	return u.hold(mode)
}

func (u *slotUsers) release() {
	if u.free != nil {
		u.free()
	}
}
