package dispatch

import (
	"github.com/holdfast-dev/holdfast"
)

// What an agent may say of policies.

const (
	maxPolicyEntries = 200 // results, and faults
	maxPolicyName    = 512 // bytes
)

// badReport reports whether a report is not one of the policies that the attempt was given. An
// agent that is asked for none has none.
func badReport(run holdfast.Run, r *holdfast.PolicyReport) bool {
	return r != nil && (run.PoliciesGiven == "" || badDigest(r.Set) || badDigest(r.Verdict) || r.Verdict == "")
}

// boundedReport cuts texts and lists to what they may be at most. Of results that are left out
// none may be one that denies: then the plan counts as denied all the same.
func boundedReport(r *holdfast.PolicyReport) *holdfast.PolicyReport {
	if r == nil {
		return nil
	}
	out := *r
	out.Policies = nil
	out.Evaluated, out.Omitted = max(r.Evaluated, 0), max(r.Omitted, 0)
	out.Results = nil
	for _, result := range r.Results[:min(len(r.Results), maxPolicyEntries)] {
		result.Policy, result.Address = cut(result.Policy, maxPolicyName), cut(result.Address, maxLine)
		result.Message, result.Link = cut(result.Message, maxLine), cut(result.Link, maxLine)
		switch result.Severity {
		case holdfast.PolicyDeny, holdfast.PolicyWarn, holdfast.PolicyInfo:
		default: // a word of a newer agent
			result.Severity = holdfast.PolicyDeny
		}
		out.Results = append(out.Results, result)
	}
	for _, result := range r.Results[len(out.Results):] {
		if out.Omitted++; result.Severity == holdfast.PolicyDeny && out.Count(holdfast.PolicyDeny) == 0 {
			out.Results[0] = result
		}
	}
	out.Faults = nil
	for _, fault := range r.Faults[:min(len(r.Faults), maxPolicyEntries)] {
		fault.Policy, fault.File = cut(fault.Policy, maxPolicyName), cut(fault.File, maxLine)
		fault.Message, fault.Hint, fault.Cluster = cut(fault.Message, maxLine), cut(fault.Hint, maxLine), ""
		out.Faults = append(out.Faults, fault)
	}
	out.Undecided, _ = cutList(r.Undecided)
	return &out
}
