package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestInstancesShareARow: instances of a resource, or of a module, to which the same
// happens have one row that names them all; nothing else has.
func TestInstancesShareARow(t *testing.T) {
	t.Parallel()
	of := func(addresses ...string) []holdfast.ResourceChange {
		changes := make([]holdfast.ResourceChange, len(addresses))
		for i, address := range addresses {
			changes[i] = holdfast.ResourceChange{Address: address, Type: "aws_x", Action: holdfast.ActionCreate}
		}
		return changes
	}
	for name, test := range map[string]struct {
		addresses []string
		want      string
	}{
		"numbers":            {[]string{"aws_x.a[0]", "aws_x.a[1]", "aws_x.a[2]"}, "`aws_x.a[0–2]` (3)"},
		"with a gap":         {[]string{"aws_x.a[0]", "aws_x.a[1]", "aws_x.a[7]", "aws_x.a[9]", "aws_x.a[10]"}, "`aws_x.a[0–1, 7, 9–10]` (5)"},
		"keys":               {[]string{`aws_x.a["x"]`, `aws_x.a["y"]`}, "`aws_x.a[\"x\", \"y\"]` (2)"},
		"of a module":        {[]string{"module.m[0].aws_x.a", "module.m[0].aws_x.b", "module.m[1].aws_x.a", "module.m[1].aws_x.b"}, "`module.m[0–1].aws_x.a` (2)|`module.m[0–1].aws_x.b` (2)"},
		"in another one":     {[]string{"module.m[0].aws_x.a[0]", "module.m[1].aws_x.a[0]"}, "`module.m[0].aws_x.a[0]`|`module.m[1].aws_x.a[0]`"},
		"of another name":    {[]string{"aws_x.a[0]", "aws_x.b[1]"}, "`aws_x.a[0]`|`aws_x.b[1]`"},
		"no instance":        {[]string{"aws_x.a", "aws_x.b"}, "`aws_x.a`|`aws_x.b`"},
		"a key that is one":  {[]string{`aws_x.a["[0]"]`, `aws_x.a["[1]"]`}, "`aws_x.a[\"[0]\", \"[1]\"]` (2)"},
		"a key with a quote": {[]string{`aws_x.a["\"]"]`, `aws_x.a["b"]`}, "`aws_x.a[\"\\\"]\", \"b\"]` (2)"},
		"no number":          {[]string{"aws_x.a[01]", "aws_x.a[1"}, "`aws_x.a[1`|`aws_x.a[01]`"},
		"a deposed object":   {[]string{"aws_x.a[0] (deposed object 1)", "aws_x.a[1] (deposed object 2)"}, "`aws_x.a[0] (deposed object 1)`|`aws_x.a[1] (deposed object 2)`"},
	} {
		var got []string
		for _, row := range changeRows(&holdfast.Plan{Changes: of(test.addresses...)}) {
			cell, _ := rowCell(row)
			got = append(got, cell)
		}
		if text := strings.Join(got, "|"); text != test.want {
			t.Errorf("%s: %s, want %s", name, text, test.want)
		}
	}
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("aws_x.a[%q]", fmt.Sprint("k", i)))
	}
	changes := of(many...)
	if cell, all := rowCell(changeRows(&holdfast.Plan{Changes: changes})[0]); all || !strings.HasSuffix(cell, "… 20 more]` (30)") {
		t.Errorf("many keys are %s (all: %v)", cell, all)
	}
	for i := range changes {
		changes[i].Action = holdfast.ActionDelete
	}
	if cell, all := rowCell(changeRows(&holdfast.Plan{Changes: changes})[0]); !all || strings.Count(cell, `"k`) != 30 {
		t.Errorf("what is lost is cut: %s", cell)
	}
}

// TestListsByElement: a list says what it gains and loses, and not that each element has
// moved.
func TestListsByElement(t *testing.T) {
	t.Parallel()
	element := func(i int, before, after string) holdfast.AttributeChange {
		a := holdfast.AttributeChange{Path: fmt.Sprintf("subnets[%d]", i)}
		if before != "" {
			a.Before = quoted(before)
		}
		if after != "" {
			a.After = quoted(after)
		}
		return a
	}
	long := strings.Repeat("x", 80)
	sensitive := element(0, "a", "b")
	sensitive.Sensitive = true
	forces := element(0, "a", "b")
	forces.Forces = true
	for name, test := range map[string]struct {
		attributes []holdfast.AttributeChange
		want       string
	}{
		"put in front":    {[]holdfast.AttributeChange{element(0, "a", "c"), element(1, "b", "a"), element(2, "", "b")}, "`subnets` gains `\"c\"`"},
		"taken away":      {[]holdfast.AttributeChange{element(0, "a", "b"), element(1, "b", "")}, "`subnets` loses `\"a\"`"},
		"both":            {[]holdfast.AttributeChange{element(0, "a", "c"), element(1, "b", "d"), element(2, "x", "")}, "`subnets` gains `\"c\"` and `\"d\"`, loses `\"a\"`, `\"b\"` and `\"x\"`"},
		"twice":           {[]holdfast.AttributeChange{element(0, "", "a"), element(1, "", "a")}, "`subnets` gains `\"a\"` and `\"a\"`"},
		"another order":   {[]holdfast.AttributeChange{element(0, "a", "b"), element(1, "b", "a")}, "`subnets` has its elements in another order"},
		"one is another":  {[]holdfast.AttributeChange{element(1, "a", "b")}, "`subnets[1]` `\"a\"` → `\"b\"`"},
		"one is new":      {[]holdfast.AttributeChange{element(1, "", "b")}, "`subnets` gains `\"b\"`"},
		"long ones":       {[]holdfast.AttributeChange{element(0, "", long+"a"), element(1, "", long+"b")}, "subnets[0]"},
		"sensitive":       {[]holdfast.AttributeChange{sensitive, element(1, "", "b")}, "subnets[0]"},
		"forces":          {[]holdfast.AttributeChange{forces}, "**forces replacement**"},
		"of objects":      {[]holdfast.AttributeChange{{Path: "blocks[0].name", Before: quoted("a"), After: quoted("b")}}, "`blocks[0].name` `\"a\"` → `\"b\"`"},
		"keys of objects": {[]holdfast.AttributeChange{{Path: `tags["0"]`, Before: quoted("a"), After: quoted("b")}}, "`tags[\"0\"]` `\"a\"` → `\"b\"`"},
	} {
		cell := whyCell(holdfast.ResourceChange{Address: "aws_x.a", Action: holdfast.ActionUpdate, Attributes: test.attributes})
		if !strings.Contains(cell, test.want) {
			t.Errorf("%s: %s, want %s", name, cell, test.want)
		}
	}
}
