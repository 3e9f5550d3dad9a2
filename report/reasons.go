package report

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// reasonOf returns what is shown of a reason. What is made of a reason that is not
// known is escaped.
func reasonOf(reason holdfast.Reason) holdfast.ReasonInfo {
	info := reason.Info()
	if !reason.Known() {
		info.Words = markdown.Words(info.Words)
	}
	return info
}

// shownReason reports whether a pull request's own reason deserves a comment.
func shownReason(reason holdfast.Reason) bool {
	return reason == holdfast.ReasonNotMergeable || reason == holdfast.ReasonFork || reason == holdfast.ReasonUnreadable
}

// command returns a command for clusters, ready to be copied.
func command(verb holdfast.Verb, clusters ...string) string {
	var b strings.Builder
	b.WriteString("/holdfast " + string(verb))
	for _, name := range clusters {
		b.WriteString(" -c " + name)
	}
	return markdown.Code(b.String())
}
