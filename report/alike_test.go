package report_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/rollout"
)

// update is a plan that changes one resource.
func update1(address string, attributes ...holdfast.AttributeChange) *holdfast.Plan {
	return &holdfast.Plan{
		Counts:  holdfast.Counts{Update: 1},
		Changes: []holdfast.ResourceChange{{Address: address, Type: "aws_eks_cluster", Action: holdfast.ActionUpdate, Attributes: attributes}},
	}
}

func attr(path, before, after string) holdfast.AttributeChange {
	return holdfast.AttributeChange{Path: path, Before: raw(before), After: raw(after)}
}

func in(region string, c report.Cluster) report.Cluster {
	c.Document.Region = region
	return c
}

func secret(hash string) *holdfast.Plan {
	plan := update1("aws_ssm_parameter.token", holdfast.AttributeChange{
		Path: "value", Before: raw(`"(sensitive value)"`), After: raw(`"(sensitive value)"`), Sensitive: true,
		BeforeMark: "old", AfterMark: holdfast.Digest(hash),
	})
	return plan
}

// TestPlansShownAsOne: what differs between clusters is told, whatever they are
// called.
func TestPlansShownAsOne(t *testing.T) {
	t.Parallel()

	access := func(value string) *holdfast.Plan {
		return update1("aws_eks_cluster.this", attr("endpoint_access", `"none"`, `"`+value+`"`))
	}
	policy := func(name string) *holdfast.Plan {
		return update1("aws_iam_policy.p", attr("policy", `"old"`, `{"a":{"who":"`+name+`","n":1}}`))
	}
	dsn := func(hash string) *holdfast.Plan {
		return update1("app_config.this", holdfast.AttributeChange{
			Path: "dsn", Before: raw(`"old"`), After: raw(`"user:(sensitive value)@host"`), AfterMark: holdfast.Digest(hash),
		})
	}
	reading := func(value string) *holdfast.Plan {
		plan := update1("x.y", attr("v", `1`, `2`))
		plan.Reads = []holdfast.PlanInput{{Address: "data.http.setup", Attributes: []holdfast.AttributeChange{attr("body", "", `"`+value+`"`)}}}
		return plan
	}
	connection := func(name, hash string) *holdfast.Plan {
		plan := update1("x.y", attr("v", `1`, `2`))
		plan.OutputChanges = []holdfast.OutputChange{{
			Name: "conn", Action: holdfast.ActionCreate, AfterMark: holdfast.Digest(hash), After: raw(`{"name":"` + name + `","token":"(sensitive value)"}`),
		}}
		return plan
	}
	connected := func(hashes ...string) (clusters []report.Cluster) {
		for i, hash := range hashes {
			name := fmt.Sprintf("c%d", i)
			clusters = append(clusters, planned(name, connection(name, hash)))
		}
		return clusters
	}
	late := strings.Repeat("x", 500)
	unread := reading("1")
	unread.Reads[0].Attributes = nil
	grows := func(name string) *holdfast.Plan {
		plan := update1("x.y", attr("v", `1`, `2`))
		pool := func(size int) json.RawMessage {
			return raw(fmt.Sprintf(`{"name":%q,"size":%d,"zone":%q}`, name, size, late))
		}
		plan.OutputChanges = []holdfast.OutputChange{{Name: "pool", Action: holdfast.ActionUpdate, Before: pool(1), After: pool(2)}}
		return plan
	}
	ends := func(name string) *holdfast.Plan {
		return update1("x.y", attr(late+".one", `"old"`, `"`+name+`"`), attr(late+".two", `"old"`, `"`+name+`"`))
	}
	far := make([]report.Cluster, 5)
	for i := range far {
		name := fmt.Sprintf("c%d", i)
		far[i] = planned(name, update1("x.y", attr("v", `"0"`, fmt.Sprintf(`{"a":%q,"name":%q}`, late, name))))
	}
	five := make([]report.Cluster, 5)
	for i := range five {
		name := fmt.Sprintf("c%d", i)
		five[i] = in(fmt.Sprintf("eu-%d", i%2), planned(name, update1("x.y", attr("name", `"old"`, `"`+name+`"`), attr("zone", `"old"`, fmt.Sprintf(`"eu-%d"`, i%2)))))
	}
	tests := map[string]struct {
		clusters []report.Cluster
		want     []string
		not      []string
	}{
		"values that are the names": {
			[]report.Cluster{planned("private", access("private")), planned("public", access("public"))},
			[]string{
				"<b>2 clusters</b> with the same plan except for 1 value, <b>private</b> (shown) and <b>public</b>",
				"- `aws_eks_cluster.this` `endpoint_access`: `\"none\"` → `\"private\"` in `private`; `\"none\"` → `\"public\"` in `public`",
			},
			nil,
		},
		"values that contain the names": {
			[]report.Cluster{planned("private", access("private-link")), planned("public", access("public-link"))},
			[]string{"`\"private-link\"`", "`\"public-link\"`"},
			[]string{"with the same plan"},
		},
		"a name in a word": {
			[]report.Cluster{planned("a", access("banana")), planned("b", access("bbnbnb"))},
			[]string{"`\"banana\"`", "`\"bbnbnb\"`"},
			[]string{"with the same plan"},
		},
		"a value that is the name of the other": {
			[]report.Cluster{planned("private", access("public")), planned("public", access("private"))},
			[]string{"`\"none\"` → `\"public\"`", "`\"none\"` → `\"private\"`"},
			[]string{"with the same plan"},
		},
		"other resources": {
			[]report.Cluster{planned("a", update1("x.a", attr("v", `1`, `2`))), planned("b", update1("x.b", attr("v", `1`, `2`))), planned("c", update1("x.c", attr("v", `1`, `2`)))},
			[]string{"`x.a`", "`x.b`", "`x.c`"},
			[]string{"with the same plan"},
		},
		"inside of a value": {
			[]report.Cluster{planned("a", policy("a")), planned("b", policy("b"))},
			[]string{"except for 1 value", "in `a`; ", "in `b`"},
			nil,
		},
		"a sensitive value": {
			[]report.Cluster{planned("a", secret("1")), planned("b", secret("2"))},
			[]string{"- `aws_ssm_parameter.token` `value`: a sensitive value differs between `a` and `b`"},
			nil,
		},
		"a sensitive value of some": {
			[]report.Cluster{planned("a", secret("1")), planned("b", secret("2")), planned("c", secret("1"))},
			[]string{"a sensitive value differs between `a` and `c` (the same) and `b`"},
			nil,
		},
		"the same sensitive value": {
			[]report.Cluster{planned("a", secret("1")), planned("b", secret("1"))},
			[]string{"with the same plan"},
			[]string{"differs", "but for"},
		},
		"a secret in a text": {
			[]report.Cluster{planned("a", dsn("1")), planned("b", dsn("2"))},
			[]string{"the same plan except for 1 value", "- `app_config.this` `dsn`: a sensitive value differs between `a` and `b`"},
			nil,
		},
		"a sensitive part next to the name": {
			connected("1", "2"),
			[]string{"- `output conn`: `{\"name\":\"c0\",\"token\":\"(sensitive value)\"}` in `c0`; `{\"name\":\"c1\",\"token\":\"(sensitive value)\"}` in `c1`; a sensitive value differs between `c0` and `c1`\n"},
			nil,
		},
		"the same sensitive part next to the name": {
			connected("1", "1"),
			[]string{"- `output conn`: "},
			[]string{"a sensitive value differs"},
		},
		"sensitive parts of many": {
			connected("1", "2", "1", "1", "1", "1", "1"),
			[]string{"`{\"name\":\"(its own name)\",\"token\":\"(sensitive value)\"}`; a sensitive value differs between `c1` and the others, where it is the same\n"},
			nil,
		},
		"sensitive parts of one and of two": {
			connected("1", "2", "2"),
			[]string{"; a sensitive value differs between `c1` and `c2` (the same) and `c0`\n"},
			nil,
		},
		"a sensitive part each": {
			connected("1", "2", "3", "4", "5"),
			[]string{"; a sensitive value differs between each of them\n"},
			nil,
		},
		"what was read": {
			[]report.Cluster{planned("a", reading("1")), planned("b", reading("2"))},
			[]string{
				"the same plan except for 1 value", "- `data.http.setup` `body`: `\"1\"` in `a`; `\"2\"` in `b`",
				"Given to provisioners, providers or write-only arguments:\n  data.http.setup\n    body: \"1\"\n",
			},
			nil,
		},
		"what was read and differs late": {
			[]report.Cluster{planned("a", reading("A"+late)), planned("b", reading("B"+late+"1")), planned("c", reading("B"+late+"2"))},
			[]string{"xxx1\"` in `b`; `…", "xxx2\"` in `c`\n", "_Long values are cut around what differs."},
			nil,
		},
		"what was read and differs twice": {
			[]report.Cluster{
				planned("a", reading("A")), planned("b", reading("B"+late+"1"+late+"1")), planned("c", reading("B"+late+"2"+late+"1")), planned("d", reading("B"+late+"2"+late+"2")),
			},
			[]string{"xxx1xxx", "` in `b`; `…xxx", "x1\"` (sha256 ", ") in `c`; `…xxx", "x2\"` (sha256 ", ") in `d`\n"},
			nil,
		},
		"what was read and differs in length": {
			[]report.Cluster{planned("a", reading(late)), planned("b", reading(late+"x"))},
			[]string{"xxx\"` (500 characters) in `a`; `…", "xxx\"` (501 characters) in `b`\n"},
			nil,
		},
		"what was not read": {
			[]report.Cluster{planned("a", reading("1")), planned("b", unread)},
			[]string{"- `data.http.setup` `body`: `\"1\"` in `a`; nothing in `b`\n"},
			nil,
		},
		"a name far behind of many": {
			far,
			[]string{"`v`: `\"0\"` → `…xxx", "\"name\":\"(its own name)\"}`\n", "_Long values are cut around what differs."},
			nil,
		},
		"paths that differ at their ends": {
			[]report.Cluster{planned("a", ends("a")), planned("b", ends("b"))},
			[]string{"- `x.y` `" + late + ".one`: `\"old\"` → `\"a\"` in `a`", "- `x.y` `" + late + ".two`: `\"old\"` → `\"a\"` in `a`"},
			nil,
		},
		"names in what changes alike": {
			[]report.Cluster{planned("a", grows("a")), planned("b", grows("b"))},
			[]string{"- `output pool`: `{\"name\":\"a\",\"size\":1,", "`{\"name\":\"a\",\"size\":2,", "in `a`; `{\"name\":\"b\",\"size\":1,", "in `b`\n"},
			nil,
		},
		"what was read for many": {
			[]report.Cluster{
				planned("a", reading("1")), planned("b", reading("2")), planned("c", reading("1")), planned("d", reading("1")), planned("e", reading("1")),
			},
			[]string{"- `data.http.setup` `body`: another value was read for `a`, `c`, `d` and `e` (the same) and `b`; `holdfast describe run ID --plan` shows each"},
			nil,
		},
		"many": {
			five,
			[]string{
				"the same plan except for 2 values", "- `x.y` `name`: `\"old\"` → its own name", "- `x.y` `zone`: `\"old\"` → its own region",
				"- their regions: `eu-0`: `c0`, `c2` and `c4`; `eu-1`: `c1` and `c3`",
			},
			nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := pullRequest(tt.clusters...)
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

// TestEffectsShownAsOne: samples of a template's change whose plans differ are
// shown both.
func TestEffectsShownAsOne(t *testing.T) {
	t.Parallel()

	access := func(value string) *holdfast.Plan {
		return update1("aws_eks_cluster.this", attr("endpoint_access", `"none"`, `"`+value+`"`))
	}
	both := func(a, b string) string {
		i := report.Impact{Impact: rollout.Impact{Template: "kubernetes", Groups: []rollout.ImpactGroup{
			group("1", []string{"input"}, one("a", rollout.ReachUpgrade, "1.4.2"), one("b", rollout.ReachUpgrade, "1.4.2")),
		}}}
		return report.Comment(templatePullRequest([]report.Impact{i}, sample("a", access(a)), sample("b", access(b))))
	}
	comment := both("private", "public")
	for _, want := range []string{"`\"none\"` → `\"private\"`", "`\"none\"` → `\"public\"`", "2 `aws_eks_cluster.this` updated in place"} {
		if !strings.Contains(comment, want) {
			t.Errorf("the comment lacks %q:\n%s", want, comment)
		}
	}
	comment = both("a", "b")
	if want := "`\"none\"` → `\"a\"` in `a`; `\"none\"` → `\"b\"` in `b`"; !strings.Contains(comment, want) {
		t.Errorf("the comment lacks %q:\n%s", want, comment)
	}
}

// mutate changes one thing in a copy of a plan and says where: the address and
// the path.
func mutate(r *rand.Rand, plan holdfast.Plan) (holdfast.Plan, string, string) {
	plan.Changes = append([]holdfast.ResourceChange{}, plan.Changes...)
	i := r.IntN(len(plan.Changes))
	c := &plan.Changes[i]
	c.Attributes = append([]holdfast.AttributeChange{}, c.Attributes...)
	a := &c.Attributes[r.IntN(len(c.Attributes))]
	switch r.IntN(9) {
	case 0:
		c.Address += "x"
		return plan, c.Address, ""
	case 1:
		c.Action, c.ReplacePaths = holdfast.ActionReplace, []string{a.Path}
		plan.Counts = holdfast.Counts{Update: len(plan.Changes) - 1, Replace: 1}
		return plan, c.Address, ""
	case 2:
		a.Path += "x"
	case 3:
		a.After = raw(`"b"`) // the name of one of them
	case 4:
		a.After = raw(`"a"`)
	case 5:
		a.After = raw(`"` + strings.Repeat("long ", 100) + fmt.Sprint(r.IntN(100)) + strings.Repeat(" tail", 100) + `"`)
	case 6:
		a.After = raw(fmt.Sprintf(`"{\"Statement\":[{\"Effect\":\"Allow\",\"Sid\":\"%s\",\"n\":%d}]}"`, strings.Repeat("s", 200), r.IntN(100)))
	case 7:
		a.After = raw(fmt.Sprintf(`"%s\n%d\n%s"`, strings.Repeat(`line\n`, 50), r.IntN(100), strings.Repeat(`line\n`, 50)))
	case 8:
		a.After = raw(`"1\u202e"`)
	}
	return plan, c.Address, a.Path
}

// TestEachDifferenceIsShown: whatever differs between the plans of two clusters
// can be seen in their comment, or where it can be seen is said there.
func TestEachDifferenceIsShown(t *testing.T) {
	t.Parallel()

	base := holdfast.Plan{Counts: holdfast.Counts{Update: 4}}
	for i := range 4 {
		c := holdfast.ResourceChange{Address: fmt.Sprintf("x.y[%d]", i), Type: "x", Action: holdfast.ActionUpdate}
		for j := range 4 {
			c.Attributes = append(c.Attributes, attr(fmt.Sprintf("p%d", j), `"0"`, `"1"`))
		}
		base.Changes = append(base.Changes, c)
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		a, b := base, base
		var places [][2]string
		for range 1 + r.IntN(3) {
			var address, path string
			if r.IntN(2) == 0 {
				a, address, path = mutate(r, a)
			} else {
				b, address, path = mutate(r, b)
			}
			places = append(places, [2]string{address, path})
		}
		comment := report.Comment(pullRequest(planned("a", &a), planned("b", &b)))
		for name, plan := range map[string]holdfast.Plan{"a": a, "b": b} {
			for _, c := range plan.Changes {
				single := holdfast.Plan{Changes: []holdfast.ResourceChange{c}, Counts: plan.Counts}
				text, _, _ := strings.Cut(report.PlanText(single), "Plan: ")
				text = strings.Replace(text, "~ ", "! ", 1) // which has a colour in a comment
				if strings.Contains(comment, strings.TrimSuffix(text, "\n")) || differencesTold(comment, name, c) {
					continue
				}
				t.Fatalf("seed %d, %q: of %s the comment lacks %s:\n%s", seed, places, name, text, comment)
			}
		}
	}
}

// differencesTold reports whether what a change does in one of two clusters that are
// shown as one is in the list of differences.
func differencesTold(comment, name string, c holdfast.ResourceChange) bool {
	if !strings.Contains(comment, "with the same plan") {
		return false
	}
	for _, a := range c.Attributes {
		if string(a.After) == `"`+name+`"` &&
			!strings.Contains(comment, fmt.Sprintf("- `%s` `%s`: ", c.Address, a.Path)) && !strings.Contains(comment, fmt.Sprintf("→ `\"%s\"` in `%s`", name, name)) {
			return false
		}
	}
	return true
}
