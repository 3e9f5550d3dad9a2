package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/holdfast-dev/holdfast"
)

// maxDepth bounds how deep folders are nested: a small commit can have a hundred thousand
// below one another, and whoever walks them keeps the path of each.
const maxDepth = 200

// shallow returns an error for what is nested too deep.
func shallow(name string) error {
	if strings.Count(name, "/") < maxDepth {
		return nil
	}
	return fmt.Errorf("%.60s… %w: folders are nested deeper than %d", name, holdfast.ErrUnreadable, maxDepth)
}

// maxCachedFolders bounds what a Tree keeps of the folders it has read.
const maxCachedFolders = 512

// Kinds of files that have no readable content. They are the Err of a *fs.PathError.
var (
	errIsDir     = errors.New("is a folder")
	errIsSymlink = errors.New("is a symbolic link, which is not followed")
	errSubmodule = errors.New("is a submodule, which is not supported: put the files into this repository")
	errLFS       = errors.New("is a Git LFS pointer, and LFS is not supported: put the content into Git itself")
	errIrregular = errors.New("is neither a file nor a folder")
	errEncoding  = errors.New("has a name that is not UTF-8")
)

// Tree opens a revision, or a tree that Merge made by its id: 40 lower-case
// hexadecimal digits. It is ErrNotFound if the mirror has no such object: what
// was never fetched is not there.
//
// Files over MaxFileSize, symbolic links, submodules and Git LFS pointers cannot
// be read. Links show as fs.ModeSymlink, and ReadLink tells their target;
// submodules show as fs.ModeIrregular. Names that are not UTF-8, and folders that are nested
// too deep, are listed only. What Git does not check out, such as .git, is not in the tree.
func (s *Source) Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error) {
	m, err := s.mirror(repo)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("open tree: %w", err)
	}
	objs := m.open()
	root, _, err := objs.resolve(revision)
	if err != nil {
		return nil, fmt.Errorf("open tree of repository %q: %w", repo, err)
	}
	return &tree{objects: objs, root: root, folders: map[plumbing.Hash][]entry{}}, nil
}

// tree is a holdfast.Tree over a mirror's objects. Its methods are safe for
// concurrent use.
type tree struct {
	objects *objects
	root    plumbing.Hash

	mu      sync.Mutex
	folders map[plumbing.Hash][]entry // sorted by name
}

var (
	_ holdfast.Tree = (*tree)(nil)
	_ fs.ReadLinkFS = (*tree)(nil)
	_ fs.StatFS     = (*tree)(nil)
)

// folder returns the entries of a tree, sorted by name.
func (t *tree) folder(hash plumbing.Hash) ([]entry, error) {
	t.mu.Lock()
	entries, ok := t.folders[hash]
	t.mu.Unlock()
	if ok {
		return entries, nil
	}
	entries, err := t.objects.tree(hash)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return !checkedOut(e.name) })
	// Git sorts folders as if their names ended in a slash.
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.folders) >= maxCachedFolders {
		clear(t.folders)
	}
	t.folders[hash] = entries
	return entries, nil
}

// lookup finds a path without following links.
func (t *tree) lookup(op, name string) (entry, error) {
	if !utf8.ValidString(name) {
		return entry{}, &fs.PathError{Op: op, Path: name, Err: errEncoding}
	}
	if !fs.ValidPath(name) {
		return entry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if err := shallow(name); err != nil {
		return entry{}, &fs.PathError{Op: op, Path: name[:60], Err: err}
	}
	at := entry{name: ".", mode: filemode.Dir, hash: t.root}
	if name == "." {
		return at, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if !at.isDir() {
			err := fs.ErrNotExist
			if reason := refusal(at.fileMode()); reason != nil {
				err = fmt.Errorf("%s %w: %w", at.name, reason, err)
			}
			return entry{}, &fs.PathError{Op: op, Path: name, Err: err}
		}
		entries, err := t.folder(at.hash)
		if err != nil {
			return entry{}, &fs.PathError{Op: op, Path: name, Err: err}
		}
		i, ok := slices.BinarySearchFunc(entries, part, func(e entry, name string) int { return strings.Compare(e.name, name) })
		if !ok {
			return entry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		at = entries[i]
	}
	return at, nil
}

// Hash returns the Git object id of a file or folder.
func (t *tree) Hash(name string) (string, error) {
	e, err := t.lookup("hash", name)
	if err != nil {
		return "", err
	}
	return e.hash.String(), nil
}

// ReadFile returns a file's content.
func (t *tree) ReadFile(name string) ([]byte, error) {
	e, err := t.lookup("read", name)
	if err != nil {
		return nil, err
	}
	data, err := t.read(e)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, nil
}

func (t *tree) read(e entry) ([]byte, error) {
	if err := refusal(e.fileMode()); err != nil {
		return nil, err
	}
	data, err := t.objects.blob(e.hash)
	if err != nil {
		return nil, err
	}
	if isLFSPointer(data) {
		return nil, errLFS
	}
	return data, nil
}

// refusal says why something of that mode has no content to read.
func refusal(mode fs.FileMode) error {
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return errIsDir
	case mode&fs.ModeSymlink != 0:
		return errIsSymlink
	case mode.Perm() == 0: // only submodules are without permissions
		return errSubmodule
	default:
		return errIrregular
	}
}

// isLFSPointer follows the specification of Git LFS: a pointer begins with its
// version and is shorter than 1024 bytes.
func isLFSPointer(data []byte) bool {
	return len(data) < 1024 && bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/"))
}

// ReadDir returns a folder's entries by name.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	e, err := t.lookup("readdir", name)
	if err != nil {
		return nil, err
	}
	list, err := t.readDir(e)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return list, nil
}

