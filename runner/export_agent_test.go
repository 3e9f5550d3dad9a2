package runner

import (
	"time"

	"github.com/holdfast-dev/holdfast/runner/uplink"
)

// SetPresentEvery sets how often an agent that wants no run says that it is there.
func (a *Agent) SetPresentEvery(d time.Duration) { a.presentEvery = d }

// SetDisk sets what an agent waits for where something is to survive a power cut.
func (a *Agent) SetDisk(d uplink.Disk) { a.kept.Disk = d }
