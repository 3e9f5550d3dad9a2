package report

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// withoutElements takes out of attributes the elements of lists of texts and numbers, and
// says of each such list what it gains and loses: an element that is put in front moves
// all the others, which have not changed.
func withoutElements(attributes []holdfast.AttributeChange) (others []holdfast.AttributeChange, lists []string) {
	elements := map[string][]holdfast.AttributeChange{}
	for _, a := range attributes {
		if list, ok := elementOf(a); ok {
			elements[list] = append(elements[list], a)
		}
	}
	told := map[string]bool{}
	for _, a := range attributes {
		list, ok := elementOf(a)
		switch {
		case !ok || len(elements[list]) == 1 && len(a.Before) > 0 && len(a.After) > 0:
			others = append(others, a) // one element is another one
		case !told[list]:
			told[list] = true
			lists = append(lists, listCell(list, elements[list]))
		}
	}
	return others, lists
}

// elementOf is the list that an attribute is a plain element of.
func elementOf(a holdfast.AttributeChange) (list string, ok bool) {
	begin := strings.LastIndexByte(a.Path, '[')
	if begin <= 0 || a.Path[len(a.Path)-1] != ']' || a.Forces || a.Sensitive || a.Unknown || a.BeforeMark+a.AfterMark != "" {
		return "", false
	}
	index := a.Path[begin+1 : len(a.Path)-1]
	return a.Path[:begin], index != "" && digits(index) == len(index) && plainElement(a.Before) && plainElement(a.After) && len(a.Before)+len(a.After) > 0
}

// plainElement reports whether an element is a text or a number that is shown as a whole,
// or is not there.
func plainElement(raw json.RawMessage) bool {
	return len(raw) == 0 || len(raw) <= cellLimit && shown(raw) && raw[0] != '{' && raw[0] != '['
}

// listCell is what a list gains and loses.
func listCell(list string, elements []holdfast.AttributeChange) string {
	var before, after []json.RawMessage
	for _, a := range elements {
		if len(a.Before) > 0 {
			before = append(before, a.Before)
		}
		if len(a.After) > 0 {
			after = append(after, a.After)
		}
	}
	cell := codeText(markdown.Shorten(list, 80))
	var parts []string
	if gained := without(after, before); len(gained) > 0 {
		parts = append(parts, "gains "+elementList(gained))
	}
	if lost := without(before, after); len(lost) > 0 {
		parts = append(parts, "loses "+elementList(lost))
	}
	if len(parts) == 0 {
		return cell + " has its elements in another order"
	}
	return cell + " " + strings.Join(parts, ", ")
}

// without is what of a is not in b, counting those that are there twice.
func without(a, b []json.RawMessage) []json.RawMessage {
	rest := slices.Clone(b)
	return slices.DeleteFunc(slices.Clone(a), func(raw json.RawMessage) bool {
		i := slices.IndexFunc(rest, func(other json.RawMessage) bool { return bytes.Equal(raw, other) })
		if i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		}
		return i >= 0
	})
}

func elementList(elements []json.RawMessage) string {
	cells := make([]string, len(elements))
	for i, raw := range elements {
		cells[i] = sideCell(raw, nil).cell
	}
	return markdown.List(cells, 5)
}
