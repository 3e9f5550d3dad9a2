package lineage

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Doubt is why a document that is not in a tree does not count as removed. The zero value:
// it does.
type Doubt struct {
	Why      string   // empty: there is none
	HeldFor  string   // the name of the document that may be its own, if that is why
	NewNames []string // the names under which it is to continue, if that is why
	HeirIn   string   // the other repository that says it continues there, if that is why
}

// Held returns what is desired of a cluster whose document is not there. What it was held
// for before is kept while there is any doubt.
func Held(d holdfast.Desired, doubt Doubt) holdfast.Desired {
	heldFor, names := holder(d), newNames(d)
	d.Missing, d.Removed, d.HeldFor, d.NewNames, d.HeirIn = doubt.Why, doubt.Why == "", "", nil, doubt.HeirIn
	if d.Removed {
		return d
	}
	d.HeldFor, d.NewNames = cmp.Or(doubt.HeldFor, heldFor), doubt.NewNames
	if len(d.NewNames) == 0 && !slices.Contains(names, d.HeldFor) { // else whoever wrote it has taken that back
		d.NewNames = names
	}
	return d
}

// The wording of reasons that name a document. Records of an earlier version have what they
// name in this text only.
const (
	withName   = `, with the name "`
	sameOr     = ": if it is the same cluster, "
	heirPrefix = "its new name, "
	heirGone   = ", went before it had taken over: set renamedFrom: "
	heirOr     = " or "
)

// holder is the name of the document that a cluster was held for when its branch was last
// taken in; empty if there was none.
func holder(d holdfast.Desired) string {
	switch {
	case d.Missing == "":
		return ""
	case d.HeldFor != "":
		return d.HeldFor
	}
	_, rest, _ := strings.Cut(d.Missing, withName)
	name, rest, _ := strings.Cut(rest, `"`)
	if !strings.HasPrefix(rest, sameOr) {
		return ""
	}
	return name
}

// newNames are what a cluster was to be called when its branch was last taken in; none if it
// was not.
func newNames(d holdfast.Desired) []string {
	switch {
	case d.Missing == "":
		return nil
	case len(d.NewNames) > 0:
		return d.NewNames
	}
	rest, ok := strings.CutPrefix(d.Missing, heirPrefix)
	if !ok {
		return nil
	}
	names, _, _ := strings.Cut(rest, ", ")
	return strings.Split(names, heirOr)
}

// CannotTakeOver returns what is desired of a cluster whose new name is not free, and why.
func CannotTakeOver(d holdfast.Desired, name string, why error) holdfast.Desired {
	return Held(d, Doubt{Why: heirPrefix + name + ", cannot take over: " + why.Error(), NewNames: []string{name}})
}
