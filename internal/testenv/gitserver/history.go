package gitserver

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Delete as a file's content removes the file or the folder.
const Delete = "\x00delete"

// Prefixes of a file's content that give the entry another mode.
const (
	Executable = "\x00exec:" // Executable + content
	Symlink    = "\x00link:" // Symlink + target
	Submodule  = "\x00sub:"  // Submodule + the SHA of a commit
)

// Commit writes files by path on top of a branch, which is created (without a
// parent) if it is not there, and returns the new commit. A content may be
// Delete or start with Executable, Symlink or Submodule.
func (r *Repo) Commit(branch, message string, files map[string]string) string {
	r.t.Helper()
	parent := "refs/heads/" + branch
	if !r.has(parent) {
		parent = ""
	}
	return r.CommitOn(branch, parent, message, files)
}

// has reports whether there is a ref of that full name, without starting Git.
func (r *Repo) has(ref string) bool {
	r.t.Helper()
	if _, err := os.Stat(filepath.Join(r.Path, filepath.FromSlash(ref))); err == nil {
		return true
	}
	packed, err := os.ReadFile(filepath.Join(r.Path, "packed-refs"))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return bytes.Contains(packed, []byte(" "+ref+"\n"))
}

// CommitOn is Commit on top of another parent (empty: none); the branch is moved
// to the new commit whether or not that is a fast-forward, as a forced push does.
func (r *Repo) CommitOn(branch, parent, message string, files map[string]string) string {
	r.t.Helper()
	o := r.objects()
	var parents []plumbing.Hash
	var tree plumbing.Hash
	if parent != "" {
		c := r.commit(o, parent)
		parents, tree = []plumbing.Hash{c.Hash}, c.TreeHash
	}
	tree, err := o.edit(tree, files)
	if err != nil {
		r.t.Fatalf("edit files: %v", err)
	}
	return r.move("refs/heads/"+branch, r.store(o.commit(tree, message, parents...)))
}

// commit returns the commit that a revision leads to.
func (r *Repo) commit(o objects, revision string) *object.Commit {
	r.t.Helper()
	if c, ok := o.findCommit(revision); ok {
		return c
	}
	c, err := object.GetCommit(o, plumbing.NewHash(r.Git("rev-parse", "--verify", revision+"^{commit}")))
	if err != nil {
		r.t.Fatalf("read commit %s: %v", revision, err)
	}
	return c
}

// store returns the id of what was stored.
func (r *Repo) store(hash plumbing.Hash, err error) string {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("write into %s: %v", r.Path, err)
	}
	return hash.String()
}

// move sets a ref by its full name to an object, whose id it returns.
func (r *Repo) move(ref, sha string) string {
	r.t.Helper()
	if err := r.objects().SetReference(plumbing.NewHashReference(plumbing.ReferenceName(ref), plumbing.NewHash(sha))); err != nil {
		r.t.Fatalf("set %s: %v", ref, err)
	}
	return sha
}

// WriteBlob writes a blob and returns its id.
func (r *Repo) WriteBlob(content string) string {
	r.t.Helper()
	return r.store(r.objects().blob(content))
}

// WriteTree writes a tree of the lines that git mktree reads, and returns its id.
func (r *Repo) WriteTree(lines string) string {
	r.t.Helper()
	return r.run([]byte(lines), "mktree")
}

// Malformed makes a commit after parent whose tree Git takes and nobody can read: its mode
// has eleven digits. It returns the commit.
func (r *Repo) Malformed(parent string) string {
	r.t.Helper()
	blob, err := hex.DecodeString(r.WriteBlob("text"))
	if err != nil {
		r.t.Fatal(err)
	}
	tree := r.run(append([]byte("40000100644 f\x00"), blob...), "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
	return strings.TrimSpace(r.Git("commit-tree", strings.TrimSpace(tree), "-p", parent, "-m", "malformed"))
}

// Rev returns the commit that a revision names.
func (r *Repo) Rev(revision string) string {
	r.t.Helper()
	return r.commit(r.objects(), revision).Hash.String()
}

// Branch creates a branch at a revision, or moves it there by force.
func (r *Repo) Branch(name, revision string) {
	r.t.Helper()
	r.move("refs/heads/"+name, r.Rev(revision))
}

// DeleteBranch deletes a branch.
func (r *Repo) DeleteBranch(name string) {
	r.t.Helper()
	r.DeleteRef("refs/heads/" + name)
}

// Tag creates or moves a lightweight tag.
func (r *Repo) Tag(name, revision string) {
	r.t.Helper()
	r.move("refs/tags/"+name, r.Rev(revision))
}

// AnnotatedTag creates or replaces a tag that is a separate object.
func (r *Repo) AnnotatedTag(name, revision, message string) {
	r.t.Helper()
	r.Git("tag", "--force", "--annotate", "--message", message, name, revision)
}

// SetRef sets a ref by its full name to what a revision names.
func (r *Repo) SetRef(name, sha string) {
	r.t.Helper()
	if hash, ok := r.objects().find(sha); ok {
		r.move(name, hash.String())
		return
	}
	r.Git("update-ref", name, sha)
}

// DeleteRef deletes a ref by its full name.
func (r *Repo) DeleteRef(name string) {
	r.t.Helper()
	r.Git("update-ref", "-d", name)
}

// SetPullRequest publishes refs/pull/N/head and /merge as a forge does; an
// empty merge removes that one.
func (r *Repo) SetPullRequest(number int, head, merge string) {
	r.t.Helper()
	r.move(fmt.Sprintf("refs/pull/%d/head", number), r.Rev(head))
	ref := fmt.Sprintf("refs/pull/%d/merge", number)
	if merge != "" {
		r.move(ref, r.Rev(merge))
	} else if r.has(ref) {
		r.DeleteRef(ref)
	}
}

// MergeCommit returns a merge commit of head into base, with base as the first
// parent; no ref is moved. It ends the test on a conflict.
func (r *Repo) MergeCommit(base, head string) string {
	r.t.Helper()
	tree, err := r.MergeTree(base, head)
	if err != nil {
		r.t.Fatalf("merge %s into %s: %v", head, base, err)
	}
	o := r.objects()
	parents := []plumbing.Hash{r.commit(o, base).Hash, r.commit(o, head).Hash}
	return r.store(o.commit(plumbing.NewHash(tree), "Merge "+head+" into "+base+"\n", parents...))
}

// MergeTree returns the tree that Git itself makes of merging head into base,
// or an error if they conflict.
func (r *Repo) MergeTree(base, head string) (string, error) {
	out, err := r.try(nil, "merge-tree", "--write-tree", base, head)
	tree, _, _ := strings.Cut(out, "\n")
	return tree, err
}

// Merge merges head into a branch by a merge commit, moves the branch, and
// returns the commit.
func (r *Repo) Merge(branch, head string) string {
	r.t.Helper()
	sha := r.MergeCommit("refs/heads/"+branch, head)
	return r.move("refs/heads/"+branch, sha)
}

// Squash merges head into a branch as one new commit with a single parent,
// moves the branch, and returns the commit.
func (r *Repo) Squash(branch, head, message string) string {
	r.t.Helper()
	base := r.Rev("refs/heads/" + branch)
	tree, err := r.MergeTree(base, head)
	if err != nil {
		r.t.Fatalf("squash %s into %s: %v", head, branch, err)
	}
	sha := r.store(r.objects().commit(plumbing.NewHash(tree), message+"\n", plumbing.NewHash(base)))
	return r.move("refs/heads/"+branch, sha)
}
