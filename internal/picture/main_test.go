package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/report"
)

// TestPictureIsOfToday: whoever changes what a comment says draws the picture of it again,
// which writes the file, too.
func TestPictureIsOfToday(t *testing.T) {
	t.Parallel()
	drawn, err := os.ReadFile("testdata/drawn.golden.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(drawn), report.Comment(example())); diff != "" {
		t.Errorf("docs/img/plan-comment.png shows an earlier comment: draw it with make picture (-drawn +now):\n%s", diff)
	}
}
