// Package docs_test holds what the documents say to what the code does.
package docs_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/templates/document"
)

func TestRunStatuses(t *testing.T) {
	t.Parallel()
	page := read(t, "runs.md")
	constants := constantsOf(t, "..", func(name string) bool { return strings.HasPrefix(name, "Run") }, "RunStatus")
	if diff := cmp.Diff(constants, firstCells(table(t, page, "Status"))); diff != "" {
		t.Errorf("the table of statuses is not that of run.go (-code +page):\n%s", diff)
	}
	kinds := constantsOf(t, "..", func(name string) bool { return strings.HasPrefix(name, "Run") }, "RunKind")
	if diff := cmp.Diff(kinds, firstCells(table(t, page, "Kind"))); diff != "" {
		t.Errorf("the table of kinds is not that of run.go (-code +page):\n%s", diff)
	}
}

// The picture and the table of transitions say the same; what they say is what
// the code does: see TestTransitions.
func TestPictureOfTransitions(t *testing.T) {
	t.Parallel()
	page := read(t, "runs.md")
	picture := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^    ([a-z_]+) --> ([a-z_]+)$`).FindAllStringSubmatch(page, -1) {
		picture[m[1]+" → "+m[2]] = true
	}
	if diff := cmp.Diff(documentedTransitions(t), picture); diff != "" {
		t.Errorf("table and picture differ (-table +picture):\n%s", diff)
	}
}

func documentedTransitions(t *testing.T) map[string]bool {
	t.Helper()
	out := make(map[string]bool)
	for _, row := range table(t, read(t, "runs.md"), "From") {
		out[unquote(row[0])+" → "+unquote(row[1])] = true
	}
	return out
}

var update = flag.Bool("update", false, "write the tables of runs.md and access.md") //nolint:gochecknoglobals // a flag

// TestReasons: the tables of reasons and causes are made from the table of the code.
func TestReasons(t *testing.T) {
	t.Parallel()
	page := read(t, "runs.md")
	want := withTable(t, withTable(t, page, "Reason", reasonRows()), "Cause", causeRows())
	want = withReasons(t, withReasons(t, want, "- Until somebody acts: ", holdfast.Blocks), "- Until it ends automatically: ", holdfast.Passes)
	if *update {
		if err := os.WriteFile("runs.md", []byte(want), 0o644); err != nil { //nolint:gosec // a page of the documentation
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(page, want); diff != "" {
		t.Errorf("runs.md does not say what the table of reasons says; -update writes it (-page +code):\n%s", diff)
	}
}

// TestAccess: the table of roles is made from the table of the code.
func TestAccess(t *testing.T) {
	t.Parallel()
	page := read(t, "access.md")
	rows := []string{"| May | Verb | viewer | operator | approver | admin |", "|---|---|---|---|---|---|"}
	for _, right := range access.Table() {
		row := "| " + right.Words + " | `" + string(right.Verb) + "` |"
		for _, role := range access.Roles() {
			if role.Includes(right.Role) {
				row += " yes |"
			} else {
				row += " |"
			}
		}
		rows = append(rows, row)
	}
	want := withTable(t, page, "May", rows)
	if *update {
		if err := os.WriteFile("access.md", []byte(want), 0o644); err != nil { //nolint:gosec // a page of the documentation
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(page, want); diff != "" {
		t.Errorf("access.md does not say what the table of rights says; -update writes it (-page +code):\n%s", diff)
	}
}

// withTable returns the page with other rows in the table whose first column is header.
func withTable(t *testing.T, page, header string, rows []string) string {
	t.Helper()
	before, table, ok := strings.Cut(page, "\n| "+header+" |")
	if !ok {
		t.Fatalf("no table of %s", header)
	}
	_, after, _ := strings.Cut(table, "\n\n")
	if !strings.Contains(table, "\n\n") {
		after = ""
	}
	page = before + "\n" + strings.Join(rows, "\n") + "\n"
	if after != "" {
		page += "\n" + after
	}
	return page
}

// withReasons returns the page with all reasons of an effect in the line that begins with start.
func withReasons(t *testing.T, page, start string, effect holdfast.Effect) string {
	t.Helper()
	before, line, ok := strings.Cut(page, "\n"+start)
	_, after, ended := strings.Cut(line, "\n")
	if !ok || !ended {
		t.Fatalf("no line %q", start)
	}
	var names []string
	for _, reason := range holdfast.Reasons() {
		if reason.Info().Effect == effect {
			names = append(names, "`"+string(reason)+"`")
		}
	}
	return before + "\n" + start + strings.Join(names, ", ") + "\n" + after
}

func reasonRows() []string {
	rows := []string{"| Reason | Effect | Meaning | What to do | Who may act |", "|---|---|---|---|---|"}
	for _, reason := range holdfast.Reasons() {
		info := reason.Info()
		if info.Cause {
			continue
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s | %s |", reason, info.Effect, meaning(info), whatToDo(info), info.Who))
	}
	return rows
}

func causeRows() []string {
	rows := []string{"| Cause | Transient | Meaning | What to do |", "|---|---|---|---|"}
	for _, reason := range holdfast.Reasons() {
		info := reason.Info()
		if reason.IsCause() {
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", reason, info.Transient, meaning(info), whatToDo(info)))
		}
	}
	return rows
}

// meaning is a reason's words with what the documentation adds.
func meaning(info holdfast.ReasonInfo) string {
	text := info.Words
	if info.More != "" {
		text += ". " + info.More
	}
	if info.See != "" {
		text += " ([more](" + info.See + "))"
	}
	return text
}

// whatToDo is what to do, the commands first.
func whatToDo(info holdfast.ReasonInfo) string {
	var parts []string
	for i, verb := range info.Next {
		does := info.Does
		if i > 0 {
			does = "plans again"
		}
		parts = append(parts, fmt.Sprintf("`/holdfast %s` %s", verb, does))
	}
	if info.Hint != "" {
		parts = append(parts, info.Hint)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ". ")
}

func union(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// commentedKeys holds that keys which a configuration only mentions exist.
func commentedKeys(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mentioned := regexp.MustCompile(`(?m)^( *)# ([a-z][A-Za-z]*: .*)$`)
	all := mentioned.FindAllSubmatchIndex(text, -1)
	if len(all) < 5 {
		t.Errorf("%s mentions %d keys", path, len(all))
	}
	for _, m := range all {
		key := string(text[m[4]:m[5]])
		with := string(text[:m[3]]) + key + string(text[m[5]:])
		copied := filepath.Join(t.TempDir(), "holdfast.yaml")
		if err := os.WriteFile(copied, []byte(with), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(copied); err != nil && strings.Contains(err.Error(), "unknown key") {
			t.Errorf("%s mentions %q: %v", path, key, err)
		}
	}
}

// The configuration that is shown is one that works.
func TestConfigurations(t *testing.T) {
	t.Parallel()
	if _, err := config.Load("../deploy/holdfast.yaml"); err != nil {
		t.Errorf("deploy/holdfast.yaml: %v", err)
	}
	commentedKeys(t, "../deploy/holdfast.yaml")
	found := 0
	for _, page := range pages(t) {
		for _, block := range blocks(page.text, "yaml") {
			var parsed struct {
				Kind  string         `yaml:"kind"`
				Parts map[string]any `yaml:",inline"`
			}
			if err := yaml.Unmarshal([]byte(block), &parsed); err != nil {
				t.Errorf("%s: a block is not YAML: %v", page.path, err)
				continue
			}
			switch parsed.Kind {
			case "Cluster":
				found++
				if docs, faults := document.ParseClusters("cluster.yaml", []byte(block)); len(faults) > 0 || len(docs) == 0 {
					t.Errorf("%s: a cluster is not valid: %v", page.path, faults)
				}
			case "":
				if isTemplatePart(parsed.Parts) {
					continue // see TestTemplateParts
				}
				found++
				if _, err := config.Parse(page.path, "/", []byte(block)); err != nil {
					t.Errorf("%s: a configuration is not valid:\n%v", page.path, err)
				}
			}
		}
	}
	if found < 2 {
		t.Errorf("%d examples were found, fewer than there are", found)
	}
}

// The unit bounds the service as docs/install.md and docs/security.md say, and
// lets agents live on when the server ends.
func TestUnitOfSystemd(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../deploy/systemd/holdfast.service")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, want := range []string{
		"NoNewPrivileges=true", "PrivateTmp=true", "TasksMax=16384", "MemoryMax=80%", "UMask=0077",
		"LockPersonality=true", "RestrictRealtime=true", "KillMode=process", "Delegate=yes", "DelegateSubgroup=server",
		"ProtectClock=true", "ProtectHostname=true", "ProtectKernelModules=true", "SystemCallArchitectures=native",
		"SystemCallFilter=~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap", "SystemCallErrorNumber=EPERM",
		"CapabilityBoundingSet=CAP_SETUID CAP_SETGID CAP_SETPCAP CAP_SYS_ADMIN CAP_SYS_CHROOT CAP_CHOWN CAP_DAC_OVERRIDE " +
			"CAP_FOWNER CAP_KILL CAP_NET_BIND_SERVICE",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("the unit has no line %s", want)
		}
	}
	for _, never := range []string{ // sandboxes need a /proc, namespaces and control groups of their own
		"ProtectKernelTunables=", "ProtectKernelLogs=", "ProtectControlGroups=", "RestrictNamespaces=", "ProcSubset=", "ProtectProc=",
	} {
		if slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, never) }) {
			t.Errorf("the unit sets %s", never)
		}
	}
}

