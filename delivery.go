package holdfast

import "time"

// Delivery is a webhook of a code host that was taken in, and what became of it.
type Delivery struct {
	At     time.Time
	ID     string // as the code host has it; it can be looked up and sent again there
	Event  string // such as push
	Repo   string // as the code host has it; empty: it named none
	About  string // the branch or the pull request
	Status int    // of HTTP, that it was answered with
	Result string // what it was answered with, in words
	Took   time.Duration
}
