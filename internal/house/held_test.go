package main

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/holdfast-dev/holdfast/"

// talkers are the methods that wait for somebody beyond this process: of a port, with
// the interface that has it, or of a library. A name that ends in a dot stands for all
// methods that take a context.
var talkers = slices.Concat(codeHosts, []string{ //nolint:gochecknoglobals // a constant table
	"reconciler/dispatch.Locker.", "reconciler/commands.Locker.", "reconciler.Waker.",
	"runner/attempt.Session.", "net/http.Client.Do", "net/http.RoundTripper.RoundTrip", "net.Dialer.DialContext",
	"gocloud.dev/blob.Bucket.", "os/exec.Cmd.Wait", "os/exec.Cmd.Output", "os/exec.Cmd.CombinedOutput",
	"github.com/redis/go-redis/v9.Client.", "github.com/redis/go-redis/v9.UniversalClient.",
	"github.com/redis/go-redis/v9.Script.",
})

// codeHosts are those that wait for a code host or for a Git server.
var codeHosts = []string{ //nolint:gochecknoglobals // a constant table
	"reconciler/intake.Forge.", "reconciler/gate.Forge.", "reconciler/publish.Forge.", "reconciler/upgrade.Forge.",
	"reconciler/commands.Forge.", "reconciler/intake.Git.Fetch", "reconciler/intake.Git.FetchPullRequest",
	"forge/local.Git.Fetch", "gitsource.session.",
}

// TestNoLockIsHeldAcrossTheNetwork: whoever waits for a code host, for Git, for Redis, an
// object store or an engine holds no lock meanwhile that others wait for. Exceptions
// are in held.txt, with a reason. It sees calls of functions and methods, however far
// down, of the ports above, and of others behind which there are few methods.
func TestNoLockIsHeldAcrossTheNetwork(t *testing.T) {
	t.Parallel()
	code := loadCode(t)
	code.link()
	code.spread()
	excused := readExcused(t, "held.txt")
	for name, why := range code.held() {
		if !excused[name] {
			t.Errorf("%s: %s", name, why)
		}
		delete(excused, name)
	}
	for name := range excused {
		t.Errorf("held.txt: %s holds no lock while it waits for the network", name)
	}
	for _, name := range talkers {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(code.talks)), func(known string) bool {
			return isNamed([]string{name}, known)
		}) {
			t.Errorf("talkers: nobody calls %s", name)
		}
	}
	if len(code.calls) < 2000 || len(code.talks) < 50 {
		t.Fatalf("%d functions, of which %d talk to the network: they were not found", len(code.calls), len(code.talks))
	}
}

// call is a call in a function, and what is held meanwhile.
type call struct {
	to   string
	held string // the lock; empty: none
}

// program is what calls what.
type program struct {
	calls   map[string][]call
	handed  map[string][]call   // the functions that a function names without calling them
	ports   map[string]string   // methods of our interfaces, with how they are called
	methods map[string][]string // how methods are called, with those that are
	talks   map[string]string   // functions that wait for the network, and the call by which they do
}

// link makes a call of a port one of the methods that may be behind it: those of that
// name and signature, if they are few.
func (p *program) link() {
	const few = 3
	for name, calls := range p.calls {
		for _, c := range calls {
			behind := p.methods[p.ports[c.to]]
			if _, talks := p.talks[c.to]; talks || len(behind) > few {
				continue
			}
			for _, to := range behind {
				p.calls[name] = append(p.calls[name], call{to: to, held: c.held})
			}
		}
	}
}

// spread finds all functions that wait for the network: they call one that does.
func (p *program) spread() {
	for grown := true; grown; {
		grown = false
		for name, calls := range p.calls {
			if _, known := p.talks[name]; known {
				continue
			}
			for _, c := range calls {
				if _, talks := p.talks[c.to]; talks {
					p.talks[name], grown = c.to, true
					break
				}
			}
		}
	}
}

// held are the functions that hold a lock while they wait for the network, and how.
func (p *program) held() map[string]string {
	found := map[string]string{}
	for name, calls := range p.calls {
		for _, c := range calls {
			if _, talks := p.talks[c.to]; c.held == "" || !talks {
				continue
			}
			found[name] = fmt.Sprintf("holds %s and calls %s", c.held, strings.Join(p.way(c.to), " → "))
			break
		}
	}
	return found
}

func readExcused(t *testing.T, file string) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	excused := map[string]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, reason, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if name == "" || name == "#" {
			continue
		}
		if strings.TrimSpace(reason) == "" {
			t.Errorf("%s: %s has no reason", file, name)
		}
		excused[name] = true
	}
	return excused
}

// loaded is what loadCode has read. It is not changed.
var loaded struct { //nolint:gochecknoglobals // it takes long to read
	sync.Once
	code *program
}

