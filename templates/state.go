package templates

import (
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/location"
	"github.com/holdfast-dev/holdfast/templates/modules"
)

// backend is where a root module's state lives.
type backend struct {
	kind     string
	config   map[string]any // of the block that Holdfast writes
	code     string         // the block that is in the code
	location string
	own      bool // Holdfast's own
}

// backendOf is the backend of a cluster whose code names none.
func (r *Resolver) backendOf(c holdfast.Cluster) backend {
	if c.State == nil {
		return backend{kind: "http", location: "clusters/" + c.Name, own: true}
	}
	config := maps.Clone(c.State.Config)
	if config == nil {
		config = map[string]any{}
	}
	if own, fallback := document.OwnArgument(c.State.Type, c.Name); own != "" && config[own] == nil {
		config[own] = fallback
	}
	at := location.Of(location.Backend{
		Kind: c.State.Type, Config: config, Home: c.Name, Scope: location.ScopeOf(c), Varied: r.varied,
	})
	return backend{kind: c.State.Type, config: config, location: at}
}

// backendIn is that of a block in the code of dir.
func (r *Resolver) backendIn(b *modules.Backend, dir string, c holdfast.Cluster) backend {
	at := location.Of(location.Backend{
		Kind: b.Kind, Config: b.Attributes, Unread: b.Unread, Home: dir, Scope: location.ScopeOf(c), Varied: r.varied,
	})
	return backend{kind: b.Kind, code: b.Code, location: at}
}

// StateCode is the block that says where the state is, as it is written; empty if it is not in
// the engines' own language.
func (r *Root) StateCode() string {
	if r.state.config == nil && !r.OwnState {
		if r.state.code == "" {
			return ""
		}
		return "terraform {\n  " + r.state.code + "\n}\n"
	}
	return BackendCode(r.state.kind, r.state.config)
}

// BackendCode is a block that says where the state is.
func BackendCode(kind string, arguments map[string]any) string {
	return string(renderCluster(holdfast.Cluster{}, kind, arguments, "", nil))
}

// KeptIn is the root module with its state elsewhere than its code says, which has no other
// source therefore: whatever a plan of it says except for that, it is the same.
func (r *Root) KeptIn(stored holdfast.StoredState) *Root {
	kept := *r
	code := append(header("the storage of the runner"), BackendCode(stored.Backend())...)
	kept.files = append(slices.Clone(r.files), File{Name: rootmodule.StateOverrideFile, Data: code})
	return &kept
}

// LocationOf names a state in the storage of a runner.
func (r *Resolver) LocationOf(stored holdfast.StoredState, c holdfast.Cluster) string {
	kind, arguments := stored.Backend()
	return location.Of(location.Backend{
		Kind: kind, Config: arguments, Home: c.Name, Scope: location.ScopeOf(c), Varied: r.varied,
	})
}

// identify gives a root module the digests of its code and of which state it has: where
// that is up to the environment of the engine, with what that is bound to.
func (r *Root) identify(code holdfast.Digest, c holdfast.Cluster) {
	bound := holdfast.NewDigester("state")
	bound.Add(string(code), location.ScopeOf(c))
	r.Code, r.Bound = code, bound.Digest()
	if r.Digest = r.Code; location.Ambient(r.StateLocation) {
		r.Digest = r.Bound
	}
}
