package holdfast

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// SubsetOf reports whether everything that d would do was in reviewed: the same
// address with the same actions, the same values before and after. A value that
// was unknown when it was reviewed may be anything now. Of a replacement one
// half may be done: its create remains, or the delete of the object that it
// deposed. A move or an import may be done. Outputs may change in another way,
// to the reviewed value. What is read is what was read, or what was to be made. It is what remains of an apply that failed in the
// middle that is asked about. Both documents must be valid.
func (d PlanDocument) SubsetOf(reviewed PlanDocument) bool {
	for _, r := range d.Resources {
		then, ok := reviewed.find(r)
		if !ok || !remains(r, then) {
			return false
		}
	}
	for _, o := range d.Outputs {
		then, ok := reviewed.output(o.Name)
		if !ok || !covers(then.After.tree(), o.After.tree()) {
			return false
		}
	}
	for _, r := range d.Reads {
		if !reviewed.hasRead(r) {
			return false
		}
	}
	return true
}

// hasRead reports whether what is read now was read when it was reviewed, or was to
// be made so: what a resource has is read once it no longer changes.
func (d PlanDocument) hasRead(r PlanRead) bool {
	if i, ok := slices.BinarySearchFunc(d.Reads, r, comparePlanReads); ok {
		return covers(d.Reads[i].Value.tree(), r.Value.tree())
	}
	i, ok := slices.BinarySearchFunc(d.Resources, PlanResource{Address: r.Address}, comparePlanResources)
	if !ok || d.Resources[i].After == nil {
		return false
	}
	after, read := d.Resources[i].After.tree(), r.Value.tree()
	for _, key := range keysOf(read, nil) {
		if !covers(fieldOf(after, key), fieldOf(read, key)) {
			return false
		}
	}
	return true
}

// find returns the resource that r is, or could be what remains of.
func (d PlanDocument) find(r PlanResource) (PlanResource, bool) {
	if i, ok := slices.BinarySearchFunc(d.Resources, r, comparePlanResources); ok {
		return d.Resources[i], true
	}
	if r.Deposed == "" {
		return PlanResource{}, false
	}
	i, ok := slices.BinarySearchFunc(d.Resources, PlanResource{Address: r.Address}, comparePlanResources)
	if !ok || !slices.Equal(d.Resources[i].Actions, []string{"create", "delete"}) {
		return PlanResource{}, false
	}
	return d.Resources[i], true
}

func (d PlanDocument) output(name string) (PlanOutput, bool) {
	i, ok := slices.BinarySearchFunc(d.Outputs, name, func(o PlanOutput, name string) int { return strings.Compare(o.Name, name) })
	if !ok {
		return PlanOutput{}, false
	}
	return d.Outputs[i], true
}

// remains reports whether r can be what is left of reviewed to do.
func remains(r, reviewed PlanResource) bool {
	before := func() bool { return covers(reviewed.Before.tree(), r.Before.tree()) }
	after := func() bool { return covers(reviewed.After.tree(), r.After.tree()) }
	switch {
	case r.Deposed != reviewed.Deposed: // the deposed half of a replacement
		return slices.Equal(r.Actions, []string{"delete"}) && before()
	case r.Type != reviewed.Type:
		return false
	case slices.Equal(r.Actions, []string{"create"}) && slices.Equal(reviewed.Actions, []string{"delete", "create"}):
		return after()
	case r.Reason == GoneOutside && slices.Equal(reviewed.Actions, []string{"delete"}): // done, and not recorded
		return true
	case !slices.Equal(r.Actions, reviewed.Actions), !slices.Equal(r.Replace, reviewed.Replace):
		return false
	case r.Previous != "" && r.Previous != reviewed.Previous:
		return false
	case r.Importing != nil && !covers(reviewed.Importing.tree(), r.Importing.tree()):
		return false
	}
	return before() && after()
}

