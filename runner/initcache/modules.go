package initcache

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast"
)

// versionControl is what a fetch may leave next to a module: it does not count as
// content.
const versionControl = ".git"

// Module is one module that init fetched.
type Module struct {
	Name    string          `json:"name"`              // as in module.NAME, with those that it is called by: a.b
	Version string          `json:"version,omitempty"` // that a registry gave; empty: it is of none
	Content holdfast.Digest `json:"content"`
}

// digestFetched returns the digest of the modules that init fetched, empty if
// there are none. What version control leaves next to them is not content.
func digestFetched(dir string) (holdfast.Digest, error) {
	return digestTree(dir, filepath.Join(dir, modulesFile))
}

// digestTree returns the digest of the files below dir but one, empty if there are
// none.
func digestTree(dir, but string) (holdfast.Digest, error) {
	digest := holdfast.NewDigester("fetched modules")
	any := false
	err := walkModules(dir, func(path, name, link string) error {
		if name == but {
			return nil
		}
		any = true
		if link != "" {
			digest.Add(path, "link", link)
			return nil
		}
		digest.Add(path, "file")
		return addFile(digest, name)
	})
	if err != nil || !any {
		return "", err
	}
	return digest.Digest(), nil
}

// addFile adds the content of a file: it may be larger than memory is.
func addFile(digest *holdfast.Digester, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return digest.AddContent(file, info.Size())
}

// eachModule returns the fetched modules, sorted by name.
func eachModule(dir string) ([]Module, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	versions := versionsOf(filepath.Join(dir, modulesFile))
	var all []Module
	for _, entry := range entries {
		if entry.Name() == modulesFile {
			continue
		}
		content, err := digestTree(filepath.Join(dir, entry.Name()), "")
		if err != nil {
			return nil, err
		}
		if content != "" {
			all = append(all, Module{Name: entry.Name(), Version: versions[entry.Name()], Content: content})
		}
	}
	return all, nil
}

// versionsOf returns the versions of modules of registries, by name, as far as the
// engine has noted them.
func versionsOf(file string) map[string]string {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	var list struct {
		Modules []struct{ Key, Version string }
	}
	if json.NewDecoder(io.LimitReader(f, maxSmall)).Decode(&list) != nil {
		return nil
	}
	versions := map[string]string{}
	for _, m := range list.Modules {
		versions[m.Key] = m.Version
	}
	return versions
}

// walkModules calls visit for the files and links below dir, in the order of their
// paths, which have slashes. Nothing is not an error.
func walkModules(dir string, visit func(path, name, link string) error) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == dir:
			return nil
		case err != nil:
			return err
		case d.IsDir() && d.Name() == versionControl:
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		path, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		var link string
		if d.Type()&fs.ModeSymlink != 0 {
			if link, err = os.Readlink(name); err != nil {
				return err
			}
		}
		return visit(filepath.ToSlash(path), name, filepath.ToSlash(link))
	})
}

// PackModules writes the fetched modules, with the engine's list of them, as a
// gzipped tar. The same modules give the same bytes.
func (f Folder) PackModules(w io.Writer) error {
	packed := gzip.NewWriter(w)
	out := tar.NewWriter(packed)
	err := walkModules(filepath.Join(f.Dir, Modules), func(path, name, link string) error {
		if link != "" {
			return out.WriteHeader(&tar.Header{Name: path, Typeflag: tar.TypeSymlink, Linkname: link, Mode: 0o777})
		}
		return packFile(out, path, name)
	})
	return errors.Join(err, out.Close(), packed.Close())
}

func packFile(out *tar.Writer, path, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode().Perm()&0o100 != 0 {
		mode = 0o755
	}
	if err := out.WriteHeader(&tar.Header{Name: path, Typeflag: tar.TypeReg, Size: info.Size(), Mode: mode}); err != nil {
		return err
	}
	_, err = io.Copy(out, file)
	return err
}
