// Package named says which files code, plans and values of variables name.
//
// It owns how a text is searched for paths, and when a file counts as named by one: by its
// whole path or by the end of it (Paths). An attempt asks it which of the files that a plan
// has made in the workspace its apply may have; others were reviewed by nobody.
//
// It is pure except for files that it is given open. It looks for no file itself, and does not
// know which ones there are.
package named
