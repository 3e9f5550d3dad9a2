package modulecode

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// stateBlock is a block in the root module's code that says where its state is.
type stateBlock struct {
	file string // its name
	kind string // of a backend; "cloud" or "state_store"
	bare bool   // it has no arguments
}

// stateBlockFor returns the block that an engine goes by, as the engines do it:
// of files that override others the last one in the order of their names wins,
// and replaces the block of the others as a whole. OpenTofu reads x.tofu in place
// of x.tf; Terraform reads no .tofu. An empty engine is the one that would be
// chosen for the code.
func (m *Root) stateBlockFor(engine string) stateBlock {
	tofu := engine == Tofu || engine == "" && m.Tofu != ""
	var primary, override stateBlock
	for _, b := range m.blocks {
		switch {
		case !tofu && isTofuCode(b.file), tofu && shadowed(b.file, m.Files):
		case !overrides(b.file):
			primary = b
		case override.file <= b.file:
			override = b
		}
	}
	if override.kind != "" {
		return override
	}
	return primary
}

// shadowed reports whether OpenTofu reads another file of its folder in place of
// this one.
func shadowed(file string, files []string) bool {
	for _, ext := range []string{".tf", ".tf.json"} {
		if stem, ok := strings.CutSuffix(file, ext); ok {
			return slices.Contains(files, stem+strings.Replace(ext, ".tf", ".tofu", 1))
		}
	}
	return false
}

func isTofuCode(file string) bool {
	return strings.HasSuffix(file, ".tofu") || strings.HasSuffix(file, ".tofu.json")
}

// overrides reports whether what is in a file of that name goes before what
// the others say.
func overrides(file string) bool {
	for _, ext := range []string{".tf.json", ".tf", ".tofu.json", ".tofu"} {
		if stem, ok := strings.CutSuffix(filepath.Base(file), ext); ok {
			return stem == "override" || strings.HasSuffix(stem, "_override")
		}
	}
	return false
}

// HeldTo is an error if the engine that was chosen would keep the state elsewhere
// than the server was told by the same code, or than it has the attempt keep it.
func (m *Root) HeldTo(engine, wished string, own bool) error {
	here := m.stateBlockFor(engine)
	switch {
	case here != m.stateBlockFor(wished):
		return errors.New("the code keeps the state elsewhere with " + engine + " than with the engine that it was read for: name the engine (spec.engine.name)")
	case own && here.kind != "" && (here.kind != "http" || !here.bare):
		return errors.New("the code in " + here.file + " keeps the state elsewhere than the assignment says")
	}
	return nil
}
