package main

import (
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/internal/consoletest"
	"github.com/holdfast-dev/holdfast/internal/consoletest/world"
)

func main() {
	out := flag.String("out", "docs/img/console", "folder for the pictures")
	only := flag.String("only", "", "the names of pages, separated by commas; empty: all")
	full := flag.Bool("full", false, "whole pages, not what fits into a window")
	wide := flag.Bool("wide", false, "no pictures of a telephone's width")
	flag.Parse()
	if err := shoot(*out, *only, *full, *wide); err != nil {
		fmt.Fprintln(os.Stderr, "shots:", err)
		os.Exit(1)
	}
}

func shoot(out, only string, full, wide bool) error {
	handler, err := consoletest.Site(world.Options{})
	if err != nil {
		return err
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	defer server.CloseClientConnections()
	browser, err := consoletest.StartBrowser(context.Background())
	if err != nil {
		return err
	}
	defer browser.Close()
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, look := range []consoletest.Look{
		{Width: 1440, Height: 940, Scheme: "light"},
		{Width: 1440, Height: 940, Scheme: "dark"},
		{Width: 390, Height: 844, Scheme: "light", Scale: 2},
		{Width: 390, Height: 844, Scheme: "dark", Scale: 2},
	} {
		if wide && look.Width < 1000 {
			continue
		}
		if err := shootAll(browser, server.URL, out, only, full, look); err != nil {
			return err
		}
	}
	return nil
}

func shootAll(browser *consoletest.Browser, url, out, only string, full bool, look consoletest.Look) error {
	tab, done, err := browser.Open(look)
	if err != nil {
		return err
	}
	defer done()
	for name, path := range consoletest.Pages() {
		if only != "" && !strings.Contains(","+only+",", ","+name+",") {
			continue
		}
		var picture []byte
		take := chromedp.CaptureScreenshot(&picture)
		if full {
			take = chromedp.FullScreenshot(&picture, 100)
		}
		ctx, cancel := context.WithTimeout(tab.Context, time.Minute)
		err := chromedp.Run(ctx, chromedp.Navigate(url+path), chromedp.WaitReady("main"), chromedp.Evaluate(`document.fonts.ready.then(() => true)`, nil, awaited), chromedp.Sleep(300*time.Millisecond), take)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		file := filepath.Join(out, fmt.Sprintf("%s-%s-%d.png", name, look.Scheme, look.Width))
		if err := os.WriteFile(file, picture, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// awaited waits for a promise.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
