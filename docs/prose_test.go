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
const gap = `\s+(?:(?://|#) ?)?`

// phrase matches at the beginning of a sentence, too.
func phrase(pattern string) *regexp.Regexp { return regexp.MustCompile("(?i)" + pattern) }

// Habits that tests and their helpers must not have either, in text and in names of tests.
var (
	isNo     = phrase(`(?:\S+` + gap + `)?\b(?:is|are|was|were)` + gap + `no` + gap + `[a-z]+`)
	isNone   = phrase(`(?:^|\S+` + gap + `)(?:is|are)` + gap + `none\b(?:` + gap + `of\b)?`)
	namedNo  = regexp.MustCompile(`func Test\w*(?:Is|Are|Was|Were)No(?:ne)?(?:[A-Z]\w*)?\(`)
	noLonger = regexp.MustCompile(`(?:Is|Are|Was|Were)No(?:Longer|More)`)
)

// habit is a phrase that is not plain English, and what to write.
type habit struct {
	word   string
	phrase *regexp.Regexp
	write  string
}

// habits are phrases that read as if they were translated, with what to write. Each has a
// word in it that is looked for first: to match all phrases everywhere takes much longer.
var habits = []habit{
	{"more", phrase(`\bany` + gap + `more\b`), "no longer"},
	{"goes", phrase(`\b[Gg]oes` + gap + `on\b`), "continues, is retried, is recorded"},
	{"itself", phrase(`\bby` + gap + `itself\b`), "automatically, alone"},
	{"told", phrase(`\b(?:is|are)` + gap + `told\b`), "is reported, is shown, is notified"},
	{"shall", phrase(`\b[Ss]hall\b`), "should, must, is to"},
	{"passing", phrase(`\b[Pp]assing` + gap + `causes?\b`), "transient cause"},
	{"comes", phrase(`\bcomes` + gap + `to\b`), "renders to, resolves to, equals"},
	{"come", phrase(`\b(?:to|must|could|would)` + gap + `come` + gap + `to\b`), "match, produce"},
	{"held", phrase(`\bheld` + gap + `to` + gap + `the` + gap + `code\b`), "is tested against the code"},
	{"eyes", phrase(`\bopen` + gap + `eyes\b`), "says what it shows"},
	{"one's", phrase(`\bof` + gap + `one's` + gap + `own\b`), "custom"},
	{"but", phrase(`\b[Bb]ut` + gap + `for` + gap + `(?:whole|what|those|the)\b`), "except for"},
	{"being", phrase(`\b[Ww]ithout` + gap + `being` + gap + `asked\b`), "automatically"},
	{"but", phrase(`\bbut` + gap + `for` + gap + `(?:` + "`" + `|\$)`), "except for"},
	{"beside", phrase(`\bbeside\b`), "next to, in addition to, besides"},
	{"anew", phrase(`\banew\b`), "again"},
	{"cancelled", phrase(`\bcancelled\b`), "canceled"},
	{"upon", phrase(`\b(?:come|comes|came)` + gap + `upon\b`), "find"},
	{"middle", phrase(`\bin` + gap + `its` + gap + `middle\b`), "in the middle"},
	{"wish", phrase(`\bat` + gap + `wish\b`), "optional"},
	{"on", phrase(`\b(?:go|going)` + gap + `on` + gap + `(?:with|until|after|for|as|from|once|under|if)\b`), "continue"},
	{"tells", phrase(`\b[Tt]ells` + gap + `(?:of|what|who|why|how)\b`), "reports, shows, lists"},
	{"themselves", phrase(`\bthemselves` + gap + `alone\b|\b(?:by|end|pass|resume)` + gap + `themselves\b`), "automatically"},
	{"(s)", phrase(`\(s\) [a-z]+`), "a plural made of the number"},
	{"drift", phrase(`\b[Cc]hecks?` + gap + `for` + gap + `drift\b`), "drift check"},
	{"told", phrase(`\bcannot` + gap + `be` + gap + `told\b|\b(?:was|were|been)` + gap + `told` + gap + `already\b`), "is not known, was reported"},
	{"no", isNo, "is not a"},
	{"none", isNone, "is not one"},
}

