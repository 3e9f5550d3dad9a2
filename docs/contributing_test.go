package docs_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	spanInText  = regexp.MustCompile("`([^`]+)`")
	placeholder = regexp.MustCompile(`[^/]*\bN(?:AME|NNN)[^/]*$`)
	wordOfCode  = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
)

// TestHowToAdd: whoever adds something finds each file and each name where CONTRIBUTING.md
// sends them.
func TestHowToAdd(t *testing.T) {
	t.Parallel()
	_, guide, found := strings.Cut(read(t, "../CONTRIBUTING.md"), "\n## How to add\n")
	guide, _, ends := strings.Cut(guide, "\n## ")
	if !found || !ends {
		t.Fatal("CONTRIBUTING.md does not say how to add something")
	}
	words, names := wordsOfCode(t), fileNames(t)
	files, others := 0, 0
	for _, m := range spanInText.FindAllStringSubmatch(strings.ReplaceAll(guide, "\n", " "), -1) {
		switch span := m[1]; {
		case strings.ContainsAny(span, " <>!?~[") || strings.HasPrefix(span, "/") || strings.HasPrefix(span, "refs/"):
			continue // a command, a text, and what a code host has
		case strings.Contains(span, "/") || path.Ext(span) != "" && names["*"+path.Ext(span)]:
			if files++; !isThere(span, names) {
				t.Errorf("CONTRIBUTING.md names the file %s, which is not there", span)
			}
		default:
			others++
			for _, word := range wordOfCode.FindAllString(span, -1) {
				if !words[word] {
					t.Errorf("CONTRIBUTING.md names %s, and no code has %s", span, word)
				}
			}
		}
	}
	if files < 50 || others < 50 {
		t.Errorf("only %d files and %d names were looked for", files, others)
	}
}

// isThere reports whether a path leads somewhere, from the top or, if it is a name alone
// or from a folder that the page has named before, from anywhere.
func isThere(span string, names map[string]bool) bool {
	pattern := placeholder.ReplaceAllString(span, "*")
	if found, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pattern))); err == nil && len(found) > 0 {
		return true
	}
	for name := range names {
		if is, _ := path.Match(path.Base(pattern), name); is {
			return true
		}
	}
	return false
}

// fileNames are the names of all files, and a "*" with each of their extensions.
func fileNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	walkFiles(t, func(file string) {
		names[filepath.Base(file)], names["*"+filepath.Ext(file)] = true, true
	})
	return names
}

// wordsOfCode are the identifiers of all code, and the words in its strings.
func wordsOfCode(t *testing.T) map[string]bool {
	t.Helper()
	words := map[string]bool{}
	walkFiles(t, func(file string) {
		if filepath.Ext(file) != ".go" {
			return
		}
		var code scanner.Scanner
		data, set := []byte(read(t, file)), token.NewFileSet()
		code.Init(set.AddFile("", set.Base(), len(data)), data, nil, 0)
		for {
			_, kind, text := code.Scan()
			switch kind {
			case token.EOF:
				return
			case token.IDENT:
				words[text] = true
			case token.STRING:
				for _, word := range wordOfCode.FindAllString(text, -1) {
					words[word] = true
				}
			default:
			}
		}
	})
	return words
}

func walkFiles(t *testing.T, visit func(file string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		switch hidden := strings.HasPrefix(name, ".") && name != ".."; {
		case entry.IsDir() && (hidden || name == "node_modules" || name == "bin"):
			return filepath.SkipDir
		case !entry.IsDir():
			visit(file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// notShipped are folders of packages that are for developers.
var notShipped = regexp.MustCompile(`^(?:\.|bench|examples/.*|internal/(?:e2e|kubetest|testenv)|internal/(?:e2e|testenv)/.*|(?:.*/)?testdata(?:/.*)?)$`)

// TestMapHasAllPackages: architecture.md says of each package what it does, of one that is
// internal to another one there.
func TestMapHasAllPackages(t *testing.T) {
	t.Parallel()
	page, packages := read(t, "architecture.md"), map[string]bool{}
	walkFiles(t, func(file string) {
		dir := path.Dir(strings.TrimPrefix(filepath.ToSlash(file), "../"))
		if path.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") && !notShipped.MatchString(dir) {
			packages[dir] = true
		}
	})
	for dir := range packages {
		name := dir
		if _, below, nested := strings.Cut(dir, "/internal/"); nested {
			name = "internal/" + below
		}
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("architecture.md does not say what %s does", dir)
		}
	}
	if len(packages) < 70 {
		t.Errorf("only %d packages were found", len(packages))
	}
}

// TestReadmeIsShort: it is for somebody who has a minute.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(page), "\n"); lines > 180 {
		t.Errorf("README.md has %d lines, want 180 at most", lines)
	}
}
