package main

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// programs are packages that nobody can import, and that may know everybody.
var programs = []string{"cmd/holdfast", "internal/house", "internal/picture"}

// TestRoomsHaveBorders: a rule of the linter says what each room may import, so that a new
// one gets a place in the layers.
func TestRoomsHaveBorders(t *testing.T) {
	t.Parallel()
	config, err := os.ReadFile("../../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	measures, err := measureAll("../..")
	if err != nil {
		t.Fatal(err)
	}
	rooms := 0
	for _, m := range measures {
		if m.kind != roomLines || m.name == "holdfast" || slices.Contains(programs, m.name) {
			continue
		}
		if rooms++; !bordered(string(config), m.name) {
			t.Errorf("no rule of depguard in .golangci.yml is for %s", m.name)
		}
	}
	if rooms < 70 {
		t.Errorf("only %d rooms", rooms)
	}
}

func TestBordered(t *testing.T) {
	t.Parallel()
	const config = `files: ["**/a/*.go", "!**/b/*.go", "**/c/*/*.go", "**/d/**/*.go", "**/reconciler/*/*.go"]`
	for room, want := range map[string]bool{
		"a": true, "b": false, "c": false, "c/x": true, "c/x/y": false, "d/x": true, "d/x/y": true, "reconciler/new": false, "e": false,
	} {
		if got := bordered(config, room); got != want {
			t.Errorf("bordered(%q) = %t", room, got)
		}
	}
}

// ruled finds the folders that a rule is for, and not those that it leaves out.
var ruled = regexp.MustCompile(`"\*\*/([^"]+)/\*\.go"`)

// bordered reports whether a rule is for a room. The one for all rooms of the reconciler
// does not count: it does not say which of the others each may know.
func bordered(config, room string) bool {
	return slices.ContainsFunc(ruled.FindAllStringSubmatch(config, -1), func(m []string) bool {
		if above, ok := strings.CutSuffix(m[1], "/**"); ok {
			return strings.HasPrefix(room, above+"/")
		}
		is, _ := path.Match(m[1], room)
		return is && m[1] != "reconciler/*"
	})
}
