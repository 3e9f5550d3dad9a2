package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestQueriesGoThroughOnePlace: the datastore asks its database through the querier of
// sql.go, which says in words what is wrong with the disk or the database, and keeps what
// queries were compiled to. Whoever asks the pools themselves has neither.
func TestQueriesGoThroughOnePlace(t *testing.T) {
	t.Parallel()
	direct := []string{
		"Query", "QueryRow", "Exec", "Prepare", "Begin",
		"QueryContext", "QueryRowContext", "ExecContext", "PrepareContext", "BeginTx",
	}
	folder := filepath.Join("..", "..", "datastore")
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			of, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(direct, of.Sel.Name) {
				return true
			}
			if seen++; filepath.Base(file) != "sql.go" {
				t.Errorf("%s: %s: ask through a querier: db.read, db.reader, db.write", set.Position(call.Pos()), of.Sel.Name)
			}
			return true
		})
	}
	if seen < 5 {
		t.Fatalf("%d calls were found: those of sql.go are more", seen)
	}
}
