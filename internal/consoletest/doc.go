// Package consoletest looks at the console in a real browser.
//
// It owns which pages are looked at, how (widths, colours, with and without script, by
// keyboard) and what must hold on each: nothing in the browser's console, nothing wider than
// the window, nothing that axe-core finds, and what others wrote shown as text. It starts a
// Chromium, which `make test-console` asks for. The pages are those of an invented fleet
// (package world); one test looks at a real server with real runs. It never imitates the
// browser.
package consoletest
