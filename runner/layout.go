package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/planfile"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// A workspace is laid out anew before the engine plans, before it shows the plan
// and before it applies it. What is executed when a plan is made can write into
// the workspace, and none of that may decide which providers, modules and settings
// the next start of the engine uses.

// Names in the attempt's folder.
const (
	bundleFile = "bundle.tar.gz" // the packed bundle
	leftDir    = "left"          // the workspace as the plan has left it
)

// layOut makes the workspace anew: no engine has been in it. What an engine of
// this attempt has made in the former one is gone.
func (t *attempt) layOut(ctx context.Context) error {
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
	if err := t.exec.cli.furnish(filepath.Join(t.work, workspace.HomeDir)); err != nil {
		return fmt.Errorf("make home folder: %w", err)
	}
	packed, err := t.openBundle(ctx)
	if err != nil {
		return err
	}
	defer packed.Close()
	if err := workspace.Unpack(ctx, packed, t.bundle, t.exec.opts.MaxBundle); err != nil {
		return &failure.Error{Cause: holdfast.CauseBundleUnusable, Err: fmt.Errorf("unpack bundle: %w", err)}
	}
	if info, err := os.Stat(t.root); err != nil || !info.IsDir() {
		return &failure.Error{Cause: holdfast.CauseBundleUnusable, Err: fmt.Errorf("root module: no folder %q in the bundle", t.a.Dir)}
	}
	return nil
}

// openBundle opens the packed bundle, which is fetched once.
func (t *attempt) openBundle(ctx context.Context) (io.ReadCloser, error) {
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
	if _, err = io.Copy(file, io.LimitReader(r, t.exec.opts.MaxBundle)); err == nil {
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
func (t *attempt) renew(ctx context.Context) error {
	if err := t.layOut(ctx); err != nil {
		return err
	}
	if err := t.furnish(); err != nil {
		return fmt.Errorf("lay out workspace: %w", err)
	}
	return nil
}

func (t *attempt) furnish() error {
	if err := t.writeBackend(); err != nil {
		return err
	}
	if err := t.link(); err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(t.root, dataDir, "terraform.tfstate"), t.settings); err != nil {
		return err
	}
	return replaceFile(filepath.Join(t.root, engineLockFile), t.lockFile)
}

// setAside puts what the plan has left in the workspace out of the way, and lays
// it out anew. It is an error if the plan has changed what the bundle brought:
// what is applied would be something else than what stands in the repository.
func (t *attempt) setAside(ctx context.Context) error {
	left := filepath.Join(t.dir, leftDir)
	if err := os.Rename(t.work, left); err != nil {
		return fmt.Errorf("set workspace aside: %w", err)
	}
	if err := t.layOut(ctx); err != nil {
		return err
	}
	// An apply would find it, and nothing else continues beyond these bounds.
	if err := folders.Check(ctx, filepath.Join(left, filepath.Base(t.bundle)), folders.Workspace()); err != nil {
		return tooLarge(fmt.Errorf("plan: look through what it left in the workspace: %w", err))
	}
	changed, err := t.changedBy(ctx, left)
	if err != nil {
		return fmt.Errorf("compare workspace: %w", err)
	}
	if changed != "" {
		return &failure.Error{
			Cause: holdfast.CauseUntrustedPlan, Err: fmt.Errorf("plan: what it executed has changed %s, which is of the repository", changed),
			Hint: "an apply finds the files of the repository as they were reviewed: let code that is executed in plans write to new files",
		}
	}
	if err := t.furnish(); err != nil {
		return fmt.Errorf("lay out workspace: %w", err)
	}
	if err := t.checkPlanned(ctx); err != nil {
		if known := new(failure.Error); errors.As(err, &known) {
			return err
		}
		cause := holdfast.CauseUntrustedPlan
		if errors.Is(err, planfile.ErrUnsupported) {
			cause = holdfast.CauseUnreadablePlan
		}
		if errors.Is(err, planfile.ErrOtherState) && !t.a.OwnState { // it was written between our look and the plan
			return &failure.Error{Cause: holdfast.CauseStalePlan, Transient: true, Err: fmt.Errorf("plan: %w", err)}
		}
		return &failure.Error{Cause: cause, Err: fmt.Errorf("plan: %w", err)}
	}
	return nil
}

// changedBy returns the first file, link or folder of the workspace's bundle that
// is another one in the workspace left, empty if there is none.
func (t *attempt) changedBy(ctx context.Context, left string) (changed string, err error) {
	before, err := os.OpenRoot(t.bundle)
	if err != nil {
		return "", err
	}
	defer before.Close()
	after, err := os.OpenRoot(filepath.Join(left, filepath.Base(t.bundle)))
	if err != nil {
		return ".", nil //nolint:nilerr // it is not even a folder
	}
	defer after.Close()
	lock := filepath.Join(folders.Below(t.bundle, t.root), engineLockFile) // init may have completed it
	err = fs.WalkDir(before.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err = cmp.Or(err, ctx.Err()); err != nil || name == "." || name == lock {
			return err
		}
		if same, err := sameEntry(before, after, name, entry.Type()); err != nil {
			return err
		} else if !same {
			changed = name
			return fs.SkipAll
		}
		return nil
	})
	return changed, err
}

