package github

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // Git's object ids are SHA-1
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/go-github/v62/github"
)

const (
	// maxInline is the size in bytes of the largest file that is sent as a part of
	// its tree; a larger one is sent separately before.
	maxInline = 256 << 10
	// maxTreeFiles and maxTreeBytes bound what is sent as one tree: more becomes
	// several, each on top of the last.
	maxTreeFiles = 500
	maxTreeBytes = 1 << 20
	// maxFolders is how many folders are read one by one; of more the whole tree
	// is asked for.
	maxFolders = 20
)

// What a file's mode can be for us to write it.
const (
	modeFile       = "100644"
	modeExecutable = "100755"
)

// tree returns the tree that the proposal makes of another one. Files keep their
// modes.
func (w *proposer) tree(ctx context.Context, base string) (string, error) {
	files, err := w.files(ctx, base)
	if err != nil {
		return "", err
	}
	tree, size := base, 0
	var entries []*github.TreeEntry
	send := func() error {
		if len(entries) == 0 {
			return nil
		}
		made, _, err := w.gh.Git.CreateTree(ctx, w.on.owner, w.on.name, tree, entries)
		if err != nil {
			return writeError(ctx, "write files", err)
		}
		tree, size, entries = made.GetSHA(), 0, nil
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(w.p.Files)) {
		data, there := w.p.Files[name], files[name]
		if there.GetSHA() == blobID(data) {
			continue
		}
		entry := &github.TreeEntry{Path: &name, Mode: there.Mode, Type: new("blob")}
		switch {
		case data == nil: // without a content it is removed
		case inline(data):
			entry.Content = new(string(data))
			size += len(data)
		default:
			if entry.SHA, err = w.blob(ctx, name, data); err != nil {
				return "", err
			}
		}
		entries = append(entries, entry)
		if len(entries) == maxTreeFiles || size >= maxTreeBytes {
			if err := send(); err != nil {
				return "", err
			}
		}
	}
	return tree, send()
}

// inline reports whether a file can be sent as text: what is not UTF-8, or has
// characters that JSON's readers disagree about, cannot.
func inline(data []byte) bool {
	return len(data) > 0 && len(data) <= maxInline && utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
}

func (w *proposer) blob(ctx context.Context, name string, data []byte) (*string, error) {
	blob, _, err := w.gh.Git.CreateBlob(ctx, w.on.owner, w.on.name, &github.Blob{
		Content: new(base64.StdEncoding.EncodeToString(data)), Encoding: new("base64"),
	})
	if err != nil {
		return nil, writeError(ctx, fmt.Sprintf("write %s", name), err)
	}
	return blob.SHA, nil
}

// blobID is the id that Git gives a file's content; empty of one that is removed.
func blobID(data []byte) string {
	if data == nil {
		return ""
	}
	h := sha1.New() //nolint:gosec // see the import
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// files returns what a tree has at the paths of the proposal's files, all of which
// must be files.
func (w *proposer) files(ctx context.Context, tree string) (map[string]*github.TreeEntry, error) {
	found := make(map[string]*github.TreeEntry, len(w.p.Files))
	whole := false
	if len(foldersOf(w.p.Files)) > maxFolders {
		all, _, err := w.gh.Git.GetTree(ctx, w.on.owner, w.on.name, tree, true)
		if err != nil {
			return nil, err
		}
		whole = !all.GetTruncated()
		for _, entry := range all.Entries {
			if _, ours := w.p.Files[entry.GetPath()]; ours {
				found[entry.GetPath()] = entry
			}
		}
	}
	if !whole {
		if err := w.walk(ctx, "", tree, foldersOf(w.p.Files), found); err != nil {
			return nil, err
		}
	}
	for name := range w.p.Files {
		switch entry := found[name]; {
		case entry == nil && (w.p.New || w.p.Files[name] == nil):
			found[name] = &github.TreeEntry{Mode: new(modeFile)}
		case entry == nil:
			return nil, finalError(fmt.Sprintf("write %s: there is no such file", name))
		case entry.GetMode() != modeFile && entry.GetMode() != modeExecutable:
			return nil, finalError(fmt.Sprintf("write %s: it is not an ordinary file (mode %s)", name, entry.GetMode()))
		}
	}
	return found, nil
}

// walk reads the folders of a tree that are wanted, one by one.
func (w *proposer) walk(ctx context.Context, dir, tree string, wanted map[string]bool, found map[string]*github.TreeEntry) error {
	folder, _, err := w.gh.Git.GetTree(ctx, w.on.owner, w.on.name, tree, false)
	if err != nil {
		return err
	}
	if folder.GetTruncated() {
		return finalError("folder " + path.Join("/", dir) + " has too many files for GitHub's API")
	}
	for _, entry := range folder.Entries {
		name := path.Join(dir, entry.GetPath())
		if _, ours := w.p.Files[name]; ours {
			found[name] = entry
		}
		if entry.GetType() == "tree" && wanted[name] {
			if err := w.walk(ctx, name, entry.GetSHA(), wanted, found); err != nil {
				return err
			}
		}
	}
	return nil
}

// foldersOf are the folders on the way to files, the root left out.
func foldersOf(files map[string][]byte) map[string]bool {
	folders := make(map[string]bool)
	for name := range files {
		for dir := path.Dir(name); dir != "." && !folders[dir]; dir = path.Dir(dir) {
			folders[strings.TrimPrefix(dir, "./")] = true
		}
	}
	return folders
}
