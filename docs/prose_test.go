package docs_test

import (
	"bytes"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// gap is what is between two words: a space, or a line break in a comment.
const gap = `\s+(?:// ?)?`

// habits are phrases that read as if they were translated, with what to write.
var habits = []struct {
	phrase *regexp.Regexp
	write  string
}{
	{regexp.MustCompile(`\bany` + gap + `more\b`), "no longer"},
	{regexp.MustCompile(`\b[Gg]oes` + gap + `on\b`), "continues, is retried, is recorded"},
	{regexp.MustCompile(`\bby` + gap + `itself\b`), "automatically, alone"},
	{regexp.MustCompile(`\b(?:is|are)` + gap + `told\b`), "is reported, is shown, is notified"},
	{regexp.MustCompile(`\b[Ss]hall\b`), "should, must, is to"},
	{regexp.MustCompile(`\b[Pp]assing` + gap + `causes?\b`), "transient cause"},
	{regexp.MustCompile(`\bcomes` + gap + `to\b`), "renders to, resolves to, equals"},
	{regexp.MustCompile(`\b(?:to|must|could|would)` + gap + `come` + gap + `to\b`), "match, produce"},
	{regexp.MustCompile(`\bheld` + gap + `to` + gap + `the` + gap + `code\b`), "is tested against the code"},
	{regexp.MustCompile(`\bopen` + gap + `eyes\b`), "says what it shows"},
	{regexp.MustCompile(`\bof` + gap + `one's` + gap + `own\b`), "custom"},
	{regexp.MustCompile(`\b[Bb]ut` + gap + `for` + gap + `(?:whole|what|those|the)\b`), "except for"},
	{regexp.MustCompile(`\b[Ww]ithout` + gap + `being` + gap + `asked\b`), "automatically"},
	{regexp.MustCompile(`\bbut` + gap + `for` + gap + `(?:` + "`" + `|\$)`), "except for"},
	{regexp.MustCompile(`\bbeside\b`), "next to, in addition to, besides"},
	{regexp.MustCompile(`\banew\b`), "again"},
	{regexp.MustCompile(`\bcancelled\b`), "canceled"},
	{regexp.MustCompile(`\b(?:come|comes|came)` + gap + `upon\b`), "find"},
	{regexp.MustCompile(`\bin` + gap + `its` + gap + `middle\b`), "in the middle"},
	{regexp.MustCompile(`\bat` + gap + `wish\b`), "optional"},
	{regexp.MustCompile(`\b(?:go|going)` + gap + `on` + gap + `(?:with|until|after|for|as|from|once|under|if)\b`), "continue"},
	{regexp.MustCompile(`\b[Tt]ells` + gap + `(?:of|what|who|why|how)\b`), "reports, shows, lists"},
	{regexp.MustCompile(`\bthemselves` + gap + `alone\b|\b(?:by|end|pass|resume)` + gap + `themselves\b`), "automatically"},
	{regexp.MustCompile(`\(s\) [a-z]+`), "a plural made of the number"},
	{regexp.MustCompile(`\b[Cc]hecks?` + gap + `for` + gap + `drift\b`), "drift check"},
	{regexp.MustCompile(`\bcannot` + gap + `be` + gap + `told\b|\b(?:was|were|been)` + gap + `told` + gap + `already\b`), "is not known, was reported"},
	{regexp.MustCompile(`(?:^|\S+` + gap + `)(?:is|are)` + gap + `no` + gap + `[a-z]+`), "is not a"},
}

// shownHabits are phrases that people do not read: on pages, and in what is made of
// the strings of the code. Between ourselves a code host is a forge, as its package is.
var shownHabits = []struct {
	phrase *regexp.Regexp
	write  string
}{
	{regexp.MustCompile(`(?:\S+` + gap + `)?\b[Ff]orges?\b\S*`), "code host, or the key in backticks"},
	{regexp.MustCompile(`\btold\b`), "reported, shown, known"},
	{regexp.MustCompile(`\bstands\b(?:` + gap + `\w+)?`), "is, is written, represents"},
	{regexp.MustCompile(`\bclusters?` + gap + `(?:that` + gap + `)?(?:is|are)` + gap + `made` + gap + `from\b`), "uses it"},
	{regexp.MustCompile(`\bworld` + gap + `as` + gap + `it` + gap + `is\b`), "the infrastructure"},
	{regexp.MustCompile(`\bcause` + gap + `is` + gap + `gone\b`), "the cause is fixed"},
	{regexp.MustCompile(`\bengine` + gap + `said\b`), "the engine's output"},
	{regexp.MustCompile(`\bat` + gap + `most` + gap + `so` + gap + `many\b`), "at most this many"},
	{regexp.MustCompile(`\bdoes` + gap + `not` + gap + `tell\b`), "does not report, does not say"},
	{regexp.MustCompile(`(?:^|[.:;|] |\n- )What` + gap + `(?:a|an|the|is|was|an?|[a-z]+s)` + gap + `[^|\n?]{20}`), "the subject first"},
}

// keys are where forge is a key of the configuration, and stands is plain English.
var keys = regexp.MustCompile(`^(?:in|forge:)` + gap + `forges|\bforges?(?::|\[|,|"|/)|^stands` + gap + `(?:out|alone)$`)

var (
	codeSpan  = regexp.MustCompile("(?s)```.*?\n *```|`[^`\n]*`")
	linkOrRow = regexp.MustCompile(`\]\([^)]*\)|(?m)^##.*forges.*$`)
)

// pageText is what people read of a page: code is left out, line for line.
func pageText(page []byte) []byte {
	blank := func(found []byte) []byte {
		return append([]byte("``"), bytes.Repeat([]byte("\n"), bytes.Count(found, []byte("\n")))...)
	}
	return linkOrRow.ReplaceAllFunc(codeSpan.ReplaceAllFunc(page, blank), blank)
}

// literals are the strings of Go code that have more than one word, one in a line of its own.
func literals(code []byte) []byte {
	var file scanner.Scanner
	set := token.NewFileSet()
	file.Init(set.AddFile("", set.Base(), len(code)), code, nil, 0)
	out := bytes.Repeat([]byte("\n"), bytes.Count(code, []byte("\n"))+1)
	lines := bytes.SplitAfter(out, []byte("\n"))
	for {
		pos, kind, text := file.Scan()
		switch {
		case kind == token.EOF:
			return bytes.Join(lines, nil)
		case kind == token.STRING && text[0] == '"' && strings.Contains(text, " "):
			line := set.Position(pos).Line - 1
			lines[line] = append([]byte(text+" "), lines[line]...)
		}
	}
}

// proseFile is what a file is called that people read, as code or as text.
var proseFile = regexp.MustCompile(`\.(?:go|md|golden\.txt)$`)

// usual are the places where "is no" is plain English.
var usual = regexp.MustCompile(`(?i)^\S*\bthere\b|` + gap + `(?:longer|more|need|other|others|one|such)$`)

// TestProse holds comments, messages, pages and what people are shown to plain English.
func TestProse(t *testing.T) {
	t.Parallel()
	read := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir():
			if name == "testenv" || name == "node_modules" || strings.HasPrefix(name, ".") && name != ".." {
				return filepath.SkipDir
			}
			return nil
		case strings.HasSuffix(name, "_test.go") || !proseFile.MatchString(name):
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		shown := pageText
		if strings.HasSuffix(path, ".go") {
			shown = literals
		}
		if text := shown(data); !strings.Contains(path, "/adr/") && !strings.Contains(path, "/bench/") {
			for _, habit := range shownHabits {
				for _, at := range habit.phrase.FindAllIndex(text, -1) {
					found := string(text[at[0]:at[1]])
					if !keys.MatchString(found) {
						t.Errorf("%s:%d: people are shown %q: write %s", path, 1+strings.Count(string(text[:at[0]]), "\n"), found, habit.write)
					}
				}
			}
		}
		for _, habit := range habits {
			for _, at := range habit.phrase.FindAllIndex(data, -1) {
				found := string(data[at[0]:at[1]])
				if !usual.MatchString(found) {
					t.Errorf("%s:%d: %q: write %s", path, 1+strings.Count(string(data[:at[0]]), "\n"), found, habit.write)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 500 {
		t.Errorf("only %d files were read", read)
	}
}
