package main

import (
	"os"
	"strings"
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

// TestPicturesAreOfToday: the same for the pictures of docs/comments.md, which has each of
// them.
func TestPicturesAreOfToday(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/comments.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shots() {
		drawn, err := os.ReadFile("testdata/" + s.name + ".golden.md")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(drawn), s.text); diff != "" {
			t.Errorf("docs/img/comments/%s-*.png show an earlier comment: draw them with make comments (-drawn +now):\n%s", s.name, diff)
		}
		for _, colours := range []string{"light", "dark"} {
			name := "img/comments/" + s.name + "-" + colours + ".png"
			if _, err := os.Stat("../../docs/" + name); err != nil || !strings.Contains(string(page), name) {
				t.Errorf("docs/comments.md does not show %s (%v)", name, err)
			}
		}
		if !strings.Contains(string(page), "## "+s.title) {
			t.Errorf("docs/comments.md has no heading %q", s.title)
		}
	}
}
