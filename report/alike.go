package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Two plans are shown as one only if they are equal except for whole values that are
// the own name, or the own region, of their cluster, and for sensitive values.
// What differs is listed.

// own is what a cluster may have to itself in a plan that is shown for several.
type own struct{ name, region string }

func ownOf(c Cluster) own { return own{c.Name, c.Document.Region} }

// planKey returns a text that is the same for two plans that may be shown as one,
// and for no others.
func planKey(p *holdfast.Plan, o own) string {
	if p == nil {
		return "no plan"
	}
	k := keyWriter{own: o}
	k.add(fmt.Sprintf("%+v", p.Counts))
	for _, c := range canonical(p.Changes) {
		k.change(c)
	}
	k.add("outputs")
	for _, out := range p.OutputChanges {
		k.add(out.Name, string(out.Action), strconv.FormatBool(out.Sensitive), strconv.FormatBool(out.Unknown))
		k.value(out.Before)
		k.value(out.After)
	}
	k.add("reads") // their values are compared one by one
	for _, r := range p.Reads {
		k.add(r.Address)
	}
	k.add("drift") // as much of it as is shown
	for _, c := range canonical(p.Drift) {
		k.add(c.Address, string(c.Action), strconv.Itoa(len(c.Attributes)))
		for _, a := range c.Attributes {
			k.add(a.Path)
		}
	}
	for _, d := range p.Warnings {
		k.add("warning", d.Summary, d.Detail, d.Address, d.File, strconv.Itoa(d.Line))
	}
	return k.b.String()
}

// canonical returns changes in an order that their places alone decide, each with
// its attributes in the order of their paths.
func canonical(changes []holdfast.ResourceChange) []holdfast.ResourceChange {
	sorted := slices.Clone(changes)
	for i := range sorted {
		sorted[i].Attributes = slices.Clone(sorted[i].Attributes)
		slices.SortStableFunc(sorted[i].Attributes, func(a, b holdfast.AttributeChange) int { return strings.Compare(a.Path, b.Path) })
	}
	slices.SortStableFunc(sorted, func(a, b holdfast.ResourceChange) int { return strings.Compare(a.Address, b.Address) })
	return sorted
}

// keyWriter writes texts so that no two lists of them look alike.
type keyWriter struct {
	own own
	b   strings.Builder
}

func (k *keyWriter) add(texts ...string) {
	for _, s := range texts {
		k.b.WriteString(strconv.Itoa(len(s)) + ":" + s + ",")
	}
}

func (k *keyWriter) change(c holdfast.ResourceChange) {
	k.add("change", c.Address, c.PreviousAddress, c.Type, c.Provider, string(c.Action), c.Reason,
		strconv.FormatBool(c.CreateFirst), strconv.FormatBool(c.Forgets), strconv.Itoa(len(c.ReplacePaths)))
	k.add(c.ReplacePaths...)
	k.leaf(c.Importing)
	for _, a := range c.Attributes {
		k.add("attribute", a.Path, strconv.FormatBool(a.Sensitive), strconv.FormatBool(a.Unknown), strconv.FormatBool(a.Forces))
		k.value(a.Before)
		k.value(a.After)
	}
}

// leaf writes a text, or which property of the cluster it is.
func (k *keyWriter) leaf(s string) {
	switch s {
	case "":
		k.b.WriteString("-,")
	case k.own.name:
		k.b.WriteString("N,")
	case k.own.region:
		k.b.WriteString("R,")
	default:
		k.add(s)
	}
}

// value writes a value, with what it has of the cluster taken out of it.
func (k *keyWriter) value(raw json.RawMessage) {
	var v any
	ok := k.own.mentioned(raw)
	if ok {
		v, ok = decoded(raw)
	}
	if !ok || !k.own.within(v) {
		k.b.WriteByte('j')
		k.add(string(raw))
		return
	}
	k.b.WriteByte('v')
	k.tree(v)
}

func (k *keyWriter) tree(v any) {
	switch v := v.(type) {
	case string:
		k.leaf(v)
	case []any:
		k.b.WriteString("[" + strconv.Itoa(len(v)) + ":")
		for _, item := range v {
			k.tree(item)
		}
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		k.b.WriteString("{" + strconv.Itoa(len(keys)) + ":")
		for _, key := range keys {
			k.add(key)
			k.tree(v[key])
		}
	default: // a number, true, false, null
		k.b.WriteByte('j')
		k.add(fmt.Sprint(v))
	}
}

// mentioned is a quick check whether a value may be the cluster's.
func (o own) mentioned(raw json.RawMessage) bool {
	return o.name != "" && bytes.Contains(raw, []byte(`"`+o.name+`"`)) || o.region != "" && bytes.Contains(raw, []byte(`"`+o.region+`"`))
}

// within reports whether a whole value, or one inside of it, is the cluster's.
func (o own) within(v any) bool {
	switch v := v.(type) {
	case string:
		return v != "" && (v == o.name || v == o.region)
	case []any:
		return slices.ContainsFunc(v, o.within)
	case map[string]any:
		for _, item := range v {
			if o.within(item) {
				return true
			}
		}
	}
	return false
}

// decoded returns the value of JSON; false if it is not JSON, or nothing.
func decoded(raw json.RawMessage) (any, bool) {
	if len(raw) == 0 {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return nil, false
	}
	return v, true
}
