package consoletest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/internal/consoletest"
	"github.com/holdfast-dev/holdfast/internal/consoletest/world"
)

// awaited waits for a promise.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// until evaluates until that is true; while a page is left there is nothing to ask.
func until(expression string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for range 200 {
			var ok bool
			if err := chromedp.Evaluate(`Boolean(`+expression+`)`, &ok).Do(ctx); err == nil && ok {
				return nil
			}
			if err := chromedp.Sleep(100 * time.Millisecond).Do(ctx); err != nil {
				return fmt.Errorf("%s: %w", expression, err)
			}
		}
		return fmt.Errorf("%s did not become true", expression)
	})
}

// TestSearchAsOneTypes: the list follows, the address too, and the way back is there.
func TestSearchAsOneTypes(t *testing.T) {
	url := site(t, world.Options{})
	tab := open(t, looks["wide light"])
	var shown, focused string
	run(t, tab, chromedp.Navigate(url+"/"), chromedp.WaitReady("#fleet"), chromedp.KeyEvent("/"), until(`document.activeElement.id === 'q'`),
		chromedp.Evaluate(`document.getElementById('q').value = ''`, nil), // the browser's own keyboard would not have typed the slash
		chromedp.KeyEvent("ledger-prod"), until(`location.search.includes('q=ledger-prod')`),
		chromedp.Evaluate(`document.querySelector('#clusters + .pill').textContent`, &shown), chromedp.Evaluate(`document.activeElement.id`, &focused))
	if shown == "240" || shown == "0" {
		t.Errorf("%s clusters match", shown)
	}
	if focused != "q" {
		t.Errorf("the focus is on %q", focused)
	}
	run(t, tab, chromedp.NavigateBack(), until(`!location.search.includes('q=') && document.querySelector('#needs')`))
	if complaints := tab.Complaints(); len(complaints) > 0 {
		t.Errorf("the browser says: %s", strings.Join(complaints, "\n"))
	}
}

// TestKeys: pages can be reached and read without a mouse.
func TestKeys(t *testing.T) {
	url := site(t, world.Options{})
	tab := open(t, looks["wide dark"])
	run(t, tab, chromedp.Navigate(url+"/"), chromedp.WaitReady("#fleet"), chromedp.KeyEvent("g"), chromedp.KeyEvent("d"), until(`location.pathname === '/drift'`),
		chromedp.WaitReady("#drift"), chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), until(`document.querySelectorAll('[data-row][data-chosen]').length === 1`),
		chromedp.KeyEvent("k"), chromedp.KeyEvent("\r"), until(`location.pathname.startsWith('/clusters/')`), chromedp.WaitReady("#cluster"),
		chromedp.KeyEvent("?"), until(`document.getElementById('help').open`), chromedp.KeyEvent("\x1b"), until(`!document.getElementById('help').open`))
	var folded int
	run(t, tab, chromedp.KeyEvent("X"), chromedp.Evaluate(`document.querySelectorAll('details.change[open]').length`, &folded))
	if complaints := tab.Complaints(); len(complaints) > 0 {
		t.Errorf("the browser says: %s", strings.Join(complaints, "\n"))
	}
}

// TestNothingIsMissed: what changes after a page is made and before its stream begins is asked
// for again, once.
func TestNothingIsMissed(t *testing.T) {
	for _, missed := range []bool{false, true} {
		handler, err := consoletest.Site(world.Options{Missed: missed})
		if err != nil {
			t.Fatal(err)
		}
		var again atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("HX-Request") != "" {
				again.Add(1)
			}
			handler.ServeHTTP(w, r)
		}))
		t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
		tab := open(t, looks["wide light"])
		for visit := int64(1); visit <= 2; visit++ {
			run(t, tab, chromedp.Navigate(server.URL+"/"), until(`document.querySelector('[data-live].live').dataset.state === 'live'`), until(`document.body.dataset.seen`))
			want := int64(0)
			if missed {
				want = visit
			}
			run(t, tab, chromedp.ActionFunc(func(ctx context.Context) error {
				for again.Load() < want {
					if err := chromedp.Sleep(50 * time.Millisecond).Do(ctx); err != nil {
						return fmt.Errorf("asked again %d times, want %d: %w", again.Load(), want, err)
					}
				}
				return chromedp.Sleep(500 * time.Millisecond).Do(ctx)
			}))
			if n := again.Load(); n != want {
				t.Errorf("missed %t: visit %d asked again %d times, want %d", missed, visit, n, want)
			}
		}
	}
}

// TestLogMovesWithTheReader: earlier lines come when somebody scrolls up, which ends the
// following.
func TestLogMovesWithTheReader(t *testing.T) {
	url := site(t, world.Options{})
	tab := open(t, consoletest.Look{Width: 1440, Height: 900, Scheme: "dark"})
	run(t, tab, chromedp.Navigate(url+"/runs/r4812"), until(`document.querySelector('#follow .word').textContent === 'following'`),
		until(`(() => { const b = document.getElementById('log'); return b.scrollHeight - b.scrollTop - b.clientHeight < 40 })()`),
		chromedp.Evaluate(`document.getElementById('log').scrollTop = 0`, nil), until(`Number(document.querySelector('#log li').id.slice(1)) < 700`),
		until(`document.querySelector('#follow .word').textContent === 'paused'`),
		chromedp.Evaluate(`document.activeElement.blur()`, nil), chromedp.KeyEvent("f"), until(`document.querySelector('#follow .word').textContent === 'following'`))
	if complaints := tab.Complaints(); len(complaints) > 0 {
		t.Errorf("the browser says: %s", strings.Join(complaints, "\n"))
	}
}
