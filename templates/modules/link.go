package modules

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// linkedTo is follow for a link that code has or reads. If the tree refuses what is there,
// or what is on the way there, that is a fault of the link.
func (g *Gatherer) linkedTo(link string) ([]Entry, error) {
	files, err := g.follow(link, nil)
	if why, ok := Refused(err); ok {
		g.Faults = append(g.Faults, holdfast.Fault{File: link, Message: "symbolic link to what cannot be read: it " + why})
		return nil, nil
	}
	return files, err
}

// follow returns the files that a symbolic link stands for, under the link's
// path. A link that leaves the tree, leads nowhere or in circles is a fault.
func (g *Gatherer) follow(link string, via []string) ([]Entry, error) {
	broken := func(message, hint string) ([]Entry, error) {
		at := link
		if len(via) > 0 {
			at = via[0]
		}
		g.Faults = append(g.Faults, holdfast.Fault{File: at, Message: message, Hint: hint})
		return nil, nil
	}
	if slices.Contains(via, link) || len(via) >= maxLinks {
		return broken("symbolic link leads in a circle", "")
	}
	// Folders of links to folders of links can multiply without bound.
	if g.followed++; g.followed > maxFollowed {
		if g.followed > maxFollowed+1 {
			return nil, nil // reported once
		}
		return broken(fmt.Sprintf("more than %d symbolic links are followed from here", maxFollowed), "copy what they point to")
	}
	target, err := g.readLink(link)
	if err != nil {
		return nil, fmt.Errorf("read symbolic link %s: %w", link, err)
	}
	to, ok := Within(path.Dir(link), target)
	if !ok {
		return broken(fmt.Sprintf("symbolic link to %q leaves the repository", wording.Clip(target)), "copy what it points to")
	}
	g.linked = append(g.linked, to)
	info, err := g.Stat(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return broken(fmt.Sprintf("symbolic link to %q leads nowhere", wording.Clip(target)), "")
	case err != nil:
		return nil, fmt.Errorf("stat %s: %w", to, err)
	}
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		files, err := g.follow(to, append(slices.Clone(via), link))
		return moved(files, to, link), err
	case mode.IsDir():
		return g.followDir(link, to, via)
	case mode.IsRegular():
		hash, err := g.Tree.Hash(to)
		return []Entry{{Path: link, Source: to, Hash: hash, Exec: mode&0o111 != 0}}, err
	}
	return broken(fmt.Sprintf("symbolic link to %q, which is not a file", wording.Clip(target)), "")
}

func (g *Gatherer) followDir(link, to string, via []string) ([]Entry, error) {
	if link == to || strings.HasPrefix(link, to+"/") || to == "." {
		g.Faults = append(g.Faults, holdfast.Fault{File: link, Message: "symbolic link to a folder that contains it"})
		return nil, nil
	}
	f, err := g.folder(to)
	if err != nil {
		return nil, err
	}
	g.Faults = append(g.Faults, prefixed(f.unfit, to)...)
	var out []Entry
	for _, e := range f.files {
		e.Source = path.Join(to, e.Path)
		e.Path = path.Join(link, e.Path)
		out = append(out, e)
	}
	for _, inner := range f.links {
		from := path.Join(to, inner)
		files, err := g.follow(from, append(slices.Clone(via), link))
		if err != nil {
			return nil, err
		}
		out = append(out, moved(files, to, link)...)
	}
	return out, nil
}

func moved(files []Entry, from, to string) []Entry {
	for i, e := range files {
		files[i].Path = to + strings.TrimPrefix(e.Path, from)
	}
	return files
}

// Stat finds the entry in its parent: trees show links there, and need not
// offer more.
func (g *Gatherer) Stat(name string) (fs.FileInfo, error) {
	if name == "." {
		return rootInfo{}, nil
	}
	list, err := g.Tree.ReadDir(path.Dir(name))
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		if item.Name() == path.Base(name) {
			return item.Info()
		}
	}
	return nil, fs.ErrNotExist
}

// rootInfo is the root of a tree, which has no parent to be found in.
type rootInfo struct{ fs.FileInfo }

func (rootInfo) IsDir() bool       { return true }
func (rootInfo) Mode() fs.FileMode { return fs.ModeDir }

// readLink returns a link's target: Git keeps it as the link's content.
func (g *Gatherer) readLink(name string) (string, error) {
	if links, ok := g.Tree.(fs.ReadLinkFS); ok {
		return links.ReadLink(name)
	}
	data, err := g.Tree.ReadFile(name)
	return string(data), err
}
