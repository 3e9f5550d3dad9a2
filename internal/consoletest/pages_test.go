package consoletest_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/internal/consoletest"
	"github.com/holdfast-dev/holdfast/internal/consoletest/world"
)

var (
	browser *consoletest.Browser
	axe     string
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		source, err := os.ReadFile(os.Getenv("HOLDFAST_TEST_AXE"))
		if err != nil {
			fmt.Fprintln(os.Stderr, "HOLDFAST_TEST_AXE has to name axe.min.js: make test-console does:", err)
			return 1
		}
		axe = string(source)
		if browser, err = consoletest.StartBrowser(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer browser.Close()
		return m.Run()
	}())
}

func site(t *testing.T, opts world.Options) string {
	t.Helper()
	handler, err := consoletest.Site(opts)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

func open(t *testing.T, look consoletest.Look) *consoletest.Tab {
	t.Helper()
	tab, done, err := browser.Open(look)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return tab
}

func run(t *testing.T, tab *consoletest.Tab, actions ...chromedp.Action) {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab.Context, time.Minute)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatalf("%v; the browser says: %s", err, strings.Join(tab.Complaints(), "\n"))
	}
}

var looks = map[string]consoletest.Look{
	"wide light":   {Width: 1440, Height: 900, Scheme: "light"},
	"wide dark":    {Width: 1440, Height: 900, Scheme: "dark"},
	"narrow light": {Width: 390, Height: 844, Scheme: "light"},
	"narrow dark":  {Width: 390, Height: 844, Scheme: "dark"},
}

// audit runs axe-core and returns what it finds. The debugger that evaluates it is exempt
// from the page's policy.
const audit = `axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ': ' + v.help + ' ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' ' + (n.any[0] ? n.any[0].message : '')).join(' | ')))`

// wider are the elements that are wider than the window, if the page is.
const wider = `(() => { const w = document.documentElement.clientWidth; return document.documentElement.scrollWidth <= w ? [] :
	Array.from(document.body.querySelectorAll('*')).filter(e => e.getBoundingClientRect().right > w + 1).slice(0, 5).map(e => e.outerHTML.slice(0, 120)) })()`

// TestEveryPage opens every page in both colours and widths: the browser has nothing to
// complain about, nothing is wider than the window, and axe-core finds nothing.
func TestEveryPage(t *testing.T) {
	url := site(t, world.Options{})
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			tab := open(t, look)
			for page, path := range consoletest.Pages() {
				var found, broad []string
				run(t, tab, chromedp.Navigate(url+path), chromedp.WaitReady("main"), chromedp.Evaluate(wider, &broad),
					chromedp.Evaluate(axe, nil), chromedp.Evaluate(audit, &found, chromedp.EvalAsValue, awaited))
				if len(broad) > 0 {
					t.Errorf("%s is wider than the window: %s", page, strings.Join(broad, "\n"))
				}
				for _, one := range found {
					t.Errorf("%s: axe: %s", page, one)
				}
				for _, one := range tab.Complaints() {
					if page != "missing" || !strings.Contains(one, "404") {
						t.Errorf("%s: the browser says: %s", page, one)
					}
				}
			}
		})
	}
}

// TestWithoutScript: every page can be read, filtered and left without script.
func TestWithoutScript(t *testing.T) {
	url := site(t, world.Options{})
	tab := open(t, consoletest.Look{Width: 390, Height: 844, Scheme: "light", NoScript: true})
	for page, path := range consoletest.Pages() {
		var heading string
		run(t, tab, chromedp.Navigate(url+path), chromedp.Text("main h1", &heading, chromedp.ByQuery))
		if heading == "" {
			t.Errorf("%s has no heading", page)
		}
		for _, one := range tab.Complaints() {
			if page != "missing" || !strings.Contains(one, "404") {
				t.Errorf("%s: the browser says: %s", page, one)
			}
		}
	}
	var address string
	run(t, tab, chromedp.Navigate(url+"/"), chromedp.Click(`.bar a[href="#nav"]`, chromedp.ByQuery), chromedp.WaitVisible("#nav", chromedp.ByQuery),
		chromedp.Click(`#nav a[href="/drift"]`, chromedp.ByQuery), chromedp.WaitReady("#drift", chromedp.ByQuery), chromedp.Location(&address))
	if !strings.HasSuffix(address, "/drift") {
		t.Errorf("the menu leads to %s", address)
	}
}

// TestHostileTexts: names, values and logs that carry markup are text on every page.
func TestHostileTexts(t *testing.T) {
	url := site(t, world.Options{Hostile: true})
	tab := open(t, looks["wide light"])
	for page, path := range consoletest.Pages() {
		var title string
		var images int
		run(t, tab, chromedp.Navigate(url+path), chromedp.WaitReady("main"), chromedp.Title(&title),
			chromedp.Evaluate(`document.querySelectorAll('main img, main script, main [onload], main a[href^="javascript:"]').length`, &images))
		if title == "owned" || images > 0 {
			t.Errorf("%s: what others wrote became a part of the page: title %q, %d elements", page, title, images)
		}
		for _, one := range tab.Complaints() {
			if page != "missing" || !strings.Contains(one, "404") {
				t.Errorf("%s: the browser says: %s", page, one)
			}
		}
	}
}
