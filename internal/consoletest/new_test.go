package consoletest_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/internal/consoletest"
	"github.com/holdfast-dev/holdfast/internal/consoletest/world"
)

// TestNewCluster asks for a cluster: the document follows as one types, what is wrong is said
// at its place, and a pull request is made of it.
func TestNewCluster(t *testing.T) {
	url := site(t, world.Options{})
	tab := open(t, looks["wide light"])
	var said, address, at string
	run(t, tab, chromedp.Navigate(url+"/"), chromedp.WaitReady("main"), chromedp.Click(`//main//a[normalize-space()="New cluster"]`, chromedp.BySearch),
		chromedp.WaitReady(".rows [data-open]", chromedp.ByQuery), chromedp.Click(`//main//a[normalize-space()="eks"]`, chromedp.BySearch), chromedp.WaitReady("#proposal", chromedp.ByQuery),
		chromedp.SendKeys(`#f-cluster`, "shop-eu", chromedp.ByID), until(`document.querySelector('#preview .yaml') && document.querySelector('#preview .yaml').textContent.includes('shop-eu')`),
		chromedp.SendKeys(`[name="v.node_count"]`, "1000", chromedp.ByQuery), until(`document.querySelector('#preview').textContent.includes('use at most 100'.replace('u', 'U'))`),
		chromedp.Evaluate(`document.activeElement.name`, &at))
	if at != "v.node_count" {
		t.Errorf("the focus is on %q while somebody types", at)
	}
	run(t, tab, chromedp.Click(`button[value=propose]`, chromedp.ByQuery), until(`document.querySelector('.fieldrow.faulty')`),
		chromedp.SetValue(`[name="v.node_count"]`, "6", chromedp.ByQuery), chromedp.Click(`button[value=propose]`, chromedp.ByQuery),
		chromedp.WaitReady("#said", chromedp.ByQuery), chromedp.Text("#said", &said, chromedp.ByQuery), chromedp.Location(&address))
	if !strings.Contains(said, "Proposed as fleet#491") || !strings.HasSuffix(address, "/pullrequests/491/fleet") {
		t.Errorf("%s says %q", address, said)
	}
	for _, one := range tab.Complaints() {
		t.Errorf("the browser says: %s", one)
	}
}

// TestNewClusterWithoutScript is the same by forms alone; a version that is gone loses nothing.
func TestNewClusterWithoutScript(t *testing.T) {
	url := site(t, world.Options{})
	tab := open(t, consoletest.Look{Width: 390, Height: 844, Scheme: "dark", NoScript: true})
	var said, kept, page string
	run(t, tab, chromedp.Navigate(url+"/new?template=eks&version=9.9.9"), chromedp.WaitReady("#proposal", chromedp.ByQuery), chromedp.Text("main", &page, chromedp.ByQuery))
	if !strings.Contains(page, "can no longer be used") {
		t.Errorf("the page says %q", page)
	}
	run(t, tab, chromedp.Navigate(url+"/new?template=eks&version=4.2.0"), chromedp.WaitReady("#proposal", chromedp.ByQuery),
		chromedp.SendKeys(`#f-cluster`, "shop-eu", chromedp.ByID), chromedp.SendKeys(`[name="v.zones"]`, "[a, b]", chromedp.ByQuery),
		chromedp.Click(`button[value=check]`, chromedp.ByQuery), chromedp.WaitReady("#preview .yaml", chromedp.ByQuery), chromedp.Value(`[name="v.zones"]`, &kept, chromedp.ByQuery),
		chromedp.Click(`button[value=propose]`, chromedp.ByQuery), chromedp.WaitReady("#said", chromedp.ByQuery), chromedp.Text("#said", &said, chromedp.ByQuery))
	if kept != "[a, b]" || !strings.Contains(said, "Proposed as") {
		t.Errorf("kept %q, said %q", kept, said)
	}
}
