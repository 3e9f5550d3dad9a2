// Command picture draws the plan comment that README.md shows: it renders an
// example with package report, as a code host's page would show it, and takes a
// screenshot of that with Chromium.
//
//	go run ./internal/picture -out docs/img/plan-comment.png
//
// The example is invented; what is drawn is not: the Markdown is the renderer's
// own, so the picture follows the comment. `make picture` calls it, and the test fails
// once the comment is no longer the one that was drawn.
package main
