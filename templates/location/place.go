package location

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Place is a state as it is known before an engine runs.
type Place struct {
	Name  string // see Of
	Scope string // see ScopeOf
}

// PlaceOf is the state of a cluster that has a name, as its document has it.
func PlaceOf(name string, c holdfast.Cluster) Place { return Place{Name: name, Scope: ScopeOf(c)} }

// ScopeOf is what the environment of a cluster's engine is bound to.
func ScopeOf(c holdfast.Cluster) string { return c.Project + "/" + c.Environment }

// Other reports whether two places are of different states, as far as both are known. In
// Holdfast's own backend a state goes with the name of its cluster. What the environment
// of the engine has a say in is another state in another scope.
func Other(is, to Place) bool {
	switch {
	case is.Name == "" || to.Name == "", holdfast.OwnState(is.Name) && holdfast.OwnState(to.Name):
		return false
	case !Same(is.Name, to.Name):
		return true
	default:
		return is.Scope != to.Scope && (Ambient(is.Name) || Ambient(to.Name))
	}
}

// Ambient reports whether the environment of the engine may say which state a name is of:
// where an argument is missing or not known that would say it. Buckets and accounts with a
// name that is unique worldwide are named by their arguments alone, unless the environment
// leads to another store in another scope.
func Ambient(name string) bool {
	if holdfast.OwnState(name) {
		return false
	}
	kind, rest, _ := strings.Cut(name, ":")
	required := identityOf(kind).required
	if kind == "inmem" || name == "" { // of which nothing lasts
		return false
	}
	if Written(name) != name {
		return true
	}
	if len(required) == 0 || !strings.HasPrefix(rest, required[0]+"=") {
		return true // it is the home that names it
	}
	given := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(rest, ","+name+"=") })
	}
	switch kind {
	case "consul":
		return !given("address")
	case "kubernetes":
		return !given("host", "config_path", "config_paths", "in_cluster_config")
	case "pg":
		database, _, _ := strings.Cut(rest, ",schema_name=")
		return strings.Contains(database, "=of ") || strings.Contains(database, " of ")
	default:
		return false
	}
}
