package e2e_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// quit begins what a server prints of its goroutines when it is told to quit.
const quit = "SIGQUIT: quit"

// ours finds the functions of this module in a stack; those of libraries say little.
var ours = regexp.MustCompile(`(?m)^github\.com/holdfast-dev/holdfast/(\S+)\(`)

// stacks ends the server and returns what its goroutines were doing, each stack once.
func (w *world) stacks() string {
	if w.server == nil {
		return ""
	}
	_ = w.server.Process.Signal(syscall.SIGQUIT)
	select {
	case <-w.exited:
	case <-time.After(10 * time.Second):
	}
	_, dump, _ := strings.Cut(w.log.current(), quit)
	seen := make(map[string]int)
	for stack := range strings.SplitSeq(dump, "\n\n") {
		head, _, _ := strings.Cut(stack, "\n")
		_, state, _ := strings.Cut(head, "[")
		var calls []string
		for _, found := range ours.FindAllStringSubmatch(stack, -1) {
			calls = append(calls, found[1])
		}
		if len(calls) > 0 {
			seen["["+state+" "+strings.Join(calls[:min(4, len(calls))], " < ")]++
		}
	}
	var text strings.Builder
	for _, stack := range slices.Sorted(maps.Keys(seen)) {
		fmt.Fprintf(&text, "%d × %s\n", seen[stack], stack)
	}
	return text.String()
}

// serverLog is the server's log without the stacks that it was asked for.
func (w *world) serverLog() string {
	log, _, _ := strings.Cut(w.log.all(), quit)
	return log
}

// lostDeliveries are those that the server has not accepted, or answered late.
func (w *world) lostDeliveries() string {
	var text strings.Builder
	for _, r := range w.repos {
		for _, d := range r.hub.Deliveries() {
			if d.Status == 0 || d.Status >= 300 || d.Duration > time.Second {
				fmt.Fprintf(&text, "%s %s: %d %v after %s, dropped: %t\n", d.Event, d.Action, d.Status, d.Err, d.Duration, d.Dropped)
			}
		}
	}
	return text.String()
}
