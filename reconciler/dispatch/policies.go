package dispatch

import (
	"slices"

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
	out.Evaluated, out.Omitted, out.Denying = max(r.Evaluated, 0), max(r.Omitted, 0), slices.Clone(r.Denying)
	out.Results = slices.Clone(r.Results)
	for i := range out.Results {
		out.Results[i] = boundedPolicyResult(out.Results[i])
	}
	if i := slices.IndexFunc(out.Results, denies); i >= maxPolicyEntries {
		out.Results[0], out.Results[i] = out.Results[i], out.Results[0]
	}
	out.Shorten(maxPolicyEntries)
	if len(out.Denying) > maxPolicyEntries { // it is not known then whose the omitted ones are
		out.Denying = nil
	}
	for i := range out.Denying {
		out.Denying[i] = cut(out.Denying[i], maxPolicyName)
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

func denies(r holdfast.PolicyResult) bool { return r.Severity == holdfast.PolicyDeny }

func boundedPolicyResult(r holdfast.PolicyResult) holdfast.PolicyResult {
	r.Policy, r.Address = cut(r.Policy, maxPolicyName), cut(r.Address, maxLine)
	r.Message, r.Link = cut(r.Message, maxLine), cut(r.Link, maxLine)
	if !slices.Contains(holdfast.PolicySeverities(), r.Severity) { // a word of a newer agent
		r.Severity = holdfast.PolicyDeny
	}
	return r
}
