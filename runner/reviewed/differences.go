package reviewed

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// maxDifferenceLines bounds what Differences returns.
const maxDifferenceLines = 20

// Differences returns in words how the document that was found differs from the
// one that was reviewed: one line for each change that is new, gone or different,
// at most 21 lines. It is empty if and only if the documents are equal. Both must
// be valid.
func Differences(found, reviewed plandoc.Document) []string {
	var lines []string
	mergeSorted(found.Resources, reviewed.Resources, plandoc.Resource.Compare, func(found, then *plandoc.Resource) {
		switch {
		case then == nil:
			lines = append(lines, fmt.Sprintf("%s: %s, which was not reviewed", found.FullAddress(), verbOf(resourcePast(*found))))
		case found == nil:
			lines = append(lines, fmt.Sprintf("%s: was to be %s, and now has no changes", then.FullAddress(), resourcePast(*then)))
		default:
			if line := resourceDifference(*found, *then); line != "" {
				lines = append(lines, found.FullAddress()+": "+line)
			}
		}
	})
	byName := func(a, b plandoc.Output) int { return strings.Compare(a.Name, b.Name) }
	mergeSorted(found.Outputs, reviewed.Outputs, byName, func(found, then *plandoc.Output) {
		switch {
		case then == nil:
			lines = append(lines, fmt.Sprintf("output.%s: %s, which was not reviewed", found.Name, verbOf(pastOf(found.Action()))))
		case found == nil:
			lines = append(lines, fmt.Sprintf("output.%s: was to be %s, and now has no changes", then.Name, pastOf(then.Action())))
		default:
			if line := outputDifference(*found, *then); line != "" {
				lines = append(lines, "output."+found.Name+": "+line)
			}
		}
	})
	mergeSorted(found.Reads, reviewed.Reads, plandoc.Read.Compare, func(found, then *plandoc.Read) {
		switch {
		case then == nil:
			lines = append(lines, found.Address+": read now, and not when it was reviewed")
		case found == nil:
			lines = append(lines, then.Address+": was read when it was reviewed, and is not now")
		default:
			if paths := differentPaths(found.Value, then.Value); len(paths) > 0 {
				lines = append(lines, found.Address+": the value that was read has changed: "+someOf(paths))
			}
		}
	})
	if more := len(lines) - maxDifferenceLines; more > 0 {
		lines = append(lines[:maxDifferenceLines], fmt.Sprintf("and %d more", more))
	}
	return lines
}

// mergeSorted calls visit for each element of two sorted lists: with both where they
// are equal by order, otherwise with one and nil.
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

func resourceDifference(r, reviewed plandoc.Resource) string {
	switch {
	case !slices.Equal(r.Actions, reviewed.Actions):
		if resourcePast(r) == resourcePast(reviewed) {
			return fmt.Sprintf("%s in the order %s now, %s when it was reviewed", resourcePast(r),
				strings.Join(r.Actions, ", "), strings.Join(reviewed.Actions, ", "))
		}
		return fmt.Sprintf("%s now, was to be %s", verbOf(resourcePast(r)), resourcePast(reviewed))
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
		return "it has changed since the review: " + someOf(before)
	case r.Type != reviewed.Type || r.Provider != reviewed.Provider:
		return fmt.Sprintf("of %s by %s now, of %s by %s when it was reviewed", r.Type, r.Provider, reviewed.Type, reviewed.Provider)
	case r.Reason != reviewed.Reason:
		return fmt.Sprintf("because of %s now, of %s when it was reviewed", orNowhere(r.Reason), orNowhere(reviewed.Reason))
	default:
		return ""
	}
}

func outputDifference(o, reviewed plandoc.Output) string {
	if !slices.Equal(o.Actions, reviewed.Actions) {
		return fmt.Sprintf("%s now, was to be %s", verbOf(pastOf(o.Action())), pastOf(reviewed.Action()))
	}
	if after := differentPaths(o.After, reviewed.After); len(after) > 0 {
		return "another value is planned for " + someOf(after)
	}
	if before := differentPaths(o.Before, reviewed.Before); len(before) > 0 {
		return "it has changed since the review: " + someOf(before)
	}
	return ""
}

// differentPaths returns where two values differ, each with both values if they
// are short and may be shown; nil if they are equal.
func differentPaths(found, reviewed plandoc.Value) []string {
	if string(found) == string(reviewed) {
		return nil
	}
	var paths []string
	for _, a := range plandiff.Attributes(reviewed, found) {
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
func bothValues(a holdfast.AttributeChange) string {
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

func verbOf(past string) string { return "to be " + past }

// resourcePast is what will have been done.
func resourcePast(r plandoc.Resource) string {
	action, _ := r.Action()
	return pastOf(action)
}

func pastOf(action holdfast.ChangeAction) string {
	switch action {
	case holdfast.ActionCreate:
		return "created"
	case holdfast.ActionUpdate:
		return "updated"
	case holdfast.ActionDelete:
		return "destroyed"
	case holdfast.ActionForget:
		return "forgotten"
	case holdfast.ActionImport:
		return "imported"
	case holdfast.ActionMove:
		return "moved"
	default:
		return "replaced"
	}
}
