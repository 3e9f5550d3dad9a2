// What the result of init depends on.

package engine

import (
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// PreparedKey returns what init's result depends on, as a name. A name of content is
// for folders that are asked for with the digest of their modules: whoever knows
// that had them fetched.
func PreparedKey(e Binary, m modulecode.Root, a protocol.Assignment, lock, cliConfig []byte, content bool) string {
	d := holdfast.NewDigester("shared init")
	d.Add(e.Name, e.Version, runtime.GOOS+"_"+runtime.GOARCH, m.Backend, strconv.FormatBool(m.BareBackend), strconv.FormatBool(a.OwnState))
	d.Add(string(lock), string(cliConfig))
	d.Add(m.Needs...)
	// As an encryption block in the code, and as options such as -plugin-dir.
	encrypts, options := a.Env["TF_ENCRYPTION"], a.Env["TF_CLI_ARGS_init"]
	whole := m.Whole || encrypts+options != ""
	if whole || m.Opaque || m.Dynamic || m.Plugins { // what counts is in the bundle, and values are in variables
		d.Add("bundle", string(a.Bundle), a.Dir, encrypts, options)
	}
	if whole || m.Dynamic {
		for _, name := range slices.Sorted(maps.Keys(a.Env)) {
			if strings.HasPrefix(name, modulecode.VariablePrefix) {
				d.Add(name, a.Env[name])
			}
		}
	}
	if m.Fetched && !content { // with credentials that others may not have
		d.Add("env")
		for _, name := range slices.Sorted(maps.Keys(a.Env)) {
			d.Add(name, a.Env[name])
		}
		if name := a.Identities.Name(); name != "" {
			d.Add("identities", name)
		}
	}
	return strings.TrimPrefix(string(d.Digest()), "sha256:")[:40]
}
