package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// figures are what all code together is like, without tests where nothing else is said.
type figures struct {
	funcs, files         []int // lines of each
	exported, documented int   // names that other packages can use, and those with a comment
	code, comments       int   // lines with code, and with a comment alone
	tests                int   // lines with code of tests and of their helpers
}

// figuresOf reads the code below root.
func figuresOf(root string) (figures, error) {
	var f figures
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case entry.IsDir() && rel != "internal/testenv" && skipped(rel):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(rel, ".go"):
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		code, comments := linesOf(source)
		if strings.HasSuffix(rel, "_test.go") || strings.HasPrefix(rel, "internal/testenv/") {
			f.tests += code
			return nil
		}
		f.code, f.comments = f.code+code, f.comments+comments
		f.files = append(f.files, bytes.Count(source, []byte("\n")))
		return f.read(rel, source)
	})
	return f, err
}

// linesOf counts lines with code, and lines that have nothing but a comment.
func linesOf(source []byte) (code, comments int) {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(source))
	var tokens scanner.Scanner
	tokens.Init(file, source, nil, scanner.ScanComments)
	const comment, both = 1, 2 // of a line that has code, whatever else it has
	has := make([]int, bytes.Count(source, []byte("\n"))+2)
	for {
		pos, kind, text := tokens.Scan()
		if kind == token.EOF {
			break
		}
		if kind == token.SEMICOLON && text == "\n" {
			continue // which nobody has written
		}
		what := both
		if kind == token.COMMENT {
			what = comment
		}
		first := file.Line(pos)
		for line := first; line <= first+strings.Count(text, "\n"); line++ {
			has[line] = max(has[line], what)
		}
	}
	for _, what := range has {
		switch what {
		case comment:
			comments++
		case both:
			code++
		}
	}
	return code, comments
}

func (f *figures) read(rel string, source []byte) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, rel, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse %s: %w", rel, err)
	}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			f.funcs = append(f.funcs, set.Position(d.End()).Line-set.Position(d.Pos()).Line+1)
			if d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type)) {
				f.named(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					f.named(s.Name, d.Doc, s.Doc, s.Comment)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						f.named(name, d.Doc, s.Doc, s.Comment)
					}
				}
			}
		}
	}
	return nil
}

func (f *figures) named(name *ast.Ident, said ...*ast.CommentGroup) {
	if !name.IsExported() {
		return
	}
	f.exported++
	if slices.ContainsFunc(said, func(group *ast.CommentGroup) bool { return group != nil }) {
		f.documented++
	}
}

// show prints the figures, and the largest of each kind that has a bound.
func (f figures) show(w io.Writer, measures []measure) {
	for _, of := range []struct {
		what  string
		lines []int
	}{{"functions", f.funcs}, {"files", f.files}} {
		median, most, longest := spread(of.lines)
		fmt.Fprintf(w, "%d %s: median %d lines, 95 %% have at most %d, the longest has %d\n", len(of.lines), of.what, median, most, longest)
	}
	fmt.Fprintf(w, "exported names: %d, %.1f %% with a comment\n", f.exported, 100*ratio(f.documented, f.exported))
	fmt.Fprintf(w, "lines with code: %d; for each of them %.2f of tests, %.2f of comments\n", f.code, ratio(f.tests, f.code), ratio(f.comments, f.code))
	for _, b := range bounds {
		var largest measure
		for _, m := range measures {
			if m.kind == b.kind && m.n > largest.n {
				largest = m
			}
		}
		if b.most > 0 && largest.n > 0 {
			fmt.Fprintf(w, "%s: at most %d (%s); the bound is %d\n", b.title, largest.n, largest.name, b.most)
		}
	}
}

// spread is the middle of the values, what 95 of 100 are at most, and the largest one.
func spread(values []int) (median, most, largest int) {
	if len(values) == 0 {
		return 0, 0, 0
	}
	sorted := slices.Sorted(slices.Values(values))
	last := len(sorted) - 1
	return sorted[last/2], sorted[last*95/100], sorted[last]
}

func ratio(part, whole int) float64 { return float64(part) / float64(max(1, whole)) }
