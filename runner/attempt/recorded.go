// Whether what an apply has done was recorded in the state.

package attempt

import (
	"bytes"
	"errors"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/plan"
)

// checkRecorded is an error if an apply that the engine reported as done cannot
// have been recorded: the state endpoint saw no other state than before it, and the
// changes cannot have led back to that one. An update can, where it reverts drift.
func (t *applying) checkRecorded(before []byte) error {
	if !t.watched || !bytes.Equal(before, t.newest.get()) || !t.changesState(before) {
		return nil
	}
	return &failure.Error{
		Cause:  holdfast.CauseUntrustedPlan,
		Err:    errors.New("apply: the engine reported success, and no state was written: what was made or destroyed is not recorded"),
		Detail: "The state endpoint of this run got no new state, so the engine wrote it elsewhere or not at all. The log lists the resources that were changed.",
		Hint: "compare the log with what exists, import what was made into the state (import blocks) or remove it, before the next apply, which would make it again; " +
			"look for code in this plan that changes the plan file",
	}
}

// changesState reports whether the plan's changes leave another state than before
// in any case.
func (t *applying) changesState(before []byte) bool {
	if len(t.document.Outputs) > 0 {
		return true
	}
	found, err := contentsOf(before)
	readable := err == nil && len(found.resources) < plan.MaxResources
	had := make(map[string]bool, len(found.resources))
	for _, resource := range found.resources {
		had[resource.Address] = true
	}
	for _, r := range t.document.Resources {
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
