package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestFiguresAreKeptAndShown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "results.json")
	figures := []figure{
		figure{Name: "pull request", N: 10, Value: 1.23456, Unit: "s"}.against(2.46912),
		{Name: "memory", Value: 61.04, Unit: "MiB"},
	}
	if err := writeFigures(path, figures); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run([]string{"-out", path, "-markdown"}, &out); err != nil {
		t.Fatal(err)
	}
	want := `| What | N | Measured | Floor | Ratio |
|---|--:|--:|--:|--:|
| pull request | 10 | 1.23 s | 2.47 s | 0.50 |
| memory |  | 61.0 MiB |  |  |
`
	if out.String() != want {
		t.Errorf("table:\n%swant:\n%s", &out, want)
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		values []int
		want   int
	}{{[]int{7}, 7}, {[]int{3, 1}, 1}, {[]int{9, 1, 5}, 5}} {
		if got := median(test.values); got != test.want {
			t.Errorf("median of %v is %d, want %d", test.values, got, test.want)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-holdfast", "/nowhere/holdfast"},
		{"-holdfast", "main.go", "-sizes", "1,many"},
		{"-holdfast", "main.go", "-sizes", "0"},
		{"-holdfast", "main.go", "-only", "nothing"},
		{"-markdown", "-out", "/nowhere/results.json"},
	} {
		if err := run(args, &strings.Builder{}); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
