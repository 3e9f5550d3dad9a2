package modules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
)

// Folder is what a folder of a tree gives to a bundle, with paths from the
// folder. It is immutable.
type Folder struct {
	files  []Entry
	links  []string // symbolic links
	items  int      // files, links and folders that were looked at
	module *Module  // nil if links are among the code: then it depends on more than the folder
	digest holdfast.Digest
	faults holdfast.Faults
	unfit  holdfast.Faults // names that no bundle can hold, whoever reads the folder
}

var errNoFolder = errors.New("not a folder")

// folder reads a folder, or remembers one with the same hash.
func (g *Gatherer) folder(dir string) (*Folder, error) {
	hash, err := g.Tree.Hash(dir)
	if err != nil {
		return nil, err
	}
	if f, ok := g.folders.Get(hash); ok {
		return f, nil
	}
	if info, err := g.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, errNoFolder
	}
	f := &Folder{}
	if err := g.walk(f, dir, ""); err != nil {
		return nil, err
	}
	if f.items > maxBundleFiles {
		f.files, f.links = nil, nil
		f.faults = append(f.faults, holdfast.Fault{
			File: ".", Message: fmt.Sprintf("more than %d files and folders", maxBundleFiles), Hint: "keep code in folders of its own",
		})
	}
	digest := holdfast.NewDigester("folder")
	codeLinked := false
	for _, link := range f.links {
		codeLinked = codeLinked || path.Dir(link) == "."
	}
	for _, e := range f.files {
		digest.Add(e.Path, e.Hash, fmt.Sprint(e.Exec))
	}
	f.digest = digest.Digest()
	if !codeLinked {
		if f.module, err = g.readModule(dir, f.files); err != nil {
			return nil, err
		}
	}
	g.folders.Put(hash, f)
	return f, nil
}

// maxPointer is the size, in bytes, below which a file can be a Git LFS pointer.
const maxPointer = 1024

// Refused says why a tree does not read a file, if that is because of what the
// file is. It reports false if the file system or the object store failed.
func Refused(err error) (string, bool) {
	var refusal, inner *fs.PathError
	var errno syscall.Errno
	if !errors.As(err, &refusal) || errors.As(refusal.Err, &inner) || errors.As(err, &errno) {
		return "", false
	}
	for _, trouble := range []error{
		holdfast.ErrUnavailable, holdfast.ErrNotFound, context.Canceled, context.DeadlineExceeded,
		fs.ErrNotExist, fs.ErrPermission, io.ErrUnexpectedEOF,
	} {
		if errors.Is(err, trouble) {
			return "", false
		}
	}
	return refusal.Err.Error(), true
}

// unfit says why no bundle can hold a file or folder of that name; empty if one can.
func unfit(name string) string {
	switch {
	case !utf8.ValidString(name):
		return "has a name that is not UTF-8"
	case strings.Contains(name, `\`):
		return "has a backslash in its name, and no bundle can hold that"
	default:
		return ""
	}
}

// unfitFault is the fault of such a file or folder.
func unfitFault(name, why string) holdfast.Fault {
	return holdfast.Fault{File: strings.ToValidUTF8(name, "\uFFFD"), Message: why, Hint: "rename it"}
}

// leftOut are files that must not reach a workspace: what an engine left
// behind, and Git's own.
func leftOut(name string, dir bool) bool {
	if dir {
		return name == ".terraform" || name == ".git"
	}
	return strings.HasSuffix(name, ".tfstate") || strings.Contains(name, ".tfstate.") || name == ".git"
}

func (g *Gatherer) walk(f *Folder, dir, below string) error {
	list, err := g.Tree.ReadDir(path.Join(dir, below))
	if why, ok := Refused(err); ok { // it is nested too deep
		f.faults = append(f.faults, holdfast.Fault{File: below, Message: "folder " + why})
		return nil
	} else if err != nil {
		return err
	}
	for _, item := range list {
		name := path.Join(below, item.Name())
		kind := item.Type()
		f.items++
		switch why := unfit(item.Name()); {
		case f.items > maxBundleFiles:
			return nil // reported by folder
		case leftOut(item.Name(), item.IsDir()):
		case why != "":
			f.unfit = append(f.unfit, unfitFault(name, why))
		case kind&fs.ModeSymlink != 0:
			f.links = append(f.links, name)
		case kind&fs.ModeIrregular != 0:
			f.faults = append(f.faults, holdfast.Fault{
				File: name, Message: "a Git submodule inside a module is not supported",
				Hint: "refer to it as a module with a git:: source and ?ref=",
			})
		case item.IsDir():
			if err := g.walk(f, dir, name); err != nil {
				return err
			}
		default:
			if err := g.file(f, dir, name, item); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *Gatherer) file(f *Folder, dir, name string, item fs.DirEntry) error {
	full := path.Join(dir, name)
	if ext := path.Ext(name); ext == ".yaml" || ext == ".yml" {
		// A cluster may be next to its module: its labels and the like are not
		// input of the engine, and must not make a plan necessary.
		data, err := g.Tree.ReadFile(full)
		if _, refused := Refused(err); err != nil && !refused {
			return fmt.Errorf("read %s: %w", full, err)
		} else if err == nil && holdsDocuments(name, data) {
			return nil
		}
	}
	hash, err := g.Tree.Hash(full)
	if why, ok := Refused(err); ok {
		f.faults = append(f.faults, holdfast.Fault{File: name, Message: "file " + why})
		return nil
	} else if err != nil {
		return fmt.Errorf("hash %s: %w", full, err)
	}
	info, err := item.Info()
	if err != nil {
		return fmt.Errorf("stat %s: %w", full, err)
	}
	if info.Size() > maxModuleFile {
		f.faults = append(f.faults, holdfast.Fault{
			File: name, Message: fmt.Sprintf("file has %d bytes, more than the %d of a file in a module", info.Size(), maxModuleFile),
			Hint: "keep it elsewhere",
		})
		return nil
	}
	if info.Size() < maxPointer && !isCode(name) {
		// It may stand for a content that is not in the repository. Now is the
		// time to say so, not when the bundle is made.
		if _, err := g.Tree.ReadFile(full); err != nil {
			why, ok := Refused(err)
			if !ok {
				return fmt.Errorf("read %s: %w", full, err)
			}
			f.faults = append(f.faults, holdfast.Fault{File: name, Message: "file " + why})
			return nil
		}
	}
	f.files = append(f.files, Entry{Path: name, Hash: hash, Exec: info.Mode()&0o111 != 0})
	return nil
}

// holdsDocuments reports whether a file consists of documents of ours.
func holdsDocuments(name string, data []byte) bool {
	if !decode.IsCluster(name, data) {
		return false
	}
	roots, fault := decode.Parse(name, data)
	if fault != nil || len(roots) == 0 {
		return false
	}
	for _, root := range roots {
		if version, _ := decode.ScalarOf(root, "apiVersion"); version != decode.APIVersion {
			return false
		}
	}
	return true
}
