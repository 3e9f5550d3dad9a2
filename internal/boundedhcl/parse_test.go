package boundedhcl_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast/internal/boundedhcl"
)

// TestParseAtOnce: texts that are parsed at the same time do not get into one another's
// way, those included that are so large that they wait for one another.
func TestParseAtOnce(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	for _, space := range []string{"", strings.Repeat(" ", 1<<20)} {
		for i := range 4 {
			text := fmt.Sprintf("x${%d + 1}", i)
			want := cty.StringVal(fmt.Sprintf("x%d", i+1))
			for name, code := range map[string]string{
				"main.tf":      fmt.Sprintf("a = %s%q\n", space, text),
				"main.tf.json": fmt.Sprintf(`{"a": %s%q}`, space, text),
			} {
				group.Go(func() {
					file, diags, err := boundedhcl.ParseFile([]byte(code), name)
					if err != nil || diags.HasErrors() {
						t.Error(name, err, diags)
						return
					}
					attributes, _ := file.Body.JustAttributes()
					if name == "main.tf.json" {
						wantValue(t, attributes["a"].Expr, cty.StringVal(text)) // as it is
					} else {
						wantValue(t, attributes["a"].Expr, want)
					}
				})
			}
			group.Go(func() {
				expr, diags, err := boundedhcl.ParseExpression(space + fmt.Sprintf("%q", text))
				if err != nil || diags.HasErrors() {
					t.Error(err, diags)
					return
				}
				wantValue(t, expr, want)
			})
			group.Go(func() {
				expr, diags, err := boundedhcl.ParseTemplate(text)
				if err != nil || diags.HasErrors() {
					t.Error(err, diags)
					return
				}
				wantValue(t, expr, want)
			})
		}
	}
	group.Wait()
}

func wantValue(t *testing.T, expr hcl.Expression, want cty.Value) {
	t.Helper()
	if got, err := boundedhcl.Evaluate(expr, &hcl.EvalContext{}); err != nil || !got.RawEquals(want) {
		t.Errorf("got %#v, %v; want %#v", got, err, want)
	}
}
