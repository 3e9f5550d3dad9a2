package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// policies: those of the cluster were evaluated over plan, and none of them denies it.
func policies(plan holdfast.Run) holdfast.Gate {
	g := holdfast.Gate{Name: holdfast.GatePolicy}
	switch {
	case plan.ID == "":
		g.Missing, g.From = "there is no plan yet", "a plan"
	case plan.PoliciesGiven == "":
		g.Missing = "no policies were evaluated over this plan"
		g.From = "a new plan, once holdfast.yaml has policies for this cluster"
	case plan.Policies == nil:
		g.Missing = "the agent of this plan has evaluated no policies"
		g.From = "a plan by an agent of this version"
	case plan.Policies.Set != plan.PoliciesGiven:
		g.Missing = "the agent of this plan has evaluated other policies than it was given"
		g.From = "a new plan"
	case plan.Policies.Denies():
		g.Missing, g.From = denial(*plan.Policies), "a plan that no policy denies"
	default:
		g.Met = true
		g.Given = []string{fmt.Sprintf("%d policies deny nothing", plan.Policies.Evaluated)}
	}
	return g
}

// denial says which policies do not let a plan pass, and why.
func denial(r holdfast.PolicyReport) string {
	var denying, failed []string
	for _, result := range r.Results {
		if result.Severity == holdfast.PolicyDeny && !slices.Contains(denying, result.Policy) {
			denying = append(denying, result.Policy)
		}
	}
	for _, fault := range r.Faults {
		name := fault.Policy
		if name == "" {
			name = fault.Position()
		}
		if !slices.Contains(failed, name) {
			failed = append(failed, name)
		}
	}
	var parts []string
	if len(denying) > 0 {
		parts = append(parts, "denied by "+list(denying))
	}
	if len(failed) > 0 {
		parts = append(parts, "could not be evaluated: "+list(failed))
	}
	if len(r.Undecided) > 0 {
		parts = append(parts, "undecided: "+list(r.Undecided))
	}
	return strings.Join(parts, "; ")
}

// list names some of several.
func list(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
