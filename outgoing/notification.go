package outgoing

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// NotificationEvent is what a channel can be notified of.
type NotificationEvent string

// The events.
const (
	NotifyApplied   NotificationEvent = "applied"   // an apply is done
	NotifyFailed    NotificationEvent = "failed"    // an apply, a destroy or a drift check has failed, and is not retried
	NotifyWaiting   NotificationEvent = "waiting"   // a cluster waits for somebody to act
	NotifyDrift     NotificationEvent = "drift"     // a check has found drift that was not known
	NotifyDestroyed NotificationEvent = "destroyed" // a cluster is gone
)

// NotificationEvents are all events.
func NotificationEvents() []NotificationEvent {
	return []NotificationEvent{NotifyApplied, NotifyFailed, NotifyWaiting, NotifyDrift, NotifyDestroyed}
}

// Notification is one message about one cluster, for one channel, such as a room of a
// chat. There is nothing secret in it.
type Notification struct {
	// ID is the same for the same thing, whoever notices it and however often: it is sent
	// once.
	ID          string            `json:"id"`
	Channel     string            `json:"channel"`
	Event       NotificationEvent `json:"event"`
	Cluster     string            `json:"cluster"`
	Project     string            `json:"project,omitempty"`
	Environment string            `json:"environment,omitempty"`
	Title       string            `json:"title"`            // what has happened, such as "applied: 2 changed, 1 created"
	Detail      string            `json:"detail,omitempty"` // why, in a sentence
	Command     string            `json:"command,omitempty"`
	Reason      holdfast.Reason   `json:"reason,omitempty"`
	Run         string            `json:"run,omitempty"`
	PullRequest string            `json:"pullRequest,omitempty"` // repository#number
	URL         string            `json:"url,omitempty"`         // of a page with more
	At          time.Time         `json:"at"`
}

// ChannelProblem is why a channel of notifications has not got what it should.
type ChannelProblem struct {
	Channel string
	Since   time.Time // the first failure in a row
	Waiting int       // how many notifications wait for it
	Detail  string    // the last failure
}

// HasNotificationEvent reports whether events has an event; none stands for all.
func HasNotificationEvent(events []NotificationEvent, event NotificationEvent) bool {
	return len(events) == 0 || slices.Contains(events, event)
}
