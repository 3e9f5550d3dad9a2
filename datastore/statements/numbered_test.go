package statements

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNumbered(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		`SELECT 1`:                              `SELECT 1`,
		`SELECT ? FROM t WHERE a = ?`:           `SELECT $1 FROM t WHERE a = $2`,
		`a = '?' AND b = ? AND c = 'it''s ? ?'`: `a = '?' AND b = $1 AND c = 'it''s ? ?'`,
		`LIMIT ? + 0 OFFSET ? + 0)`:             `LIMIT $1::bigint OFFSET $2::bigint)`,
		strings.Repeat("?", 40):                 "$1$2$3$4$5$6$7$8$9$10$11$12$13$14$15$16$17$18$19$20$21$22$23$24$25$26$27$28$29$30$31$32$33$34$35$36$37$38$39$40",
	} {
		for range 2 {
			if got := numbered(query); got != want {
				t.Errorf("numbered(%s) = %s, want %s", query, got, want)
			}
		}
	}
}

type word string

func TestStorable(t *testing.T) {
	t.Parallel()
	args := []any{"a", word("b"), "c\x00d", word("\xff"), []byte{0, 255}, int64(1), nil}
	before := fmt.Sprintf("%q", args)
	want := []any{"a", "b", "c\uFFFDd", "\uFFFD", []byte{0, 255}, int64(1), nil}
	if diff := cmp.Diff(want, storable(args)); diff != "" {
		t.Errorf("storable() (-want +got):\n%s", diff)
	}
	if after := fmt.Sprintf("%q", args); after != before {
		t.Errorf("the arguments of the caller have changed: %s", after)
	}
}