// Links within the repository lead somewhere, headings included.
func TestLinks(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(withoutCode(page.text), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := page.path
			if target != "" {
				path = filepath.Join(filepath.Dir(page.path), target)
			}
			data, err := os.ReadFile(path)
			if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
				continue
			}
			switch {
			case err != nil:
				t.Errorf("%s links to %s, which is not there", page.path, m[1])
			case anchor != "" && !slices.Contains(anchors(string(data)), anchor):
				t.Errorf("%s links to %s, which has no such heading", page.path, m[1])
			}
		}
	}
}

// Every make target that a page names exists.
func TestMakeTargets(t *testing.T) {
	t.Parallel()
	makefile := read(t, "../Makefile")
	for _, page := range pages(t) {
		for _, m := range regexp.MustCompile("(?m)(?:`|^)make ([a-z0-9]+)").FindAllStringSubmatch(page.text, -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s names make %s, which does not exist", page.path, m[1])
			}
		}
	}
}

// Every command that a page names exists.
func TestCommands(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../cmd/holdfast/*.go")
	below, errBelow := filepath.Glob("../cmd/holdfast/*/*.go")
	if err = errors.Join(err, errBelow); err != nil {
		t.Fatal(err)
	}
	source := read(t, "../pullrequest.go") // with the verbs of comments
	for _, file := range append(files, below...) {
		source += read(t, file)
	}
	code := regexp.MustCompile("(?s)`[^`\n]*`|\n```sh\n.*?\n```|\n\\$ [^\n]*")
	named := regexp.MustCompile(`\bholdfast ([a-z]+)`)
	for _, page := range pages(t) {
		for _, span := range code.FindAllString(page.text, -1) {
			for _, m := range named.FindAllStringSubmatch(span, -1) {
				if !regexp.MustCompile(`"` + m[1] + `[" ]`).MatchString(source) {
					t.Errorf("%s names %s, which does not exist", page.path, m[0])
				}
			}
		}
	}
}

