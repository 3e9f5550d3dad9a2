package library_test

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testenv/tfschema"
)

// modules returns the folders of all modules of the library.
func modules(t testing.TB, fsys fs.FS) []string {
	t.Helper()
	var dirs []string
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata":
			return fs.SkipDir
		case strings.HasSuffix(name, ".tf") && strings.Contains(name, "/modules/"):
			dirs = append(dirs, path.Dir(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	dirs = slices.Compact(dirs)
	if len(dirs) == 0 {
		t.Fatal("found no modules")
	}
	return dirs
}

func facts(t testing.TB) tfschema.Facts {
	t.Helper()
	f, err := tfschema.Load(os.DirFS("."), "testdata/schemas")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestModulesKeepToTheProvidersSchemas(t *testing.T) {
	t.Parallel()

	fsys, known := os.DirFS("."), facts(t)
	for _, dir := range modules(t, fsys) {
		_, faults := tfschema.Check(fsys, dir, known)
		for _, fault := range faults {
			t.Error(fault)
		}
	}
}
