package folders

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds of what a run may leave in its workspace. The deepest folders of
// modules with vendored dependencies (node_modules, Go modules) are some 30
// levels deep; the largest have some 300,000 entries.
const (
	MaxDepth   = 200
	MaxEntries = 1_000_000
)

// ErrBounds means that a folder is deeper, or has more entries, than the bounds of a walk.
var ErrBounds = errors.New("beyond bounds")

// Bounds end a walk with ErrBounds.
type Bounds struct {
	Depth   int // folders below one another; the folder itself is 0
	Entries int // files, folders and links in all
	// Skip reports whether a folder is passed over, neither entered nor visited. Nil:
	// none is.
	Skip func(Entry) bool
}

// Workspace are the bounds of what a run may leave in its workspace.
func Workspace() Bounds { return Bounds{Depth: MaxDepth, Entries: MaxEntries} }

// Entry is a file, link or folder that a walk has reached.
type Entry struct {
	Dir   int    // descriptor of the folder that it is in, valid during the call
	Name  string // in that folder
	Path  string // relative to where the walk began
	Depth int    // 1: in the very folder
	Stat  unix.Stat_t
}

// Kind returns the bits of the entry's mode that say what it is, such as
// unix.S_IFREG.
func (e Entry) Kind() uint32 { return uint32(e.Stat.Mode) & unix.S_IFMT } //nolint:unconvert // it is of 16 bits on macOS

// batch is how many names of a folder are read at a time.
const batch = 1024

// Walk calls visit for all that is below dir, folders after what is in them, in
// no order besides that. At most one descriptor for each level of depth is open.
// It ends with the first error, ctx's cause or ErrBounds among them. Nobody else
// may write there meanwhile. A folder that its owner cannot read is made readable,
// if that is the caller.
func Walk(ctx context.Context, dir string, b Bounds, visit func(Entry) error) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: short(dir), Err: err}
	}
	w := walk{ctx: ctx, bounds: b, visit: visit}
	return w.folder(fd, "", 0)
}

type walk struct {
	ctx    context.Context //nolint:containedctx // of one call
	bounds Bounds
	visit  func(Entry) error
	seen   int
}

// folder goes through an open folder, and closes it.
func (w *walk) folder(fd int, path string, depth int) error {
	dir := os.NewFile(uintptr(fd), short(path))
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(batch)
		for _, name := range names {
			if err := w.entry(fd, name, path, depth+1); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (w *walk) entry(dir int, name, path string, depth int) error {
	if w.seen++; w.seen > w.bounds.Entries {
		return fmt.Errorf("more than %d files and folders: %w", w.bounds.Entries, ErrBounds)
	}
	if w.seen%64 == 0 && w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	e := Entry{Dir: dir, Name: name, Path: join(path, name), Depth: depth}
	err := retried(func() error { return unix.Fstatat(dir, name, &e.Stat, unix.AT_SYMLINK_NOFOLLOW) })
	if errors.Is(err, unix.ENOENT) {
		return nil // a process that is just dying took it with it
	} else if err != nil {
		return &os.PathError{Op: "stat", Path: short(e.Path), Err: err}
	}
	if e.Kind() == unix.S_IFDIR {
		if w.bounds.Skip != nil && w.bounds.Skip(e) {
			return nil
		}
		if depth > w.bounds.Depth {
			return fmt.Errorf("folders are nested deeper than %d: %w", w.bounds.Depth, ErrBounds)
		}
		fd, err := openFolder(dir, name)
		if err != nil {
			return &os.PathError{Op: "open", Path: short(e.Path), Err: err}
		}
		if err := w.folder(fd, e.Path, depth); err != nil {
			return err
		}
	}
	return w.visit(e)
}

// Chown makes a user the owner of dir and of all below it. A regular file with a
// second name is refused: the other name can be somebody else's.
func Chown(ctx context.Context, dir string, uid, gid int, b Bounds) error {
	err := Walk(ctx, dir, b, func(e Entry) error {
		if e.Kind() == unix.S_IFREG && e.Stat.Nlink > 1 {
			return fmt.Errorf("%s has another name", short(e.Path))
		}
		err := retried(func() error { return unix.Fchownat(e.Dir, e.Name, uid, gid, unix.AT_SYMLINK_NOFOLLOW) })
		if err != nil {
			return &os.PathError{Op: "chown", Path: short(e.Path), Err: err}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return os.Lchown(dir, uid, gid)
}

// Check returns an error if what is below dir is beyond the bounds; nil if it is
// not a folder.
func Check(ctx context.Context, dir string, b Bounds) error {
	err := Walk(ctx, dir, b, func(Entry) error { return nil })
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	return err
}

// openFolder opens a folder in an open one. If it is ours and we may not read it, its
// mode is changed.
func openFolder(dir int, name string) (fd int, err error) {
	open := func() error {
		fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	}
	err = retried(open)
	if errors.Is(err, unix.EACCES) {
		_ = makeOurs(dir, name)
		err = retried(open)
	}
	return fd, err
}

// retried calls a system call again that a signal has interrupted.
func retried(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// maxShown bounds how much of a name that somebody else has chosen is shown.
const maxShown = 200

// short returns a path, or the end of it, for an error.
func short(path string) string {
	if len(path) <= maxShown {
		return path
	}
	return "…" + strings.ToValidUTF8(path[len(path)-maxShown:], "")
}
