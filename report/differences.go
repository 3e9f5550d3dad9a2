package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// difference is a place in which the plans of a group are not the same.
type difference struct {
	address, path string
	values        []holdfast.AttributeChange // by outcome
	read          bool                       // of what was read: it may differ in any way
}

// differencesOf compares plans of one key.
func differencesOf(outcomes []outcome) (found []difference) {
	if len(outcomes) < 2 {
		return nil
	}
	compare := func(d difference, value func(i int) holdfast.AttributeChange) {
		for i := range outcomes {
			d.values = append(d.values, value(i))
		}
		if d.differs() || d.unknowable() || d.secretlyDiffers() {
			found = append(found, d)
		}
	}
	all := make([][]holdfast.ResourceChange, len(outcomes))
	for i, o := range outcomes {
		all[i] = canonical(o.plan.Changes)
	}
	for c, change := range all[0] {
		compare(difference{address: change.Address, path: "id of the import"}, func(i int) holdfast.AttributeChange {
			return holdfast.AttributeChange{After: quoted(all[i][c].Importing)}
		})
		for a, attribute := range change.Attributes {
			compare(difference{address: change.Address, path: attribute.Path}, func(i int) holdfast.AttributeChange { return all[i][c].Attributes[a] })
		}
	}
	slices.SortStableFunc(found, func(a, b difference) int { return naturally(a.address, b.address) })
	for n, out := range outcomes[0].plan.OutputChanges {
		compare(difference{address: "output " + out.Name}, func(i int) holdfast.AttributeChange { return asAttribute(outcomes[i].plan.OutputChanges[n]) })
	}
	for n, read := range outcomes[0].plan.Reads {
		at, paths := make([]map[string]holdfast.AttributeChange, len(outcomes)), map[string]bool{}
		for i, o := range outcomes {
			at[i] = map[string]holdfast.AttributeChange{}
			for _, a := range o.plan.Reads[n].Attributes {
				at[i][a.Path], paths[a.Path] = a, true
			}
		}
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			compare(difference{address: read.Address, path: path, read: true}, func(i int) holdfast.AttributeChange { return at[i][path] })
		}
	}
	return found
}

// asAttribute is the change of an output as that of an attribute.
func asAttribute(o holdfast.OutputChange) holdfast.AttributeChange {
	return holdfast.AttributeChange{
		Before: o.Before, After: o.After, Sensitive: o.Sensitive, Unknown: o.Unknown, BeforeMark: o.BeforeMark, AfterMark: o.AfterMark,
	}
}

// differs reports whether what is shown differs.
func (d difference) differs() bool {
	return slices.ContainsFunc(d.values, func(a holdfast.AttributeChange) bool {
		return !bytes.Equal(a.Before, d.values[0].Before) || !bytes.Equal(a.After, d.values[0].After)
	})
}

// secretlyDiffers reports whether something sensitive differs.
func (d difference) secretlyDiffers() bool {
	return slices.ContainsFunc(d.values, func(a holdfast.AttributeChange) bool { return secretOf(a) != secretOf(d.values[0]) })
}

// unknowable reports whether there is something sensitive that cannot be compared.
func (d difference) unknowable() bool {
	return slices.ContainsFunc(d.values, func(a holdfast.AttributeChange) bool { return a.Sensitive && secretOf(a) == [2]holdfast.Digest{} })
}

// secretOf stands for what is sensitive in a change.
func secretOf(a holdfast.AttributeChange) [2]holdfast.Digest {
	return [2]holdfast.Digest{a.BeforeMark, a.AfterMark}
}

// shownOf is what is not.
func shownOf(a holdfast.AttributeChange) [2]string {
	return [2]string{string(a.Before), string(a.After)}
}

// classesOf puts the clusters together for which a value is the same, in the order of
// the first of each, and returns these values as well.
func classesOf[K comparable](outcomes []outcome, d difference, of func(holdfast.AttributeChange) K) (members [][]outcome, values []holdfast.AttributeChange) {
	at := map[K]int{}
	for i, a := range d.values {
		n, ok := at[of(a)]
		if !ok {
			n, at[of(a)] = len(members), len(members)
			members, values = append(members, nil), append(values, a)
		}
		members[n] = append(members[n], outcomes[i])
	}
	return members, values
}

// fewMembers is how many clusters may be told apart by their values one by one.
const fewMembers = 4

// differences lists what differs between the members of a group.
func (w planWriter) differences(outcomes []outcome, found []difference) {
	if len(found) == 0 {
		return
	}
	w.line("Differences between them:\n")
	regions := false
	for _, d := range firstOf(&w.page, found, max(w.level.rows, 5)) {
		line := "- " + codeText(d.address)
		if d.path != "" {
			line += " " + codeText(d.path)
		}
		words, region := w.differenceWords(outcomes, d)
		regions = regions || region
		w.line(line + ": " + words)
	}
	if more := len(found) - max(w.level.rows, 5); more > 0 {
		w.linef("- … and %s", markdown.Plural(more, "more difference"))
	}
	if regions {
		w.line("- their regions: " + w.regions(outcomes))
	}
	w.line("")
}

