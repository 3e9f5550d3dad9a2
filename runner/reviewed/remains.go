package reviewed

import (
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// Remains reports whether rest can be what remains of an apply of reviewed that
// failed in the middle: everything that it would do was reviewed, the same address
// with the same actions, the same values before and after. A value that was unknown
// when it was reviewed may be anything now. Of a replacement one half may be done:
// its create remains, or the delete of the object that it deposed. A move or an
// import may be done. Outputs may change in another way, to the reviewed value.
// What is read is what was read, or what was to be made. Both must be valid.
func Remains(rest, reviewed plandoc.Document) bool {
	for _, r := range rest.Resources {
		then, ok := find(reviewed, r)
		if !ok || !remains(r, then) {
			return false
		}
	}
	for _, o := range rest.Outputs {
		then, ok := output(reviewed, o.Name)
		if !ok || !covers(plandiff.Tree(then.After), plandiff.Tree(o.After)) {
			return false
		}
	}
	for _, r := range rest.Reads {
		if !hasRead(reviewed, r) {
			return false
		}
	}
	return true
}

// hasRead reports whether what is read now was read when it was reviewed, or was to
// be made so: what a resource has is read once it no longer changes.
func hasRead(d plandoc.Document, r plandoc.Read) bool {
	if i, ok := slices.BinarySearchFunc(d.Reads, r, plandoc.Read.Compare); ok {
		return covers(plandiff.Tree(d.Reads[i].Value), plandiff.Tree(r.Value))
	}
	i, ok := slices.BinarySearchFunc(d.Resources, plandoc.Resource{Address: r.Address}, plandoc.Resource.Compare)
	if !ok || d.Resources[i].After == nil {
		return false
	}
	after, read := plandiff.Tree(d.Resources[i].After), plandiff.Tree(r.Value)
	for _, key := range plandiff.Keys(read, nil) {
		if !covers(fieldOf(after, key), fieldOf(read, key)) {
			return false
		}
	}
	return true
}

// find returns the resource that r is, or could be what remains of.
func find(d plandoc.Document, r plandoc.Resource) (plandoc.Resource, bool) {
	if i, ok := slices.BinarySearchFunc(d.Resources, r, plandoc.Resource.Compare); ok {
		return d.Resources[i], true
	}
	if r.Deposed == "" {
		return plandoc.Resource{}, false
	}
	i, ok := slices.BinarySearchFunc(d.Resources, plandoc.Resource{Address: r.Address}, plandoc.Resource.Compare)
	if !ok || !slices.Equal(d.Resources[i].Actions, []string{"create", "delete"}) {
		return plandoc.Resource{}, false
	}
	return d.Resources[i], true
}

func output(d plandoc.Document, name string) (plandoc.Output, bool) {
	i, ok := slices.BinarySearchFunc(d.Outputs, name, func(o plandoc.Output, name string) int { return strings.Compare(o.Name, name) })
	if !ok {
		return plandoc.Output{}, false
	}
	return d.Outputs[i], true
}

// remains reports whether r can be what is left of reviewed to do.
func remains(r, reviewed plandoc.Resource) bool {
	before := func() bool { return covers(plandiff.Tree(reviewed.Before), plandiff.Tree(r.Before)) }
	after := func() bool { return covers(plandiff.Tree(reviewed.After), plandiff.Tree(r.After)) }
	switch {
	case r.Deposed != reviewed.Deposed: // the deposed half of a replacement
		return slices.Equal(r.Actions, []string{"delete"}) && before()
	case r.Type != reviewed.Type:
		return false
	case slices.Equal(r.Actions, []string{"create"}) && slices.Equal(reviewed.Actions, []string{"delete", "create"}):
		return after()
	case r.Reason == holdfast.GoneOutside && slices.Equal(reviewed.Actions, []string{"delete"}): // done, and not recorded
		return true
	case !slices.Equal(r.Actions, reviewed.Actions), !slices.Equal(r.Replace, reviewed.Replace):
		return false
	case r.Previous != "" && r.Previous != reviewed.Previous:
		return false
	case r.Importing != nil && !covers(plandiff.Tree(reviewed.Importing), plandiff.Tree(r.Importing)):
		return false
	}
	return before() && after()
}

// covers reports whether found is what was reviewed, except for what was unknown. Of a
// secret only a whole one can have been unknown: its parts cannot be compared.
func covers(reviewed, found any) bool {
	if m, ok := reviewed.(plandoc.Mark); ok && m.Unknown && m.HMAC == "" {
		return true
	}
	switch {
	case areObjects(reviewed, found):
		for _, key := range plandiff.Keys(reviewed, found) {
			if !covers(fieldOf(reviewed, key), fieldOf(found, key)) {
				return false
			}
		}
		return (reviewed == nil) == (found == nil) || plandiff.Size(reviewed)+plandiff.Size(found) > 0
	case areLists(reviewed, found):
		if plandiff.Size(reviewed) != plandiff.Size(found) || (reviewed == nil) != (found == nil) {
			return false
		}
		for i := range plandiff.Size(found) {
			if !covers(itemOf(reviewed, i), itemOf(found, i)) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(reviewed, found)
	}
}

func fieldOf(tree any, key string) any {
	if m, ok := tree.(map[string]any); ok {
		return m[key]
	}
	return nil
}

func itemOf(tree any, i int) any {
	if l, ok := tree.([]any); ok && i < len(l) {
		return l[i]
	}
	return nil
}

// areObjects reports whether both are objects, or one is and the other is
// nothing.
func areObjects(a, b any) bool {
	_, first := a.(map[string]any)
	_, second := b.(map[string]any)
	return (first || a == nil) && (second || b == nil) && (first || second)
}

func areLists(a, b any) bool {
	_, first := a.([]any)
	_, second := b.([]any)
	return (first || a == nil) && (second || b == nil) && (first || second)
}
