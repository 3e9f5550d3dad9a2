package gitsource

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // Git's object ids are SHA-1
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/holdfast-dev/holdfast"
)

// Dir returns a Tree over a folder on disk, as if all in it were committed: with
// the hashes that Git would give it, and with the refusals of a mirror's Tree.
// Folders named .git and .terraform are not in it, nor is what a .gitignore
// names kept out. It reads when it is asked, so it changes as the folder does,
// and never reads outside of it. It is safe for concurrent use.
func Dir(name string) (holdfast.Tree, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	return &dirTree{root: root}, nil
}

type dirTree struct{ root *os.Root }

var (
	_ holdfast.Tree = (*dirTree)(nil)
	_ fs.ReadLinkFS = (*dirTree)(nil)
)

// hidden reports whether a name is left out of the tree.
func hidden(name string) bool {
	return name == ".terraform" || strings.EqualFold(name, ".git")
}

// lookup describes what is at a path itself. No link on the way is followed.
func (t *dirTree) lookup(op, name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	var info fs.FileInfo
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if info != nil && !info.IsDir() {
			err := fs.ErrNotExist
			if info.Mode()&fs.ModeSymlink != 0 {
				err = fmt.Errorf("%s %w: %w", info.Name(), errIsSymlink, err)
			}
			return nil, &fs.PathError{Op: op, Path: name, Err: err}
		}
		if hidden(part) {
			return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		var err error
		if info, err = t.root.Lstat(filepath.Join(parts[:i+1]...)); err != nil {
			return nil, &fs.PathError{Op: op, Path: name, Err: cause(err)}
		}
	}
	return dirInfo(path.Base(name), info), nil
}

// cause takes the path out of an error, for one that names ours.
func cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// dirInfo makes of what is on disk what Git would know of it.
func dirInfo(name string, info fs.FileInfo) fileInfo {
	mode := info.Mode()
	switch {
	case mode.IsDir():
		return fileInfo{name: name, mode: fs.ModeDir | 0o555}
	case mode&fs.ModeSymlink != 0:
		return fileInfo{name: name, mode: fs.ModeSymlink | 0o444, size: info.Size()}
	case mode.IsRegular() && mode&0o100 != 0:
		return fileInfo{name: name, mode: 0o555, size: info.Size()}
	case mode.IsRegular():
		return fileInfo{name: name, mode: 0o444, size: info.Size()}
	default: // a socket, a pipe, a device: permissions distinguish it from a submodule
		return fileInfo{name: name, mode: fs.ModeIrregular | 0o444}
	}
}

// Open opens a file or a folder.
func (t *dirTree) Open(name string) (fs.File, error) {
	info, err := t.lookup("open", name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		list, err := t.ReadDir(name)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: cause(err)}
		}
		return &openDir{info: info, name: name, entries: list}, nil
	}
	data, err := t.ReadFile(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: cause(err)}
	}
	return &openFileData{Reader: bytes.NewReader(data), info: info}, nil
}

// ReadFile returns a file's content.
func (t *dirTree) ReadFile(name string) ([]byte, error) {
	info, err := t.lookup("read", name)
	if err != nil {
		return nil, err
	}
	data, err := t.read(name, info)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: cause(err)}
	}
	return data, nil
}

func (t *dirTree) read(name string, info fs.FileInfo) ([]byte, error) {
	if err := refusal(info.Mode()); err != nil {
		return nil, err
	}
	if info.Size() > MaxFileSize {
		return nil, errTooLarge(info.Size())
	}
	f, err := t.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1)) // it may grow meanwhile
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFileSize {
		return nil, errTooLarge(len(data))
	}
	if isLFSPointer(data) {
		return nil, errLFS
	}
	return data, nil
}

