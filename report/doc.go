// Package report writes what people read: the comment of a pull request,
// commit statuses, issues about drift, answers to commands, and plans, failures
// and drift for a terminal. Its functions are pure: the same input gives the
// same bytes.
//
// What is shown is untrusted. No text from a file, a plan or an engine becomes
// markup, mentions anybody, or ends a code block.
//
// The publisher of the reconciler, the API's text pages and the command line call it.
// comment.go writes a pull request's comment from its sections, each in its own file;
// builder.go, and the room markdown for other people's texts, are the only way to
// Markdown; words for reasons come from the root package's table. It reads no records,
// and decides nothing: what is not in its arguments cannot be shown.
package report
