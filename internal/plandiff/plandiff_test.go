package plandiff_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/internal/testenv/plandoctest"
	"github.com/holdfast-dev/holdfast/plandoc"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	d := plandoctest.Sample()
	plan := plandiff.Plan(d, plandoc.Info{Text: "text", Warnings: []holdfast.Diagnostic{{Summary: "w"}}, Drift: []plandoc.Resource{
		{Address: "aws_vpc.main", Type: "aws_vpc", Actions: []string{"update"}, Before: plandoctest.Value(map[string]any{"a": "1"}), After: plandoctest.Value(map[string]any{"a": "2"})},
		{Address: "aws_vpc.moved", Previous: "aws_vpc.other", Type: "aws_vpc", Actions: []string{"no-op"}},
	}})
	if plan.Digest != d.Digest() || plan.Fingerprint != d.Fingerprint() || plan.Counts != d.Counts() || plan.Text != "text" || len(plan.Warnings) != 1 {
		t.Errorf("got %+v", plan)
	}
	if len(plan.Drift) != 1 || plan.Drift[0].Attributes[0].Path != "a" {
		t.Errorf("drift is %+v", plan.Drift)
	}
	var order []string
	by := map[string]holdfast.AttributeChange{}
	for _, change := range plan.Changes {
		order = append(order, string(change.Action)+" "+change.Address)
		for _, a := range change.Attributes {
			by[change.Address+" "+a.Path] = a
		}
	}
	want := "delete aws_vpc.main (deposed object 1a2b3c4d)|replace aws_vpc.main|update module.db.aws_db_instance.main|import aws_s3_bucket.taken|move aws_s3_bucket.new"
	got := strings.Join(order, "|")
	if got != want && got != strings.Replace(want, "delete aws_vpc.main (deposed object 1a2b3c4d)|replace aws_vpc.main", "replace aws_vpc.main|delete aws_vpc.main (deposed object 1a2b3c4d)", 1) {
		t.Errorf("changes are %s, want %s", got, want)
	}
	for key, want := range map[string]string{
		"aws_vpc.main cidr":                                `"10.0.0.0/16" -> "10.8.0.0/16" forces`,
		"aws_vpc.main id":                                  `"vpc-1" -> "(known after apply)" unknown`,
		"aws_vpc.main tags.a":                              `"1" -> "2"`,
		"module.db.aws_db_instance.main size":              `1 -> 2`,
		"module.db.aws_db_instance.main password":          `"(sensitive value)" -> "(sensitive value)" sensitive`,
		"module.db.aws_db_instance.main user_data":         `"a (sensitive value)" -> "b (sensitive value)"`,
		"aws_vpc.main (deposed object 1a2b3c4d) cidr":      `"10.9.0.0/16" -> `,
		"aws_s3_bucket.new id (not there: it is the same)": ` -> `,
	} {
		a := by[key]
		text := fmt.Sprintf("%s -> %s", a.Before, a.After)
		for word, is := range map[string]bool{"forces": a.Forces, "unknown": a.Unknown, "sensitive": a.Sensitive} {
			if is {
				text += " " + word
			}
		}
		if text != want {
			t.Errorf("%s: got %s, want %s", key, text, want)
		}
		if marked := a.BeforeMark != "" || a.AfterMark != ""; marked != (a.Sensitive || a.Path == "user_data") || marked && a.BeforeMark == a.AfterMark {
			t.Errorf("%s: marks %q and %q", key, a.BeforeMark, a.AfterMark)
		}
	}
	if o := plan.OutputChanges; len(o) != 2 || !o[0].Unknown || string(o[0].After) != `"(known after apply)"` || !o[1].Sensitive || string(o[1].After) != `"(sensitive value)"` {
		t.Errorf("outputs are %+v", o)
	}
}

// TestPlanOfNull: inside of a value a key that has null is another one than
// none, and an empty value than none. At the top of a resource null is nothing.
func TestPlanOfNull(t *testing.T) {
	t.Parallel()
	object := func(of ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(of); i += 2 {
			m[of[i].(string)] = of[i+1]
		}
		return m
	}
	list := func(of ...any) []any { return of }
	for name, test := range map[string]struct {
		before, after any
		want          string
	}{
		"null and nothing at the top":    {object("a", "x"), object("a", nil, "b", nil), `a "x" -> `},
		"null in what is new":            {nil, object("m", object("a", nil, "b", "x"), "n", nil), `m.a  -> null|m.b  -> "x"`},
		"null in a new block":            {object("l", list()), object("l", list(object("a", nil))), `l [] -> |l[0].a  -> null`},
		"null instead of a value":        {object("m", object("a", "x")), object("m", object("a", nil)), `m.a "x" -> null`},
		"nothing instead of a value":     {object("m", object("a", "x")), object("m", object()), `m  -> {}|m.a "x" -> `},
		"nothing instead of all":         {object("m", object("a", "x")), object("m", nil), `m.a "x" -> `},
		"nothing instead of null":        {object("m", object("a", nil)), object("m", object()), `m  -> {}|m.a null -> `},
		"a value instead of null":        {object("m", object("a", nil)), object("m", object("a", list("x"))), `m.a null -> ["x"]`},
		"an element that is null":        {object("l", list("x")), object("l", list("x", nil)), `l[1]  -> null`},
		"one element less":               {object("l", list("x", nil)), object("l", list("x")), `l[1] null -> `},
		"empty instead of nothing":       {object("l", nil), object("l", list()), `l  -> []`},
		"an empty value in what was not": {object("m", nil), object("m", object("a", object())), `m.a  -> {}`},
	} {
		d := plandoc.Document{Version: 1, Resources: []plandoc.Resource{{
			Address: "aws_vpc.a", Type: "aws_vpc", Actions: []string{"update"}, Before: plandoctest.Value(test.before), After: plandoctest.Value(test.after),
		}}}
		var got []string
		for _, a := range plandiff.Plan(d, plandoc.Info{}).Changes[0].Attributes {
			got = append(got, fmt.Sprintf("%s %s -> %s", a.Path, a.Before, a.After))
		}
		if text := strings.Join(got, "|"); text != test.want {
			t.Errorf("%s: %s, want %s", name, text, test.want)
		}
	}
}

// TestMarksAreOfSecrets: the marks of two values are equal if their secrets are, at
// the same places, whatever else differs.
func TestMarksAreOfSecrets(t *testing.T) {
	t.Parallel()
	mark := func(name, first, second string) holdfast.Digest {
		secret := func(s string) plandoc.Mark {
			return plandoc.Mark{HMAC: strings.Repeat(s, 42) + "A"}
		}
		d := plandoc.Document{Version: 1, Outputs: []plandoc.Output{{Name: "conn", Actions: []string{"create"}, After: plandoctest.Value(
			map[string]any{"name": name, "tokens": []any{name, secret(first), secret(second)}},
		)}}}
		if err := d.Validate(); err != nil {
			t.Fatal(err)
		}
		return plandiff.Plan(d, plandoc.Info{}).OutputChanges[0].AfterMark
	}
	one := mark("prod-eu", "a", "b")
	if other := mark("prod-us", "a", "b"); one == "" || other != one {
		t.Errorf("marks %q and %q of the same secrets", one, other)
	}
	if swapped := mark("prod-eu", "b", "a"); swapped == one {
		t.Errorf("mark %q of the same secrets at other places", swapped)
	}
}