// ReadDir returns a folder's entries by name.
func (t *dirTree) ReadDir(name string) ([]fs.DirEntry, error) {
	info, err := t.lookup("readdir", name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("is not a folder")}
	}
	entries, err := fs.ReadDir(t.root.FS(), name)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: cause(err)}
	}
	var list []fs.DirEntry
	for _, e := range entries {
		if hidden(e.Name()) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "readdir", Path: name, Err: cause(err)}
		}
		list = append(list, fs.FileInfoToDirEntry(dirInfo(e.Name(), info)))
	}
	return list, nil
}

// Stat describes what is at a path itself: links are not followed.
func (t *dirTree) Stat(name string) (fs.FileInfo, error) { return t.lookup("stat", name) }

// Lstat is Stat.
func (t *dirTree) Lstat(name string) (fs.FileInfo, error) { return t.lookup("lstat", name) }

// ReadLink returns the target of a symbolic link, as it is there.
func (t *dirTree) ReadLink(name string) (string, error) {
	info, err := t.lookup("readlink", name)
	if err != nil {
		return "", err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	target, err := t.root.Readlink(filepath.FromSlash(name))
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: cause(err)}
	}
	return target, nil
}

// Hash returns the object id that Git would give a file or folder. Empty folders
// are nothing to Git, and neither are sockets, pipes and devices.
func (t *dirTree) Hash(name string) (string, error) {
	info, err := t.lookup("hash", name)
	if err != nil {
		return "", err
	}
	sum, _, err := t.hash(name, info)
	if err != nil {
		return "", &fs.PathError{Op: "hash", Path: name, Err: cause(err)}
	}
	return sum.String(), nil
}

// hash returns the object id and mode of what is at a path; no mode: nothing
// that Git would keep.
func (t *dirTree) hash(name string, info fs.FileInfo) (plumbing.Hash, filemode.FileMode, error) {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return t.hashDir(name)
	case mode&fs.ModeSymlink != 0:
		target, err := t.root.Readlink(filepath.FromSlash(name))
		return objectID("blob", []byte(target)), filemode.Symlink, err
	case mode.IsRegular():
		sum, err := t.hashFile(name)
		if mode&0o111 != 0 {
			return sum, filemode.Executable, err
		}
		return sum, filemode.Regular, err
	default:
		return plumbing.ZeroHash, filemode.Empty, nil
	}
}

func (t *dirTree) hashDir(name string) (plumbing.Hash, filemode.FileMode, error) {
	list, err := t.ReadDir(name)
	if err != nil {
		return plumbing.ZeroHash, filemode.Empty, err
	}
	var entries []entry
	for _, e := range list {
		info, err := e.Info()
		if err != nil {
			return plumbing.ZeroHash, filemode.Empty, err
		}
		sum, mode, err := t.hash(path.Join(name, e.Name()), info)
		if err != nil {
			return plumbing.ZeroHash, filemode.Empty, err
		}
		if mode != filemode.Empty {
			entries = append(entries, entry{name: e.Name(), mode: mode, hash: sum})
		}
	}
	mode := filemode.Dir
	if len(entries) == 0 && name != "." {
		mode = filemode.Empty
	}
	return objectID("tree", encodeTree(entries)), mode, nil
}

// hashFile reads a file of any size piece by piece.
func (t *dirTree) hashFile(name string) (plumbing.Hash, error) {
	f, err := t.root.Open(filepath.FromSlash(name))
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	h := newObjectHash("blob", info.Size())
	n, err := io.Copy(h, f)
	if err == nil && n != info.Size() {
		err = errors.New("changed while it was read")
	}
	return plumbing.Hash(h.Sum(nil)), err
}

func newObjectHash(kind string, size int64) hash.Hash {
	h := sha1.New() //nolint:gosec // see the import
	fmt.Fprintf(h, "%s %d\x00", kind, size)
	return h
}

func objectID(kind string, data []byte) plumbing.Hash {
	h := newObjectHash(kind, int64(len(data)))
	h.Write(data)
	return plumbing.Hash(h.Sum(nil))
}
