// The workspace as it is laid out before each step.

package attempt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/planfile"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// A workspace is laid out again before the engine plans, before it shows the plan
// and before it applies it. What is executed when a plan is made can write into
// the workspace, and none of that may decide which providers, modules and settings
// the next start of the engine uses.

// Names in the attempt's folder.
const (
	bundleFile = "bundle.tar.gz" // the packed bundle
	leftDir    = "left"          // the workspace as the plan has left it
)

// layOut makes the workspace again: no engine has been in it. What an engine of this
// attempt had made in the former one is gone.
func (t *space) layOut(ctx context.Context) error {
	if err := folders.Remove(ctx, t.work); err != nil {
		return fmt.Errorf("clear workspace: %w", err)
	}
	if err := folders.Remove(ctx, t.scratch); err != nil {
		return fmt.Errorf("clear folder for temporary files: %w", err)
	}
	t.given, t.scratch = false, ""
	for _, dir := range []string{t.bundle, filepath.Join(t.work, workspace.TmpDir)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make workspace: %w", err)
		}
	}
	if err := t.exec.cli.Furnish(filepath.Join(t.work, workspace.HomeDir)); err != nil {
		return fmt.Errorf("make home folder: %w", err)
	}
	packed, err := t.openBundle(ctx)
	if err != nil {
		return err
	}
	defer packed.Close()
	if err := workspace.Unpack(ctx, packed, t.bundle, t.exec.opts.Limits.Bundle); err != nil {
		return &failure.Error{Cause: holdfast.CauseBundleUnusable, Err: fmt.Errorf("unpack bundle: %w", err)}
	}
	if info, err := os.Stat(t.root); err != nil || !info.IsDir() {
		return &failure.Error{Cause: holdfast.CauseBundleUnusable, Err: fmt.Errorf("root module: no folder %q in the bundle", t.a.Dir)}
	}
	return t.layState()
}

// openBundle opens the packed bundle, which is fetched once.
func (t *space) openBundle(ctx context.Context) (io.ReadCloser, error) {
	name := filepath.Join(t.dir, bundleFile)
	if file, err := os.Open(name); err == nil {
		return file, nil
	}
	r, err := t.session.Bundle(ctx, t.a.Bundle)
	if err != nil {
		return nil, &failure.Error{Cause: holdfast.CauseBundleUnusable, Transient: !errors.Is(err, holdfast.ErrNotFound), Err: fmt.Errorf("get bundle: %w", err)}
	}
	defer r.Close()
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep bundle: %w", err)
	}
	if _, err = io.Copy(file, io.LimitReader(r, t.exec.opts.Limits.Bundle)); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		_ = os.Remove(name)
		if failure.DiskFull(err) {
			return nil, fmt.Errorf("keep bundle: %w", err)
		}
		return nil, &failure.Error{Cause: holdfast.CauseBundleUnusable, Transient: true, Err: fmt.Errorf("get bundle: %w", err)}
	}
	return file, nil
}

// renew lays the workspace out as it was before the plan: the bundle, and what
// init has prepared.
func (t *space) renew(ctx context.Context) error {
	if err := t.layOut(ctx); err != nil {
		return err
	}
	if err := t.furnish(); err != nil {
		return fmt.Errorf("lay out workspace: %w", err)
	}
	return nil
}

func (t *space) furnish() error {
	if err := t.writeBackend(); err != nil {
		return err
	}
	if err := t.link(); err != nil {
		return err
	}
	if err := replaceFile(t.settingsFile(), t.settings); err != nil {
		return err
	}
	return replaceFile(filepath.Join(t.root, engineLockFile), t.lockFile)
}

// changedBy returns the first file, link or folder of the workspace's bundle that
// is another one in the workspace left, empty if there is none. Init may have completed the lock
// file.
func (t *space) changedBy(ctx context.Context, left string) (changed string, err error) {
	lock := filepath.Join(folders.Below(t.bundle, t.root), engineLockFile)
	return planfile.Changed(ctx, t.bundle, filepath.Join(left, filepath.Base(t.bundle)), lock)
}

// tooLarge explains err as one about the size of what a run has made in its workspace,
// if it is.
func tooLarge(err error) error {
	if !errors.Is(err, folders.ErrBounds) {
		return err
	}
	return &failure.Error{
		Cause: holdfast.CauseWorkspaceTooLarge, Err: err,
		Hint: fmt.Sprintf("what is executed in a plan may leave at most %d files and folders, nested at most %d deep, and what init fetches may have at most 8 GiB", folders.MaxEntries, folders.MaxDepth),
	}
}

// give makes the workspace the engine's.
func (t *space) give(ctx context.Context) error {
	if t.given {
		return nil
	}
	if err := t.makeScratch(ctx); err != nil {
		return err
	}
	if err := t.writeConfig(); err != nil {
		return fmt.Errorf("write engine configuration: %w", err)
	}
	t.given = true
	if err := t.exec.opts.Isolation.Starter.Give(ctx, t.work, t.slot); err != nil {
		return tooLarge(fmt.Errorf("give the workspace to the engine: %w", err))
	}
	return nil
}

// writeConfig writes the attempt's copy of the engines' configuration, if it has one,
// the first time that a workspace is given to an engine.
func (t *space) writeConfig() error {
	config := t.config()
	if config == "" {
		return nil
	}
	file, err := os.OpenFile(config, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err = file.Write(t.exec.cli.Data); err == nil {
		err = t.exec.opts.Isolation.Starter.Show(file, t.slot)
	}
	return errors.Join(err, file.Close())
}

// backendFile is a file of ours in the root module.
type backendFile struct {
	name, code string
	side       side // with which place of its state the attempt works
}

func (t *space) writeBackend() error {
	if t.backend.name == "" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(t.root, t.backend.name), []byte(t.backend.code), 0o600); err != nil {
		return fmt.Errorf("write backend: %w", err)
	}
	return nil
}

// useLockFile puts the lock file in place that the run starts from, unless one
// is committed.
func (t *space) useLockFile() error {
	lock := filepath.Join(t.root, engineLockFile)
	committed, err := readIfExists(lock)
	if err != nil {
		return fmt.Errorf("read lock file: %w", err)
	}
	if committed == nil && len(t.a.LockFile) > 0 {
		if err := os.WriteFile(lock, t.a.LockFile, 0o600); err != nil {
			return fmt.Errorf("write lock file: %w", err)
		}
	}
	return nil
}

// readIfExists returns a file's content, nil if there is none.
func readIfExists(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Names in a root module.
const (
	engineLockFile = ".terraform.lock.hcl"
	dataDir        = ".terraform"

	maxLockFile = 16 << 20 // bytes
)
