package holdfast_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestReasonsAreWorded: nobody is shown a reason alone, and what blocks says what to do.
func TestReasonsAreWorded(t *testing.T) {
	t.Parallel()
	for _, reason := range holdfast.Reasons() {
		info := reason.Info()
		switch {
		case info.Words == "" || strings.HasSuffix(info.Words, ".") || strings.HasSuffix(info.Hint, ".") || strings.HasSuffix(info.More, "."):
			t.Errorf("%s: words, more or hint are not as they are put together", reason)
		case strings.Contains(info.Words+info.Hint+info.Does, "below"):
			t.Errorf("%s: words that mean a place: they are read in statuses and on terminals, too", reason)
		case info.Effect == "":
			t.Errorf("%s: no effect", reason)
		case info.Effect == holdfast.Blocks && len(info.Next) == 0 && info.Hint == "":
			t.Errorf("%s blocks, and nothing says what to do", reason)
		case (info.Effect == holdfast.Blocks || len(info.Next) > 0) && info.Who == "":
			t.Errorf("%s waits for a person, and nothing says who may act", reason)
		case len(info.Next) > 0 && info.Does == "":
			t.Errorf("%s: nothing says what /holdfast %s does", reason, info.Next[0])
		}
	}
}

// TestReasonsHaveRows: each constant is in the table.
func TestReasonsHaveRows(t *testing.T) {
	t.Parallel()
	constants := 0
	for value := range literals(t, "reason.go") {
		if !spelling.MatchString(value) {
			continue
		}
		constants++
		if !holdfast.Reason(value).Known() {
			t.Errorf("%s has no row in the table of reasons", value)
		}
	}
	if rows := len(holdfast.Reasons()); constants != rows {
		t.Errorf("%d constants, %d rows", constants, rows)
	}
}

func TestReasonInWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		holdfast.Reason("OfAnotherVersion").Info().Words:    "of another version",
		holdfast.ReasonPlanFailed.Refusal("no credentials"): "there is no plan to apply: planning failed: no credentials. `/holdfast plan` plans again",
		holdfast.ReasonSuperseded.Refusal(""):               "a newer revision replaces it. Try again in a moment",
		holdfast.ReasonUpToDate.Refusal(""):                 "the cluster matches Git",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestReasonsHaveCommands: what is suggested to a person is a command line for the cluster.
func TestReasonsHaveCommands(t *testing.T) {
	t.Parallel()
	for reason, want := range map[holdfast.Reason]string{
		holdfast.ReasonSuspended:  "holdfast resume prod-eu",
		holdfast.ReasonPlanFailed: "holdfast replan prod-eu", // plan is the one without a server
		holdfast.ReasonUnreviewed: "holdfast apply prod-eu",
		holdfast.ReasonNoAgent:    "holdfast get agents",
		holdfast.CauseStateLocked: "holdfast unlock prod-eu",
		holdfast.ReasonMissing:    "",
	} {
		if got := reason.Command("prod-eu"); got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
	if got := holdfast.ReasonSuspended.Command(""); got != "holdfast resume CLUSTER" {
		t.Errorf("without a name: %q", got)
	}
}

// TestReasonsAreConstants: outside of the table no code spells a reason, so that
// none is misspelt, forgotten by a rename or worded twice. What is spelt like one
// and means something else is listed.
func TestReasonsAreConstants(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "testenv" || entry.Name() == "bench" || strings.HasPrefix(entry.Name(), ".") && path != "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == "reason.go":
			return nil
		}
		for value, at := range literals(t, path) {
			if holdfast.Reason(value).Known() && !slices.Contains(otherWords[filepath.ToSlash(path)], value) {
				t.Errorf("%s: %q is a constant of holdfast.Reason", at, value)
			}
		}
		for part, at := range compared(t, path) {
			isPart := func(r holdfast.Reason) bool {
				return strings.HasPrefix(string(r), part) || strings.HasSuffix(string(r), part)
			}
			if spelling.MatchString(part) && slices.ContainsFunc(holdfast.Reasons(), isPart) {
				t.Errorf("%s: %q is a part of reasons: compare with each of them", at, part)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// otherWords are spelt like reasons, by file: names of fields, values of other types, and labels.
var otherWords = map[string][]string{
	"cmd/holdfast/show/describe_cluster.go": {"Applied", "Protected", "Suspended"},
	"datastore/objects/errors.go":           {"ServiceUnavailable"},
	"lifecycle.go":                          {"Drifted"},
	"report/drift_text.go":                  {"Applied", "Checked"},
	"server/pages/cluster.go":               {"Drifted"},
	"server/pages/fleet.go":                 {"Suspended", "Invalid"},
	"server/pages/lists.go":                 {"Drifted"},
	"server/pages/gates.go":                 {"Approved", "Merged"}, // labels
	"server/pages/pullrequest.go":           {"Merged", "Closed", "Draft", "Invalid", "Approved"},
	"server/pages/run.go":                   {"Workspace"},
	"server/pages/words.go":                 {"Applied", "Interrupted", "Canceled"},
}

var spelling = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)

// compared yields what a file looks for in the text of a value of a type of strings:
// "x" of strings.HasPrefix(string(v), "x") and its like.
func compared(t *testing.T, path string) func(func(string, token.Position) bool) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(string, token.Position) bool) {
		done := false
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if done || !ok || len(call.Args) != 2 {
				return !done
			}
			of, isCall := call.Args[0].(*ast.CallExpr)
			part, isLit := call.Args[1].(*ast.BasicLit)
			if !isCall || !isLit || part.Kind != token.STRING {
				return true
			}
			value, err := strconv.Unquote(part.Value)
			if conv, ok := of.Fun.(*ast.Ident); ok && conv.Name == "string" && err == nil {
				done = !yield(value, set.Position(part.Pos()))
			}
			return !done
		})
	}
}

// literals yields the strings of a file with their positions.
func literals(t *testing.T, path string) func(func(string, token.Position) bool) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(string, token.Position) bool) {
		imports := map[ast.Node]bool{}
		for _, spec := range file.Imports {
			imports[spec.Path] = true
		}
		done := false
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if done || !ok || lit.Kind != token.STRING || imports[lit] {
				return !done
			}
			value, err := strconv.Unquote(lit.Value)
			if err == nil {
				done = !yield(value, set.Position(lit.Pos()))
			}
			return !done
		})
	}
}
