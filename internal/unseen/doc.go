// Package unseen knows the characters that are invisible, that change how others are
// read, or that look like others.
//
// It owns the list: what Unicode calls format characters (marks that turn the
// direction of writing, of no width, tags), selectors of variants, and letters and
// signs without a shape; and which letters and signs pass for ASCII ones. Two names that differ in them alone look the same. What
// shows texts of others calls it: comments, terminals, messages about documents,
// pages of templates. Each decides itself whether it leaves such a character out or
// shows it as an escape. It never changes a text, and does not know control
// characters, which every caller handles itself.
package unseen
