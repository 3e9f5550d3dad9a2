package gitsource

import (
	"bufio"
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast"
)

// ref is what a name points at, and the commit that this resolves to: another
// object only for annotated tags.
type ref struct{ hash, commit plumbing.Hash }

// refs are a mirror's refs by full name. They live in one file, Git's
// packed-refs, which is replaced as a whole: a crash leaves the old ones or the
// new ones, and names that would be in each other's way as files are not.
type refs map[string]ref

const refsFile = "packed-refs"

var errMalformedRefs = errors.New("malformed packed-refs")

// readRefs returns a mirror's refs; none if it has no such file.
func readRefs(dir string) (refs, error) {
	data, err := os.ReadFile(filepath.Join(dir, refsFile))
	if errors.Is(err, os.ErrNotExist) {
		return refs{}, nil
	}
	if err != nil {
		return nil, err
	}
	result := refs{}
	last := ""
	for scanner := bufio.NewScanner(bytes.NewReader(data)); scanner.Scan(); {
		line := scanner.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		if peeled, ok := strings.CutPrefix(line, "^"); ok {
			r, ok := result[last]
			if !ok || !plumbing.IsHash(peeled) {
				return nil, errMalformedRefs
			}
			result[last] = ref{hash: r.hash, commit: plumbing.NewHash(peeled)}
			continue
		}
		hash, name, ok := strings.Cut(line, " ")
		if !ok || !plumbing.IsHash(hash) || name == "" {
			return nil, errMalformedRefs
		}
		last = name
		result[name] = ref{hash: plumbing.NewHash(hash), commit: plumbing.NewHash(hash)}
	}
	// Written whole, it ends in a line feed.
	if len(data) > 0 && data[len(data)-1] != '\n' {
		return nil, errMalformedRefs
	}
	return result, nil
}

// writeRefs replaces a mirror's refs.
func writeRefs(dir string, rs refs) error {
	var b bytes.Buffer
	b.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for _, name := range slices.Sorted(maps.Keys(rs)) {
		r := rs[name]
		b.WriteString(r.hash.String() + " " + name + "\n")
		if r.commit != r.hash {
			b.WriteString("^" + r.commit.String() + "\n")
		}
	}
	return writeFile(dir, refsFile, b.Bytes())
}

// published is what callers see of refs: branches and tags, by their commits.
func (rs refs) published() holdfast.Refs {
	result := make(holdfast.Refs, len(rs))
	for name, r := range rs {
		if isBranchOrTag(name) {
			result[name] = holdfast.Revision(r.commit.String())
		}
	}
	return result
}

func isBranchOrTag(name string) bool {
	return strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/")
}
