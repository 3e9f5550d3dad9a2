package decision_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

const group = "aws_eks_node_group.main"

// change is a change of attributes, each "path before after"; an after of ?
// is known after the apply.
func change(address string, action holdfast.ChangeAction, attributes ...string) holdfast.ResourceChange {
	c := holdfast.ResourceChange{Address: address, Type: address[:strings.IndexByte(address, '.')], Action: action}
	for _, text := range attributes {
		words := strings.Fields(text)
		a := holdfast.AttributeChange{Path: words[0], Before: quoted(words[1]), After: quoted(words[2])}
		a.Unknown = words[2] == "?"
		c.Attributes = append(c.Attributes, a)
	}
	return c
}

func quoted(s string) json.RawMessage {
	raw, _ := json.Marshal(s)
	return raw
}

// drifted is a plan of what has drifted and of what an apply would do.
func drifted(drift []holdfast.ResourceChange, changes ...holdfast.ResourceChange) holdfast.Plan {
	return holdfast.Plan{Drift: drift, Changes: changes}
}

type changes = []holdfast.ResourceChange

// told is a finding as lines.
func told(f decision.Finding) []string {
	var out []string
	for _, item := range f.Items {
		words := []string{string(item.Kind), item.Address, string(item.Action)}
		for _, a := range item.Attributes {
			words = append(words, a.Path)
		}
		if item.Ignored != "" {
			words = append(words, "("+item.Ignored+")")
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

func TestJudge(t *testing.T) {
	t.Parallel()
	scaled := change(group, holdfast.ActionUpdate, "scaling_config[0].desired_size 3 5", "status_at mon tue")
	scaledBack := change(group, holdfast.ActionUpdate, "scaling_config[0].desired_size 5 3", "status_at tue ?")
	size := holdfast.DriftRule{Address: "aws_eks_node_group.*", Attribute: "scaling_config[0].desired_size", Reason: "autoscaler"}
	whole := holdfast.DriftRule{Address: group, Reason: "all of it"}
	tests := map[string]struct {
		plan  holdfast.Plan
		rules []holdfast.DriftRule
		want  []string
		count holdfast.DriftCounts
		cause []string
		hides bool
	}{
		"nothing": {plan: holdfast.Plan{}},
		"changed outside": {
			plan:  drifted(changes{scaled}, scaledBack),
			want:  []string{"changed " + group + " update scaling_config[0].desired_size status_at"},
			count: holdfast.DriftCounts{Changed: 1}, cause: []string{"aws_eks_node_group scaling_config"},
		},
		"gone": {
			plan:  drifted(changes{change("local_file.a", holdfast.ActionDelete)}, change("local_file.a", holdfast.ActionCreate, "id x ?")),
			want:  []string{"gone local_file.a create"},
			count: holdfast.DriftCounts{Gone: 1}, cause: []string{"local_file gone"},
		},
		"another input": {
			plan:  drifted(nil, change("aws_instance.a", holdfast.ActionReplace, "ami old new", "id x ?")),
			want:  []string{"input aws_instance.a replace ami id"},
			count: holdfast.DriftCounts{Input: 1}, cause: []string{"aws_instance ami"},
		},
		"harmless": {
			plan:  drifted(changes{change("aws_vpc.a", holdfast.ActionUpdate, "tags.x 1 2"), change("aws_vpc.b", holdfast.ActionDelete)}),
			want:  []string{"changed aws_vpc.a  tags.x", "gone aws_vpc.b "},
			count: holdfast.DriftCounts{Harmless: 2},
		},
		"what only moves, or is imported": {
			plan: drifted(nil, change("aws_vpc.a", holdfast.ActionMove), change("aws_vpc.b", holdfast.ActionImport)),
		},
		"hidden as a whole": {
			plan: drifted(changes{scaled}, scaledBack), rules: []holdfast.DriftRule{whole}, hides: true,
			want:  []string{"changed " + group + " update scaling_config[0].desired_size status_at (all of it)"},
			count: holdfast.DriftCounts{Ignored: 1},
		},
		"hidden, and gone": {
			plan:  drifted(changes{change(group, holdfast.ActionDelete)}, change(group, holdfast.ActionCreate)),
			rules: []holdfast.DriftRule{whole}, hides: true,
			want:  []string{"gone " + group + " create (all of it)"},
			count: holdfast.DriftCounts{Ignored: 1},
		},
		"an attribute's rule does not hide that it is gone": {
			plan:  drifted(changes{change(group, holdfast.ActionDelete)}, change(group, holdfast.ActionCreate)),
			rules: []holdfast.DriftRule{size},
			want:  []string{"gone " + group + " create"},
			count: holdfast.DriftCounts{Gone: 1}, cause: []string{"aws_eks_node_group gone"},
		},
		"hidden in part": {
			plan: drifted(
				changes{change(group, holdfast.ActionUpdate, "scaling_config[0].desired_size 3 5", "version 1 2")},
				change(group, holdfast.ActionUpdate, "scaling_config[0].desired_size 5 3", "version 2 1")),
			rules: []holdfast.DriftRule{size}, hides: true,
			want: []string{
				"changed " + group + " update version",
				"changed " + group + " update scaling_config[0].desired_size (autoscaler)",
			},
			count: holdfast.DriftCounts{Changed: 1, Ignored: 1}, cause: []string{"aws_eks_node_group version"},
		},
		"what is computed again does not outlive what is hidden": {
			plan: drifted(
				changes{change(group, holdfast.ActionUpdate, "scaling_config[0].desired_size 3 5", "status_at mon tue")},
				change(group, holdfast.ActionUpdate, "scaling_config[0].desired_size 5 3")),
			rules: []holdfast.DriftRule{size}, hides: true,
			want:  []string{"changed " + group + " update scaling_config[0].desired_size (autoscaler)"},
			count: holdfast.DriftCounts{Ignored: 1},
		},
		"another cause beside what is hidden": {
			plan: drifted(changes{scaled}, change(group, holdfast.ActionUpdate,
				"scaling_config[0].desired_size 5 3", "release_version 1 2", "status_at tue ?")),
			rules: []holdfast.DriftRule{{Address: "**", Attribute: "scaling_config", Reason: "autoscaler"}, {Address: group, Attribute: "status_at", Reason: "noise"}},
			hides: true,
			want: []string{
				"input " + group + " update release_version",
				"changed " + group + " update scaling_config[0].desired_size status_at (autoscaler)",
			},
			count: holdfast.DriftCounts{Input: 1, Ignored: 1}, cause: []string{"aws_eks_node_group release_version"},
		},
		"an input is hidden": {
			plan:  drifted(nil, change("aws_instance.a", holdfast.ActionUpdate, "ami old new", "arn x ?")),
			rules: []holdfast.DriftRule{{Address: "aws_instance.*", Attribute: "ami", Reason: "replaced by hand"}}, hides: true,
			want:  []string{"input aws_instance.a update ami (replaced by hand)"},
			count: holdfast.DriftCounts{Ignored: 1},
		},
		"harmless and hidden": {
			plan:  drifted(changes{scaled}),
			rules: []holdfast.DriftRule{size},
			want: []string{
				"changed " + group + "  scaling_config[0].desired_size (autoscaler)",
				"changed " + group + "  status_at",
			},
			count: holdfast.DriftCounts{Harmless: 1, Ignored: 1},
		},
		"expired": {
			plan: drifted(changes{scaled}, scaledBack),
			rules: []holdfast.DriftRule{
				{Address: group, Reason: "until noon", Expires: noon},
				{Address: group, Reason: "until yesterday", Expires: noon.Add(-24 * time.Hour)},
			},
			want:  []string{"changed " + group + " update scaling_config[0].desired_size status_at"},
			count: holdfast.DriftCounts{Changed: 1}, cause: []string{"aws_eks_node_group scaling_config"},
		},
		"not expired yet": {
			plan:  drifted(changes{scaled}, scaledBack),
			rules: []holdfast.DriftRule{{Address: group, Reason: "for a second", Expires: noon.Add(time.Second)}}, hides: true,
			want:  []string{"changed " + group + " update scaling_config[0].desired_size status_at (for a second)"},
			count: holdfast.DriftCounts{Ignored: 1},
		},
		"most dangerous first": {
			plan: drifted(changes{change("aws_vpc.a", holdfast.ActionUpdate, "x 1 2")},
				change("aws_vpc.a", holdfast.ActionUpdate, "x 2 1"),
				change("aws_vpc.c", holdfast.ActionCreate, "x 2 1"),
				change("aws_vpc.b", holdfast.ActionDelete),
				change("aws_eks_cluster.b", holdfast.ActionUpdate, "version 1 2")),
			want: []string{
				"input aws_vpc.b delete", "input aws_eks_cluster.b update version", "changed aws_vpc.a update x", "input aws_vpc.c create x",
			},
			count: holdfast.DriftCounts{Changed: 1, Input: 3},
			cause: []string{"aws_eks_cluster version", "aws_vpc create", "aws_vpc delete", "aws_vpc x"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := decision.Judge(tt.plan, tt.rules, noon)
			if diff := cmp.Diff(tt.want, told(f)); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
			if f.Counts != tt.count || f.Hides != tt.hides {
				t.Errorf("counts %+v, hides %t; want %+v, %t", f.Counts, f.Hides, tt.count, tt.hides)
			}
			if diff := cmp.Diff(tt.cause, f.Causes); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			if (f.Fingerprint != "") != (tt.count.Drifted() > 0) {
				t.Errorf("%d count as drift, and the fingerprint is %q", tt.count.Drifted(), f.Fingerprint)
			}
		})
	}
}

// TestJudgeOfWhatWasEmpty: a rule that hides what is added to a map hides that the map
// was empty.
func TestJudgeOfWhatWasEmpty(t *testing.T) {
	t.Parallel()
	drift := change("aws_vpc.a", holdfast.ActionUpdate)
	drift.Attributes = []holdfast.AttributeChange{
		{Path: "tags", Before: json.RawMessage("{}")}, {Path: "tags.cost", After: quoted("42")},
	}
	undo := change("aws_vpc.a", holdfast.ActionUpdate)
	undo.Attributes = []holdfast.AttributeChange{
		{Path: "tags", After: json.RawMessage("{}")}, {Path: "tags.cost", Before: quoted("42")},
	}
	plan := drifted(changes{drift}, undo)
	rules := []holdfast.DriftRule{{Address: "aws_vpc.a", Attribute: "tags.cost", Reason: "billing"}}
	f := decision.Judge(plan, rules, time.Time{})
	want := holdfast.DriftCounts{Ignored: 1}
	if got := told(f); !slices.Equal(got, []string{"changed aws_vpc.a update tags.cost (billing)"}) || f.Counts != want || !f.Hides {
		t.Errorf("found %q, %+v, hides %v", got, f.Counts, f.Hides)
	}
}

func TestJudgeDestroys(t *testing.T) {
	t.Parallel()
	for action, want := range map[holdfast.ChangeAction]bool{
		holdfast.ActionReplace: true, holdfast.ActionDelete: true,
		holdfast.ActionUpdate: false, holdfast.ActionCreate: false, holdfast.ActionForget: false,
	} {
		// An apply destroys what is hidden, too.
		plan := drifted(nil, change(group, action, "x 1 2"), change("aws_vpc.a", holdfast.ActionUpdate, "x 1 2"))
		rules := []holdfast.DriftRule{{Address: group, Reason: "hidden"}}
		if f := decision.Judge(plan, rules, noon); f.Destroys != want {
			t.Errorf("%s: destroys %t, want %t", action, f.Destroys, want)
		}
	}
}

// TestJudgeDistinguishesSecrets: values that nobody may see make one drift another.
func TestJudgeDistinguishesSecrets(t *testing.T) {
	t.Parallel()
	plan := func(value string) holdfast.Plan {
		p := drifted(changes{change("aws_db_instance.a", holdfast.ActionUpdate, "password s s")},
			change("aws_db_instance.a", holdfast.ActionUpdate, "password s s"))
		for _, c := range []*holdfast.ResourceChange{&p.Drift[0], &p.Changes[0]} {
			c.Attributes[0].Sensitive = true
		}
		p.Drift[0].Attributes[0].AfterMark = holdfast.Digest(value)
		return p
	}
	one, same, other := decision.Judge(plan("1"), nil, noon), decision.Judge(plan("1"), nil, noon), decision.Judge(plan("2"), nil, noon)
	if one.Fingerprint != same.Fingerprint || one.Fingerprint == other.Fingerprint || one.Counts.Changed != 1 {
		t.Errorf("fingerprints %s, %s, %s of %+v", one.Fingerprint.Short(), same.Fingerprint.Short(), other.Fingerprint.Short(), one.Counts)
	}
}

// TestJudgeOverlooksWhatIsComputed: what a provider computes again with each look
// does not make the same drift another one.
func TestJudgeOverlooksWhatIsComputed(t *testing.T) {
	t.Parallel()
	plan := func(day string) holdfast.Plan {
		return drifted(changes{change(group, holdfast.ActionUpdate, "size 3 5", "status_at mon "+day, "harmless 1 "+day)},
			change(group, holdfast.ActionUpdate, "size 5 3", "status_at "+day+" ?"))
	}
	if a, b := decision.Judge(plan("tue"), nil, noon), decision.Judge(plan("wed"), nil, noon); a.Fingerprint != b.Fingerprint {
		t.Error("the fingerprint is another one the next day")
	}
}

// TestFingerprintIsOfWhatCounts draws plans and holds the fingerprint to what it
// stands for: it does not know the order of things, nor what is hidden or
// harmless, and it knows all else.
func TestFingerprintIsOfWhatCounts(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	rules := []holdfast.DriftRule{{Address: "aws_hidden.*", Reason: "hidden"}, {Address: "**", Attribute: "noise", Reason: "noise"}}
	for range 2_000 {
		var plan holdfast.Plan
		for i := range rnd.IntN(6) {
			address := pick(rnd, "aws_vpc.", "aws_eks_cluster.", "aws_hidden.") + string(rune('a'+i))
			value := pick(rnd, "1", "2")
			if rnd.IntN(2) == 0 {
				plan.Drift = append(plan.Drift, change(address, pick(rnd, holdfast.ActionUpdate, holdfast.ActionDelete), "x 0 "+value, "noise 0 1"))
			}
			if rnd.IntN(2) == 0 {
				plan.Changes = append(plan.Changes, change(address, pick(rnd, holdfast.ActionUpdate, holdfast.ActionReplace), "x "+value+" 0", "noise 1 0"))
			}
		}
		f := decision.Judge(plan, rules, noon)
		shuffled := holdfast.Plan{Drift: slices.Clone(plan.Drift), Changes: slices.Clone(plan.Changes)}
		rnd.Shuffle(len(shuffled.Drift), func(i, j int) { shuffled.Drift[i], shuffled.Drift[j] = shuffled.Drift[j], shuffled.Drift[i] })
		rnd.Shuffle(len(shuffled.Changes), func(i, j int) {
			shuffled.Changes[i], shuffled.Changes[j] = shuffled.Changes[j], shuffled.Changes[i]
		})
		shuffled.Drift = append(shuffled.Drift,
			change("aws_hidden.z", holdfast.ActionUpdate, "x 1 2"), change("aws_vpc.harmless", holdfast.ActionUpdate, "x 1 2"))
		if g := decision.Judge(shuffled, rules, noon); g.Fingerprint != f.Fingerprint || g.Counts.Drifted() != f.Counts.Drifted() {
			t.Fatalf("in another order, with what does not count: %+v, want %+v", g.Counts, f.Counts)
		}
		shuffled.Changes = append(shuffled.Changes, change("aws_vpc.new", holdfast.ActionUpdate, "x 1 2"))
		if g := decision.Judge(shuffled, rules, noon); g.Fingerprint == f.Fingerprint || g.Counts.Drifted() != f.Counts.Drifted()+1 {
			t.Fatalf("one more drifts, and it is %+v after %+v", g.Counts, f.Counts)
		}
		if f.Counts.Drifted() == 0 && f.Fingerprint != "" || len(f.Items) == 0 && f.Counts != (holdfast.DriftCounts{}) {
			t.Fatalf("counts %+v of %d items, fingerprint %q", f.Counts, len(f.Items), f.Fingerprint)
		}
	}
}

func TestRulesDigest(t *testing.T) {
	t.Parallel()
	rule := holdfast.DriftRule{Address: "a.b", Reason: "r", Expires: noon}
	live := decision.RulesDigest([]holdfast.DriftRule{rule}, noon.Add(-time.Second))
	if live == "" || decision.RulesDigest([]holdfast.DriftRule{rule}, noon) != "" || decision.RulesDigest(nil, noon) != "" {
		t.Errorf("the digest of a rule is %q; of none, or an expired one, it is to be empty", live)
	}
}
