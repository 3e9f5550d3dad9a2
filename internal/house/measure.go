package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// kind is what is counted of a part of the code.
type kind string

// The kinds, with what is counted.
const (
	roomLines     kind = "room-lines"     // lines of a package, without tests
	typeMethods   kind = "type-methods"   // methods of a type
	structFields  kind = "struct-fields"  // names of fields; an embedded type is one
	optionsFields kind = "options-fields" // the same, of structs that are called Options
	portMethods   kind = "port-methods"   // methods of an interface, without those of embedded ones
	fileLines     kind = "file-lines"
	funcLines     kind = "func-lines" // from func to the closing brace
	roomDoc       kind = "room-doc"   // 1: the package has no doc.go
)

// bounds are how much there may be of each, in the order in which they are shown.
var bounds = []struct { //nolint:gochecknoglobals // a constant table
	kind  kind
	most  int
	title string
}{
	{roomLines, 4000, "rooms, by lines without tests"},
	{typeMethods, 40, "types, by methods"},
	{structFields, 20, "structs, by fields"},
	{optionsFields, 8, "options, by fields"},
	{portMethods, 4, "interfaces, by methods"},
	{fileLines, 500, "files, by lines"},
	{funcLines, 80, "functions, by lines"},
	{roomDoc, 0, "rooms without a doc.go"},
}

// measure is one figure.
type measure struct {
	kind kind
	name string // of the package, or in it: reconciler/decision.Input
	n    int
}

// skipped are folders whose code is not the program's.
func skipped(dir string) bool {
	base := path.Base(dir)
	return base == "testdata" || base == "node_modules" || base == "bin" || dir == "internal/testenv" || dir == "bench" ||
		strings.HasPrefix(base, ".") && dir != "."
}

// measureAll measures the code below root.
func measureAll(root string) ([]measure, error) {
	var all []measure
	rooms := map[string]*room{}
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
		case entry.IsDir() && skipped(rel):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go"):
			return nil
		}
		dir := path.Dir(rel)
		if rooms[dir] == nil {
			rooms[dir] = &room{name: dir, methods: map[string]map[string]bool{}}
			if dir == "." {
				rooms[dir].name = "holdfast"
			}
		}
		return rooms[dir].read(name, rel)
	})
	if err != nil {
		return nil, err
	}
	for _, r := range rooms {
		all = append(all, r.measures()...)
	}
	return all, nil
}

// room is what there is in one package, whatever it is built for.
type room struct {
	name    string // its folder; holdfast, of the root
	lines   int
	doc     bool
	methods map[string]map[string]bool // names by type: those for each system count once
	found   []measure                  // what is complete within a file
}

func (r *room) read(name, rel string) error {
	source, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse %s: %w", rel, err)
	}
	lines := bytes.Count(source, []byte("\n"))
	r.lines += lines
	r.doc = r.doc || path.Base(rel) == "doc.go"
	r.found = append(r.found, measure{fileLines, rel, lines})
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			r.function(d, files.Position(d.End()).Line-files.Position(d.Pos()).Line+1)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if named, ok := spec.(*ast.TypeSpec); ok {
					r.declared(named)
				}
			}
		}
	}
	return nil
}

func (r *room) function(d *ast.FuncDecl, lines int) {
	name := d.Name.Name
	if d.Recv != nil {
		owner := receiver(d.Recv.List[0].Type)
		if r.methods[owner] == nil {
			r.methods[owner] = map[string]bool{}
		}
		r.methods[owner][name] = true
		name = owner + "." + name
	}
	r.found = append(r.found, measure{funcLines, r.name + "." + name, lines})
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	for {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.IndexListExpr:
			e = t.X
		case *ast.Ident:
			return t.Name
		default:
			return "?"
		}
	}
}

func (r *room) declared(spec *ast.TypeSpec) {
	name := r.name + "." + spec.Name.Name
	switch t := spec.Type.(type) {
	case *ast.StructType:
		what := structFields
		if strings.HasSuffix(spec.Name.Name, "Options") {
			what = optionsFields
		}
		n := 0
		for _, field := range t.Fields.List {
			n += max(1, len(field.Names))
		}
		r.found = append(r.found, measure{what, name, n})
	case *ast.InterfaceType:
		n := 0
		for _, method := range t.Methods.List {
			n += len(method.Names)
		}
		r.found = append(r.found, measure{portMethods, name, n})
	}
}

func (r *room) measures() []measure {
	all := append(slices.Clone(r.found), measure{roomLines, r.name, r.lines})
	for name, methods := range r.methods {
		all = append(all, measure{typeMethods, r.name + "." + name, len(methods)})
	}
	if !r.doc {
		all = append(all, measure{roomDoc, r.name, 1})
	}
	return all
}
