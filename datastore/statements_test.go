package datastore_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestLimitsKeepStatements: no query has a bare parameter as its limit, with which
// SQLite compiles it anew at each use. That takes longer than most queries do.
func TestLimitsKeepStatements(t *testing.T) {
	t.Parallel()
	files := must[[]string](t)(filepath.Glob("*.go"))
	limits := regexp.MustCompile("(LIMIT|OFFSET) \\?( \\+ 0)?[^\"`]?")
	seen := 0
	for _, file := range files {
		if file == "statements_test.go" {
			continue
		}
		for _, found := range limits.FindAllStringSubmatch(string(must[[]byte](t)(os.ReadFile(file))), -1) {
			if seen++; found[2] == "" {
				t.Errorf("%s has %q, want %q", file, found[0], found[1]+" ? + 0")
			}
		}
	}
	if seen < 10 {
		t.Errorf("looked at %d limits, the pattern fits no more", seen)
	}
}
