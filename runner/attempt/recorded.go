// Whether what an apply has done was recorded in the state.

package attempt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/planfile"
	"github.com/holdfast-dev/holdfast/runner/recorded"
)

// checkRecorded is an error if an apply that the engine reported as done cannot
// have been recorded: the state endpoint saw no other state than before it, and the
// changes cannot have led back to that one. An update can, where it reverts drift.
func (t *applying) checkRecorded(before []byte) error {
	if !t.watched || !bytes.Equal(before, t.newest.get()) || !recorded.Changes(t.document, before) {
		return nil
	}
	return &failure.Error{
		Cause:  holdfast.CauseUntrustedPlan,
		Err:    errors.New("apply: the engine reported success, but no state was written: its changes are not recorded"),
		Detail: "The state endpoint of this run got no new state, so the engine wrote it elsewhere or not at all. The log lists the resources that were changed.",
		Hint: "compare the log with what exists, import the created resources into the state (import blocks) or remove them, before the next apply, which would create them again; " +
			"look for code in this plan that changes the plan file",
	}
}

// noteSaved notes what an apply that failed has saved. Before is the state as the
// session saw it when the apply began.
func (t *applying) noteSaved(before []byte, after plan.Contents) {
	if !t.watched {
		before = t.pulled
	}
	if found, err := plan.ContentsOf(before); err == nil {
		t.saved = recorded.Objects{Before: found.Objects, After: after.Objects}
	}
}

// checkLocalState refuses a state in a file that ends with the run: the next one would
// begin with nothing, and create all of it again. Of engines that have their own root that
// is any file outside of the folders which they may write by the configuration.
func checkLocalState(settings []byte, o Isolation) error {
	backend, err := planfile.ReadBackend(settings)
	if err != nil || backend.Type != "local" {
		return err
	}
	var config struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(backend.Config, &config); err != nil {
		return fmt.Errorf("read the backend's settings: %w", err)
	}
	if o.writes(config.Path) {
		return nil
	}
	return &failure.Error{
		Cause: holdfast.CauseInvalidConfiguration,
		Err:   fmt.Errorf("init: the local backend keeps the state in %q, which ends with the run", config.Path),
		Hint: "remove the block: the state is kept by Holdfast then; or use another backend; " +
			"or have a folder that outlives runs in sandbox.paths.writable (--sandbox-write of an agent that serve does not start), for all agents that execute runs of this cluster",
	}
}
