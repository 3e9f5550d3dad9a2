package gitsource_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/uncached"
)

func TestMain(m *testing.M) {
	uncached.Package()
	os.Exit(m.Run())
}

const repoName = "acme/clusters"

// open returns a Source of one repository with its mirrors in dir.
func open(t testing.TB, dir string, repo gitsource.Repository) *gitsource.Source {
	t.Helper()
	if repo.Name == "" {
		repo.Name = repoName
	}
	s, err := gitsource.New(gitsource.Options{Dir: dir, Repositories: []gitsource.Repository{repo}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// served returns a new repository on its own server and a Source of it.
func served(t testing.TB) (*gitserver.Server, *gitserver.Repo, *gitsource.Source) {
	t.Helper()
	server := gitserver.New(t)
	repo := server.CreateRepo(repoName)
	return server, repo, open(t, t.TempDir(), gitsource.Repository{URL: repo.URL})
}

func fetch(t testing.TB, s *gitsource.Source) holdfast.Refs {
	t.Helper()
	refs, err := s.Fetch(t.Context(), repoName)
	if err != nil {
		t.Fatal(err)
	}
	return refs
}

func tree(t testing.TB, s *gitsource.Source, revision string) holdfast.Tree {
	t.Helper()
	tr, err := s.Tree(t.Context(), repoName, revision)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// content lists a tree's files with their contents; what cannot be read shows
// its error in brackets.
func content(t testing.TB, tr holdfast.Tree) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(tr, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := tr.ReadFile(path)
		files[path] = string(data)
		if err != nil {
			files[path] = "[" + err.Error() + "]"
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func rev(sha string) holdfast.Revision { return holdfast.Revision(sha) }

func repeat(text string, n int) string { return strings.Repeat(text, n) }
