package runner

import "time"

// SetPresentEvery sets how often an agent that wants no run says that it is there.
func (a *Agent) SetPresentEvery(d time.Duration) { a.presentEvery = d }
