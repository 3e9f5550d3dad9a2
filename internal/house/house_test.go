package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Nothing grows beyond its bound, or beyond what is allowed of it.
func TestBounds(t *testing.T) {
	t.Parallel()
	measures, err := measureAll("../..")
	if err != nil {
		t.Fatal(err)
	}
	list, err := readAllowed("allowed.txt")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(measures); n < 3000 {
		t.Fatalf("only %d figures", n)
	}
	v := judge(measures, list)
	for _, line := range v.beyond {
		t.Errorf("%s: make house shows all", line)
	}
	for _, line := range v.stale {
		t.Errorf("%s is within its bound, or gone: run go run ./internal/house -lower", line)
	}
}

const code = `package p

type Options struct {
	A, B int
	error
}

type big struct {
	a, b, c int
}

type port interface {
	One()
	Two()
	error
}

func (b *big) One() {}
func (big) Two()    {}

func alone() {
	alone()
}
`

func TestMeasures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"p/p.go": code, "p/p_other.go": "package p\n\nfunc (b big) One() {}\n", "p/p_test.go": code,
		"p/testdata/q.go": code, "bench/b.go": code, "internal/testenv/t/t.go": code, "doc/doc.go": "package doc\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := measureAll(dir)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(code, "\n")
	for _, want := range []measure{
		{optionsFields, "p.Options", 3},
		{structFields, "p.big", 3},
		{portMethods, "p.port", 2},
		{typeMethods, "p.big", 2},
		{funcLines, "p.alone", 3},
		{funcLines, "p.big.One", 1},
		{fileLines, "p/p.go", lines},
		{roomLines, "p", lines + 3},
		{roomDoc, "p", 1},
		{roomLines, "doc", 1},
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %+v in %+v", want, got)
		}
	}
	for _, m := range got {
		if strings.Contains(m.name, "test") || strings.HasPrefix(m.name, "bench") || m.kind == roomDoc && m.name == "doc" {
			t.Errorf("%+v is measured", m)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	measures := []measure{
		{structFields, "a.new", 21},
		{structFields, "a.grown", 31},
		{structFields, "a.shrunk", 25},
		{structFields, "a.done", 20},
		{roomLines, "a", 4050},
	}
	list := []allowance{
		{structFields, "a.grown", 30, "why"},
		{structFields, "a.shrunk", 30, "why"},
		{structFields, "a.done", 30, "why"},
		{roomLines, "a", 4500, "why"},
	}
	v := judge(measures, list)
	if len(v.beyond) != 2 || !strings.Contains(v.beyond[0], "a.new") || !strings.Contains(v.beyond[1], "a.grown") {
		t.Errorf("beyond: %q", v.beyond)
	}
	if len(v.stale) != 1 || !strings.Contains(v.stale[0], "a.done") {
		t.Errorf("stale: %q", v.stale)
	}
	if len(v.falls) != 1 || !strings.Contains(v.falls[0], "a.shrunk") {
		t.Errorf("falls: %q", v.falls)
	}

	file := filepath.Join(t.TempDir(), "allowed.txt")
	text := "# a comment\nstruct-fields a.grown 30 why\nstruct-fields a.shrunk 30 why not\nstruct-fields a.done 30 why\nroom-lines a 5000 why\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := lower(file, measures); err != nil {
		t.Fatal(err)
	}
	lowered, err := readAllowed(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []allowance{
		{structFields, "a.grown", 30, "why"},
		{structFields, "a.shrunk", 25, "why not"},
		{roomLines, "a", 4500, "why"},
	}
	if !slices.Equal(lowered, want) {
		t.Errorf("lowered: %+v", lowered)
	}
}
