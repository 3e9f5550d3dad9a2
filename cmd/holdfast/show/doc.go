// Package show is the commands that look at a fleet through a server: get lists, and
// describe shows one thing in full.
//
// It owns their columns and sections, and how a pull request's comments are shown on a
// terminal. The root command calls it; cmd/holdfast uses a few of its texts, such as
// those of suspensions, for its own answers. What is shown comes from the API as it is:
// plans and drift are worded by package report.
//
// It never changes anything on a server.
package show

import "github.com/holdfast-dev/holdfast/cmd/holdfast/cli"

// app is what commands share.
type app struct{ *cli.App }
