// Options for the values of variables, by engine and version.

package attempt

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/go-version"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// OpenTofu needs values of variables in all commands that read code, state or
// plans: sources of modules, backends and encryption can depend on them. It also
// compares those that it finds for an apply with those in the plan file.
var (
	tofuTakesVariables    = version.Must(version.NewVersion("1.8.0"))
	tofuAppliesWithValues = version.Must(version.NewVersion("1.9.0"))
)

// withVariables returns the arguments of a command of the engine with the option
// for the document's variables, where the engine takes it. The file is loaded
// without it, but in the order of the names of such files: one that comes later
// would win over the cluster's document.
func (t *space) withVariables(args []string) []string {
	if !t.takesVariables(args[0]) {
		return args
	}
	if info, err := os.Lstat(filepath.Join(t.root, holdfast.VariablesFile)); err != nil || !info.Mode().IsRegular() {
		return args
	}
	at := 1
	if args[0] == "state" {
		at = 2 // options come after the second word
	}
	return slices.Insert(slices.Clone(args), at, "-var-file="+holdfast.VariablesFile)
}

// takesVariables reports whether a command of the engine needs the option.
// Terraform takes the values of ephemeral variables alone for the apply of a plan
// file, and refuses all options for variables in versions that do not know them.
func (t *space) takesVariables(command string) bool {
	if command == "plan" {
		return true
	}
	if t.engine.Name != modulecode.Tofu {
		return command == "apply" && t.module.Ephemeral
	}
	v, err := version.NewVersion(t.engine.Version)
	if err != nil {
		return false
	}
	least := tofuTakesVariables
	if command == "apply" {
		least = tofuAppliesWithValues
	}
	return v.Core().GreaterThanOrEqual(least)
}

// variables are those of the root module.
func (t *space) variables() modulecode.Variables {
	return modulecode.Variables{Dir: t.root, Engine: t.engine.Name, Module: t.module, Shown: t.inRepository}
}
