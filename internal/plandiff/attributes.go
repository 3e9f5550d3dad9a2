package plandiff

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// Attributes returns the attributes in which two values differ. It is nil if they are
// equal, and if they differ in what is null in one and left out in the other.
func Attributes(before, after plandoc.Value) []holdfast.AttributeChange {
	var f attributeFinder
	f.compare("", Tree(before), Tree(after))
	return f.found
}

// attributeFinder collects the attributes that differ.
type attributeFinder struct {
	forces []string
	found  []holdfast.AttributeChange
}

// absent stands for a key or an element that a value does not have. At the top, where a
// schema says which attributes there are, null stands for it too.
type absent struct{}

// compare adds the differences at path and below.
func (f *attributeFinder) compare(path holdfast.AttributePath, before, after any) {
	if path == "" {
		before, after = orAbsent(before), orAbsent(after)
	}
	_, marked := before.(plandoc.Mark)
	if _, ok := after.(plandoc.Mark); ok || marked {
		if !reflect.DeepEqual(before, after) {
			f.add(path, before, after)
		}
		return
	}
	switch {
	case both[map[string]any](before, after) && (path == "" || Size(before)+Size(after) > 0):
		f.emptied(path, before, after)
		for _, key := range Keys(before, after) {
			was, is := keyIn(before, key), keyIn(after, key)
			if path == "" {
				was, is = orAbsent(was), orAbsent(is)
			}
			f.compare(path.Key(key), was, is)
		}
	case both[[]any](before, after) && Size(before)+Size(after) > 0:
		f.emptied(path, before, after)
		for i := range max(Size(before), Size(after)) {
			f.compare(path.Index(i), elementIn(before, i), elementIn(after, i))
		}
	case !reflect.DeepEqual(before, after):
		f.add(path, before, after)
	}
}

// emptied adds the object or list that is empty of two, of which the other is not: what
// is compared below tells it from nothing no more.
func (f *attributeFinder) emptied(path holdfast.AttributePath, before, after any) {
	switch {
	case path == "" || before == absent{} || after == absent{}:
	case Size(before) == 0:
		f.add(path, before, absent{})
	case Size(after) == 0:
		f.add(path, absent{}, after)
	}
}

// both reports whether two values are of the kind T, or one is and the other is absent.
func both[T any](a, b any) bool {
	_, first := a.(T)
	_, second := b.(T)
	return first && (second || b == absent{}) || second && a == absent{}
}

func orAbsent(tree any) any {
	if tree == nil {
		return absent{}
	}
	return tree
}

func keyIn(tree any, key string) any {
	m, _ := tree.(map[string]any)
	if value, ok := m[key]; ok {
		return value
	}
	return absent{}
}

func elementIn(tree any, i int) any {
	if l, _ := tree.([]any); i < len(l) {
		return l[i]
	}
	return absent{}
}

func (f *attributeFinder) add(path holdfast.AttributePath, before, after any) {
	_, unknown := unknownMark(after)
	f.found = append(f.found, holdfast.AttributeChange{
		Path: string(path), Unknown: unknown, Forces: f.forcesAt(path),
		Sensitive: isSecret(before) || isSecret(after),
		Before:    partJSON(before), After: partJSON(after),
		BeforeMark: markDigest(before), AfterMark: markDigest(after),
	})
}

// partJSON is shownJSON for what may be absent.
func partJSON(tree any) json.RawMessage {
	switch tree {
	case absent{}:
		return nil
	case nil:
		return json.RawMessage("null")
	default:
		return shownJSON(tree)
	}
}

// forcesAt reports whether a replace path is at path, above it or below it.
func (f *attributeFinder) forcesAt(path holdfast.AttributePath) bool {
	return slices.ContainsFunc(f.forces, func(force string) bool {
		return path.Within(holdfast.AttributePath(force)) || holdfast.AttributePath(force).Within(path)
	})
}

// Tree is the tree of a value of a document that was validated.
func Tree(v plandoc.Value) any {
	tree, err := v.Tree()
	if err != nil { // cannot be: it was validated
		return plandoc.Mark{Unknown: true}
	}
	return tree
}

// Size is how many fields or elements an object or a list has; 0 for all else.
func Size(tree any) int {
	switch v := tree.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	default:
		return 0
	}
}

// Keys returns the keys of two objects, sorted.
func Keys(a, b any) []string {
	var keys []string
	for _, tree := range []any{a, b} {
		if m, ok := tree.(map[string]any); ok {
			for key := range m {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