// shownHabits are phrases that people do not read: on pages, and in what is made of
// the strings of the code. Between ourselves a code host is a forge, as its package is.
var shownHabits = []struct {
	phrase *regexp.Regexp
	write  string
}{
	{phrase(`(?:\S+` + gap + `)?\b[Ff]orges?\b\S*`), "code host, or the key in backticks"},
	{phrase(`\bheard` + gap + `of\b`), "has contacted, responds"},
	{phrase(`\bin` + gap + `the` + gap + `world\b`), "the infrastructure"},
	{phrase(`\btold\b`), "reported, shown, known"},
	{phrase(`\bstands\b(?:` + gap + `\w+)?`), "is, is written, represents"},
	{phrase(`\bclusters?` + gap + `(?:that` + gap + `)?(?:is|are)` + gap + `made` + gap + `from\b`), "uses it"},
	{phrase(`\bworld` + gap + `as` + gap + `it` + gap + `is\b`), "the infrastructure"},
	{phrase(`\bcause` + gap + `is` + gap + `gone\b`), "the cause is fixed"},
	{phrase(`\bengine` + gap + `said\b`), "the engine's output"},
	{phrase(`\bat` + gap + `most` + gap + `so` + gap + `many\b`), "at most this many"},
	{phrase(`\bdoes` + gap + `not` + gap + `tell\b`), "does not report, does not say"},
	{phrase(`\bwhoever\b`), "anyone who"},
	{phrase(`\bany` + gap + `longer\b`), "no longer"},
	{phrase(`\bfor` + gap + `ever\b`), "forever"},
	{phrase(`\bown` + gap + `words\b`), "its error, its message"},
	{phrase(`[,;]` + gap + `else\b`), "otherwise"},
	{phrase(`\b(?:is|are|was|were)` + gap + `away\b`), "is unavailable"},
	{phrase(`\bspeaks?` + gap + `against\b`), "denies"},
	{phrase(`\btakes` + gap + `the` + gap + `roles?\b`), "requires the role"},
	{phrase(`\bthe` + gap + `present` + gap + `(?:one|place|state|version)\b`), "the current one"},
	{phrase(`\bwithout` + gap + `a` + gap + `word\b`), "silently, with no error"},
	{phrase(`\bha(?:s|ve)` + gap + `to` + gap + `say\b`), "what it is: logs, results"},
	{phrase(`\bof` + gap + `(?-i:before|after)\b`), "earlier, later"},
	{phrase(`\bsays?` + gap + `it[,.;:]`), "reports it"},
	{phrase(`\bput` + gap + `on` + gap + `record\b`), "recorded"},
	{phrase(`\bthe` + gap + `very` + gap + `(?:one|same|process|binary)\b`), "the same"},
	{phrase(`\b(?:is|are)` + gap + `at` + gap + `fault\b`), "is faulty"},
	{regexp.MustCompile(`(?:^|[.:;|] |\n- )What` + gap + `(?:a|an|the|is|was|an?|[a-z]+s)` + gap + `[^|\n?]{20}`), "the subject first"},
}

// commentHabits are phrases that comments in code without its tests must not have either.
var commentHabits = []habit{
	{"told", phrase(`\b(?:is|are|was|were|be|been|being|has|have|not|nobody|who|what|it|they|or)` + gap + `told\b(?:` + gap + `\w+)?`), "reported, shown, notified, known"},
	{"takes", phrase(`\btakes` + gap + `in` + gap + `(?:that|what|how)\b`), "records, reads, receives"},
	{"stands", phrase(`\bstands` + gap + `(?:on|before|behind|alike)\b`), "is based on, is before"},
	{"word", phrase(`\bwithout` + gap + `a` + gap + `word\b`), "silently, unannounced"},
	{"world", phrase(`\bin` + gap + `the` + gap + `world\b`), "the object, the infrastructure"},
	{"before", phrase(`\bof` + gap + `before\b`), "the former one"},
	{"ever", phrase(`\bfor` + gap + `ever\b`), "forever"},
	{"but", phrase(`\bbut` + gap + `for\b`), "except for"},
	{"else", phrase(`[,;]` + gap + `else\b`), "otherwise"},
	{"long", phrase(`\bis` + gap + `for` + gap + `how` + gap + `long\b`), "is how long"},
	{"away", phrase(`\b(?:is|are|was|were)` + gap + `away\b`), "is unavailable"},
	{"present", phrase(`\bthe` + gap + `present` + gap + `(?:one|head|place|state|version|base|plan)\b`), "the current one"},
	{"who", phrase(`\b(?:for|to|by|than|from)` + gap + `who` + gap + `(?:asks|shows|follows|reads|pushes|wants|waits|holds|has|does|needs|owns)\b`), "whoever, the caller"},
	{"Who", regexp.MustCompile(`[.;:] Who [a-z]+`), "the person who, the caller"},
}

// toldPlainly is where told is plain English.
var toldPlainly = regexp.MustCompile(`(?i)\btold` + gap + `(?:apart|about|to)$`)