// sameEntry reports whether what has that name in both folders is the same. All
// folders that lead to it are ones in both. What cannot be read is another one.
func sameEntry(before, after *os.Root, name string, kind fs.FileMode) (bool, error) {
	now, err := after.Lstat(name)
	switch {
	case err != nil || now.Mode().Type() != kind:
		return false, nil //nolint:nilerr // whatever it is
	case kind.IsDir():
		return true, nil
	case kind&fs.ModeSymlink != 0:
		was, err := before.Readlink(name)
		if err != nil {
			return false, err
		}
		is, err := after.Readlink(name)
		return err == nil && was == is, nil
	}
	was, err := before.Open(name)
	if err != nil {
		return false, err
	}
	defer was.Close()
	is, err := after.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false, nil //nolint:nilerr // it was ours to read
	}
	defer is.Close()
	return planfile.SameContent(was, is)
}

// bringBack lays the workspace out anew and puts into it the files that the plan
// has made in the folders of the bundle, such as archives that the apply uploads, as
// far as the code or the plan names them. Others, which nobody has reviewed, could be
// picked up by reviewed programs: a module next to a script that is found by its name,
// or a file in a folder that is gone through.
func (t *attempt) bringBack(ctx context.Context) error {
	if err := t.renew(ctx); err != nil {
		return err
	}
	base, err := os.OpenRoot(t.dir)
	if err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	defer base.Close()
	named, err := t.named()
	if err != nil {
		return fmt.Errorf("find out what the plan names: %w", err)
	}
	// HOME is not brought back: what a plan leaves there, such as .gitconfig or
	// .aws/config, would tell programs of the apply what to execute.
	name := filepath.Base(t.bundle)
	m := mover{base: base, from: filepath.Join(leftDir, name), to: filepath.Join(filepath.Base(t.work), name), named: named}
	if err := errors.Join(m.move(ctx, ".", false, false), m.removeLinks()); err != nil {
		return fmt.Errorf("bring back what the plan made: %w", err)
	}
	if m.left > 0 {
		t.say("of the new files that the plan has made, %d are not there in the apply, as neither the code nor a value of the plan names them, or they are links that lead elsewhere: %s",
			m.left, strings.Join(m.first, ", "))
	}
	return t.exec.spaces.Discard(filepath.Join(t.dir, leftDir))
}

// tooLarge makes err one of what a run has made in its workspace, if it is.
func tooLarge(err error) error {
	if !errors.Is(err, folders.ErrBounds) {
		return err
	}
	return &failure.Error{
		Cause: holdfast.CauseWorkspaceTooLarge, Err: err,
		Hint: fmt.Sprintf("what is executed in a plan may leave at most %d files and folders, nested at most %d deep, and what init fetches may have at most 8 GiB", folders.MaxEntries, folders.MaxDepth),
	}
}

