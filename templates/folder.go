package templates

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast"
)

// entry is a file of a bundle.
type entry struct {
	path   string // in the bundle, or in its folder
	source string // in the tree; differs from path behind a symbolic link
	hash   string // of the content
	exec   bool
}

// folder is what a folder of a tree gives to a bundle, with paths from the
// folder. It is immutable.
type folder struct {
	files  []entry
	links  []string // symbolic links
	module *module  // nil if links are among the code: then it depends on more than the folder
	digest holdfast.Digest
	faults holdfast.Faults
}

// gatherer collects what a root module needs from a tree.
type gatherer struct {
	tree    holdfast.Tree
	folders *cache[*folder]
	modules map[string]*module // by folder
	dirs    []string           // in the order they were reached
	entries map[string]entry   // by path
	digests map[string]holdfast.Digest
	linked  []string          // what symbolic links stand for, and files that code reads from elsewhere
	extra   map[string]string // hashes of the latter, by path
	parts   map[string]*gathered
	faults  holdfast.Faults
}

// gathered is what one folder gives to a root module: a part of a gatherer's
// entries, linked and extra.
type gathered struct {
	entries map[string]entry
	linked  []string
	extra   map[string]string
}

func (g *gatherer) part(dir string) *gathered {
	p := g.parts[dir]
	if p == nil {
		p = &gathered{entries: map[string]entry{}, extra: map[string]string{}}
		g.parts[dir] = p
	}
	return p
}

func newGatherer(tree holdfast.Tree, folders *cache[*folder]) *gatherer {
	return &gatherer{
		tree: tree, folders: folders,
		modules: map[string]*module{}, entries: map[string]entry{}, digests: map[string]holdfast.Digest{},
		extra: map[string]string{}, parts: map[string]*gathered{},
	}
}

// gather takes in the folder dir and the local modules that its code refers to.
// A missing folder is a fault that missing makes. An error is the tree's.
func (g *gatherer) gather(dir string, missing func() holdfast.Fault) error {
	if _, done := g.modules[dir]; done {
		return nil
	}
	if len(g.modules) >= maxModules {
		g.faults = append(g.faults, holdfast.Fault{File: dir, Message: fmt.Sprintf("more than %d local modules", maxModules)})
		return nil
	}
	m, err := g.take(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoFolder) {
		g.modules[dir] = newModule()
		g.faults = append(g.faults, missing())
		return nil
	}
	if err != nil {
		return err
	}
	g.modules[dir] = m
	g.dirs = append(g.dirs, dir)
	g.faults = append(g.faults, prefixed(m.faults, dir)...)
	for _, call := range m.calls {
		if !isLocal(call.source) {
			continue
		}
		fault := holdfast.Fault{File: path.Join(dir, call.file), Line: call.line, Column: call.column}
		target, ok := within(dir, call.source)
		if !ok {
			fault.Message = fmt.Sprintf("module %q has the source %q, which leaves the repository", call.name, call.source)
			g.faults = append(g.faults, fault)
			continue
		}
		err := g.gather(target, func() holdfast.Fault {
			fault.Message = fmt.Sprintf("module %q has the source %q, and there is no folder %s", call.name, call.source, target)
			return fault
		})
		if err != nil {
			return err
		}
	}
	for _, name := range m.reads {
		if err := g.refer(dir, name); err != nil {
			return err
		}
	}
	return nil
}

