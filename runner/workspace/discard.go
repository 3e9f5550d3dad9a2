package workspace

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/runner/folders"
)

// discardWithin is how long a run waits for the removal of what it leaves. A
// million folders take a file system many minutes.
const discardWithin = 5 * time.Second

// Discard removes a folder that nobody still needs. What cannot be removed
// soon is put out of the way, and removed while the next runs execute.
func (w *Store) Discard(dir string) error {
	return w.discardIn(dir, discardWithin)
}

func (w *Store) discardIn(dir string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err := folders.Remove(ctx, dir)
	if err == nil || ctx.Err() == nil {
		return err
	}
	aside := filepath.Join(w.dir, discardedDir, rand.Text())
	if err := os.Rename(dir, aside); err != nil {
		return fmt.Errorf("put what is left of it aside: %w", err)
	}
	go w.RemoveDiscarded()
	return nil
}

// RemoveDiscarded removes what was put out of the way, one folder at a time. What
// an agent has not finished when it ends, its successor does.
func (w *Store) RemoveDiscarded() {
	w.discarding.Lock()
	defer w.discarding.Unlock()
	parent := filepath.Join(w.dir, discardedDir)
	entries, _ := os.ReadDir(parent)
	for _, entry := range entries {
		if err := folders.RemoveAll(filepath.Join(parent, entry.Name())); err != nil {
			w.logger.Warn("files that a run left were not removed", "err", err)
		}
	}
}
