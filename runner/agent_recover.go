package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/journal"
)

// keepRefused is how many attempts without a state quarantine keeps. Those with
// a state stay until a person removes them.
const keepRefused = 50

// recover brings the attempts of a dead predecessor to their end: what it had
// not delivered is delivered, and an attempt without a result was interrupted.
// Their engines are dead: the kernel kills them with the agent. ctx ends the
// deliveries.
func (a *Agent) recover(ctx context.Context) error {
	entries, err := os.ReadDir(filepath.Join(a.opts.Dir, "attempts"))
	if err != nil {
		return fmt.Errorf("read agent folder: %w", err)
	}
	for _, entry := range entries {
		dir := filepath.Join(a.opts.Dir, "attempts", entry.Name())
		c, err := readClaimed(dir)
		if err != nil || c.key() != entry.Name() {
			// It was killed before it had written down what it had claimed: nothing
			// was begun, and the server learns it from the next claim.
			a.opts.Logger.Warn("unfinished folder was removed", "err", err)
			_ = os.RemoveAll(dir)
			continue
		}
		logger := a.opts.Logger.With("cluster", c.Cluster, "run", c.Run, "attempt", c.Attempt)
		s, err := a.newSession(c, logger)
		if err != nil {
			return fmt.Errorf("recover attempt %s: %w", entry.Name(), err)
		}
		result, err := a.outcome(s)
		if err != nil {
			return fmt.Errorf("recover attempt %s: %w", entry.Name(), err)
		}
		logger.Warn("attempt of a former process was found", "reason", result.Reason, "status", string(result.Status))
		a.delivering.Go(func() {
			a.bring(ctx, s, func() (holdfast.Result, bool) { return result, true })
		})
	}
	return nil
}

func readClaimed(dir string) (claimed, error) {
	var c claimed
	data, err := os.ReadFile(filepath.Join(dir, attemptFile))
	if err != nil {
		return claimed{}, err
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return claimed{}, err
	}
	return c, nil
}

// key returns the attempt's key, empty if its name is not valid.
func (c claimed) key() string {
	key, err := attemptKey(c.AttemptRef)
	if err != nil {
		return ""
	}
	return key
}

// outcome returns how a predecessor's attempt ended. If it had no end, its
// workspace is looked through for a state that the engine could not save.
func (a *Agent) outcome(s *agentSession) (holdfast.Result, error) {
	if _, err := os.Stat(filepath.Join(s.dir, applyingFile)); err == nil {
		s.begun = true
	}
	workspace := a.opts.Executor.WorkspaceDir(s.AttemptRef)
	if n := killLeftovers(workspace); n > 0 {
		s.logger.Warn("processes of a dead engine were killed", "count", n)
	}
	if err := s.inherit(workspace); err != nil {
		return holdfast.Result{}, err
	}
	if result, ok := s.loadResult(); ok {
		s.inherited = true
		return result, removeWorkspace(workspace)
	}
	result := holdfast.Result{
		Fence: s.Fence, Status: holdfast.RunInterrupted, Reason: holdfast.ReasonAgentKilled, Applying: s.begun,
		Detail: "the agent was killed while it executed the run, and the engine with it",
	}
	if s.begun {
		result.Detail += "; what it had begun to change may be unrecorded"
	}
	result.Failure = s.killed(result.Detail)
	_, _ = fmt.Fprintf(s.log, "\n[holdfast: %s]\n", result.Detail)
	s.saveResult(result)
	return result, removeWorkspace(workspace)
}

// killLeftovers kills what still works in a dead attempt's workspace, and
// returns how many processes that were: the kernel has killed the engine with
// its agent, but not the providers and provisioners that it had started. Where
// there is no /proc it finds none.
func killLeftovers(workspace string) int {
	workspace, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return 0
	}
	entries, _ := os.ReadDir("/proc")
	killed := 0
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		dir, err := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd"))
		if err != nil || dir != workspace && !strings.HasPrefix(dir, workspace+string(filepath.Separator)) {
			continue
		}
		if process, err := os.FindProcess(pid); err == nil && process.Kill() == nil {
			killed++
		}
	}
	return killed
}

// inherit takes over a state that an engine could not save: it is kept as an
// artefact, and becomes the newest state if the server agrees that it is.
func (s *agentSession) inherit(workspace string) error {
	if !s.begun { // nothing was applied, so that there is no state to save
		return nil
	}
	state, err := rescue(workspace)
	if err != nil || state == nil {
		return err
	}
	s.logger.Warn("unsaved state was found")
	if _, err := s.artefacts.put(holdfast.ArtefactErrored, bytes.NewReader(state)); err != nil {
		return err
	}
	if !s.OwnState || !s.Kind.Writes() {
		return nil
	}
	_, err = s.states.put(parcelState, stateOp{body: state}.reader())
	return err
}

// killed describes the failure of an attempt whose agent died.
func (s *agentSession) killed(detail string) *holdfast.Failure {
	failure := &holdfast.Failure{Step: "plan", Cause: holdfast.ReasonAgentKilled, Summary: detail, Transient: true}
	if !s.begun {
		return failure
	}
	failure.Step = "apply"
	under := journal.NewProgress()
	if err := s.log.tail(under); err != nil {
		s.logger.Warn("log of a killed attempt was not read", "err", err)
	}
	failure.Unrecorded, failure.Completed = under.Addresses(), under.Completed()
	return failure
}

// rescue returns the newest errored.tfstate below a workspace, nil if there is
// none.
func rescue(workspace string) ([]byte, error) {
	var newest string
	var at time.Time
	// Engines write it into the folder of the root module, which a bundle has.
	bounds := folders.Bounds{Depth: folders.MaxDepth, Entries: math.MaxInt, Skip: func(e folders.Entry) bool {
		return e.Name == ".terraform" || e.Depth > folders.MaxDepth
	}}
	err := folders.Walk(context.Background(), workspace, bounds, func(e folders.Entry) error {
		modified := time.Unix(e.Stat.Mtim.Unix())
		if e.Name == holdfast.ArtefactErrored && e.Kind() == syscall.S_IFREG && modified.After(at) {
			newest, at = filepath.Join(workspace, e.Path), modified
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil || newest == "" {
		return nil, err
	}
	file, err := os.OpenFile(newest, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || !ok || stat.Nlink != 1 || info.Size() > maxState {
		return nil, nil // an engine does not write it so
	}
	return io.ReadAll(io.LimitReader(file, maxState))
}

func removeWorkspace(dir string) error {
	if dir == "" {
		return nil
	}
	if err := folders.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove workspace: %w", err)
	}
	return nil
}

// pruneQuarantine removes the oldest refused attempts that hold no state.
func (a *Agent) pruneQuarantine() {
	dir := filepath.Join(a.opts.Dir, "quarantine")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var prunable []fs.FileInfo
	for _, entry := range entries {
		states, _ := os.ReadDir(filepath.Join(dir, entry.Name(), statesDir))
		errored, _ := filepath.Glob(filepath.Join(dir, entry.Name(), artefactsDir, "*"+holdfast.ArtefactErrored))
		info, err := entry.Info()
		if err == nil && len(states)+len(errored) == 0 {
			prunable = append(prunable, info)
		}
	}
	slices.SortFunc(prunable, func(x, y fs.FileInfo) int { return x.ModTime().Compare(y.ModTime()) })
	for _, info := range prunable[:max(0, len(prunable)-keepRefused)] {
		_ = os.RemoveAll(filepath.Join(dir, info.Name()))
	}
}
