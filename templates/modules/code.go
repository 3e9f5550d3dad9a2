package modules

import (
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/templates/decode"
)

// The engines, as documents name them.
const (
	either    = "" // not known: whichever would be chosen
	tofu      = "tofu"
	terraform = "terraform"
)

// code is what is read of a folder, by the engine that reads it. It is immutable.
type code map[string]*Module

// codeOf puts together what was read of each file.
func codeOf(files []*Module) code {
	var names []string
	for _, f := range files {
		names = append(names, f.names...)
	}
	all := merged(files, func(string) bool { return true })
	if !slices.ContainsFunc(names, isTofu) {
		return code{either: all, tofu: all, terraform: all}
	}
	return code{
		either:    all,
		tofu:      merged(files, func(name string) bool { return !shadowed(name, names) }),
		terraform: merged(files, func(name string) bool { return !isTofu(name) }),
	}
}

// forked reports whether it depends on the engine what the code says.
func (c code) forked() bool { return c[tofu] != c[terraform] }

// merged is what the files say that are used.
func merged(files []*Module, used func(name string) bool) *Module {
	m := newModule()
	for _, f := range files {
		if !used(f.names[0]) {
			continue
		}
		m.Files += f.Files
		m.names = append(m.names, f.names...)
		m.Calls, m.sources = append(m.Calls, f.Calls...), append(m.sources, f.sources...)
		m.backends = append(m.backends, f.backends...)
		m.reads, m.rootReads = append(m.reads, f.reads...), append(m.rootReads, f.rootReads...)
		maps.Copy(m.locals, f.locals)
		maps.Copy(m.Variables, f.Variables)
		maps.Copy(m.Outputs, f.Outputs)
		m.Faults = append(m.Faults, f.Faults[:min(len(f.Faults), decode.MaxFaults)]...)
	}
	m.resolvePatterns()
	return m
}

// shadowed reports whether OpenTofu reads another file of these in place of this one.
func shadowed(file string, files []string) bool {
	for _, ext := range []string{".tf", ".tf.json"} {
		if stem, ok := strings.CutSuffix(file, ext); ok {
			return slices.Contains(files, stem+strings.Replace(ext, ".tf", ".tofu", 1))
		}
	}
	return false
}

func isTofu(file string) bool {
	return strings.HasSuffix(file, ".tofu") || strings.HasSuffix(file, ".tofu.json")
}
