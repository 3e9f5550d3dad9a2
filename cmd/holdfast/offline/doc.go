// Package offline is the commands that need no server: validate, render and plan for the
// cluster files of a folder.
//
// It owns how a fleet is read from a disk, with the same rules as the server reads a
// tree, and how an engine of this machine is run for one root module, with the person's
// own environment. The root command calls it, and so does package template, which
// checks examples with the same engine.
//
// It never applies, writes no state, and keeps nothing but prepared providers in the
// user's cache folder.
package offline

import "github.com/holdfast-dev/holdfast/cmd/holdfast/cli"

// app is what commands share.
type app struct{ *cli.App }