// covers reports whether found is what was reviewed, except for what was unknown. Of a
// secret only a whole one can have been unknown: its parts cannot be compared.
func covers(reviewed, found any) bool {
	if m, ok := reviewed.(PlanMark); ok && m.Unknown && m.HMAC == "" {
		return true
	}
	switch {
	case areObjects(reviewed, found):
		for _, key := range keysOf(reviewed, found) {
			if !covers(fieldOf(reviewed, key), fieldOf(found, key)) {
				return false
			}
		}
		return (reviewed == nil) == (found == nil) || sizeOf(reviewed)+sizeOf(found) > 0
	case areLists(reviewed, found):
		if sizeOf(reviewed) != sizeOf(found) || (reviewed == nil) != (found == nil) {
			return false
		}
		for i := range sizeOf(found) {
			if !covers(itemOf(reviewed, i), itemOf(found, i)) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(reviewed, found)
	}
}

// maxDifferenceLines bounds what Differences returns.
const maxDifferenceLines = 20

// Differences returns in words how d, which was found, differs from what was
// reviewed: one line for each change that is new, gone or different, at most 21
// lines. It is empty if and only if the documents are equal. Both must be valid.
func (d PlanDocument) Differences(reviewed PlanDocument) []string {
	var lines []string
	mergeSorted(d.Resources, reviewed.Resources, comparePlanResources, func(found, then *PlanResource) {
		switch {
		case then == nil:
			lines = append(lines, fmt.Sprintf("%s: %s, which was not reviewed", found.FullAddress(), found.verb()))
		case found == nil:
			lines = append(lines, fmt.Sprintf("%s: was to be %s, nothing is to be done now", then.FullAddress(), then.past()))
		default:
			if line := found.difference(*then); line != "" {
				lines = append(lines, found.FullAddress()+": "+line)
			}
		}
	})
	byName := func(a, b PlanOutput) int { return strings.Compare(a.Name, b.Name) }
	mergeSorted(d.Outputs, reviewed.Outputs, byName, func(found, then *PlanOutput) {
		switch {
		case then == nil:
			lines = append(lines, fmt.Sprintf("output.%s: %s, which was not reviewed", found.Name, verbOf(found.past())))
		case found == nil:
			lines = append(lines, fmt.Sprintf("output.%s: was to be %s, nothing is to be done now", then.Name, then.past()))
		default:
			if line := found.difference(*then); line != "" {
				lines = append(lines, "output."+found.Name+": "+line)
			}
		}
	})
	mergeSorted(d.Reads, reviewed.Reads, comparePlanReads, func(found, then *PlanRead) {
		switch {
		case then == nil:
			lines = append(lines, found.Address+": read now, and not when it was reviewed")
		case found == nil:
			lines = append(lines, then.Address+": was read when it was reviewed, and is not now")
		default:
			if paths := differentPaths(found.Value, then.Value); len(paths) > 0 {
				lines = append(lines, found.Address+": what was read is another one: "+someOf(paths))
			}
		}
	})
	if more := len(lines) - maxDifferenceLines; more > 0 {
		lines = append(lines[:maxDifferenceLines], fmt.Sprintf("and %d more", more))
	}
	return lines
}

// mergeSorted calls visit for each element of two sorted lists: with both where
// they are equal by order, else with one and nil.
func mergeSorted[T any](a, b []T, order func(a, b T) int, visit func(a, b *T)) {
	for len(a) > 0 || len(b) > 0 {
		rank := 0
		switch {
		case len(a) == 0:
			rank = 1
		case len(b) == 0:
			rank = -1
		default:
			rank = order(a[0], b[0])
		}
		switch {
		case rank < 0:
			visit(&a[0], nil)
			a = a[1:]
		case rank > 0:
			visit(nil, &b[0])
			b = b[1:]
		default:
			visit(&a[0], &b[0])
			a, b = a[1:], b[1:]
		}
	}
}

func (r PlanResource) difference(reviewed PlanResource) string {
	switch {
	case !slices.Equal(r.Actions, reviewed.Actions):
		if r.past() == reviewed.past() {
			return fmt.Sprintf("%s in the order %s now, %s when it was reviewed", r.past(),
				strings.Join(r.Actions, ", "), strings.Join(reviewed.Actions, ", "))
		}
		return fmt.Sprintf("%s now, was to be %s", r.verb(), reviewed.past())
	case !slices.Equal(r.Replace, reviewed.Replace):
		return fmt.Sprintf("replaced because of %s now, because of %s when it was reviewed",
			orNothing(r.Replace), orNothing(reviewed.Replace))
	case r.Previous != reviewed.Previous:
		return fmt.Sprintf("moved from %s now, from %s when it was reviewed", orNowhere(r.Previous), orNowhere(reviewed.Previous))
	case string(r.Importing) != string(reviewed.Importing):
		return "another object is imported than was reviewed"
	}
	after := differentPaths(r.After, reviewed.After)
	before := differentPaths(r.Before, reviewed.Before)
	switch {
	case len(after) > 0:
		return "another value is planned for " + someOf(after)
	case len(before) > 0:
		return "it is not what it was when it was reviewed: " + someOf(before)
	case r.Type != reviewed.Type || r.Provider != reviewed.Provider:
		return fmt.Sprintf("of %s by %s now, of %s by %s when it was reviewed", r.Type, r.Provider, reviewed.Type, reviewed.Provider)
	case r.Reason != reviewed.Reason:
		return fmt.Sprintf("because of %s now, of %s when it was reviewed", orNowhere(r.Reason), orNowhere(reviewed.Reason))
	default:
		return ""
	}
}

func (o PlanOutput) difference(reviewed PlanOutput) string {
	if !slices.Equal(o.Actions, reviewed.Actions) {
		return fmt.Sprintf("%s now, was to be %s", verbOf(o.past()), reviewed.past())
	}
	if after := differentPaths(o.After, reviewed.After); len(after) > 0 {
		return "another value is planned for " + someOf(after)
	}
	if before := differentPaths(o.Before, reviewed.Before); len(before) > 0 {
		return "it is not what it was when it was reviewed: " + someOf(before)
	}
	return ""
}

// differentPaths returns where two values differ, each with both values if they
// are short and may be shown; nil if they are equal.
func differentPaths(found, reviewed PlanValue) []string {
	if string(found) == string(reviewed) {
		return nil
	}
	var f attributeFinder
	f.compare("", reviewed.tree(), found.tree())
	var paths []string
	for _, a := range f.found {
		path := a.Path
		if path == "" {
			path = "its value"
		}
		paths = append(paths, path+bothValues(a))
	}
	if paths == nil { // a null that was or is left out
		paths = []string{"its value"}
	}
	return paths
}

// bothValues says what was reviewed and what is found, if that is short.
func bothValues(a AttributeChange) string {
	const most = 40
	before, after := string(a.Before), string(a.After)
	if before == after || a.Sensitive || utf8.RuneCountInString(before) > most || utf8.RuneCountInString(after) > most {
		return ""
	}
	if before == "" {
		before = "nothing"
	}
	if after == "" {
		after = "nothing"
	}
	return fmt.Sprintf(" (%s, reviewed was %s)", after, before)
}

func someOf(paths []string) string {
	const limit = 4
	if len(paths) <= limit {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:limit], ", "), len(paths)-limit)
}

func orNothing(paths []string) string {
	if len(paths) == 0 {
		return "nothing named"
	}
	return strings.Join(paths, ", ")
}

func orNowhere(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

func (r PlanResource) verb() string { return verbOf(r.past()) }

func verbOf(past string) string { return "to be " + past }

// past is what will have been done.
func (r PlanResource) past() string {
	action, _ := r.Action()
	return pastOf(action)
}

func (o PlanOutput) past() string { return pastOf(o.Action()) }

func pastOf(action ChangeAction) string {
	switch action {
	case ActionCreate:
		return "created"
	case ActionUpdate:
		return "updated"
	case ActionDelete:
		return "destroyed"
	case ActionForget:
		return "forgotten"
	case ActionImport:
		return "imported"
	case ActionMove:
		return "moved"
	default:
		return "replaced"
	}
}
