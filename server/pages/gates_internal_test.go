package pages

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// TestGates: a page shows each condition once, and what the clusters that do not meet it lack.
func TestGates(t *testing.T) {
	t.Parallel()
	one := v1.Gate{Cluster: "a", Name: holdfast.GateApproved, Given: []string{"lead approved in a review"}, Missing: "1 of 2 approvals", From: "`/holdfast approve`"}
	other := one
	other.Cluster = "b"
	none := v1.Gate{Cluster: "b", Name: holdfast.GateApproved, Missing: "nobody has approved it"}
	met := v1.Gate{Cluster: "b", Name: holdfast.GateApproved, Met: true, Given: []string{"lead approved in a review"}}
	unknown := v1.Gate{Cluster: "a", Name: holdfast.GateCost, Unknown: true, Missing: "there is no plan yet", From: "a plan"}
	many := []v1.Gate{none}
	for _, name := range []string{"c", "d", "e", "f"} {
		g := none
		g.Cluster, g.Missing = name, "not by "+name
		many = append(many, g)
	}
	for name, c := range map[string]struct {
		gates     []v1.Gate
		word, why string
	}{
		"alike":       {[]v1.Gate{one, other}, "not met", "1 of 2 approvals; needs /holdfast approve"},
		"one of two":  {[]v1.Gate{one, met}, "not met", "a: 1 of 2 approvals; needs /holdfast approve"},
		"differently": {[]v1.Gate{one, none}, "not met", "a: 1 of 2 approvals; needs /holdfast approve; b: nobody has approved it"},
		"many":        {many, "not met", "b: nobody has approved it; c: not by c; d: not by d; and 2 more"},
		"met":         {[]v1.Gate{met, met}, "met", "lead approved in a review"},
		"not known":   {[]v1.Gate{unknown}, "not known", "there is no plan yet; needs a plan"},
	} {
		shown := gates(v1.PullRequestDetail{Gates: append(c.gates, v1.Gate{Name: holdfast.GateDestroy, Met: true, Idle: true})})
		if len(shown) != 1 {
			t.Fatalf("%s: %+v, want one", name, shown)
		}
		if diff := cmp.Diff([]string{c.word, c.why}, []string{shown[0].State.Word, shown[0].Why}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
