// Package template is the commands for people who write templates: new, validate, test,
// render, docs, diff, upgrade, and the schema for editors.
//
// It owns their flags and how their results are printed; what a template is, how it is
// tested and how two versions differ is in the rooms of package templates. They work on
// a checkout. Only upgrade asks a server, which proposes the pull requests.
//
// It writes golden files, new templates and what --out names, and never follows a link
// out of the work tree.
package template

import "github.com/holdfast-dev/holdfast/cmd/holdfast/cli"

// app is what commands share.
type app struct{ *cli.App }
