// Package plandoctest makes plan documents for tests that think in plans: what an
// agent would have left behind for the server to derive the same plan from.
package plandoctest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// Of returns the document and the information of which the plan's changes, drift,
// outputs, warnings and text come back. Counts of changes that are not listed
// become changes of null_resource.
func Of(plan holdfast.Plan) (plandoc.Document, plandoc.Info) {
	d := plandoc.Document{Version: plandoc.Version}
	for _, change := range plan.Changes {
		d.Resources = append(d.Resources, resource(change))
	}
	if len(plan.Changes) == 0 {
		d.Resources = counted(plan.Counts)
	}
	for _, o := range plan.OutputChanges {
		d.Outputs = append(d.Outputs, plandoc.Output{
			Name: o.Name, Actions: []string{string(o.Action)}, Before: literal(o.Before), After: literal(o.After),
		})
	}
	for i := len(plan.OutputChanges); i < plan.Counts.Outputs; i++ {
		d.Outputs = append(d.Outputs, plandoc.Output{Name: fmt.Sprintf("output_%04d", i), Actions: []string{"create"}, After: Value("x")})
	}
	d.Sort()
	info := plandoc.Info{Warnings: plan.Warnings, Text: plan.Text}
	drift := plandoc.Document{}
	for _, change := range plan.Drift {
		drift.Resources = append(drift.Resources, resource(change))
	}
	drift.Sort()
	info.Drift = drift.Resources
	return d, info
}

// Artefacts returns the two as agents store them, and the document's digest.
func Artefacts(plan holdfast.Plan) (document, info []byte, digest holdfast.Digest, err error) {
	d, i := Of(plan)
	if err := d.Validate(); err != nil {
		return nil, nil, "", err
	}
	var b bytes.Buffer
	if err := d.Encode(&b); err != nil {
		return nil, nil, "", err
	}
	info, err = json.Marshal(i)
	return b.Bytes(), info, d.Digest(), err
}

func counted(counts holdfast.Counts) []plandoc.Resource {
	var list []plandoc.Resource
	add := func(n int, what string, actions ...string) {
		for i := range n {
			r := plandoc.Resource{
				Address: fmt.Sprintf("null_resource.%s[%d]", what, i), Type: "null_resource", Actions: actions,
				Before: Value(map[string]any{"size": json.Number("1")}), After: Value(map[string]any{"size": json.Number("2")}),
			}
			switch what {
			case "create":
				r.Before = nil
			case "delete":
				r.After = nil
			case "move":
				r.Previous = r.Address + ".old"
			case "import":
				r.Importing = Value("id")
			}
			list = append(list, r)
		}
	}
	add(counts.Create, "create", "create")
	add(counts.Update, "update", "update")
	add(counts.Replace, "replace", "delete", "create")
	add(counts.Delete, "delete", "delete")
	add(counts.Forget, "forget", "forget")
	add(counts.Move, "move", "no-op")
	add(counts.Import, "import", "no-op")
	return list
}

var deposed = regexp.MustCompile(`^(.*) \(deposed object (.*)\)$`)

func resource(c holdfast.ResourceChange) plandoc.Resource {
	r := plandoc.Resource{
		Address: c.Address, Previous: c.PreviousAddress, Type: typeOf(c), Provider: c.Provider, Reason: c.Reason,
		Replace: slices.Sorted(slices.Values(c.ReplacePaths)),
	}
	if m := deposed.FindStringSubmatch(c.Address); m != nil {
		r.Address, r.Deposed = m[1], m[2]
	}
	if c.Importing != "" {
		r.Importing = Value(c.Importing)
	}
	switch c.Action {
	case holdfast.ActionReplace:
		r.Actions = []string{"delete", "create"}
		if c.CreateFirst {
			r.Actions = []string{"create", "delete"}
		}
	case holdfast.ActionImport, holdfast.ActionMove:
		if r.Actions = []string{"no-op"}; r.Importing == nil && r.Previous == "" {
			r.Previous = r.Address + "_before"
		}
	default:
		r.Actions = []string{string(c.Action)}
	}
	var before, after any = map[string]any{}, map[string]any{}
	for _, a := range c.Attributes {
		before = put(before, steps(a.Path), leaf(a, a.Before, "before"))
		after = put(after, steps(a.Path), leaf(a, a.After, "after"))
		if a.Forces && !slices.Contains(r.Replace, a.Path) {
			r.Replace = slices.Sorted(slices.Values(append(r.Replace, a.Path)))
		}
	}
	if c.Action != holdfast.ActionCreate {
		r.Before = Value(before)
	}
	if c.Action != holdfast.ActionDelete {
		r.After = Value(after)
	}
	return r
}

// typeOf is the type of a change, which its address has to agree with.
func typeOf(c holdfast.ResourceChange) string {
	if c.Type != "" && strings.Contains("."+c.Address, "."+c.Type+".") {
		return c.Type
	}
	parts := strings.Split(strings.SplitN(c.Address, "[", 2)[0], ".")
	return parts[max(0, len(parts)-2)]
}

// leaf is one side of an attribute.
func leaf(a holdfast.AttributeChange, raw json.RawMessage, side string) any {
	mark := a.BeforeMark
	if side == "after" {
		mark = a.AfterMark
	}
	switch {
	case len(raw) == 0:
		return nil
	case side == "after" && a.Unknown:
		return plandoc.Mark{Unknown: true}
	case a.Sensitive || mark != "":
		sum := sha256.Sum256([]byte(a.Path + side + string(raw) + string(mark)))
		return plandoc.Mark{HMAC: base64.RawURLEncoding.EncodeToString(sum[:])}
	}
	return decode(raw)
}

func literal(raw json.RawMessage) plandoc.Value {
	if len(raw) == 0 {
		return nil
	}
	return Value(decode(raw))
}

func decode(raw json.RawMessage) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return string(raw)
	}
	return tree
}

// Value encodes a tree; it panics if that is not a tree of a value.
func Value(tree any) plandoc.Value {
	v, err := plandoc.NewValue(tree)
	if err != nil {
		panic(err)
	}
	return v
}

var step = regexp.MustCompile(`\.?([^.\[\]]+)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]`)

// steps are the parts of a path: names and indexes.
func steps(path string) []any {
	var out []any
	for _, m := range step.FindAllStringSubmatch(path, -1) {
		switch {
		case m[1] != "":
			out = append(out, m[1])
		case m[2] != "":
			n, _ := strconv.Atoi(m[2])
			out = append(out, n)
		default:
			name, err := strconv.Unquote(`"` + m[3] + `"`)
			if err != nil {
				name = m[3]
			}
			out = append(out, name)
		}
	}
	return out
}

// put sets what a path leads to in a tree.
func put(tree any, path []any, leaf any) any {
	if len(path) == 0 {
		return leaf
	}
	switch at := path[0].(type) {
	case int:
		list, _ := tree.([]any)
		for len(list) <= at {
			list = append(list, nil)
		}
		list[at] = put(list[at], path[1:], leaf)
		return list
	default:
		object, _ := tree.(map[string]any)
		if object == nil {
			object = map[string]any{}
		}
		name := at.(string)
		object[name] = put(object[name], path[1:], leaf)
		return object
	}
}