// The table of the benchmarks has a row for each figure that was measured.
func TestFiguresAreShown(t *testing.T) {
	t.Parallel()
	_, rest, ok := strings.Cut(read(t, "../bench/README.md"), "<!-- bench:begin -->")
	shown, _, closed := strings.Cut(rest, "<!-- bench:end -->")
	if !ok || !closed {
		t.Fatal("bench/README.md has no place for the figures")
	}
	data, err := os.ReadFile("../bench/results.json")
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var figures []struct {
		Name string `json:"name"`
	}
	if err != nil || json.Unmarshal(data, &figures) != nil || len(figures) == 0 {
		t.Fatalf("bench/results.json has no figures: %v", err)
	}
	rows := make(map[string]int)
	for line := range strings.Lines(shown) {
		if cells := strings.Split(line, " | "); len(cells) > 1 {
			rows[strings.TrimPrefix(cells[0], "| ")]++
		}
	}
	for _, f := range figures { // of a fleet there is one row for all sizes
		if rows[f.Name] == 0 && rows[strings.TrimPrefix(f.Name, "fleet: ")] == 0 {
			t.Errorf("bench/README.md does not show %q: make bench-table", f.Name)
		}
	}
}

func TestDecisionsAreListed(t *testing.T) {
	t.Parallel()
	index := read(t, "adr/README.md")
	files, err := filepath.Glob("adr/[0-9]*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no decisions: %v", err)
	}
	for _, file := range files {
		if !strings.Contains(index, "("+filepath.Base(file)+")") {
			t.Errorf("adr/README.md does not list %s", filepath.Base(file))
		}
	}
}

