package folders

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// TestSum: what differs has another hash, also beyond the bound of a file, and next to
// what cannot be read.
func TestSum(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sum := func(name string) string {
		t.Helper()
		sum, err := Sum(t.Context(), filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	do := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string, offset int64) {
		t.Helper()
		file, err := os.OpenFile(at(name), os.O_CREATE|os.O_WRONLY, 0o600)
		do(err)
		_, err = file.WriteAt([]byte(text), offset)
		do(err, file.Close())
	}

	write("large", "a", 257<<20)
	do(os.Chtimes(at("large"), time.Time{}, time.Unix(1, 0)))
	large := sum("large")
	write("large", "b", 257<<20)
	if large == sum("large") {
		t.Error("what is beyond the bound of a file is not compared")
	}

	do(os.MkdirAll(at("set/private"), 0o700), os.Symlink("nothing", at("set/link")))
	set := sum("set")
	if do(os.Mkdir(at("set/nothing"), 0o700)); set == sum("set") {
		t.Error("a new folder is not seen")
	}
	set = sum("set")
	if do(os.Remove(at("set/nothing"))); set == sum("set") {
		t.Error("where a link leads is not compared")
	}
}

// closed are files of which one folder cannot be read.
type closed struct{ fstest.MapFS }

func (c closed) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == "private" {
		return nil, fs.ErrPermission
	}
	return c.MapFS.ReadDir(name)
}

// What cannot be read below a folder hides nothing else of it.
func TestSumOfAClosedFolder(t *testing.T) {
	t.Parallel()
	names := func(more ...string) string {
		t.Helper()
		files := closed{fstest.MapFS{"private/a": {}, "z": {}}}
		for _, name := range more {
			files.MapFS[name] = &fstest.MapFile{}
		}
		var text strings.Builder
		if err := addNames(t.Context(), &text, "", files); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	if names() == names("y") || names() == names("zz") {
		t.Error("a new file is not seen")
	}
}