// differenceWords says what differs at one place, of what is shown and of what is
// sensitive, and whether regions are part of it.
func (w planWriter) differenceWords(outcomes []outcome, d difference) (said string, region bool) {
	var parts []string
	switch {
	case !d.differs():
	case len(outcomes) <= fewMembers:
		parts = append(parts, w.eachValue(outcomes, d))
	case d.read:
		members, _ := classesOf(outcomes, d, shownOf)
		parts = append(parts, "another value was read for "+w.classWords(members), markdown.Code("holdfast describe run ID --plan")+" shows each")
	default:
		said, region = w.ownWords(ownOf(outcomes[0].cluster), d.values[0])
		parts = append(parts, said)
	}
	switch {
	case d.unknowable():
		parts = append(parts, "a sensitive value, which may differ")
	case d.secretlyDiffers():
		members, _ := classesOf(outcomes, d, secretOf)
		parts = append(parts, "a sensitive value differs between "+w.classWords(members))
	}
	return strings.Join(parts, "; "), region
}

// eachValue is "`1` in `a`; `2` in `b` and `c`".
func (w planWriter) eachValue(outcomes []outcome, d difference) string {
	members, values := classesOf(outcomes, d, shownOf)
	parts := make([]string, len(values))
	for i, value := range memberCells(values) {
		w.clipped = w.clipped || value.partial
		parts[i] = value.cell + " in " + w.memberNames(members[i])
	}
	return strings.Join(parts, "; ")
}

// classWords is "`a` and `b`", or "`b` and `c` (the same) and `a`": each cluster is in it,
// by its name or as one of the others.
func (w planWriter) classWords(classes [][]outcome) string {
	largest := 0
	for i, class := range classes {
		if len(class) > len(classes[largest]) {
			largest = i
		}
	}
	others := ""
	switch n := len(classes[largest]); {
	case n > aRowEach:
		classes, others = slices.Delete(classes, largest, largest+1), "the others, where it is the same"
	case n == 1 && len(classes) > fewMembers:
		return "each of them"
	}
	slices.SortStableFunc(classes, func(a, b []outcome) int { return min(len(b), 2) - min(len(a), 2) }) // what is alone last
	parts := make([]string, 0, len(classes)+2)
	for _, class := range firstOf(&w.page, classes, max(w.level.notes, 5)) {
		part := w.memberNames(class)
		if len(class) > 1 {
			part += " (the same)"
		}
		parts = append(parts, part)
	}
	if more := len(classes) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	if others != "" {
		parts = append(parts, others)
	}
	return markdown.List(parts, len(parts))
}

// ownWords says what a value is to each cluster of a group, and whether regions
// are part of it.
func (w planWriter) ownWords(o own, a holdfast.AttributeChange) (said string, region bool) {
	cell := func(raw json.RawMessage) string {
		c := sideCell(raw, nil)
		if v, ok := decoded(raw); ok && o.within(v) {
			masked, usesRegion := o.masked(v)
			region = region || usesRegion
			if text, ok := masked.(string); ok {
				return strings.Trim(text, "()")
			}
			c = sideCell(encoded(masked), encoded(v))
		}
		w.clipped = w.clipped || c.partial
		return c.cell
	}
	after := cell(a.After)
	if len(a.Before) == 0 {
		return after, region
	}
	return cell(a.Before) + " → " + after, region
}

// masked is a value with words in place of what it has of the cluster.
func (o own) masked(v any) (masked any, region bool) {
	switch v := v.(type) {
	case string:
		if v != "" && v == o.name {
			return "(its own name)", false
		} else if v != "" && v == o.region {
			return "(its own region)", true
		}
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			var uses bool
			out[i], uses = o.masked(item)
			region = region || uses
		}
		return out, region
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			var uses bool
			out[key], uses = o.masked(item)
			region = region || uses
		}
		return out, region
	}
	return v, false
}

// regions lists the clusters of each region.
func (w planWriter) regions(outcomes []outcome) string {
	members := map[string][]outcome{}
	for _, o := range outcomes {
		region := o.cluster.Document.Region
		members[region] = append(members[region], o)
	}
	var parts []string
	for _, region := range slices.Sorted(maps.Keys(members)) {
		parts = append(parts, codeText(region)+": "+w.memberNames(members[region]))
	}
	return strings.Join(parts, "; ")
}

// memberNames are the names of clusters with one plan, as many as there is room for;
// all of them if it loses something.
func (w planWriter) memberNames(all []outcome) string {
	most := max(w.level.clusters, 3)
	if w.named(all[0]) {
		most = len(all)
	}
	shown := make([]string, 0, len(all)+1)
	for _, o := range firstOf(&w.page, all, most) {
		shown = append(shown, markdown.Code(markdown.Shorten(o.cluster.Name, 63)))
	}
	if more := len(all) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	return markdown.List(shown, len(shown))
}
