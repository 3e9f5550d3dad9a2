// The folder of an agent.

package uplink

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/protocol"
)

// Folders in an agent's folder.
const (
	attemptsDir   = "attempts"
	quarantineDir = "quarantine"
)

// keepRefused is how many attempts without a state quarantine keeps. Those with
// a state stay until a person removes them.
const keepRefused = 50

// Folder is the folder in which an agent keeps what is not delivered yet, and what the
// server refused.
type Folder struct {
	Dir     string // of the agent
	Process string // of the agent
	Disk    Disk   // nil means MachineDisk
	Client  *Client
	Logger  *slog.Logger
	Now     func() time.Time // the wall clock
}

// Make makes the folders.
func (k *Folder) Make() error {
	for _, dir := range []string{attemptsDir, quarantineDir} {
		if err := os.MkdirAll(filepath.Join(k.Dir, dir), 0o700); err != nil {
			return fmt.Errorf("make agent folder: %w", err)
		}
	}
	return nil
}

// Open makes the folder of an attempt, or takes up the one that a predecessor left.
func (k *Folder) Open(c Claimed, logger *slog.Logger) (*Session, error) {
	key, err := KeyOf(c.AttemptRef)
	if err != nil {
		return nil, err
	}
	s := &Session{Claimed: c, key: key, dir: filepath.Join(k.Dir, attemptsDir, key), disk: k.Disk, client: k.Client, Logger: logger}
	if s.disk == nil {
		s.disk = MachineDisk{}
	}
	if err := s.open(k.Process, k.Now); err != nil {
		return nil, fmt.Errorf("make attempt folder: %w", err)
	}
	return s, nil
}

// Left returns the attempts that a predecessor has not delivered.
func (k *Folder) Left() ([]Claimed, error) {
	entries, err := os.ReadDir(filepath.Join(k.Dir, attemptsDir))
	if err != nil {
		return nil, fmt.Errorf("read agent folder: %w", err)
	}
	var list []Claimed
	for _, entry := range entries {
		dir := filepath.Join(k.Dir, attemptsDir, entry.Name())
		c, err := readClaimed(dir)
		if err != nil || c.Key() != entry.Name() {
			// It was killed before it had written down what it had claimed: nothing
			// was begun, and the server learns it from the next claim.
			k.Logger.Warn("unfinished folder was removed", "err", err)
			_ = os.RemoveAll(dir)
			continue
		}
		list = append(list, c)
	}
	return list, nil
}

// Forget removes a delivered attempt's folder. What the server refused of an
// attempt that may have changed something goes to quarantine instead.
func (k *Folder) Forget(s *Session) {
	if (s.refused.Load() || s.lease.wasFenced()) && s.Kind.Writes() {
		_ = os.RemoveAll(filepath.Join(s.dir, scratchDir))
		target := filepath.Join(k.Dir, quarantineDir, s.key)
		_ = os.RemoveAll(target)
		if err := os.Rename(s.dir, target); err != nil {
			s.Logger.Error("attempt could not be moved to quarantine", "err", err)
			return
		}
		s.Logger.Warn("attempt was moved to quarantine", "action", string(s.Kind))
		k.pruneQuarantine()
		return
	}
	if err := os.RemoveAll(s.dir); err != nil {
		s.Logger.Warn("attempt's folder was not removed", "err", err)
	}
}

// pruneQuarantine removes the oldest refused attempts that hold no state.
func (k *Folder) pruneQuarantine() {
	dir := filepath.Join(k.Dir, quarantineDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var prunable []fs.FileInfo
	for _, entry := range entries {
		states, _ := os.ReadDir(filepath.Join(dir, entry.Name(), statesDir))
		errored, _ := filepath.Glob(filepath.Join(dir, entry.Name(), artefactsDir, "*"+protocol.ArtefactErrored))
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
