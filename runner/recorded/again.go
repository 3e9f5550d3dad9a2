package recorded

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/journal"
)

// A list of what was completed is taken for whole if it has fewer entries than it may have.
var _ = [1]int{}[journal.MaxCompleted-holdfast.MaxCompleted]

// nameSum is what a plan document appends to an address that has a secret in it.
var nameSum = regexp.MustCompile(` #[A-Za-z0-9_-]{16}$`)

// CreatedAgain returns the addresses that a plan would create although an apply that died
// may have created them: all that it creates, or, if it is known, some that may exist. One
// that is in the state is updated, or not changed at all. A replacement counts in either
// order: the object in the state, which it destroys, may be the one from before that apply,
// and not the one which that apply created. Redacted takes secrets out of an address.
func CreatedAgain(document plandoc.Document, resumed protocol.AssignedResume, redacted func(string) string) []string {
	if len(resumed.MayExist) == 0 && !resumed.AnyMayExist {
		return nil
	}
	may := make(map[string]bool, len(resumed.MayExist))
	for _, address := range resumed.MayExist {
		may[address] = true
	}
	var again []string
	for _, r := range document.Resources {
		if r.Deposed != "" || !slices.Contains(r.Actions, "create") {
			continue
		}
		// Both had their secrets taken out: they were in a log, and a document.
		logged := redacted(nameSum.ReplaceAllString(r.Address, ""))
		if resumed.AnyMayExist || may[r.Address] || may[logged] {
			again = append(again, r.Address)
		}
	}
	return again
}

// MayExist says in words what would be created again.
func MayExist(addresses []string) string {
	const shown = 10
	names := strings.Join(addresses[:min(len(addresses), shown)], ", ")
	if more := len(addresses) - shown; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return "may exist already, because an apply died while it created them or before it had saved that: " + names
}