// referRoot takes in what the modules read from places that they give from the
// root module's folder.
func (g *gatherer) referRoot(root string) error {
	for _, dir := range slices.Clone(g.dirs) {
		for _, name := range g.modules[dir].rootReads {
			if err := g.refer(root, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// refer takes in a file or folder that code reads. What is not in the
// repository is the engine's to complain about, or not: it may only be asked
// whether it exists.
func (g *gatherer) refer(dir, name string) error {
	target, ok := within(dir, name)
	if !ok {
		return nil
	}
	part, from := g.part(dir), len(g.linked)
	defer func() { part.linked = append(part.linked, g.linked[from:]...) }()
	g.linked = append(g.linked, target)
	info, err := g.stat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("stat %s: %w", target, err)
	}
	var files []entry
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		files, err = g.follow(target, nil)
	case mode.IsDir():
		f, ferr := g.folder(target)
		if ferr != nil {
			return ferr
		}
		for _, e := range f.files {
			e.path = path.Join(target, e.path)
			files = append(files, e)
		}
	case mode.IsRegular():
		hash, herr := g.tree.Hash(target)
		files, err = []entry{{path: target, hash: hash, exec: mode&0o111 != 0}}, herr
	}
	if err != nil {
		return err
	}
	for _, e := range files {
		if e.source == "" {
			e.source = e.path
		}
		part.entries[e.path] = e
		part.extra[e.path] = e.hash
		if _, have := g.entries[e.path]; have {
			continue
		}
		g.entries[e.path] = e
		g.extra[e.path] = e.hash
	}
	g.bound(target)
	return nil
}

// addExtra adds what refer took in to a digest.
func (g *gatherer) addExtra(d *holdfast.Digester) {
	for _, name := range slices.Sorted(maps.Keys(g.extra)) {
		d.Add("read", name, g.extra[name])
	}
}

// closure returns the folders that modules in a folder reach, with itself.
func (g *gatherer) closure(dir string) []string {
	var dirs []string
	var visit func(string)
	visit = func(dir string) {
		if slices.Contains(dirs, dir) || !slices.Contains(g.dirs, dir) {
			return
		}
		dirs = append(dirs, dir)
		for _, call := range g.modules[dir].calls {
			if target, ok := within(dir, call.source); ok && isLocal(call.source) {
				visit(target)
			}
		}
	}
	visit(dir)
	return dirs
}

// reads returns what was read of the tree, sorted.
func (g *gatherer) reads() []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(g.dirs, g.linked))))
}

// prefixed makes faults whose files are relative to dir relative to the tree.
func prefixed(faults holdfast.Faults, dir string) holdfast.Faults {
	out := slices.Clone(faults)
	for i := range out {
		out[i].File = path.Join(dir, out[i].File)
	}
	return out
}

// take adds the files of dir.
func (g *gatherer) take(dir string) (*module, error) {
	f, err := g.folder(dir)
	if err != nil {
		return nil, err
	}
	g.faults = append(g.faults, prefixed(f.faults, dir)...)
	files := f.files
	part, from := g.part(dir), len(g.linked)
	digest := holdfast.NewDigester("folder with links")
	digest.Add(string(f.digest))
	for _, link := range f.links {
		linked, err := g.follow(path.Join(dir, link), nil)
		if err != nil {
			return nil, err
		}
		for _, e := range linked {
			e.path = strings.TrimPrefix(e.path, dir+"/") // dir "." leaves it as it is
			files = append(slices.Clip(files), e)
			digest.Add(e.path, e.hash)
		}
	}
	g.digests[dir] = digest.Digest()
	for _, e := range files {
		e.path = path.Join(dir, e.path)
		if e.source == "" {
			e.source = e.path
		}
		g.entries[e.path] = e
		part.entries[e.path] = e
	}
	part.linked = append(part.linked, g.linked[from:]...)
	g.bound(dir)
	if f.module != nil {
		return f.module, nil
	}
	return g.readModule(dir, files)
}

// bound tells of a root module that takes in too much, by way of dir.
func (g *gatherer) bound(dir string) {
	if len(g.entries) > maxBundleFiles {
		g.faults = append(g.faults, holdfast.Fault{
			File: dir, Message: fmt.Sprintf("root module and its modules have more than %d files", maxBundleFiles),
			Hint: "keep code in folders of its own",
		})
	}
}

