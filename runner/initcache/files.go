package initcache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// entry is one file or link of a prepared folder.
type entry struct {
	Path string `json:"path"`
	Link string `json:"link,omitempty"` // where a link leads
	Sum  string `json:"sum,omitempty"`  // SHA-256 of a file's content
}

// stamp shows, without reading it, that a file is the one that was hashed: its change
// time cannot be set.
type stamp struct {
	size, mtime, ctime int64
	inode              uint64
}

// found is an entry without its sum, and where it is.
type found struct {
	path, link, name string
}

// list lists the files and links below dir, and the files of folders that links
// among the providers point to: a mirror's. Links of modules are their own
// repositories' choice, and can lead to anything: they are not followed.
func list(dir string) ([]found, error) {
	var all []found
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		path, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink == 0 {
			all = append(all, found{path: path, name: name})
			return nil
		}
		link, err := os.Readlink(name)
		if err != nil {
			return err
		}
		all = append(all, found{path: path, name: name, link: link})
		if !strings.HasPrefix(path, Providers+string(filepath.Separator)) {
			return nil
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			return nil //nolint:nilerr // a link to a file
		}
		for _, entry := range entries {
			real, err := filepath.EvalSymlinks(filepath.Join(name, entry.Name()))
			if err != nil {
				return err
			}
			if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() {
				continue
			}
			all = append(all, found{path: filepath.Join(path, entry.Name()), name: real})
		}
		return nil
	})
	return all, err
}

// compare reports whether dir holds what was published. Files that are not in
// seen as they are now are hashed, and put there.
func compare(dir string, want []entry, seen map[string]stamp) error {
	all, err := list(dir)
	if err != nil {
		return err
	}
	if len(all) != len(want) {
		return errors.New("it has other files than were published")
	}
	for i, f := range all {
		if f.path != want[i].Path || f.link != want[i].Link {
			return fmt.Errorf("%s is not what was published", f.path)
		}
		if f.link != "" {
			continue
		}
		now, err := stampOf(f.name)
		if err != nil {
			return err
		}
		if known, ok := seen[f.path]; ok && known == now {
			continue
		}
		sum, now, err := hash(f.name)
		if err != nil {
			return err
		}
		if sum != want[i].Sum {
			return fmt.Errorf("%s is not what was published", f.path)
		}
		seen[f.path] = now
	}
	return nil
}

func stampOf(name string) (stamp, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return stamp{}, err
	}
	return makeStamp(info)
}

func makeStamp(info fs.FileInfo) (stamp, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return stamp{}, fmt.Errorf("%s is not a regular file", info.Name())
	}
	return stamp{size: info.Size(), mtime: info.ModTime().UnixNano(), ctime: changed(stat), inode: stat.Ino}, nil
}

// hash returns the hash of a file, and its stamp from before it was read.
func hash(name string) (string, stamp, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", stamp{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", stamp{}, err
	}
	now, err := makeStamp(info)
	if err != nil {
		return "", stamp{}, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", stamp{}, err
	}
	return hex.EncodeToString(sum.Sum(nil)), now, nil
}