func (t *tree) readDir(e entry) ([]fs.DirEntry, error) {
	if !e.isDir() {
		return nil, errors.New("is not a folder")
	}
	entries, err := t.folder(e.hash)
	if err != nil {
		return nil, err
	}
	list := make([]fs.DirEntry, len(entries))
	for i, e := range entries {
		list[i] = dirEntry{tree: t, entry: e}
	}
	return list, nil
}

// Open opens a file or a folder.
func (t *tree) Open(name string) (fs.File, error) {
	e, err := t.lookup("open", name)
	if err != nil {
		return nil, err
	}
	info, err := t.info(e)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if e.isDir() {
		list, err := t.readDir(e)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return &openDir{info: info, name: name, entries: list}, nil
	}
	data, err := t.read(e)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &openFileData{Reader: bytes.NewReader(data), info: info}, nil
}

// Stat describes what is at a path itself: links are not followed.
func (t *tree) Stat(name string) (fs.FileInfo, error) {
	e, err := t.lookup("stat", name)
	if err != nil {
		return nil, err
	}
	info, err := t.info(e)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return info, nil
}

// Lstat is Stat.
func (t *tree) Lstat(name string) (fs.FileInfo, error) { return t.Stat(name) }

// ReadLink returns the target of a symbolic link, as it is there.
func (t *tree) ReadLink(name string) (string, error) {
	e, err := t.lookup("readlink", name)
	if err != nil {
		return "", err
	}
	if e.mode != filemode.Symlink {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	data, err := t.objects.blob(e.hash)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return string(data), nil
}

func (t *tree) info(e entry) (fs.FileInfo, error) {
	info := fileInfo{name: path.Base(e.name), mode: e.fileMode()}
	if e.isFile() || e.mode == filemode.Symlink {
		size, err := t.objects.size(e.hash)
		if err != nil {
			return nil, err
		}
		info.size = size
	}
	return info, nil
}

func (e entry) fileMode() fs.FileMode {
	switch e.mode {
	case filemode.Dir:
		return fs.ModeDir | 0o555
	case filemode.Symlink:
		return fs.ModeSymlink | 0o444
	case filemode.Executable:
		return 0o555
	case filemode.Regular:
		return 0o444
	default:
		return fs.ModeIrregular // a submodule
	}
}

// dirEntry looks at the object only when asked for more than the tree says.
type dirEntry struct {
	tree  *tree
	entry entry
}

func (d dirEntry) Name() string               { return d.entry.name }
func (d dirEntry) IsDir() bool                { return d.entry.isDir() }
func (d dirEntry) Type() fs.FileMode          { return d.entry.fileMode().Type() }
func (d dirEntry) Info() (fs.FileInfo, error) { return d.tree.info(d.entry) }
func (d dirEntry) String() string             { return fs.FormatDirEntry(d) }

// fileInfo has no times: Git keeps none.
type fileInfo struct {
	name string
	mode fs.FileMode
	size int64
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) Mode() fs.FileMode  { return i.mode }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }
func (i fileInfo) String() string     { return fs.FormatFileInfo(i) }

// openFileData is an open file: its content was read already.
type openFileData struct {
	*bytes.Reader
	info fs.FileInfo
}

func (f *openFileData) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFileData) Close() error               { return nil }

// openDir is an open folder, for one goroutine.
type openDir struct {
	info    fs.FileInfo
	name    string
	entries []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errIsDir}
}

// ReadDir returns the next n entries, or all that are left if n is not positive.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(d.entries) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(d.entries) {
		n = len(d.entries)
	}
	list := slices.Clone(d.entries[:n])
	d.entries = d.entries[n:]
	return list, nil
}