func (g *gatherer) readModule(dir string, files []entry) (*module, error) {
	m := newModule()
	for _, e := range files {
		if path.Dir(e.path) != "." || !isCode(e.path) {
			continue
		}
		source := e.source
		if source == "" {
			source = path.Join(dir, e.path)
		}
		data, err := g.tree.ReadFile(source)
		if why, ok := refused(err); ok {
			m.faults = append(m.faults, holdfast.Fault{File: e.path, Message: "file " + why})
			continue
		} else if err != nil {
			return nil, fmt.Errorf("read %s: %w", source, err)
		}
		m.read(e.path, data)
	}
	return m, nil
}

var errNoFolder = errors.New("not a folder")

// folder reads a folder, or remembers one with the same hash.
func (g *gatherer) folder(dir string) (*folder, error) {
	hash, err := g.tree.Hash(dir)
	if err != nil {
		return nil, err
	}
	if f, ok := g.folders.get(hash); ok {
		return f, nil
	}
	if info, err := g.stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, errNoFolder
	}
	f := &folder{}
	if err := g.walk(f, dir, ""); err != nil {
		return nil, err
	}
	digest := holdfast.NewDigester("folder")
	codeLinked := false
	for _, link := range f.links {
		codeLinked = codeLinked || path.Dir(link) == "."
	}
	for _, e := range f.files {
		digest.Add(e.path, e.hash, fmt.Sprint(e.exec))
	}
	f.digest = digest.Digest()
	if !codeLinked {
		if f.module, err = g.readModule(dir, f.files); err != nil {
			return nil, err
		}
	}
	g.folders.put(hash, f)
	return f, nil
}

// maxPointer is the size, in bytes, below which a file can be a Git LFS pointer.
const maxPointer = 1024

// refused says why a tree does not read a file, if that is because of what the
// file is. It reports false if the file system or the object store failed.
func refused(err error) (string, bool) {
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

// leftOut are files that must not reach a workspace: what an engine left
// behind, and Git's own.
func leftOut(name string, dir bool) bool {
	if dir {
		return name == ".terraform" || name == ".git"
	}
	return strings.HasSuffix(name, ".tfstate") || strings.Contains(name, ".tfstate.") || name == ".git"
}

func (g *gatherer) walk(f *folder, dir, below string) error {
	list, err := g.tree.ReadDir(path.Join(dir, below))
	if err != nil {
		return err
	}
	for _, item := range list {
		name := path.Join(below, item.Name())
		kind := item.Type()
		switch {
		case leftOut(item.Name(), item.IsDir()):
		case len(f.files) > maxBundleFiles:
			return nil // told by take
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

func (g *gatherer) file(f *folder, dir, name string, item fs.DirEntry) error {
	full := path.Join(dir, name)
	if ext := path.Ext(name); ext == ".yaml" || ext == ".yml" {
		// A cluster may stand beside its module: its labels and the like are no
		// input of the engine, and must not make a plan necessary.
		if data, err := g.tree.ReadFile(full); err == nil && holdsDocuments(name, data) {
			return nil
		}
	}
	hash, err := g.tree.Hash(full)
	if err != nil {
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
		if _, err := g.tree.ReadFile(full); err != nil {
			why, ok := refused(err)
			if !ok {
				return fmt.Errorf("read %s: %w", full, err)
			}
			f.faults = append(f.faults, holdfast.Fault{File: name, Message: "file " + why})
			return nil
		}
	}
	f.files = append(f.files, entry{path: name, hash: hash, exec: info.Mode()&0o111 != 0})
	return nil
}

// holdsDocuments reports whether a file consists of documents of ours.
func holdsDocuments(name string, data []byte) bool {
	if !IsCluster(name, data) {
		return false
	}
	roots, fault := parseYAML(name, data)
	if fault != nil || len(roots) == 0 {
		return false
	}
	for _, root := range roots {
		if version, _ := scalarOf(root, "apiVersion"); version != apiVersion {
			return false
		}
	}
	return true
}