// loadCode reads the types of the program's packages and what their functions call.
func loadCode(t *testing.T) *program {
	t.Helper()
	loaded.Do(func() { loaded.code = readCode(t) })
	if loaded.code == nil {
		t.Fatal("the code was not read")
	}
	p := *loaded.code
	p.talks, p.calls = maps.Clone(p.talks), maps.Clone(p.calls)
	for name, calls := range p.calls {
		p.calls[name] = slices.Clip(calls)
	}
	return &p
}

func readCode(t *testing.T) *program {
	t.Helper()
	// With the flag of the tests and of the linters, the packages are compiled already.
	list := exec.CommandContext(t.Context(), "go", "list", "-trimpath", "-export", "-deps", "-f",
		"{{.ImportPath}}\t{{.Export}}\t{{.Dir}}\t{{range .GoFiles}}{{.}} {{end}}", "./...")
	list.Dir = "../.."
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, stderr.Bytes())
	}
	exports := map[string]string{}
	ours := map[string][]string{} // import path to files
	for line := range strings.Lines(string(out)) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		path, files := parts[0], strings.Fields(parts[3])
		exports[path] = parts[1]
		rel, own := strings.CutPrefix(path, module)
		if own && !strings.HasPrefix(rel, "internal/testenv") && !strings.HasPrefix(rel, "bench") {
			for _, file := range files {
				ours[path] = append(ours[path], filepath.Join(parts[2], file))
			}
		}
	}
	p := &program{calls: map[string][]call{}, handed: map[string][]call{}, talks: map[string]string{}, ports: map[string]string{}, methods: map[string][]string{}}
	fset := token.NewFileSet()
	from := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, path := range slices.Sorted(maps.Keys(ours)) {
		var files []*ast.File
		for _, name := range ours[path] {
			file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		info := &types.Info{
			Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{},
			Defs: map[*ast.Ident]types.Object{},
		}
		config := types.Config{Importer: from}
		if _, err := config.Check(path, fset, files, info); err != nil {
			t.Fatal(err)
		}
		p.add(&reading{p, info}, files)
	}
	return p
}

// reading is how the calls of a package are read.
type reading struct {
	*program
	info *types.Info
}

func (p *program) add(r *reading, files []*ast.File) {
	for _, file := range files {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Body != nil {
				method := r.info.Defs[f.Name].(*types.Func)
				name := nameOf(method)
				if f.Recv != nil && !strings.HasPrefix(name, "cmd/") { // those are behind no port
					p.methods[signature(method)] = append(p.methods[signature(method)], name)
				}
				p.calls[name] = append(p.calls[name], r.callsIn(f.Body)...)
				p.handed[name] = append(p.handed[name], r.handedIn(f.Body)...)
			}
		}
	}
}

// nameOf is the name of a function or method: package.Type.Method.
func nameOf(f *types.Func) string {
	f = f.Origin()
	recv := f.Signature().Recv()
	if recv == nil {
		if f.Pkg() == nil {
			return f.Name()
		}
		return short(f.Pkg().Path()) + "." + f.Name()
	}
	return typeName(recv.Type()) + "." + f.Name()
}

func typeName(of types.Type) string {
	if pointer, ok := types.Unalias(of).(*types.Pointer); ok {
		of = pointer.Elem()
	}
	named, ok := types.Unalias(of).(*types.Named)
	if !ok {
		return of.String()
	}
	if named.Obj().Pkg() == nil {
		return named.Obj().Name()
	}
	return short(named.Obj().Pkg().Path()) + "." + named.Obj().Name()
}

// signature is how a method is called: its name, what it takes and what it gives.
func signature(f *types.Func) string {
	var b strings.Builder
	b.WriteString(f.Name())
	for _, list := range []*types.Tuple{f.Signature().Params(), f.Signature().Results()} {
		b.WriteString(" (")
		for i := range list.Len() {
			b.WriteString(types.TypeString(list.At(i).Type(), nil) + ",")
		}
	}
	return b.String()
}

func short(path string) string { return strings.TrimPrefix(path, module) }

// callee is what a call calls; empty if that is a value. Of a port it is the method of
// the interface that it was called through, if that is one of the talkers.
func (r *reading) callee(c *ast.CallExpr) string { return r.function(ast.Unparen(c.Fun)) }

func (r *reading) function(e ast.Expr) string {
	switch fun := e.(type) {
	case *ast.Ident:
		if f, ok := r.info.Uses[fun].(*types.Func); ok {
			return nameOf(f)
		}
	case *ast.SelectorExpr:
		f, ok := r.info.Uses[fun.Sel].(*types.Func)
		if !ok {
			return ""
		}
		name := nameOf(f)
		if selection := r.info.Selections[fun]; selection != nil {
			if through := typeName(selection.Recv()) + "." + f.Name(); isTalker(through, f) {
				name = through
			}
		}
		if isTalker(name, f) {
			r.talks[name] = ""
		} else if recv := f.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) && f.Pkg() != nil && strings.HasPrefix(f.Pkg().Path()+"/", module) {
			r.ports[name] = signature(f)
		}
		return name
	}
	return ""
}