// What the tests read the pages and the code with.

type page struct{ path, text string }

func pages(t *testing.T) []page {
	t.Helper()
	var out []page
	for _, pattern := range []string{"../*.md", "*.md", "adr/*.md", "../examples/*/*.md", "../deploy/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			out = append(out, page{file, read(t, file)})
		}
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// table returns the rows of the first table whose first column has that name.
func table(t *testing.T, page, header string) [][]string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "\n| "+header+" |")
	if !ok {
		t.Fatalf("no table of %s", header)
	}
	var rows [][]string
	for i, line := range strings.Split(rest, "\n") {
		if i < 2 {
			continue // the rest of the header, and the line below it
		}
		if !strings.HasPrefix(line, "| ") {
			break
		}
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
		rows = append(rows, cells)
	}
	return rows
}

func firstCells(rows [][]string) []string {
	var out []string
	for _, row := range rows {
		out = append(out, unquote(row[0]))
	}
	return slices.Sorted(slices.Values(out))
}

func unquote(cell string) string { return strings.Trim(cell, "` ") }

func blocks(text, language string) []string {
	var out []string
	for {
		_, rest, ok := strings.Cut(text, "\n```"+language+"\n")
		if !ok {
			return out
		}
		block, after, _ := strings.Cut(rest, "\n```")
		out = append(out, block+"\n")
		text = after
	}
}

func withoutCode(text string) string {
	text = regexp.MustCompile("(?s)\n```.*?\n```").ReplaceAllString(text, "")
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(text, "")
}

// anchors are the headings of a page as links name them.
func anchors(text string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(withoutCode(text), -1) {
		words := strings.ToLower(strings.TrimSpace(m[1]))
		words = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`).ReplaceAllString(words, "")
		out = append(out, strings.ReplaceAll(words, " ", "-"))
	}
	return out
}

// eachFile calls do for each file of a package, and of those below its folder,
// without tests. Of ".." it is the root package alone.
func eachFile(t *testing.T, dir string, do func(*ast.File)) {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != dir && (dir == ".." || entry.Name() == "testdata"):
			return fs.SkipDir
		case !entry.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("no Go files in %s: %v", dir, err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		do(file)
	}
}

// constantsOf returns the sorted values of a package's string constants whose
// names match and which have that type; empty: no type.
func constantsOf(t *testing.T, dir string, match func(name string) bool, ofType string) []string {
	t.Helper()
	values := make(map[string]bool)
	eachFile(t, dir, func(file *ast.File) {
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			name := ""
			if id, ok := spec.Type.(*ast.Ident); ok {
				name = id.Name
			}
			for i, id := range spec.Names {
				if i < len(spec.Values) && match(id.Name) && name == ofType {
					if value, ok := stringOf(spec.Values[i]); ok {
						values[value] = true
					}
				}
			}
			return true
		})
	})
	return slices.Sorted(maps.Keys(values))
}

func stringOf(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(lit.Value)
	return value, err == nil
}
