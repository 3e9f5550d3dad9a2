package holdfast

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Plan derives what people are shown from the document: all changes with all
// changed attributes and their whole values, most dangerous first. info is
// taken over as it is. The document must be valid.
func (d PlanDocument) Plan(info PlanInfo) Plan {
	plan := Plan{
		Counts: d.Counts(), Fingerprint: d.Fingerprint(), Digest: d.Digest(),
		Warnings: info.Warnings, Text: info.Text,
	}
	for _, r := range d.Resources {
		plan.Changes = append(plan.Changes, r.change())
	}
	for _, r := range info.Drift {
		if change := r.change(); change.Action != ActionMove { // what only moves has not drifted
			plan.Drift = append(plan.Drift, change)
		}
	}
	for _, o := range d.Outputs {
		plan.OutputChanges = append(plan.OutputChanges, o.change())
	}
	for _, r := range d.Reads {
		var f attributeFinder
		f.compare("", nil, r.Value.tree())
		plan.Reads = append(plan.Reads, PlanInput{Address: r.Address, Attributes: f.found})
	}
	sortByDanger(plan.Changes)
	sortByDanger(plan.Drift)
	return plan
}

func (r PlanResource) change() ResourceChange {
	change := ResourceChange{
		Address: r.FullAddress(), PreviousAddress: r.Previous, Type: r.Type, Provider: r.Provider,
		Reason: r.Reason, ReplacePaths: slices.Clone(r.Replace),
	}
	change.Action, change.CreateFirst = r.Action()
	change.Forgets = change.Action == ActionReplace && slices.Contains(r.Actions, string(ActionForget))
	if r.Importing != nil {
		change.Importing = importText(r.Importing.tree())
	}
	f := attributeFinder{forces: r.Replace}
	f.compare("", r.Before.tree(), r.After.tree())
	slices.SortStableFunc(f.found, func(a, b AttributeChange) int {
		if a.Forces != b.Forces {
			if a.Forces {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	change.Attributes = f.found
	return change
}

// importText is the id that is imported, or its identity as JSON: ids that look like
// one, or like what is shown of others, are quoted. Secret ones that differ do so in
// a few characters of their mark.
func importText(tree any) string {
	shown := shownTree(tree)
	id, ok := shown.(string)
	if literal, isText := tree.(string); !ok || isText && (strings.HasPrefix(id, "{") || literal != id) {
		id = string(shownJSON(tree))
	}
	if mark := markDigest(tree); mark != "" {
		id += " #" + strings.TrimPrefix(string(mark), "sha256:")[:8]
	}
	return id
}

func (o PlanOutput) change() OutputChange {
	before, after := o.Before.tree(), o.After.tree()
	_, unknown := unknownMark(after)
	return OutputChange{
		Name: o.Name, Action: o.Action(), Sensitive: isSecret(before) || isSecret(after), Unknown: unknown,
		Before: shownJSON(before), After: shownJSON(after), BeforeMark: markDigest(before), AfterMark: markDigest(after),
	}
}

// ChangesTo returns the attributes in which another value differs from v. It is nil if
// they are equal, and if they differ in what is null here and left out there.
func (v PlanValue) ChangesTo(after PlanValue) []AttributeChange {
	var f attributeFinder
	f.compare("", v.tree(), after.tree())
	return f.found
}

// attributeFinder collects the attributes that differ.
type attributeFinder struct {
	forces []string
	found  []AttributeChange
}

// absent stands for a key or an element that a value does not have. At the top, where a
// schema says which attributes there are, null stands for it too.
type absent struct{}

// compare adds the differences at path and below.
func (f *attributeFinder) compare(path AttributePath, before, after any) {
	if path == "" {
		before, after = orAbsent(before), orAbsent(after)
	}
	_, marked := before.(PlanMark)
	if _, ok := after.(PlanMark); ok || marked {
		if !reflect.DeepEqual(before, after) {
			f.add(path, before, after)
		}
		return
	}
	switch {
	case both[map[string]any](before, after) && (path == "" || sizeOf(before)+sizeOf(after) > 0):
		f.emptied(path, before, after)
		for _, key := range keysOf(before, after) {
			was, is := keyIn(before, key), keyIn(after, key)
			if path == "" {
				was, is = orAbsent(was), orAbsent(is)
			}
			f.compare(path.Key(key), was, is)
		}
	case both[[]any](before, after) && sizeOf(before)+sizeOf(after) > 0:
		f.emptied(path, before, after)
		for i := range max(sizeOf(before), sizeOf(after)) {
			f.compare(path.Index(i), elementIn(before, i), elementIn(after, i))
		}
	case !reflect.DeepEqual(before, after):
		f.add(path, before, after)
	}
}

// emptied adds the object or list that is empty of two, of which the other is not: what
// is compared below tells it from nothing no more.
func (f *attributeFinder) emptied(path AttributePath, before, after any) {
	switch {
	case path == "" || before == absent{} || after == absent{}:
	case sizeOf(before) == 0:
		f.add(path, before, absent{})
	case sizeOf(after) == 0:
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

func (f *attributeFinder) add(path AttributePath, before, after any) {
	_, unknown := unknownMark(after)
	f.found = append(f.found, AttributeChange{
		Path: string(path), Unknown: unknown, Forces: f.forcesAt(path),
		Sensitive: isSecret(before) || isSecret(after),
		Before:    partJSON(before), After: partJSON(after),
		BeforeMark: markDigest(before), AfterMark: markDigest(after),
	})
}

// Emptied reports of each attribute of a resource whether it says only that what is
// below it in the list was, or becomes, empty.
func Emptied(attributes []AttributeChange) []bool {
	out := make([]bool, len(attributes))
	for i, a := range attributes {
		one := string(a.Before) + string(a.After) // of which the other is nothing
		out[i] = (one == "{}" || one == "[]") && slices.ContainsFunc(attributes, func(below AttributeChange) bool {
			return below.Path != a.Path && AttributePath(below.Path).Within(AttributePath(a.Path))
		})
	}
	return out
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
func (f *attributeFinder) forcesAt(path AttributePath) bool {
	return slices.ContainsFunc(f.forces, func(force string) bool {
		return path.Within(AttributePath(force)) || AttributePath(force).Within(path)
	})
}

// unknownMark returns the mark of a value that is known only after the apply as
// a whole.
func unknownMark(tree any) (PlanMark, bool) {
	m, ok := tree.(PlanMark)
	return m, ok && m.Unknown && m.HMAC == ""
}

// shownTree returns a copy of a tree with words in place of its marks. A text that
// has these words itself has a backslash in front of them.
func shownTree(tree any) any {
	switch v := tree.(type) {
	case PlanMark:
		switch {
		case v.HMAC == "":
			return UnknownValue
		case v.Text != "":
			return v.Text
		default:
			return SensitiveValue
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			out[key] = shownTree(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = shownTree(child)
		}
		return out
	case string:
		if strings.TrimLeft(v, `\`) == UnknownValue {
			return `\` + v
		}
		return strings.ReplaceAll(v, SensitiveValue, `\`+SensitiveValue)
	default:
		return tree
	}
}

// shownJSON is shownTree as JSON without the escapes for HTML; nil for nothing.
func shownJSON(tree any) json.RawMessage {
	if tree == nil {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(shownTree(tree)); err != nil { // cannot be: it was decoded from JSON
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// markDigest is of a value that has secrets in it; empty if it has none.
func markDigest(tree any) Digest {
	if !hasSecret(tree) {
		return ""
	}
	value, err := NewPlanValue(tree)
	if err != nil { // cannot be: it was one
		return ""
	}
	return DigestOf(value)
}

// isSecret reports whether nothing of a value may be shown.
func isSecret(tree any) bool {
	m, ok := tree.(PlanMark)
	return ok && m.HMAC != "" && m.Text == ""
}

// hasSecret reports whether a tree has a mark of something secret.
func hasSecret(tree any) bool {
	switch v := tree.(type) {
	case PlanMark:
		return v.HMAC != ""
	case map[string]any:
		for _, child := range v {
			if hasSecret(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasSecret)
	}
	return false
}

func sizeOf(tree any) int {
	switch v := tree.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	default:
		return 0
	}
}

// keysOf returns the keys of two objects, sorted.
func keysOf(a, b any) []string {
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

// sortByDanger puts first what destroys the most.
func sortByDanger(changes []ResourceChange) {
	slices.SortStableFunc(changes, func(a, b ResourceChange) int {
		return cmp.Or(
			cmp.Compare(actionRank(a.Action), actionRank(b.Action)),
			cmp.Compare(b.Danger(), a.Danger()),
			strings.Compare(a.Address, b.Address),
		)
	})
}

func actionRank(action ChangeAction) int {
	switch action {
	case ActionReplace, ActionDelete:
		return 0 // both destroy
	case ActionForget:
		return 1
	case ActionUpdate:
		return 2
	case ActionCreate:
		return 3
	case ActionImport:
		return 4
	default:
		return 5
	}
}
