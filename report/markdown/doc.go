// Package markdown writes what others wrote (names, values, messages of files, plans
// and engines) so that it is text in a comment and nothing else: no markup, no
// mention, no HTML, no characters that nobody sees.
//
// The report calls it for each such text, and what is not from the report's own
// sentences reaches a comment through here only. It knows no cluster and no plan, and
// never decides what is shown.
package markdown
