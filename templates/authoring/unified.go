package authoring

import "github.com/aymanbagabas/go-udiff"

// Unified returns how one text becomes another, as `diff -u` shows it with three
// lines around each change; "" if they are the same.
func Unified(fromName, toName string, from, to []byte) string {
	text, err := udiff.ToUnified(fromName, toName, string(from), udiff.Lines(string(from), string(to)), udiff.DefaultContextLines)
	if err != nil {
		return err.Error() + "\n" // changes that do not fit the text: there are none
	}
	return text
}
