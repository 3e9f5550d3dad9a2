//go:build !linux

package main

import (
	"os/exec"

	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// adoptOrphans does nothing: only Linux has the load that it is for.
func adoptOrphans() error { return nil }

// asAgentOf does nothing: only Linux has modes.
func asAgentOf(*exec.Cmd, sandbox.Mode) {}
