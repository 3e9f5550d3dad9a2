package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// policies: those of the cluster were evaluated over plan, and none of them denies it but those
// that were waived.
func policies(pr holdfast.PullRequestRecord, terms Terms, plan holdfast.Run, runs []holdfast.Run) holdfast.Gate {
	g := holdfast.Gate{Name: holdfast.GatePolicy}
	switch {
	case plan.ID == "":
		g.Missing, g.From = "there is no plan yet", "a plan"
	case plan.PoliciesGiven == "" && slices.Contains(terms.Lifted, holdfast.GatePolicy):
		// Neither the document nor what was applied has policies: holdfast.yaml no longer has any for it.
		g.Met, g.Idle = true, true
	case plan.PoliciesGiven == "":
		g.Missing = "no policies were evaluated over this plan"
		g.From = "a new plan, once holdfast.yaml has policies for this cluster"
	case plan.Policies == nil:
		g.Missing = "the agent of this plan has evaluated no policies"
		g.From = "a plan by an agent of this version"
	case plan.Policies.Set != plan.PoliciesGiven:
		g.Missing = "the agent of this plan has evaluated other policies than it was given"
		g.From = "a new plan"
	case !plan.Policies.Denies():
		g.Met = true
		g.Given = []string{"1 policy denies nothing"}
		if n := plan.Policies.Evaluated; n != 1 {
			g.Given = []string{fmt.Sprintf("%d policies deny nothing", n)}
		}
	default:
		waived, words := names(waiversOf(pr, terms.Cluster, func(a holdfast.Approval) bool { return covers(a, pr, plan, runs) }))
		var expired []string
		for _, w := range plan.PolicyWaivers {
			if w.Over(terms.Now) {
				expired = append(expired, fmt.Sprintf("the waiver of %s has expired: %s", w.Waives, w.Why))
				continue
			}
			word := fmt.Sprintf("%s waived %s: %s", w.By, w.Waives, w.Why)
			if w.EndsSoon(terms.Now) {
				word += ", which is within a week"
			}
			waived, words = append(waived, w.Waives), append(words, word)
		}
		g.Given = words
		if g.Met = !plan.Policies.DeniesBut(waived); !g.Met {
			g.Missing = strings.Join(append([]string{denial(*plan.Policies, waived)}, expired...), "; ")
			g.From = "a plan that no policy denies, or `/holdfast waive POLICY --reason …` by a person whom the policy names as an owner"
		}
	}
	return g
}

// Waived are the ids of the policies that were waived for a cluster of a pull request, for its
// head.
func Waived(pr holdfast.PullRequestRecord, cluster string) []string {
	ids, _ := names(waiversOf(pr, cluster, func(holdfast.Approval) bool { return true }))
	return ids
}

// WaivedIn are the ids of the policies that do not count for what plan does, as they were
// waived by a comment or by a document. Runs are the cluster's others.
func WaivedIn(pr holdfast.PullRequestRecord, cluster string, plan holdfast.Run, runs []holdfast.Run, now time.Time) []string {
	ids, _ := names(waiversOf(pr, cluster, func(a holdfast.Approval) bool { return covers(a, pr, plan, runs) }))
	return append(ids, plan.WaivedByDocuments(now)...)
}

// waiversOf returns the waivers that are in force for a cluster, of those that of says.
func waiversOf(pr holdfast.PullRequestRecord, cluster string, of func(holdfast.Approval) bool) (all []holdfast.Approval) {
	for _, a := range pr.Approvals {
		if a.Waives != "" && a.Head == pr.Head && a.Ended == "" && isFor(a, cluster) && of(a) {
			all = append(all, a)
		}
	}
	return all
}

// names are the policies of waivers, and who has waived them, in words.
func names(waivers []holdfast.Approval) (ids, words []string) {
	for _, w := range waivers {
		if !slices.Contains(ids, w.Waives) {
			ids = append(ids, w.Waives)
			words = append(words, fmt.Sprintf("%s waived %s: %s", w.By, w.Waives, w.Why))
		}
	}
	return ids, words
}

// denial says which policies do not let a plan pass, and why.
func denial(r holdfast.PolicyReport, waived []string) string {
	var denying, failed []string
	for _, result := range r.Results {
		if result.Severity == holdfast.PolicyDeny && !slices.Contains(slices.Concat(denying, waived), result.Policy) {
			denying = append(denying, result.Policy)
		}
	}
	for _, policy := range r.Denying {
		if !slices.Contains(slices.Concat(denying, waived), policy) {
			denying = append(denying, policy)
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
	if len(parts) == 0 {
		return "there are more results than are kept: some may be of policies that were not waived"
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
