package consoletest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Browser is a Chromium , whose tabs share a profile.
type Browser struct {
	ctx  context.Context //nolint:containedctx // it is the browser: chromedp has no other handle
	stop context.CancelFunc
}

// StartBrowser starts a Chromium without windows.
func StartBrowser(ctx context.Context) (*Browser, error) {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return nil, errors.New("there is no Chromium: make needs installs one")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("disable-lcd-text", true), chromedp.Flag("hide-scrollbars", true))
	if os.Getuid() == 0 { // the pages are our own, and Chromium's sandbox does not start as root
		options = append(options, chromedp.NoSandbox)
	}
	allocated, stopAllocator := chromedp.NewExecAllocator(ctx, options...)
	browser, stopBrowser := chromedp.NewContext(allocated)
	stop := func() { stopBrowser(); stopAllocator() }
	if err := chromedp.Run(browser); err != nil {
		stop()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return &Browser{ctx: browser, stop: stop}, nil
}

// Close ends the browser.
func (b *Browser) Close() { b.stop() }

// Look is how pages are looked at.
type Look struct {
	Width, Height int64
	Scheme        string // light or dark
	NoScript      bool
	Scale         float64 // of pictures; zero: 1
}

// Tab is a page that is looked at. It collects what the browser
// complains about.
type Tab struct {
	Context context.Context //nolint:containedctx // the tab's handle

	mu         sync.Mutex
	complaints []string
}

// Open opens a tab, which ends with the function returned.
func (b *Browser) Open(look Look) (*Tab, context.CancelFunc, error) {
	ctx, cancel := chromedp.NewContext(b.ctx)
	tab := &Tab{Context: ctx}
	chromedp.ListenTarget(ctx, tab.listen)
	scale := look.Scale
	if scale == 0 {
		scale = 1
	}
	err := chromedp.Run(ctx, log.Enable(), network.Enable(), runtime.Enable(),
		emulation.SetDeviceMetricsOverride(look.Width, look.Height, scale, look.Width < 600),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.Scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}),
		emulation.SetScriptExecutionDisabled(look.NoScript),
	)
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("open a tab: %w", err)
	}
	return tab, cancel, nil
}

func (t *Tab) listen(event any) {
	var text string
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelInfo && strings.HasPrefix(e.Entry.Text, "Clear-Site-Data header on ") {
			return // the browser says that it has cleared what a log-out asks it to
		}
		text = string(e.Entry.Source) + ": " + e.Entry.Text + " " + e.Entry.URL
	case *runtime.EventConsoleAPICalled:
		text = "console." + string(e.Type)
		for _, arg := range e.Args {
			text += " " + string(arg.Value) + arg.Description
		}
	case *runtime.EventExceptionThrown:
		text = "exception: " + e.ExceptionDetails.Error()
	default:
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.complaints = append(t.complaints, text)
}

// Complaints returns what the browser has complained about since the last time.
func (t *Tab) Complaints() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.complaints
	t.complaints = nil
	return out
}
