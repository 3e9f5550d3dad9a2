package console_test

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/console"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func render(t *testing.T, view console.View) string {
	t.Helper()
	var b bytes.Buffer
	if err := console.Render(&b, console.Frame{Title: "Fleet", Now: now, Self: "/", Stream: true}, view); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTemplatesKeepThePolicy looks for what the Content-Security-Policy breaks, in silence or
// not: inline script and style, and what htmx evaluates.
func TestTemplatesKeepThePolicy(t *testing.T) {
	t.Parallel()
	broken := map[string]*regexp.Regexp{
		"an inline style":                  regexp.MustCompile(`\sstyle=`),
		"an inline style sheet":            regexp.MustCompile(`<style`),
		"an inline script":                 regexp.MustCompile(`<script(?:[^>]*)>[^<]`),
		"an inline handler":                regexp.MustCompile(`\son[a-z]+=`),
		"hx-on":                            regexp.MustCompile(`hx-on`),
		"a condition in hx-trigger":        regexp.MustCompile(`hx-trigger="[^"]*\[`),
		"an expression in hx-vals":         regexp.MustCompile(`hx-(vals|headers|vars)=['"]js:`),
		"a configuration of hx-swap":       regexp.MustCompile(`hx-swap="morph:\{`),
		"another host":                     regexp.MustCompile(`(?:src|href|action)="(?:https?:)?//`),
		"unescaped text, safe or not":      regexp.MustCompile(`template\.HTML|safeHTML`),
		"a form that posts without a path": regexp.MustCompile(`<form method="post"(?:[^>]*)action=""`),
	}
	err := fs.WalkDir(os.DirFS("templates"), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile("templates/" + path)
		for what, pattern := range broken {
			if found := pattern.Find(data); found != nil {
				t.Errorf("%s has %s: %q", path, what, found)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAssets: an address names its content, and what a page names is there.
func TestAssets(t *testing.T) {
	t.Parallel()
	page := render(t, console.FleetView{})
	get := func(path, encoding string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		r.Header.Set("Accept-Encoding", encoding)
		w := httptest.NewRecorder()
		console.Assets().ServeHTTP(w, r)
		return w
	}
	found := regexp.MustCompile(console.AssetPath+`[0-9a-f]{12}/[a-zA-Z0-9.-]+`).FindAllString(page, -1)
	if len(found) < 6 {
		t.Fatalf("page names %d assets: %v", len(found), found)
	}
	for _, path := range found {
		w := get(path, "gzip")
		if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s = %d %v", path, w.Code, w.Header())
		}
		if kind := w.Header().Get("Content-Type"); kind == "" || strings.HasPrefix(kind, "application/octet") {
			t.Errorf("%s has the type %q", path, kind)
		}
		if strings.HasSuffix(path, ".css") {
			style := get(path, "").Body.String()
			if strings.Contains(style, "url(lib/") || !strings.Contains(style, "url("+console.AssetPath) {
				t.Error("the style sheet names fonts at addresses that are not hashed")
			}
			if w.Header().Get("Content-Encoding") != "gzip" {
				t.Error("the style sheet is not packed")
			}
		}
	}
	if w := get(console.AssetPath+"000000000000/console.css", ""); w.Code != http.StatusNotFound {
		t.Errorf("status %d of an address that no asset has", w.Code)
	}
}

// TestTextsOfOthers: markup, characters that are not seen, and escape sequences are shown
// as text.
func TestTextsOfOthers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`<script>alert(1)</script>`:       `&lt;script&gt;alert(1)&lt;/script&gt;`,
		"abc\u202egpj.exe":                `abc<span class="esc">\u202e</span>gpj.exe`,
		"a\x00b\x1bc":                     `a<span class="esc">\u0000</span>b<span class="esc">\u001b</span>c`,
		"bad \xff utf-8":                  `bad <span class="esc">\ufffd</span> utf-8`,
		"`{{.}}` " + `" onload="alert(1)`: "`{{.}}` &#34; onload=&#34;alert(1)",
	} {
		page := render(t, console.FleetView{Needs: []console.Need{{What: text, Href: "/"}}, NeedsAll: 1})
		if !strings.Contains(page, want) {
			t.Errorf("%q is not shown as %s", text, want)
		}
		if strings.Contains(page, text) && strings.ContainsAny(text, "<\x00\u202e") {
			t.Errorf("%q is in the page as it is", text)
		}
	}
}

func TestLogLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"plain <b>":                           "plain &lt;b&gt;",
		"\x1b[1mbold\x1b[0m rest":             `<span class="a-b">bold</span> rest`,
		"\x1b[1;31mred\x1b[39m bold":          `<span class="a-b a-31">red</span><span class="a-b"> bold</span>`,
		"\x1b[2J\x1b[999;1Hhome":              "home",
		"\x1b]8;;javascript:x\x07link":        "link",
		"\x1b]0;title\x1b\\after":             "after",
		"cut \x1b[3":                          "cut ",
		"end \x1b":                            "end ",
		"\x1b[38;2;255;0;0mtrue colour\x1b[m": "", // codes that are not known: see below
	} {
		page := render(t, console.LogWindowView{Lines: []console.LogLine{{Number: 1, Text: line}}})
		if want == "" {
			if !strings.Contains(page, "true colour") || strings.ContainsRune(page, 0x1b) {
				t.Errorf("%q is shown as %s", line, page)
			}
			continue
		}
		if !strings.Contains(page, `<span class="t">`+want+`</span>`) {
			t.Errorf("%q is shown as %s, want %s", line, page, want)
		}
	}
}

// TestEveryPageRenders with nothing in it: empty lists have their own words.
func TestEveryPageRenders(t *testing.T) {
	t.Parallel()
	for _, view := range []console.View{
		console.FleetView{},
		console.ClusterView{Tab: "overview"},
		console.ClusterView{Tab: "drift"},
		console.ClusterView{Tab: "resources"},
		console.ClusterView{Tab: "outputs"},
		console.ClusterView{Tab: "runs"},
		console.ClusterView{Tab: "history"},
		console.RunView{},
		console.PullRequestView{},
		console.PullRequestsView{},
		console.QueueView{},
		console.DriftListView{},
		console.TemplatesView{},
		console.TemplateView{},
		console.AuditView{},
		console.SettingsView{},
		console.LoginView{},
		console.DeliveriesView{},
		console.NewView{},
		console.NewView{Template: "eks"},
		console.KeptView{},
		console.ProblemView{},
	} {
		if page := render(t, view); !strings.Contains(page, "<main") || strings.Contains(page, "<no value>") {
			t.Errorf("%T: %s", view, page)
		}
	}
}

// TestDocumentIsSeenInFull: what a form would write is shown to its last line.
func TestDocumentIsSeenInFull(t *testing.T) {
	t.Parallel()
	page := render(t, console.NewView{Template: "eks", Document: strings.Repeat("# a comment of many words <b>\n", 500) + "spec: {last: line}\n"})
	if !strings.Contains(page, "spec: {last: line}\n</bdi></pre>") || strings.Contains(page, "words <b>") {
		t.Errorf("the document is %.600s", page[max(0, strings.Index(page, "<pre")):])
	}
}
