package v1

import "github.com/holdfast-dev/holdfast"

// PolicyReport is what policies say of a plan.
type PolicyReport struct {
	Set       holdfast.Digest `json:"set"`                 // Identifies the policies: equal sets say equal things of equal plans.
	Verdict   holdfast.Digest `json:"verdict"`             // Of which policies say something, how grave it is, and of which resources.
	Denied    bool            `json:"denied"`              // The plan must not be applied: a policy denies it, or could not be evaluated.
	Evaluated int             `json:"evaluated"`           // How many policies there are.
	Results   []PolicyResult  `json:"results,omitempty"`   // The gravest first.
	Faults    []PolicyFault   `json:"faults,omitempty"`    // Policies that could not be evaluated, and files that cannot be read.
	Undecided []string        `json:"undecided,omitempty"` // Policies that have read what the plan does not show.
	Omitted   int             `json:"omitted,omitempty"`   // How many results are left out.
}

// PolicyResult is one thing that a policy says of a plan.
type PolicyResult struct {
	Policy   string                  `json:"policy"`
	Severity holdfast.PolicySeverity `json:"severity"`          // "deny", "warn" or "info".
	Address  string                  `json:"address,omitempty"` // Of a resource; absent: it is about the plan.
	Message  string                  `json:"message"`
	Link     string                  `json:"link,omitempty"`     // Where more is said about it.
	Excepted bool                    `json:"excepted,omitempty"` // An exception of its package takes it back.
}

// PolicyFault is why a policy could not be evaluated.
type PolicyFault struct {
	Policy  string `json:"policy,omitempty"` // Absent: a file as a whole.
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // What to do about it.
}

func policyReportOf(r *holdfast.PolicyReport) *PolicyReport {
	if r == nil {
		return nil
	}
	return &PolicyReport{
		Set: r.Set, Verdict: r.Verdict, Denied: r.Denies(), Evaluated: r.Evaluated, Results: all(r.Results, policyResultOf),
		Faults: all(r.Faults, policyFaultOf), Undecided: r.Undecided, Omitted: r.Omitted,
	}
}

func policyResultOf(r holdfast.PolicyResult) PolicyResult {
	return PolicyResult{Policy: r.Policy, Severity: r.Severity, Address: r.Address, Message: r.Message, Link: r.Link, Excepted: r.Excepted}
}

func policyFaultOf(f holdfast.PolicyFault) PolicyFault {
	return PolicyFault{Policy: f.Policy, File: f.File, Line: f.Line, Column: f.Column, Message: f.Message, Hint: f.Hint}
}
