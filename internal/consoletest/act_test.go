package consoletest_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/internal/consoletest"
	"github.com/holdfast-dev/holdfast/internal/consoletest/world"
)

// press sends the form of a button, of which the confirmation may be opened first, and
// returns what the page says after.
func press(t *testing.T, tab *consoletest.Tab, label string, before ...chromedp.Action) string {
	t.Helper()
	var said string
	open := `//main//details[contains(@class,"act")]/summary[normalize-space()="` + label + `"]`
	actions := []chromedp.Action{chromedp.Click(open, chromedp.BySearch)}
	if before == nil {
		actions = []chromedp.Action{chromedp.Click(`//main//form[contains(@class,"act")]/button[normalize-space()="`+label+`"]`, chromedp.BySearch)}
	}
	run(t, tab, append(append(actions, before...), chromedp.WaitReady("#said", chromedp.ByQuery), chromedp.Text("#said", &said, chromedp.ByQuery))...)
	return said
}

// send sends the confirmation that is open.
var send = chromedp.Click(`details.act[open] form button`, chromedp.ByQuery)

// TestActions does what pages offer, with script and without: each page says its outcome,
// once, and shows the fleet as it is then.
func TestActions(t *testing.T) {
	for name, look := range map[string]consoletest.Look{"script": looks["wide light"], "no script": {Width: 390, Height: 844, Scheme: "dark", NoScript: true}} {
		t.Run(name, func(t *testing.T) {
			url := site(t, world.Options{})
			tab := open(t, look)
			at := func(path string) { run(t, tab, chromedp.Navigate(url+path), chromedp.WaitReady("main")) }
			expect := func(said, want string) {
				t.Helper()
				if !strings.Contains(said, want) {
					t.Errorf("the page says %q, want %q", said, want)
				}
			}
			at("/clusters/payments-prod-eu-1")
			expect(press(t, tab, "Plan again"), "Payments-prod-eu-1: plan queued")
			at("/clusters/payments-prod-eu-1") // without what the page before said
			expect(press(t, tab, "Suspend", chromedp.SendKeys(`details.act[open] input[name=reason]`, "a \"migration\" <b>", chromedp.ByQuery), send), "payments-prod-eu-1 is suspended")
			at("/clusters/payments-prod-eu-1")
			expect(press(t, tab, "Resume"), "no longer suspended")
			at("/clusters/payments-prod-eu-1")
			expect(press(t, tab, "Check drift"), "Open the check")
			at("/clusters/ledger-prod-eu-4")
			expect(press(t, tab, "Retry the apply"), "apply queued")
			at("/clusters/search-prod-us-14")
			said := press(t, tab, "Approve", send)
			expect(said, "Approve refused: the newest plan is r4813")
			at("/runs/r4812")
			expect(press(t, tab, "Cancel", send), "Canceled 1 run")
			var again int
			run(t, tab, chromedp.Reload(), chromedp.WaitReady("main"))
			run(t, tab, chromedp.Navigate(url+"/runs/r4812"), chromedp.WaitReady("main"))
			if look.NoScript {
				return
			}
			run(t, tab, chromedp.Evaluate(`document.querySelectorAll('#said').length`, &again))
			if again != 0 {
				t.Error("the page says it twice")
			}
			for _, one := range tab.Complaints() {
				t.Errorf("the browser says: %s", one)
			}
		})
	}
}

// TestActionsByKeyboard: a button is reached, asked, answered and left without a mouse; one
// that destroys takes the name.
func TestActionsByKeyboard(t *testing.T) {
	url := site(t, world.Options{})
	tab := open(t, looks["wide dark"])
	var said string
	run(t, tab, chromedp.Navigate(url+"/clusters/payments-prod-eu-1"), chromedp.WaitReady("main"),
		chromedp.Focus(`details.act summary`, chromedp.ByQuery), chromedp.KeyEvent("\r"), until(`document.querySelector('details.act[open]')`),
		chromedp.KeyEvent("\x1b"), until(`!document.querySelector('details.act[open]')`),
		chromedp.KeyEvent("\r"), until(`document.querySelector('details.act[open]')`), chromedp.KeyEvent("\t"), until(`document.activeElement.name === 'reason'`),
		chromedp.KeyEvent("network\r"), chromedp.WaitReady("#said", chromedp.ByQuery), chromedp.Text("#said", &said, chromedp.ByQuery))
	if !strings.Contains(said, "is suspended") {
		t.Errorf("the page says %q", said)
	}
}

// TestNoButtons: who may only look is offered nothing.
func TestNoButtons(t *testing.T) {
	url := site(t, world.Options{})
	tab := open(t, looks["wide light"])
	for _, line := range []string{"platform", "identity"} {
		var found int
		var href string
		run(t, tab, chromedp.Navigate(url+"/?project="+line), chromedp.WaitReady("main"), chromedp.AttributeValue(`tr[id^="c-"] [data-open]`, "href", &href, nil, chromedp.ByQuery))
		run(t, tab, chromedp.Navigate(url+href), chromedp.WaitReady("main"), chromedp.Evaluate(`document.querySelectorAll('main .act').length`, &found))
		if found != 0 {
			t.Errorf("%s has %d buttons", href, found)
		}
	}
}
