package show

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

const someComment = "<!-- holdfast:pull-request shop#7 -->\n### 🔵 Plan for `abc1234` · 2 clusters\n\n> [!CAUTION]\n" +
	"> **`prod-eu`**: replaces aws\\_vpc.main &lt;now&gt;\n\n| | Cluster | Result | Create | Run |\n|---|---|---|--:|---|\n" +
	"| 🔵 | `prod-eu` production | replaces 1, because its name changes | 2 | `run-1` |\n\n" +
	"<details open><summary><b>prod-eu</b>: <code>2</code> to create</summary>\n\n- see [the run](https://x.example/r)\n\n```diff\n</details>\n+ node[3] | x\n```\n\n</details>\n\n<sub>tofu 1.10</sub>\n"

func TestCommentText(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		0: `🔵 Plan for abc1234 · 2 clusters

┃ CAUTION
┃ prod-eu: replaces aws_vpc.main <now>

    Cluster             Result                                Create  Run
🔵  prod-eu production  replaces 1, because its name changes  2       run-1

▸ prod-eu: 2 to create

- see the run (https://x.example/r)

    </details>
    + node[3] | x

tofu 1.10
`,
		46: `🔵 Plan for abc1234 · 2 clusters

┃ CAUTION
┃ prod-eu: replaces aws_vpc.main <now>

- 🔵 prod-eu production replaces 1, because
  its name changes create 2
    run run-1

▸ prod-eu: 2 to create

- see the run (https://x.example/r)

    </details>
    + node[3] | x

tofu 1.10
`,
	} {
		if diff := cmp.Diff(want, commentText(&table.Printer{Width: width}, someComment)); diff != "" {
			t.Errorf("%d characters (-want +got):\n%s", width, diff)
		}
	}
}

// TestCommentTextEscapes: an escaped backtick begins no span of code.
func TestCommentTextEscapes(t *testing.T) {
	t.Parallel()
	for comment, want := range map[string]string{
		"say \\`a\\*b\\` and `c\\*d\\` now": "say `a*b` and c\\*d\\ now\n",
		"\\\\`a\\*b`":                       "\\a\\*b\n",
		"owned&#27;[2J by &#x202e;me":       "owned�[2J by �me\n",
	} {
		if got := commentText(&table.Printer{}, comment); got != want {
			t.Errorf("%q is shown as %q, want %q", comment, got, want)
		}
	}
}

// TestCommentTextKeepsPlans: what looks like our marker, a fence or the end of a span in
// a plan hides nothing of it.
func TestCommentTextKeepsPlans(t *testing.T) {
	t.Parallel()
	body := "<!-- holdfast:pull-request shop#7 -->\n- destroys `a[\"a<!--\"]` and ``p`qr``, then ``` `x` ```\n" +
		"````diff\n- a[\"a<!--\"]\n```\n<!-- holdfast:pull-request shop#7 -->\n- z[\"-->\"]\n````\nend -->\n"
	want := "- destroys a[\"a<!--\"] and p`qr, then `x`\n" +
		"    - a[\"a<!--\"]\n    ```\n    <!-- holdfast:pull-request shop#7 -->\n    - z[\"-->\"]\nend -->\n"
	if diff := cmp.Diff(want, commentText(&table.Printer{}, body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCommentsOfReports shows each comment that package report is tested with as a
// terminal of 80 characters does: no HTML is left, and no line of prose is too long.
func TestCommentsOfReports(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../report/testdata/*.golden.md")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d comments, %v", len(files), err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code := false
		for line := range strings.Lines(commentText(&table.Printer{Width: 80}, string(body))) {
			line = strings.TrimRight(line, "\n")
			if code = strings.HasPrefix(line, "    "); code {
				continue
			}
			for _, raw := range []string{"<details", "<summary", "<b>", "<code>", "<sub>", "|---", "**", "[!"} {
				if strings.Contains(line, raw) {
					t.Errorf("%s: %q has %s", filepath.Base(file), line, raw)
				}
			}
			if n := table.Width(line); n > 80 && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: %d characters: %q", filepath.Base(file), n, line)
			}
		}
	}
}
