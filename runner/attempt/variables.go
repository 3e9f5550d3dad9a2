// Options for the values of variables, by engine and version.

package attempt

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// withVariables returns the arguments of a command of the engine with the option
// for the document's variables, where the engine takes it. The file is loaded
// without it, but in the order of the names of such files: one that comes later
// would win over the cluster's document.
func (t *space) withVariables(args []string) []string {
	if !t.engine.TakesVariables(args[0], t.module.Ephemeral) {
		return args
	}
	if info, err := os.Lstat(filepath.Join(t.root, rootmodule.VariablesFile)); err != nil || !info.Mode().IsRegular() {
		return args
	}
	at := 1
	if args[0] == "state" {
		at = 2 // options come after the second word
	}
	return slices.Insert(slices.Clone(args), at, "-var-file="+rootmodule.VariablesFile)
}

// variables are those of the root module.
func (t *space) variables() modulecode.Variables {
	return modulecode.Variables{Dir: t.root, Engine: t.engine.Name, Module: t.module, Shown: t.inRepository}
}
