package recorded

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/plan"
)

// Changes reports whether a plan's changes leave another state than before in any case.
func Changes(document plandoc.Document, before []byte) bool {
	if len(document.Outputs) > 0 {
		return true
	}
	found, err := plan.ContentsOf(before)
	readable := err == nil && len(found.Resources) < plan.MaxResources
	had := make(map[string]bool, len(found.Resources))
	for _, resource := range found.Resources {
		had[resource.Address] = true
	}
	for _, r := range document.Resources {
		switch action, _ := r.Action(); action {
		case holdfast.ActionDelete, holdfast.ActionForget, holdfast.ActionMove:
			return true
		case holdfast.ActionCreate, holdfast.ActionImport:
			if readable && !had[r.Address] {
				return true
			}
		default: // what it leads to can be what was recorded
		}
	}
	return false
}

// Objects are the objects in a state by their addresses, before an apply and after
// it. Nil: that is not known.
type Objects struct{ Before, After map[string]string }

// Missing returns the addresses, of those that an engine was at when it was asked to end,
// of which the state does not have what it has made: a provider that gives up a creation
// may not know its outcome. An object that is replaced is the new one only if it is not
// the one from before.
func (o Objects) Missing(document plandoc.Document, begun []string) []string {
	if o.After == nil {
		return begun
	}
	creates := make(map[string]bool, len(document.Resources))
	for _, r := range document.Resources {
		if r.Deposed == "" && slices.Contains(r.Actions, string(holdfast.ActionCreate)) {
			creates[r.Address] = true
		}
	}
	var missing []string
	for _, address := range begun {
		was, had := o.Before[address]
		is, has := o.After[address]
		if !has || creates[address] && had && was == is {
			missing = append(missing, address)
		}
	}
	return missing
}

// End is how an apply has failed.
type End struct {
	Failure     *failure.Error
	Interrupted bool // the attempt ended before the engine did, or died with it
	Stopped     bool // somebody had it end
	Document    plandoc.Document
	Begun       []string // addresses that the engine was at
	Completed   []string // what it says it has done
	Saved       Objects
}

// Unrecorded returns what the apply may have created without its being in the state, of
// what it was at and of what it had created.
func (e End) Unrecorded() []string {
	switch exit := e.Failure.Exit; {
	case e.Interrupted || exit == nil && e.Stopped:
		return e.Begun // what it had created counts, too, for whoever reads an interrupted run
	case exit == nil:
		return nil
	case exit.Crashed():
		return append(e.Begun, created(e.Completed)...) // it had no time to save that
	case e.Failure.Cause == holdfast.CauseStateUnsaved: // in the state that is there is none of it
		return append(e.Saved.Missing(e.Document, e.Failure.WithoutAnswer(e.Begun)), created(e.Completed)...)
	case e.Stopped:
		return e.Saved.Missing(e.Document, e.Begun) // it has saved what it had reached
	default:
		return e.Saved.Missing(e.Document, e.Failure.WithoutAnswer(e.Begun))
	}
}

// created are the addresses of what was created, of all that was completed.
func created(completed []string) []string {
	var addresses []string
	for _, done := range completed {
		if address, ok := strings.CutSuffix(done, holdfast.CreatedSuffix); ok {
			addresses = append(addresses, address)
		}
	}
	return addresses
}