// comments are those of Go code, each line in its place.
func comments(code []byte) []byte {
	var file scanner.Scanner
	set := token.NewFileSet()
	file.Init(set.AddFile("", set.Base(), len(code)), code, nil, scanner.ScanComments)
	lines := make([]string, bytes.Count(code, []byte("\n"))+1)
	for {
		pos, kind, text := file.Scan()
		if kind == token.EOF {
			return []byte(strings.Join(lines, "\n"))
		}
		if kind == token.COMMENT {
			line := set.Position(pos).Line - 1
			for i, part := range strings.Split(text, "\n") {
				lines[line+i] = part
			}
		}
	}
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

// literals are the strings of Go code that have more than one word, one in its own line;
// those in backticks, such as help texts, are wanted of commands only.
func literals(code []byte, raw bool) []byte {
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
		case kind == token.STRING && (raw || text[0] == '"') && strings.Contains(text, " "):
			line := set.Position(pos).Line - 1
			for i, part := range strings.Split(text, "\n") {
				lines[line+i] = append([]byte(part+" "), lines[line+i]...)
			}
		}
	}
}

// proseFile is where a file is that people read, as code or as text.
var proseFile = regexp.MustCompile(`\.(?:go|md|golden\.txt|sh|sql|html|rego)$|/Makefile$|/\.golangci\.yml$|/openapi\.json$|^\.\./deploy/|^\.\./examples/|/library/.*\.(?:ya?ml|tf)$`)

// applied are texts of resources in the library: another one would be a change of each
// cluster that has them.
var applied = regexp.MustCompile(`Network beside the cluster`)

// usual are the places where "is no" is plain English.
var usual = regexp.MustCompile(`(?i)^\S*\bthere\b|isolation is none$|` + gap + `(?:longer|more|need|other|others|one|such)$`)

// action is code in a page of the console.
var action = regexp.MustCompile(`\{\{[^}]*\}\}`)

// shownText is what people read of a file: all of a page but code, the strings of Go code,
// pages of the console, and shipped policies with what they say of themselves. What is in
// other files is for ourselves.
func shownText(path string, data []byte) []byte {
	switch filepath.Ext(path) {
	case ".go":
		return literals(data, strings.HasPrefix(path, "../cmd/"))
	case ".md", ".txt", ".json":
		return pageText(data)
	case ".html":
		return action.ReplaceAll(data, nil)
	case ".rego":
		return data
	default:
		return nil
	}
}

// around returns the parts of a text that have a word in any case, with what is before and
// after it: each phrase with the word is in one of them.
func around(text []byte, word string) [][2]int {
	const reach = 150
	var parts [][2]int
	for at := range text {
		end := at + len(word)
		if text[at]|0x20 != word[0]|0x20 || end > len(text) || !bytes.EqualFold(text[at:end], []byte(word)) {
			continue
		}
		if isLetter(word[0]) && (at > 0 && isLetter(text[at-1]) || end < len(text) && isLetter(text[end])) {
			continue // it is in another word
		}
		part := [2]int{max(0, at-reach), min(len(text), end+reach)}
		if last := len(parts) - 1; last >= 0 && parts[last][1] >= part[0] {
			parts[last][1] = part[1]
		} else {
			parts = append(parts, part)
		}
	}
	return parts
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// check reports each place of the phrase in a text, unless what is found there is plain.
func (h habit) check(t *testing.T, path string, text []byte, plain *regexp.Regexp) {
	t.Helper()
	for _, part := range around(text, h.word) {
		for _, at := range h.phrase.FindAllIndex(text[part[0]:part[1]], -1) {
			from, to := part[0]+at[0], part[0]+at[1]
			if found := string(text[from:to]); !plain.MatchString(found) {
				t.Errorf("%s:%d: %q: write %s", path, 1+strings.Count(string(text[:from]), "\n"), found, h.write)
			}
		}
	}
}

// TestProse holds comments, messages, pages and what people are shown to plain English.
func TestProse(t *testing.T) {
	t.Parallel()
	read := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir():
			if name == "node_modules" || strings.HasPrefix(name, ".") && name != ".." {
				return filepath.SkipDir
			}
			return nil
		case !proseFile.MatchString(filepath.ToSlash(path)):
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		data = applied.ReplaceAll(data, nil)
		ofTests := strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.ToSlash(path), "../internal/testenv/")
		for _, habit := range habits {
			if !ofTests || habit.phrase == isNo || habit.phrase == isNone {
				habit.check(t, path, data, usual)
			}
		}
		for _, name := range namedNo.FindAll(data, -1) {
			if !noLonger.Match(name) {
				t.Errorf("%s: %q: name it IsNot, or by what happens", path, name)
			}
		}
		if ofTests || strings.Contains(path, "/adr/") || strings.Contains(path, "/bench/") {
			return nil
		}
		if filepath.Ext(path) == ".go" {
			text := comments(data)
			for _, habit := range commentHabits {
				habit.check(t, path, text, toldPlainly)
			}
		}
		text := shownText(path, data)
		for _, habit := range shownHabits {
			for _, at := range habit.phrase.FindAllIndex(text, -1) {
				found := string(text[at[0]:at[1]])
				if !keys.MatchString(found) {
					t.Errorf("%s:%d: people are shown %q: write %s", path, 1+strings.Count(string(text[:at[0]]), "\n"), found, habit.write)
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
