// Package linemerge merges two changes of a text line by line.
//
// It owns what a conflict is: changes of both sides that overlap or touch, unless
// they are the same. Package gitsource calls it for files that both sides of a merge
// have changed, and holds its results to those of git merge-file. It is pure, knows
// neither files nor Git, and never marks a conflict in a text: it reports that there
// is one.
package linemerge
