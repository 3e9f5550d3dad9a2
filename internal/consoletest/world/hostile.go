package world

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// Markup is what must be shown, and never become a part of the page.
const Markup = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`

// Turned is a text that is read in another order than it is written.
const Turned = "abc\u202egpj.exe\u2066"

// deceive puts what people could write to deceive wherever texts of others are shown.
func (w *World) deceive() {
	bad := Markup + Turned + "{{.}}" + `"><svg/onload=alert(1)>`
	long := strings.Repeat("x", 1<<20)
	for i := range w.lines {
		switch i % 5 {
		case 0:
			w.lines[i].Project, w.lines[i].Environment = bad, "e"+bad
		case 1:
			w.lines[i].Provider, w.lines[i].Template = bad, bad+"@"+long[:3000]
		}
	}
	for i := range w.runs {
		w.runs[i].Actor, w.runs[i].Agent, w.runs[i].Detail = bad, bad, bad
		if w.runs[i].Failure != nil {
			w.runs[i].Failure = &v1.Failure{Step: bad, Summary: bad, Detail: bad + long, Hint: bad, Cause: holdfast.Reason(bad), Address: bad, Diagnostics: []v1.Diagnostic{{Summary: bad, Detail: bad, Snippet: bad, File: bad}}}
		}
	}
	for id, plan := range w.plans {
		for i := range plan.Changes {
			plan.Changes[i].Address = bad + plan.Changes[i].Address
			plan.Changes[i].Attributes = append(plan.Changes[i].Attributes, changed(bad, bad, bad+long), changed("javascript:alert(1)", "a\n"+bad, "b\n"+bad))
		}
		w.plans[id] = plan
	}
	for id, log := range w.logs {
		w.logs[id] = log + bad + "\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07\x1b[31m" + bad + "\x1b[2J\x1b[999;1mrest\n" + long + "\n" + string([]byte{0xff, 0xfe, 0}) + "\n"
	}
	for i := range w.pulls {
		w.pulls[i].Title, w.pulls[i].Author, w.pulls[i].URL = bad, bad, "javascript:alert(1)"
		w.pulls[i].Faults = append(w.pulls[i].Faults, v1.Fault{File: bad, Line: 3, Message: bad, Hint: bad})
	}
}
