// Package runnerdoc owns what people write about runners: it reads documents of kinds
// Runner and RunnerRule, says all that is wrong with each at file, line and column, and
// writes a new document for the commands that propose one.
//
// The reconciler and the commands call it. It reads the document alone: whether a
// repository may define it, whom a name belongs to, and how rules go together is decided
// where the records are. Which secrets the server has, and what is wrong with a template
// of a Pod, it asks those who know.
package runnerdoc
