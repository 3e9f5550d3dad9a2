package modules

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/lru"
)

// Entry is a file of a bundle.
type Entry struct {
	Path   string // in the bundle, or in its folder
	Source string // in the tree; differs from path behind a symbolic link
	Hash   string // of the content
	Exec   bool
}

// Gatherer collects what a root module needs from a tree.
type Gatherer struct {
	Tree    holdfast.Tree
	folders *lru.Cache[*Folder]
	root    string             // the root module's folder; empty: the modules of a template are gathered
	engine  string             // that reads the code; empty: either may
	Modules map[string]*Module // by folder
	Dirs    []string           // in the order they were reached
	Entries map[string]Entry   // by path
	Digests map[string]holdfast.Digest
	linked  []string          // what symbolic links stand for, and files that code reads from elsewhere
	extra   map[string]string // hashes of the latter, by path
	Parts   map[string]*Part
	maybe   map[string][]string // folders that a folder's modules may be in, as values say

	followed int // symbolic links
	code     int // bytes of code that were read
	Faults   holdfast.Faults
	err      error
}

// Part is what one folder gives to a root module: a part of a gatherer's
// entries, linked and extra.
type Part struct {
	Entries map[string]Entry
	Linked  []string
	Extra   map[string]string
}

func (g *Gatherer) part(dir string) *Part {
	p := g.Parts[dir]
	if p == nil {
		p = &Part{Entries: map[string]Entry{}, Extra: map[string]string{}}
		g.Parts[dir] = p
	}
	return p
}

// NewGatherer returns one that has nothing yet. Folders that were read are kept in
// folders, by the hashes of their trees.
func NewGatherer(tree holdfast.Tree, folders *lru.Cache[*Folder]) *Gatherer {
	return &Gatherer{
		Tree: tree, folders: folders,
		Modules: map[string]*Module{}, Entries: map[string]Entry{}, Digests: map[string]holdfast.Digest{},
		extra: map[string]string{}, Parts: map[string]*Part{}, maybe: map[string][]string{},
	}
}

// GatherRoot gathers a root module for an engine, as Gather does. If none is named, a
// .tofu file in the folder means OpenTofu, as it does for the agent; otherwise either may
// read what the root module calls.
func (g *Gatherer) GatherRoot(dir, engine string, missing func() holdfast.Fault) error {
	g.root, g.engine = dir, engine
	return g.Gather(dir, missing)
}

