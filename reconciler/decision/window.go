// Whether an apply may begin now, by the apply windows of its cluster.

package decision

import (
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// closedForNow says that windows are closed, and nothing of when they open.
const closedForNow = "closed"

// openingDepth bounds how many starts and ends of windows are looked at for the next time
// that an apply may begin.
const openingDepth = 40

// Window is how an apply relates to the windows of its cluster.
type Window struct {
	Closed bool      // none may begin
	Lifted bool      // by the windows of what was last applied, or begun: those of the document are open
	Change time.Time // when that may be different; zero if never
}

// WindowAt tells whether an apply may begin at a time, by all that holds for it (Conditions).
func WindowAt(all []holdfast.ApplySettings, at time.Time) Window {
	var w Window
	for i, settings := range all {
		open, change := document.WindowsOpen(settings.Windows, at)
		if open {
			continue
		}
		w.Lifted = i > 0 && (w.Lifted || !w.Closed)
		if w.Change.IsZero() || !change.IsZero() && change.Before(w.Change) {
			w.Change = change
		}
		w.Closed = true
	}
	return w
}

// ClosedUntil is "closed", and until when if that is known; empty if the windows are open.
func (w Window) ClosedUntil(all []holdfast.ApplySettings) string {
	if !w.Closed {
		return ""
	}
	for range openingDepth {
		if w.Change.IsZero() {
			break
		}
		change := w.Change
		if w = WindowAt(all, change); !w.Closed {
			return closedForNow + " until " + change.UTC().Format("2006-01-02 15:04 UTC")
		}
	}
	return closedForNow
}

// inWindow holds every apply back while the windows are closed, whoever asks.
func inWindow(in Input, d Decision) Decision {
	if d.Action != ActionApply || !in.Window.Closed {
		return d
	}
	until := in.Window.ClosedUntil(conditions(in))
	var detail string
	switch {
	case in.Window.Lifted:
		detail = "those of the document are open, but those of the last applied version are " + until
	case until != closedForNow:
		detail = "they are " + until
	}
	held := heldBack(in, holdfast.ReasonWindowClosed, detail)
	if in.Ask == nil && !in.Window.Change.IsZero() {
		held.After = max(in.Window.Change.Sub(in.Now), time.Second)
	}
	return held
}

// conditions are the conditions that an apply of a cluster has to meet.
func conditions(in Input) []holdfast.ApplySettings {
	return Conditions(in.Cluster.Desired.Document, in.Cluster.Applied, in.Last)
}

// WindowText says that the apply windows are closed now, and until when if that is known;
// empty if they are open.
func WindowText(in Input) string { return LookAtWindows(in).ClosedUntil(conditions(in)) }

// LookAtWindows tells whether an apply may begin now.
func LookAtWindows(in Input) Window { return WindowAt(conditions(in), in.Now) }
