package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	makeVariable = regexp.MustCompile(`(?m)^([A-Z_]+) := (.*)$`)
	makeUse      = regexp.MustCompile(`\$\(([A-Z_]+)\)`)
	makeRun      = regexp.MustCompile(`go test .*|\$\(GO\) test .*`)
	namedTests   = regexp.MustCompile(`-run '\^\(?([^']*?)\)?\$\$'`)
	testedFolder = regexp.MustCompile(`\s(\./\S+)`)
)

// TestNamedTestsExist: go test passes where -run names a test that there is not, so that one
// which was renamed is no longer run by the target of the Makefile that names it.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	named := namedIn(string(makefile))
	if len(named["./internal/e2e"]) < 10 || len(named["./runner/sandbox ./server"]) < 2 {
		t.Fatalf("the Makefile names %v only", named)
	}
	for folders, names := range named {
		for _, name := range missing(t, "../..", strings.Fields(folders), names) {
			t.Errorf("the Makefile runs %s of %s, where there is no such test", name, folders)
		}
	}
}

// A test that was renamed is found, whichever of several it was.
func TestNamedTestsAreFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a/a_test.go": "package a\n\nfunc TestA(t *testing.T) {}\n\nfunc TestBoth(t *testing.T) {}\n",
		"b/b.go":      "package b\n\nfunc TestBoth(t *testing.T) {}\n", "b/b_test.go": "package b\n\n// TestC is gone.\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for makefile, want := range map[string]string{
		"all:\n\tgo test -run '^(TestA|TestBoth)$$' ./a ./b\n":                     "",
		"all:\n\t$(GO) test -run '^TestA$$' -v ./a\n":                              "",
		"all:\n\tgo test -run '^TestA$$' ./b\n":                                    "TestA",
		"S := TestA|$\\\n  TestC|TestBoth\nall:\n\tgo test -run '^($(S))$$' ./a\n": "TestC",
	} {
		var found []string
		for folders, names := range namedIn(makefile) {
			found = append(found, missing(t, dir, strings.Fields(folders), names)...)
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%q lacks %q, want %q", makefile, got, want)
		}
	}
}

// namedIn returns the tests that a Makefile names, by the folders that they are run of.
func namedIn(makefile string) map[string][]string {
	text := regexp.MustCompile(`\$\\\n\s*`).ReplaceAllString(makefile, "")
	variables := make(map[string]string)
	for _, m := range makeVariable.FindAllStringSubmatch(text, -1) {
		variables[m[1]] = m[2]
	}
	named := make(map[string][]string)
	for _, line := range makeRun.FindAllString(text, -1) {
		line = makeUse.ReplaceAllStringFunc(line, func(use string) string { return variables[use[2:len(use)-1]] })
		tests := namedTests.FindStringSubmatch(line)
		if tests == nil || tests[1] == "" {
			continue
		}
		var folders []string
		for _, m := range testedFolder.FindAllStringSubmatch(line, -1) {
			folders = append(folders, m[1])
		}
		at := strings.Join(folders, " ")
		named[at] = append(named[at], strings.Split(tests[1], "|")...)
	}
	return named
}

// missing returns the names that no test in the folders has.
func missing(t *testing.T, root string, folders, names []string) (lacking []string) {
	t.Helper()
	source := ""
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source += string(data)
		}
	}
	for _, name := range names {
		if !strings.Contains(source, "\nfunc "+name+"(t *testing.T)") {
			lacking = append(lacking, name)
		}
	}
	return lacking
}
