package table_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// TestTableFits states what a table gives, and in which order: long texts first,
// columns after that. Ids are never cut.
func TestTableFits(t *testing.T) {
	t.Parallel()
	columns := []table.Column{{Title: "RUN"}, {Title: "WHY", Min: 8}, {Title: "HEAD", Yields: 2}, {Title: "AGE", Yields: 1}}
	rows := func() [][]table.Cell {
		return [][]table.Cell{table.Cells("run-0123456789", "because the moon is full", "abcdef0", "3h"), table.Cells("run-1", "ö", "1234567", "2d")}
	}
	for width, want := range map[int]string{
		0:  "RUN             WHY                       HEAD     AGE\nrun-0123456789  because the moon is full  abcdef0  3h\nrun-1           ö                         1234567  2d\n",
		54: "RUN             WHY                       HEAD     AGE\nrun-0123456789  because the moon is full  abcdef0  3h\nrun-1           ö                         1234567  2d\n",
		40: "RUN             WHY         HEAD     AGE\nrun-0123456789  because t…  abcdef0  3h\nrun-1           ö           1234567  2d\n",
		30: "RUN             WHY        AGE\nrun-0123456789  because …  3h\nrun-1           ö          2d\n(the terminal is too narrow for HEAD)\n",
		10: "RUN             WHY\nrun-0123456789  because…\nrun-1           ö\n(the terminal is too narrow for HEAD, AGE)\n",
	} {
		p := table.Printer{Width: width}
		if diff := cmp.Diff(want, p.Table(columns, rows())); diff != "" {
			t.Errorf("%d characters (-want +got):\n%s", width, diff)
		}
	}
	titles := []table.Column{{Title: "TITLE", Min: 8}, {Title: "AGE"}}
	wide := [][]table.Cell{table.Cells("本番環境のノードを増やす", "3h"), table.Cells("cafe\u0301 grows the nodes", "2d")}
	for width, want := range map[int]string{
		16: "TITLE        AGE\n本番環境の…  3h\ncafe\u0301 grows…  2d\n",
		15: "TITLE       AGE\n本番環境…   3h\ncafe\u0301 grow…  2d\n",
	} {
		p := table.Printer{Width: width}
		if diff := cmp.Diff(want, p.Table(titles, wide)); diff != "" {
			t.Errorf("characters that take two places, or none, in %d (-want +got):\n%s", width, diff)
		}
	}
	p := table.Printer{Width: 42}
	for line := range strings.Lines(p.Section("Runs", columns, rows())) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 42 {
			t.Errorf("a line of a section has %d characters: %q", n, line)
		}
	}
	if got := p.Section("Runs", columns, nil); got != "" {
		t.Errorf("a section without rows = %q", got)
	}
}
