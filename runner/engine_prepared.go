package runner

import (
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// sharedKey returns what init's result depends on, as a name. A name of content is
// for folders that are asked for with the digest of their modules: whoever knows
// that had them fetched.
func sharedKey(e engine, m rootModule, a holdfast.Assignment, lock, cliConfig []byte, content bool) string {
	d := holdfast.NewDigester("shared init")
	d.Add(e.name, e.version, runtime.GOOS+"_"+runtime.GOARCH, m.backend, strconv.FormatBool(m.bareBackend))
	d.Add(string(lock), string(cliConfig))
	d.Add(m.needs...)
	if m.opaque || m.dynamic || m.plugins { // what counts is in the bundle, and values are in variables
		d.Add("bundle", string(a.Bundle), a.Dir)
	}
	if m.dynamic {
		for _, name := range slices.Sorted(maps.Keys(a.Env)) {
			if strings.HasPrefix(name, variablePrefix) {
				d.Add(name, a.Env[name])
			}
		}
	}
	if m.fetched && !content { // with credentials that others may not have
		d.Add("env")
		for _, name := range slices.Sorted(maps.Keys(a.Env)) {
			d.Add(name, a.Env[name])
		}
	}
	return strings.TrimPrefix(string(d.Digest()), "sha256:")[:40]
}
