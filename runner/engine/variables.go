// Which commands take values of variables, by engine and version.

package engine

import (
	"github.com/hashicorp/go-version"

	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// OpenTofu needs values of variables in all commands that read code, state or
// plans: sources of modules, backends and encryption can depend on them. It also
// compares those that it finds for an apply with those in the plan file.
var (
	tofuTakesVariables    = version.Must(version.NewVersion("1.8.0"))
	tofuAppliesWithValues = version.Must(version.NewVersion("1.9.0"))
)

// TakesVariables reports whether a command of the engine needs the option for a file of
// variables, where a root module has ephemeral ones or not.
// Terraform takes the values of ephemeral variables alone for the apply of a plan
// file, and refuses all options for variables in versions that do not know them.
func (e Binary) TakesVariables(command string, ephemeral bool) bool {
	if command == "plan" {
		return true
	}
	if e.Name != modulecode.Tofu {
		return command == "apply" && ephemeral
	}
	v, err := version.NewVersion(e.Version)
	if err != nil {
		return false
	}
	least := tofuTakesVariables
	if command == "apply" {
		least = tofuAppliesWithValues
	}
	return v.Core().GreaterThanOrEqual(least)
}
