//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"time"

	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// adoptOrphans does nothing: only Linux has the load that it is for.
func adoptOrphans() error { return nil }

// ownTime is an error: only Linux has processes whose clocks others can read.
func ownTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// asAgentOf does nothing: only Linux has modes.
func asAgentOf(*exec.Cmd, sandbox.Mode) {}