func isTalker(name string, f *types.Func) bool {
	return slices.ContainsFunc(talkers, func(t string) bool {
		if all, ok := strings.CutSuffix(t, "."); ok {
			params := f.Signature().Params()
			return strings.TrimSuffix(name, "."+f.Name()) == all && params.Len() > 0 && params.At(0).Type().String() == "context.Context"
		}
		return t == name
	})
}

// span is where a lock is held.
type span struct {
	lock     string
	from, to token.Pos
}

// callsIn returns the calls of a function's body. What is started in a goroutine is not
// called while anything is held.
func (r *reading) callsIn(body *ast.BlockStmt) []call {
	var out []call
	spans := r.spansIn(body)
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			for _, arg := range n.Call.Args {
				ast.Inspect(arg, visit)
			}
			if started, ok := n.Call.Fun.(*ast.FuncLit); ok {
				for _, c := range r.callsIn(started.Body) {
					if c.held != "" {
						out = append(out, c)
					}
				}
			}
			return false
		case *ast.CallExpr:
			if to := r.callee(n); to != "" {
				c := call{to: to}
				for _, s := range spans {
					if s.from < n.Pos() && n.Pos() < s.to {
						c.held = s.lock
					}
				}
				out = append(out, c)
			}
		}
		return true
	}
	ast.Inspect(body, visit)
	return out
}

// handedIn returns the functions that a function's body names without calling them.
func (r *reading) handedIn(body *ast.BlockStmt) []call {
	var out []call
	called := map[ast.Node]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			called[ast.Unparen(n.Fun)] = true
		case *ast.SelectorExpr, *ast.Ident:
			if to := r.function(n.(ast.Expr)); to != "" && !called[n] {
				out = append(out, call{to: to})
			}
			if sel, ok := n.(*ast.SelectorExpr); ok {
				called[sel.Sel] = true
			}
		}
		return true
	})
	return out
}

// spansIn finds where locks are held: from a Lock to the Unlock in the same block, or else
// to the last one, or to the end if that is deferred.
func (r *reading) spansIn(body *ast.BlockStmt) []span {
	var spans []span
	ends := map[string][]token.Pos{}
	deferred := map[string]bool{}
	blocks := [][]ast.Stmt{}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeferStmt:
			deferred[released(n.Call)] = true
		case *ast.ExprStmt:
			if c, ok := n.X.(*ast.CallExpr); ok && released(c) != "" {
				ends[released(c)] = append(ends[released(c)], n.Pos())
			}
		case *ast.BlockStmt:
			blocks = append(blocks, n.List)
		case *ast.CaseClause:
			blocks = append(blocks, n.Body)
		case *ast.CommClause:
			blocks = append(blocks, n.Body)
		}
		return true
	})
	for _, block := range blocks {
		for i, stmt := range block {
			lock, release := r.taken(stmt)
			if lock == "" {
				continue
			}
			s := span{lock: lock, from: stmt.End(), to: body.End()}
			if at := endIn(block[i+1:], release); at != token.NoPos {
				s.to = at
			} else if !deferred[release] {
				s.to = slices.Max(append(ends[release], stmt.End())) // or beyond: its caller says what it does then
			}
			spans = append(spans, s)
		}
	}
	return spans
}

func endIn(rest []ast.Stmt, release string) token.Pos {
	for _, stmt := range rest {
		if e, ok := stmt.(*ast.ExprStmt); ok {
			if c, ok := e.X.(*ast.CallExpr); ok && released(c) == release {
				return stmt.Pos()
			}
		}
	}
	return token.NoPos
}

// taken is the lock that a statement takes, and how it is released: X.Lock(), or
// unlock := X.Lock(...), or TryLock, of mutexes and of whatever else has such a method.
func (r *reading) taken(stmt ast.Stmt) (lock, release string) {
	var c *ast.CallExpr
	switch s := stmt.(type) {
	case *ast.ExprStmt:
		c, _ = s.X.(*ast.CallExpr)
	case *ast.AssignStmt:
		if len(s.Rhs) == 1 {
			c, _ = s.Rhs[0].(*ast.CallExpr)
		}
	}
	if c == nil {
		return "", ""
	}
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Lock", "RLock", "TryLock", "TryRLock"}, sel.Sel.Name) {
		return "", ""
	}
	lock = types.ExprString(sel.X)
	if s, ok := stmt.(*ast.AssignStmt); ok {
		if _, gives := r.info.TypeOf(s.Lhs[0]).(*types.Signature); !gives {
			return "", "" // it tells of a lock
		}
		return lock, types.ExprString(s.Lhs[0])
	}
	return lock, lock
}

// released is what a call releases: X of X.Unlock(), f of f().
func released(c *ast.CallExpr) string {
	switch fun := c.Fun.(type) {
	case *ast.SelectorExpr:
		if fun.Sel.Name == "Unlock" || fun.Sel.Name == "RUnlock" {
			return types.ExprString(fun.X)
		}
	case *ast.Ident:
		return fun.Name
	}
	return ""
}
