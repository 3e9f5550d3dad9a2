package gitserver

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
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
	var in bytes.Buffer
	fmt.Fprintf(&in, "commit refs/heads/%s\nmark :1\ncommitter Ada <ada@example.com> %d +0000\n", branch, time.Now().Unix())
	fmt.Fprintf(&in, "data %d\n%s\n", len(message), message)
	if parent != "" {
		fmt.Fprintf(&in, "from %s^0\n", parent)
	} else {
		fmt.Fprintf(&in, "deleteall\n")
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		content := files[path]
		mode := "100644"
		for prefix, m := range map[string]string{Executable: "100755", Symlink: "120000"} {
			if rest, ok := strings.CutPrefix(content, prefix); ok {
				mode, content = m, rest
			}
		}
		switch sha, sub := strings.CutPrefix(content, Submodule); {
		case content == Delete:
			fmt.Fprintf(&in, "D %s\n", path)
		case sub:
			fmt.Fprintf(&in, "M 160000 %s %s\n", sha, path)
		default:
			fmt.Fprintf(&in, "M %s inline %s\ndata %d\n%s\n", mode, path, len(content), content)
		}
	}
	fmt.Fprintf(&in, "get-mark :1\n")
	return r.run(in.Bytes(), "fast-import", "--quiet", "--force", "--date-format=raw")
}

// WriteBlob writes a blob and returns its id.
func (r *Repo) WriteBlob(content string) string {
	r.t.Helper()
	return r.run([]byte(content), "hash-object", "-w", "--stdin")
}

// WriteTree writes a tree of the lines that git mktree reads, and returns its id.
func (r *Repo) WriteTree(lines string) string {
	r.t.Helper()
	return r.run([]byte(lines), "mktree")
}

// Rev returns the commit that a revision names.
func (r *Repo) Rev(revision string) string {
	r.t.Helper()
	return r.Git("rev-parse", "--verify", revision+"^{commit}")
}

// Branch creates a branch at a revision, or moves it there by force.
func (r *Repo) Branch(name, revision string) {
	r.t.Helper()
	r.SetRef("refs/heads/"+name, revision+"^{commit}")
}

// DeleteBranch deletes a branch.
func (r *Repo) DeleteBranch(name string) {
	r.t.Helper()
	r.DeleteRef("refs/heads/" + name)
}

// Tag creates or moves a lightweight tag.
func (r *Repo) Tag(name, revision string) {
	r.t.Helper()
	r.SetRef("refs/tags/"+name, revision+"^{commit}")
}

// AnnotatedTag creates or replaces a tag that is an object of its own.
func (r *Repo) AnnotatedTag(name, revision, message string) {
	r.t.Helper()
	r.Git("tag", "--force", "--annotate", "--message", message, name, revision)
}

// SetRef sets a ref by its full name to what a revision names.
func (r *Repo) SetRef(name, sha string) {
	r.t.Helper()
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
	in := fmt.Sprintf("update refs/pull/%d/head %s^{commit}\n", number, head)
	ref := fmt.Sprintf("refs/pull/%d/merge", number)
	if merge != "" {
		in += fmt.Sprintf("update %s %s^{commit}\n", ref, merge)
	} else if r.has(ref) {
		in += fmt.Sprintf("delete %s\n", ref)
	}
	r.run([]byte(in), "update-ref", "--stdin")
}

// MergeCommit returns a merge commit of head into base, with base as the first
// parent; no ref is moved. It ends the test on a conflict.
func (r *Repo) MergeCommit(base, head string) string {
	r.t.Helper()
	tree, err := r.MergeTree(base, head)
	if err != nil {
		r.t.Fatalf("merge %s into %s: %v", head, base, err)
	}
	return r.Git("commit-tree", tree, "-p", base+"^{commit}", "-p", head+"^{commit}", "-m", "Merge "+head+" into "+base)
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
	r.SetRef("refs/heads/"+branch, sha)
	return sha
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
	sha := r.Git("commit-tree", tree, "-p", base, "-m", message)
	r.SetRef("refs/heads/"+branch, sha)
	return sha
}
