package main

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// testedPackage is what decides how the tests of a package are run.
type testedPackage struct {
	path    string
	start   string               // where its code starts something; empty: nowhere
	tested  bool                 // it has test files
	tests   map[string]*function // of its test files, by name; those of one name are one
	unraced []string             // tests in files that are built without the race detector only
}

// function is a function of tests, or a variable with functions.
type function struct {
	starts bool            // something that runs at the same time
	uses   map[string]bool // names of what it calls or hands on
}

// read reads the package in a folder.
func read(path, dir string) (*testedPackage, error) {
	p := &testedPackage{path: path, tests: make(map[string]*function)}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	for _, name := range names {
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(name, "_test.go") {
			p.tested = true
			p.addTests(file)
		} else if at := startIn(file); at.IsValid() && p.start == "" {
			p.start = fmt.Sprintf("%s:%d", filepath.Base(name), files.Position(at).Line)
		}
	}
	return p, nil
}

// addTests takes in a file of tests. What the race detector never sees starts nothing.
func (p *testedPackage) addTests(file *ast.File) {
	unraced := isUnraced(file)
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if !unraced {
				p.add(d.Name.Name, d)
			} else if isTest(d.Name.Name) {
				p.unraced = append(p.unraced, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && !unraced {
					for _, name := range v.Names {
						p.add(name.Name, v)
					}
				}
			}
		}
	}
}

func (p *testedPackage) add(name string, node ast.Node) {
	f := p.tests[name]
	if f == nil {
		f = &function{uses: make(map[string]bool)}
		p.tests[name] = f
	}
	f.starts = f.starts || startIn(node).IsValid() || isAsked(node)
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			f.uses[nameOf(n.Fun)] = true
			for _, arg := range n.Args {
				f.uses[nameOf(arg)] = true
			}
		case *ast.CompositeLit:
			for _, element := range n.Elts {
				f.uses[nameOf(element)] = true
			}
		}
		return true
	})
}

// nameOf returns the last name of an expression that may be a function, otherwise
// nothing.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr: // of a type
		return nameOf(e.X)
	case *ast.KeyValueExpr:
		return nameOf(e.Value)
	default:
		return ""
	}
}

// startIn returns where code starts something that runs at the same time: a goroutine, a
// timer's function, or a method that net/http calls for several requests at once.
func startIn(node ast.Node) token.Pos {
	at := token.NoPos
	ast.Inspect(node, func(n ast.Node) bool {
		if at.IsValid() {
			return false
		}
		switch n := n.(type) {
		case *ast.GoStmt:
			at = n.Pos()
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.SelectorExpr); ok && isStart(called) {
				at = n.Pos()
			}
		case *ast.FuncDecl:
			if n.Recv != nil && n.Name.Name == "ServeHTTP" {
				at = n.Pos()
			}
		}
		return true
	})
	return at
}

// isStart reports whether a function or method starts what it is given: that of a
// WaitGroup or an errgroup, AfterFunc of time and context, and parallel.Each.
func isStart(called *ast.SelectorExpr) bool {
	switch called.Sel.Name {
	case "Go", "AfterFunc":
		return true
	case "Each":
		of, ok := called.X.(*ast.Ident)
		return ok && of.Name == "parallel"
	default:
		return false
	}
}

// raceDirective is what a test has in its comment that starts goroutines elsewhere.
const raceDirective = "//holdfast:race"

func isAsked(node ast.Node) bool {
	f, ok := node.(*ast.FuncDecl)
	return ok && f.Doc != nil && slices.ContainsFunc(f.Doc.List, func(c *ast.Comment) bool { return c.Text == raceDirective })
}

// isUnraced reports whether a file is built without the race detector only.
func isUnraced(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() > file.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err != nil {
				return false
			}
			with := func(race bool) bool {
				return expr.Eval(func(tag string) bool { return tag != "race" || race })
			}
			return with(false) && !with(true)
		}
	}
	return false
}

// concurrent returns the tests that start something, by name.
func (p *testedPackage) concurrent() []string {
	starts := make(map[string]bool)
	for grown := true; grown; {
		grown = false
		for name, f := range p.tests {
			if !starts[name] && (f.starts || usesAny(f.uses, starts)) {
				starts[name], grown = true, true
			}
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(starts)), func(name string) bool { return !isTest(name) })
}

func usesAny(uses, of map[string]bool) bool {
	for name := range of {
		if uses[name] {
			return true
		}
	}
	return false
}

// isTest reports whether -run chooses functions of that name.
func isTest(name string) bool {
	return name != "TestMain" && (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz"))
}