// Gather gathers the folder dir and the local modules that its code refers to. A
// missing folder is a fault that missing makes. An error is the tree's.
func (g *Gatherer) Gather(dir string, missing func() holdfast.Fault) error {
	if _, done := g.Modules[dir]; done {
		return nil
	}
	if len(g.Modules) >= maxModules {
		g.Faults = append(g.Faults, holdfast.Fault{File: dir, Message: fmt.Sprintf("more than %d local modules", maxModules)})
		return nil
	}
	if why := unfit(dir); why != "" {
		g.Modules[dir] = newModule()
		g.Faults = append(g.Faults, unfitFault(dir, why))
		return nil
	}
	m, err := g.take(dir)
	if _, refused := Refused(err); refused || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoFolder) {
		g.Modules[dir] = newModule()
		g.Faults = append(g.Faults, missing())
		return nil
	}
	if err != nil {
		return err
	}
	if dir == g.root && g.engine == "" && m.tofu != nil {
		g.engine = "tofu"
	}
	m = m.As(g.engine)
	g.Modules[dir] = m
	g.Dirs = append(g.Dirs, dir)
	g.Faults = append(g.Faults, prefixed(m.Faults, dir)...)
	for _, call := range m.Calls {
		if !IsLocal(call.Source) {
			continue
		}
		fault := holdfast.Fault{File: path.Join(dir, call.File), Line: call.Line, Column: call.Column}
		target, ok := Within(dir, call.Source)
		if !ok {
			fault.Message = fmt.Sprintf("module %q has the source %q, which leaves the repository", call.name, call.Source)
			g.Faults = append(g.Faults, fault)
			continue
		}
		err := g.Gather(target, func() holdfast.Fault {
			fault.Message = fmt.Sprintf("module %q has the source %q, and there is no folder %s", call.name, call.Source, target)
			return fault
		})
		if err != nil {
			return err
		}
	}
	for _, pattern := range m.patterns {
		if err := g.gatherAll(dir, pattern); err != nil {
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

// gatherAll gathers every folder that a source which depends on values can mean: which
// one it is the engine knows.
func (g *Gatherer) gatherAll(dir, pattern string) error {
	whole, ok := Within(dir, pattern)
	if !ok {
		return nil
	}
	part := g.part(dir)
	at := []string{"."}
	for segment := range strings.SplitSeq(whole, "/") {
		var next []string
		for _, parent := range at {
			if !strings.Contains(segment, "*") {
				next = append(next, path.Join(parent, segment))
				continue
			}
			g.linked, part.Linked = append(g.linked, parent), append(part.Linked, parent)
			list, err := g.Tree.ReadDir(parent)
			if _, refused := Refused(err); refused || errors.Is(err, fs.ErrNotExist) { // a file, or a link
				continue
			} else if err != nil {
				return fmt.Errorf("read %s: %w", parent, err)
			}
			for _, item := range list {
				ok, _ := path.Match(segment, item.Name())
				if ok && item.IsDir() && !leftOut(item.Name(), true) && unfit(item.Name()) == "" {
					next = append(next, path.Join(parent, item.Name()))
				}
			}
		}
		if len(next) > maxModules {
			g.Faults = append(g.Faults, holdfast.Fault{File: dir, Message: fmt.Sprintf("%s can be more than %d folders", pattern, maxModules)})
			return nil
		}
		at = next
	}
	for _, target := range at {
		info, err := g.Stat(target)
		if _, refused := Refused(err); refused || errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			continue // the engine says so if it is this one that is called
		} else if err != nil {
			return fmt.Errorf("look for %s: %w", target, err)
		}
		g.maybe[dir] = append(g.maybe[dir], target)
		missing := func() holdfast.Fault { return holdfast.Fault{File: target, Message: "no such folder"} }
		if err := g.Gather(target, missing); err != nil {
			return err
		}
	}
	return nil
}

// ReferRoot gathers what the modules read from places that they give from the root
// module's folder.
func (g *Gatherer) ReferRoot(root string) error {
	for _, dir := range slices.Clone(g.Dirs) {
		for _, name := range g.Modules[dir].rootReads {
			if err := g.refer(root, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Refer gathers a file or folder of the tree that is read besides the code.
func (g *Gatherer) Refer(name string) error { return g.refer(".", name) }

// refer gathers a file or folder that code reads. What is not in the repository is the
// engine's to complain about, or not: it may only be asked whether it exists.
func (g *Gatherer) refer(dir, name string) error {
	target, ok := Within(dir, name)
	if !ok {
		return nil
	}
	part, from := g.part(dir), len(g.linked)
	defer func() { part.Linked = append(part.Linked, g.linked[from:]...) }()
	g.linked = append(g.linked, target)
	files, err := g.referred(target)
	if _, refused := Refused(err); refused || errors.Is(err, fs.ErrNotExist) { // such as a path that leads through a file
		return nil
	} else if err != nil {
		return fmt.Errorf("read %s: %w", target, err)
	}
	for _, e := range files {
		if e.Source == "" {
			e.Source = e.Path
		}
		part.Entries[e.Path] = e
		part.Extra[e.Path] = e.Hash
		if _, have := g.Entries[e.Path]; have {
			continue
		}
		g.Entries[e.Path] = e
		g.extra[e.Path] = e.Hash
	}
	g.bound(target)
	return nil
}

// referred returns the files of what code reads at a path.
func (g *Gatherer) referred(target string) ([]Entry, error) {
	info, err := g.Stat(target)
	if err != nil {
		return nil, err
	}
	if why := unfit(target); why != "" {
		g.Faults = append(g.Faults, unfitFault(target, why))
		return nil, nil
	}
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return g.linkedTo(target)
	case mode.IsDir():
		f, err := g.folder(target)
		if err != nil {
			return nil, err
		}
		g.Faults = append(g.Faults, prefixed(f.unfit, target)...)
		files := slices.Clone(f.files)
		for i := range files {
			files[i].Path = path.Join(target, files[i].Path)
		}
		return files, nil
	case mode.IsRegular():
		hash, err := g.Tree.Hash(target)
		return []Entry{{Path: target, Hash: hash, Exec: mode&0o111 != 0}}, err
	default:
		return nil, nil
	}
}

// AddExtra adds what refer gathered to a digest.
func (g *Gatherer) AddExtra(d *holdfast.Digester) {
	for _, name := range slices.Sorted(maps.Keys(g.extra)) {
		d.Add("read", name, g.extra[name])
	}
}

// Closure returns the folders that modules in a folder reach, with itself.
func (g *Gatherer) Closure(dir string) []string {
	var dirs []string
	var visit func(string)
	visit = func(dir string) {
		if slices.Contains(dirs, dir) || !slices.Contains(g.Dirs, dir) {
			return
		}
		dirs = append(dirs, dir)
		for _, call := range g.Modules[dir].Calls {
			if target, ok := Within(dir, call.Source); ok && IsLocal(call.Source) {
				visit(target)
			}
		}
		for _, target := range g.maybe[dir] {
			visit(target)
		}
	}
	visit(dir)
	return dirs
}

// Reads returns what was read of the tree, sorted.
func (g *Gatherer) Reads() []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(g.Dirs, g.linked))))
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
func (g *Gatherer) take(dir string) (*Module, error) {
	f, err := g.folder(dir)
	if err != nil {
		return nil, err
	}
	g.Faults = append(g.Faults, prefixed(slices.Concat(f.faults, f.unfit), dir)...)
	files := f.files
	part, from := g.part(dir), len(g.linked)
	digest := holdfast.NewDigester("folder with links")
	digest.Add(string(f.digest))
	for _, link := range f.links {
		if len(files) > maxBundleFiles {
			break // reported by bound
		}
		linked, err := g.linkedTo(path.Join(dir, link))
		if err != nil {
			return nil, err
		}
		for _, e := range linked {
			e.Path = strings.TrimPrefix(e.Path, dir+"/") // dir "." leaves it as it is
			files = append(slices.Clip(files), e)
			digest.Add(e.Path, e.Hash)
		}
	}
	g.Digests[dir] = digest.Digest()
	for _, e := range files {
		e.Path = path.Join(dir, e.Path)
		if e.Source == "" {
			e.Source = e.Path
		}
		g.Entries[e.Path] = e
		part.Entries[e.Path] = e
	}
	part.Linked = append(part.Linked, g.linked[from:]...)
	g.bound(dir)
	if f.module != nil {
		return f.module, nil
	}
	return g.readModule(dir, files)
}

// bound reports a root module that gathers too much, by way of dir.
func (g *Gatherer) bound(dir string) {
	if len(g.Entries) > maxBundleFiles {
		g.Faults = append(g.Faults, holdfast.Fault{
			File: dir, Message: fmt.Sprintf("root module and its modules have more than %d files", maxBundleFiles),
			Hint: "keep code in folders of its own",
		})
	}
}

// readModule reads the code among the files of a folder: all of it, and what each engine
// reads if that is not the same.
func (g *Gatherer) readModule(dir string, files []Entry) (*Module, error) {
	var code []codeFile
	size := 0
	for _, e := range files {
		if path.Dir(e.Path) != "." || !isCode(e.Path) {
			continue
		}
		source := e.Source
		if source == "" {
			source = path.Join(dir, e.Path)
		}
		data, err := g.Tree.ReadFile(source)
		why, refused := Refused(err)
		if err != nil && !refused {
			return nil, fmt.Errorf("read %s: %w", source, err)
		}
		size += len(data)
		g.code += len(data)
		if size > maxModuleCode || g.code > maxTreeCode {
			m := newModule()
			m.Faults = holdfast.Faults{g.tooMuchCode(e.Path)}
			return m, nil
		}
		code = append(code, codeFile{e.Path, data, why})
	}
	m := moduleOf(code)
	if slices.ContainsFunc(m.names, isTofu) {
		m.tofu = moduleOf(slices.DeleteFunc(slices.Clone(code), func(f codeFile) bool { return m.shadowed(f.name) }))
		m.terraform = moduleOf(slices.DeleteFunc(slices.Clone(code), func(f codeFile) bool { return isTofu(f.name) }))
	}
	return m, nil
}

// tooMuchCode is the fault of the file with which there is.
func (g *Gatherer) tooMuchCode(file string) holdfast.Fault {
	what, most := "code of a folder", maxModuleCode
	if g.code > maxTreeCode {
		what, most = "code of a root module and its modules", maxTreeCode
	}
	return holdfast.Fault{File: file, Message: fmt.Sprintf("%s has more than %d bytes, with this file", what, most), Hint: codeHint}
}

// codeFile is a file of code, or why it cannot be read.
type codeFile struct {
	name    string
	data    []byte
	refused string
}

func moduleOf(code []codeFile) *Module {
	m := newModule()
	for _, f := range code {
		if f.refused != "" {
			m.names = append(m.names, f.name)
			m.Faults = append(m.Faults, holdfast.Fault{File: f.name, Message: "file " + f.refused})
			continue
		}
		m.read(f.name, f.data)
	}
	m.resolvePatterns()
	return m
}
