package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const documented = `// Package q has a comment.
package q

// A is documented, and so is B.
const (
	A = 1
	B = 2
)

type C struct{ D int } // a comment next to code

/* Run has
   two lines. */
func (C) Run() string {
	return ` + "`two\n\nthree`" + `
}

func Bare() {}

type hidden struct{}

func (hidden) Shown() {}
`

// TestFigures counts by hand: the lines of a string are code, also the empty one in it.
func TestFigures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"q/q.go": documented, "q/q_test.go": "package q\n\n// A comment.\nvar x int\n", "internal/testenv/t/t.go": "package t\n",
		"bench/b.go": documented, "q/testdata/q.go": documented,
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := printFigures(&out, dir); err != nil {
		t.Fatal(err)
	}
	const want = `3 functions: median 1 lines, 95 % have at most 1, the longest has 5
1 files: median 24 lines, 95 % have at most 24, the longest has 24
exported names: 5, 80.0 % with a comment
lines with code: 14; for each of them 0.21 of tests, 0.29 of comments
rooms, by lines without tests: at most 24 (q); the bound is 4000
types, by methods: at most 1 (q.C); the bound is 40
structs, by fields: at most 1 (q.C); the bound is 20
files, by lines: at most 24 (q/q.go); the bound is 500
functions, by lines: at most 5 (q.C.Run); the bound is 80
`
	if out.String() != want {
		t.Errorf("figures:\n%swant:\n%s", &out, want)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	var hundred []int
	for i := range 100 {
		hundred = append(hundred, 100-i)
	}
	if median, most, largest := spread(hundred); median != 50 || most != 95 || largest != 100 {
		t.Errorf("of 1 to 100: %d, %d, %d", median, most, largest)
	}
	if median, most, largest := spread(nil); median+most+largest != 0 {
		t.Errorf("of nothing: %d, %d, %d", median, most, largest)
	}
}
