package v1

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Delivery is a webhook of a code host that was taken in, and what became of it.
type Delivery struct {
	At       time.Time `json:"at"`
	ID       string    `json:"id,omitempty"`    // As the code host has it: there it can be looked up, and sent again.
	Event    string    `json:"event"`           // Such as push.
	Repo     string    `json:"repo,omitempty"`  // As the code host has it.
	About    string    `json:"about,omitempty"` // The branch or the pull request.
	Status   int       `json:"status"`          // Of HTTP, that it was answered with.
	Result   string    `json:"result"`          // What it was answered with.
	Duration string    `json:"duration"`        // How long that took.
}

// DeliveryOf returns what the API says of a delivery.
func DeliveryOf(d holdfast.Delivery) Delivery {
	return Delivery{At: d.At, ID: d.ID, Event: d.Event, Repo: d.Repo, About: d.About, Status: d.Status, Result: d.Result, Duration: d.Took.Round(time.Millisecond).String()}
}
