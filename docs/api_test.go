package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// The examples of api.md are pasted into one shell, with the very binary and curl.
func TestAPIExamples(t *testing.T) {
	t.Parallel()
	_, text, ok := strings.Cut(read(t, "api.md"), "\n## Try it\n")
	if !ok {
		t.Fatal("api.md has nothing to try")
	}
	walk(t, stepsOf(text), 4)
}

// TestAPIPage holds the page to the operations and the problems that there are.
func TestAPIPage(t *testing.T) {
	t.Parallel()
	page := read(t, "api.md")
	var lists, named []string
	for _, op := range v1.Operations() {
		if op.List && op.Method == "GET" {
			lists = append(lists, strings.NewReplacer("{name}", "NAME", "{run}", "ID").Replace(op.Path))
		}
	}
	for _, row := range table(t, page, "List") {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[0], -1) {
			named = append(named, m[1])
		}
	}
	slices.Sort(lists)
	slices.Sort(named)
	if diff := cmp.Diff(lists, named); diff != "" {
		t.Errorf("lists (-code +page):\n%s", diff)
	}
	for _, status := range []int{400, 401, 403, 404, 405, 409, 413, 421, 423, 500, 503} {
		if code := string(v1.ProblemOf(status, "", "").Code()); !strings.Contains(page, "`"+code+"`") {
			t.Errorf("the page does not name the problem %s", code)
		}
	}
}