// mover moves what one folder has and another has not, if it is named.
type mover struct {
	base     *os.Root
	from, to string
	named    *names
	links    []string // that were moved
	left     int      // how many files and links were not
	first    []string // some of them
}

// move moves what is in a folder, which is in both, or new, or new and named. What is
// in a named one moves with it, but for links that lead out of the bundle: what is
// uploaded or read by that name would be a file of the machine.
func (m *mover) move(ctx context.Context, dir string, isNew, isNamed bool) error {
	entries, err := m.entries(dir)
	if err != nil {
		return err
	}
	if isNamed {
		if err := m.base.MkdirAll(filepath.Join(m.to, dir), 0o700); err != nil {
			return err
		}
	}
	for _, entry := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name := filepath.Join(dir, entry.Name())
		if engineReads(entry.Name()) && !isNamed {
			continue
		}
		there, err := m.base.Lstat(filepath.Join(m.to, name))
		missing := isNew || errors.Is(err, fs.ErrNotExist)
		named := isNamed || missing && m.named.has(name)
		switch {
		case entry.IsDir() && (missing || err == nil && there.IsDir()):
			err = m.move(ctx, name, missing, named)
		case missing && named:
			if entry.Type()&fs.ModeSymlink != 0 {
				m.links = append(m.links, name)
			}
			if err = m.base.MkdirAll(filepath.Join(m.to, dir), 0o700); err == nil {
				err = m.base.Rename(filepath.Join(m.from, name), filepath.Join(m.to, name))
			}
		case missing:
			m.leave(name)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeLinks removes the links among what was moved that lead out of the folder, or
// nowhere.
func (m *mover) removeLinks() error {
	if len(m.links) == 0 {
		return nil
	}
	inside, err := m.base.OpenRoot(m.to)
	if err != nil {
		return err
	}
	defer inside.Close()
	for _, name := range m.links {
		if _, err := inside.Stat(name); err == nil {
			continue
		}
		if err := inside.Remove(name); err != nil {
			return err
		}
		m.leave(name)
	}
	return nil
}

func (m *mover) leave(name string) {
	const told, longest = 10, 200
	if m.left++; len(m.first) < told && len(name) <= longest {
		m.first = append(m.first, fmt.Sprintf("%q", filepath.ToSlash(name)))
	}
}

// entries lists a folder; nothing if it is not one.
func (m *mover) entries(name string) ([]fs.DirEntry, error) {
	info, err := m.base.Lstat(filepath.Join(m.from, name))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	dir, err := m.base.Open(filepath.Join(m.from, name))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.ReadDir(-1)
}

// engineReads reports whether an engine takes a file or folder of that name for
// something that tells it what to do.
func engineReads(name string) bool {
	return modulecode.IsFile(name) || strings.HasSuffix(name, ".tfvars") || strings.HasSuffix(name, ".tfvars.json") ||
		slices.Contains([]string{
			dataDir, engineLockFile, holdfast.ArtefactErrored, ".terraformrc", ".tofurc", ".terraform.d", ".terraform-version",
			".opentofu-version", ".config", ".local",
		}, name)
}

// give makes the workspace the engine's.
func (t *attempt) give(ctx context.Context) error {
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
// the first time that a workspace is given away.
func (t *attempt) writeConfig() error {
	config := t.config()
	if config == "" {
		return nil
	}
	if _, err := os.Lstat(config); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(config, t.exec.cli.data, 0o600); err != nil {
		return err
	}
	return os.Chmod(config, 0o444) //nolint:gosec // the engine reads it, as another user
}

// backendFile is a file of ours in the root module.
type backendFile struct{ name, code string }

func (t *attempt) writeBackend() error {
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
func (t *attempt) useLockFile() error {
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
	modulesFile    = "modules.json"
	engineLockFile = ".terraform.lock.hcl"
	dataDir        = ".terraform"

	maxLockFile = 16 << 20 // bytes
)
