package attempt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/journal"
)

// A list of what was completed counts as whole if it has fewer entries than it may have.
var _ = [1]int{}[journal.MaxCompleted-holdfast.MaxCompleted]

// nameSum is what a plan document appends to an address that has a secret in it.
var nameSum = regexp.MustCompile(` #[A-Za-z0-9_-]{16}$`)

// createdAgain returns the addresses that the plan would create although an apply
// that died may have created them. One that is in the state is updated, or not changed at
// all. A replacement counts in either order: the object in the state, which it destroys,
// may be the one from before that apply, and not the one which that apply created.
func (t *attempt) createdAgain() []string {
	if len(t.a.MayExist) == 0 && !t.a.AnyMayExist {
		return nil
	}
	may := make(map[string]bool, len(t.a.MayExist))
	for _, address := range t.a.MayExist {
		may[address] = true
	}
	var again []string
	for _, r := range t.document.Resources {
		if r.Deposed != "" || !slices.Contains(r.Actions, "create") {
			continue
		}
		// Both had their secrets taken out: they were in a log, and a document.
		logged := t.redact.String(nameSum.ReplaceAllString(r.Address, ""))
		if t.a.AnyMayExist || may[r.Address] || may[logged] {
			again = append(again, r.Address)
		}
	}
	return again
}

// mayExist says in words what would be created again.
func mayExist(addresses []string) string {
	const shown = 10
	names := strings.Join(addresses[:min(len(addresses), shown)], ", ")
	if more := len(addresses) - shown; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return "may exist already, because an apply died while it created them or before it had saved that: " + names
}
