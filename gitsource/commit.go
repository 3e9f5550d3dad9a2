package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
)

// Who makes our commits.
const (
	committerName  = "Holdfast"
	committerEmail = "holdfast@localhost"
)

// Commit makes the commit of a proposal: one on top of its Base, in which Files
// have these contents and all else stays as it is, modes included. It moves no
// ref. The same proposal always gives the same commit, whoever makes it: its time
// is that of Base. ErrNotFound if Base is not there; a file that is not there, or
// is not a file, is an error, and so is a proposal that changes nothing. With New, files
// and folders that are not there are made. A folder that is left without files is gone, too.
func (s *Source) Commit(ctx context.Context, repo string, p proposals.PullRequest) (holdfast.Revision, error) {
	m, err := s.mirror(repo)
	if err != nil {
		return "", fmt.Errorf("commit: %w", err)
	}
	hash, err := m.open().propose(ctx, p)
	if err != nil {
		return "", fmt.Errorf("commit on %s in repository %q: %w", p.Base.Short(), repo, err)
	}
	return holdfast.Revision(hash.String()), nil
}

func (o *objects) propose(ctx context.Context, p proposals.PullRequest) (plumbing.Hash, error) {
	var zero plumbing.Hash
	parent, err := o.resolveCommit(p.Base)
	if err != nil {
		return zero, err
	}
	base, err := o.commit(parent)
	if err != nil {
		return zero, err
	}
	files := make(map[string][]byte, len(p.Files))
	for name, data := range p.Files {
		if !fs.ValidPath(name) || name == "." {
			return zero, &fs.PathError{Op: "write", Path: name, Err: fs.ErrInvalid}
		}
		if len(data) > MaxFileSize {
			return zero, &fs.PathError{Op: "write", Path: name, Err: errTooLarge(len(data))}
		}
		files[name] = data
	}
	tree, err := o.overwrite(ctx, "", base.TreeHash, files, p.New)
	if err != nil {
		return zero, err
	}
	if tree == base.TreeHash {
		return zero, errors.New("it changes nothing")
	}
	by := fmt.Sprintf("%s <%s> %d +0000", committerName, committerEmail, base.Committer.When.Unix())
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\nparent %s\nauthor %s\ncommitter %s\n\n%s", tree, parent, by, by, p.CommitMessage(tree.String()))
	return o.put(plumbing.CommitObject, b.Bytes())
}

// emptyTree is the tree of a folder without files, which Git never keeps in another tree.
var emptyTree = plumbing.ComputeHash(plumbing.TreeObject, nil)

// overwrite returns a folder's tree with files, by their paths below it, in place
// of those that are there, and, if that is allowed, made where there are none. What it is made
// of is stored first: a crash leaves objects that nothing leads to.
func (o *objects) overwrite(ctx context.Context, dir string, tree plumbing.Hash, files map[string][]byte, makes bool) (plumbing.Hash, error) {
	var zero plumbing.Hash
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	entries, err := o.tree(tree)
	if err != nil {
		return zero, err
	}
	below := map[string]map[string][]byte{} // by folder
	for name, data := range files {
		first, rest, deeper := strings.Cut(name, "/")
		i := slices.IndexFunc(entries, func(e entry) bool { return e.name == first })
		if i < 0 && makes {
			made := entry{name: first, mode: filemode.Regular}
			if deeper {
				made.mode = filemode.Dir
			}
			entries, i = append(entries, made), len(entries)
		}
		switch {
		case i < 0:
			return zero, &fs.PathError{Op: "write", Path: path.Join(dir, name), Err: fs.ErrNotExist}
		case deeper:
			if below[first] == nil {
				below[first] = map[string][]byte{}
			}
			below[first][rest] = data
			continue
		}
		if err := refusal(entries[i].fileMode()); err != nil {
			return zero, &fs.PathError{Op: "write", Path: path.Join(dir, name), Err: err}
		}
		if data == nil {
			entries = slices.Delete(entries, i, i+1)
			continue
		}
		if entries[i].hash, err = o.put(plumbing.BlobObject, data); err != nil {
			return zero, err
		}
	}
	for name, files := range below {
		i := slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
		if !entries[i].isDir() {
			return zero, &fs.PathError{Op: "write", Path: path.Join(dir, name), Err: errors.New("is not a folder")}
		}
		if entries[i].hash, err = o.overwrite(ctx, path.Join(dir, name), entries[i].hash, files, makes); err != nil {
			return zero, err
		}
		if entries[i].hash == emptyTree {
			entries = slices.Delete(entries, i, i+1)
		}
	}
	return o.put(plumbing.TreeObject, encodeTree(entries))
}

// Message returns a commit's message and the id of its tree. ErrNotFound if there
// is no such commit.
func (s *Source) Message(ctx context.Context, repo string, rev holdfast.Revision) (message, tree string, err error) {
	m, err := s.mirror(repo)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return "", "", fmt.Errorf("read message of %s: %w", rev, err)
	}
	objs := m.open()
	hash, err := objs.resolveCommit(rev)
	var commit *object.Commit
	if err == nil {
		commit, err = objs.commit(hash)
	}
	if err != nil {
		return "", "", fmt.Errorf("read message of %s in repository %q: %w", rev, repo, err)
	}
	return commit.Message, commit.TreeHash.String(), nil
}

// difference returns the objects of a commit that its first parent's tree does not
// have, the commit first.
func (o *objects) difference(ctx context.Context, commit plumbing.Hash) ([]plumbing.Hash, error) {
	c, err := o.commit(commit)
	if err != nil {
		return nil, err
	}
	var before plumbing.Hash
	if len(c.ParentHashes) > 0 {
		parent, err := o.commit(c.ParentHashes[0])
		if err != nil {
			return nil, err
		}
		before = parent.TreeHash
	}
	found := []plumbing.Hash{commit}
	err = o.newObjects(ctx, before, c.TreeHash, &found)
	return found, err
}

func (o *objects) newObjects(ctx context.Context, before, after plumbing.Hash, found *[]plumbing.Hash) error {
	if before == after {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	*found = append(*found, after)
	old, err := o.byName(before)
	if err != nil {
		return err
	}
	entries, err := o.tree(after)
	if err != nil {
		return err
	}
	for _, e := range entries {
		was := old[e.name]
		switch {
		case e.hash == was.hash, e.mode == filemode.Submodule:
		case e.isDir():
			var below plumbing.Hash
			if was.isDir() {
				below = was.hash
			}
			if err := o.newObjects(ctx, below, e.hash, found); err != nil {
				return err
			}
		default:
			*found = append(*found, e.hash)
		}
	}
	return nil
}
