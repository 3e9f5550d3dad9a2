package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/storage"

	"github.com/holdfast-dev/holdfast"
)

// TestResult is how one test of policies ended.
type TestResult struct {
	Package string `json:"package"`
	Name    string `json:"name"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Passed  bool   `json:"passed"`
	Skipped bool   `json:"skipped,omitempty"` // its name begins with todo_
	Error   string `json:"error,omitempty"`   // why it could not be evaluated
}

// FileCoverage is how much of a file tests have evaluated.
type FileCoverage struct {
	File    string  `json:"file"`
	Percent float64 `json:"percent"`
	Missed  []Lines `json:"missed,omitempty"`
}

// Lines are those from First to Last, both included.
type Lines struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// TestReport is how the tests of a set ended, and what of the policies they have evaluated.
type TestReport struct {
	Tests    []TestResult           `json:"tests"`
	Coverage []FileCoverage         `json:"coverage,omitempty"` // of files other than tests, by name
	Percent  float64                `json:"percent"`            // of all lines of these
	Faults   []holdfast.PolicyFault `json:"faults,omitempty"`
}

// Failed reports whether a test failed, or a file is wrong.
func (r TestReport) Failed() bool {
	return len(r.Faults) > 0 || slices.ContainsFunc(r.Tests, func(t TestResult) bool { return !t.Passed && !t.Skipped })
}

// Prefixes of rules that are tests, and of such that wait to be written.
const (
	testPrefix = "test_"
	todoPrefix = "todo_test_"
)

// Test runs the tests of the set whose name contains only: rules that begin with test_, as
// opa has it.
func (s *Set) Test(ctx context.Context, only string, limits Limits) TestReport {
	limits.setDefaults()
	report := TestReport{Tests: []TestResult{}, Faults: s.faults}
	covered := cover.New()
	for _, file := range sortedKeys(s.modules) {
		module := s.modules[file]
		for _, r := range module.Rules {
			name := nameOf(r)
			if !strings.HasPrefix(name, testPrefix) && !strings.HasPrefix(name, todoPrefix) || !strings.Contains(name, only) {
				continue
			}
			result := TestResult{Package: strings.Join(packageNames(module), "."), Name: name, File: file, Line: r.Location.Row}
			twin := func(t TestResult) bool { return t.Package == result.Package && t.Name == result.Name }
			if slices.ContainsFunc(report.Tests, twin) {
				continue // another rule of the same name: it is one test
			}
			if result.Skipped = strings.HasPrefix(name, todoPrefix); !result.Skipped {
				s.test(ctx, &result, module.Package.Path.Append(ast.StringTerm(name)), covered, limits)
			}
			report.Tests = append(report.Tests, result)
		}
	}
	s.addCoverage(&report, covered)
	return report
}

// test runs one test.
func (s *Set) test(ctx context.Context, result *TestResult, ref ast.Ref, covered *cover.Cover, limits Limits) {
	e := evaluation{set: s, in: Input{value: ast.NewObject(), reads: new(int)}, limits: limits, tracer: covered}
	answer, err := e.ask(ctx, ref)
	if err != nil {
		fault := e.faultOf(rule{Policy: holdfast.Policy{File: result.File, Line: result.Line}}, err)
		result.Error = fault.Error()
		return
	}
	result.Passed = answer != nil && answer.Value.Compare(ast.Boolean(true)) == 0
}

// addCoverage says how much of the files with policies was evaluated.
func (s *Set) addCoverage(report *TestReport, covered *cover.Cover) {
	all := covered.Report(s.compiler.Modules).Files
	lines, reached := 0, 0
	for _, name := range sortedKeys(all) {
		if IsTest(name) || s.modules[name] == nil {
			continue
		}
		file := FileCoverage{File: name, Percent: all[name].Coverage}
		for _, missed := range all[name].NotCovered {
			file.Missed = append(file.Missed, Lines{First: missed.Start.Row, Last: missed.End.Row})
		}
		lines += all[name].CoveredLines + all[name].NotCoveredLines
		reached += all[name].CoveredLines
		report.Coverage = append(report.Coverage, file)
	}
	if lines > 0 {
		report.Percent = 100 * float64(reached) / float64(lines)
	}
}

// AddFixtures adds inputs that tests find as data.fixtures, by name.
func (s *Set) AddFixtures(ctx context.Context, fixtures map[string]Input) error {
	all := ast.NewObject()
	for _, name := range sortedKeys(fixtures) {
		all.Insert(ast.StringTerm(name), ast.NewTerm(fixtures[name].value))
	}
	tree, err := ast.JSON(all)
	if err != nil {
		return fmt.Errorf("keep fixtures: %w", err)
	}
	err = storage.Txn(ctx, s.store, storage.WriteParams, func(txn storage.Transaction) error {
		return s.store.Write(ctx, txn, storage.AddOp, storage.Path{"fixtures"}, tree)
	})
	if err != nil {
		return fmt.Errorf("keep fixtures: %w", err)
	}
	return nil
}
