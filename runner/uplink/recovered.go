// The attempts of a dead agent, brought to their ends.

package uplink

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

func readClaimed(dir string) (Claimed, error) {
	var c Claimed
	data, err := os.ReadFile(filepath.Join(dir, attemptFile))
	if err != nil {
		return Claimed{}, err
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return Claimed{}, err
	}
	return c, nil
}

// Key returns the attempt's key, empty if its name is not valid.
func (c Claimed) Key() string {
	key, err := KeyOf(c.AttemptRef)
	if err != nil {
		return ""
	}
	return key
}

// Outcome returns how a predecessor's attempt ended. If it had no end, its
// workspace is looked through for a state that the engine could not save.
func (s *Session) Outcome(dir string) (protocol.Result, error) {
	if _, err := os.Stat(filepath.Join(s.dir, applyingFile)); err == nil {
		s.lease.begun = true
		if err := s.artefacts.makeLasting(); err != nil { // a state among them, whose workspace goes
			return protocol.Result{}, err
		}
	}
	if n := workspace.KillLeftovers(dir); n > 0 {
		s.Logger.Warn("processes of a dead engine were killed", "count", n)
	}
	kept, err := s.inherit(dir)
	if err != nil {
		return protocol.Result{}, err
	}
	if kept != "" {
		dir = "" // it is not removed
	}
	if result, ok := s.loadResult(); ok {
		s.inherited = true
		return result, workspace.RemoveDead(dir)
	}
	result := protocol.Result{
		Fence: s.Fence, Status: holdfast.RunInterrupted, Reason: holdfast.ReasonAgentKilled, Applying: s.HasBegun(),
		Detail: "the agent was killed while it executed the run, and the engine with it",
	}
	if s.HasBegun() {
		result.Detail += "; changes that it had begun may be unrecorded"
	}
	result.Failure = s.killed(result.Detail)
	if kept != "" {
		result.Reason, result.Failure.Cause, result.Failure.Transient = holdfast.CauseStateUnsaved, holdfast.CauseStateUnsaved, false
		result.Failure.Hint = fmt.Sprintf("the engine could not save the state, and the file that it wrote instead cannot be read: look at errored.tfstate below %s "+
			"on the agent's machine, and give it to `holdfast state push CLUSTER FILE`, or discard it with `holdfast state waive`", kept)
	}
	_, _ = fmt.Fprintf(s.log, "\n[holdfast: %s]\n", result.Detail)
	s.SaveResult(result)
	return result, workspace.RemoveDead(dir)
}

// inherit takes over a state that an engine could not save: it is kept as an
// artefact, and becomes the newest state if the server agrees that it is.
// One that cannot be read stays in the workspace, whose place is returned.
func (s *Session) inherit(dir string) (kept string, err error) {
	if !s.HasBegun() { // nothing was applied, so that there is no state to save
		return "", nil
	}
	state, err := workspace.Rescue(dir)
	if errors.Is(err, workspace.ErrUnusable) {
		kept, errAside := workspace.SetAside(dir)
		s.Logger.Error("workspace kept: it holds an unsaved state", "err", errors.Join(err, errAside))
		return kept, errAside
	} else if err != nil || state == nil {
		return "", err
	}
	s.Logger.Warn("unsaved state was found")
	if _, err := s.artefacts.put(protocol.ArtefactErrored, bytes.NewReader(state)); err != nil {
		return "", err
	}
	if !s.OwnState || !s.Kind.Writes() {
		return "", nil
	}
	_, err = s.state.held.put(parcelState, stateOp{body: state}.reader())
	return "", err
}

// killed describes the failure of an attempt whose agent died.
func (s *Session) killed(detail string) *holdfast.Failure {
	failure := &holdfast.Failure{Step: "plan", Cause: holdfast.ReasonAgentKilled, Summary: detail, Transient: true}
	if !s.HasBegun() {
		return failure
	}
	failure.Step = "apply"
	under, err := s.progress.read()
	if err != nil {
		s.Logger.Warn("progress of a killed attempt is not known in full", "err", err)
		failure.ProgressLost = true
		failure.Detail = "what the apply had begun and completed is not known in full: all that it was to create may exist without being in the state"
	}
	if under == nil {
		under = journal.NewProgress(nil)
		if err := s.log.tail(under); err != nil {
			s.Logger.Warn("log of a killed attempt was not read", "err", err)
		}
	}
	failure.Unrecorded, failure.Completed = under.Addresses(), under.Completed()
	return failure
}
