package holdfast

import (
	"cmp"
	"slices"
	"time"
)

// PolicySeverity is what a result of a policy means for the apply of a plan.
type PolicySeverity string

// The severities, gravest first.
const (
	PolicyDeny PolicySeverity = "deny" // the plan must not be applied
	PolicyWarn PolicySeverity = "warn" // people should look at it
	PolicyInfo PolicySeverity = "info" // people may want to know it
)

// PolicySeverities are all severities, gravest first.
func PolicySeverities() []PolicySeverity {
	return []PolicySeverity{PolicyDeny, PolicyWarn, PolicyInfo}
}

// Policy is one rule that judges plans: everything that one rule of a Rego package says.
type Policy struct {
	ID       string         `json:"id"` // unique in its set, such as control-plane-replaced
	Severity PolicySeverity `json:"severity"`
	Title    string         `json:"title,omitempty"`
	// Description says in some sentences what it is for. It is not part of reports.
	Description string   `json:"description,omitempty"`
	Link        string   `json:"link,omitempty"`   // where more is said about it
	Owners      []string `json:"owners,omitempty"` // who may waive it, as a CODEOWNERS file names them
	Strict      bool     `json:"strict,omitempty"` // nobody may waive it
	File        string   `json:"file"`
	Line        int      `json:"line"`
	V0          bool     `json:"v0,omitempty"` // it is written in the language of Rego before 1.0
}

// PolicyResult is one thing that a policy says of a plan.
type PolicyResult struct {
	Policy   string         `json:"policy"`
	Severity PolicySeverity `json:"severity"`
	Address  string         `json:"address,omitempty"` // of a resource; empty: it is about the plan
	Message  string         `json:"message"`
	Link     string         `json:"link,omitempty"`
	// Excepted: an exception rule of the policy's package takes it back. It is then PolicyInfo.
	Excepted bool `json:"excepted,omitempty"`
}

// PolicyFault is why a policy, or a file with policies, could not say anything.
type PolicyFault struct {
	Policy string `json:"policy,omitempty"` // empty: the file is wrong, or all of it
	Fault
}

// PolicyReport is what the policies of a set say of one plan.
type PolicyReport struct {
	// Set identifies the policies and their settings: equal sets say equal things of equal
	// plans.
	Set       Digest         `json:"set"`
	Evaluated int            `json:"evaluated"`          // how many policies there were
	Policies  []Policy       `json:"policies,omitempty"` // these, by id; not in records of runs
	Results   []PolicyResult `json:"results,omitempty"`  // gravest first, then by policy and address
	Faults    []PolicyFault  `json:"faults,omitempty"`
	// Undecided are the policies that have read a value which the plan, as it is stored, does
	// not show. What they would say is not known.
	Undecided []string `json:"undecided,omitempty"`
	// Omitted is how many results are not in Results, as there are too many of them.
	Omitted int `json:"omitted,omitempty"`
	// Denying are the policies that deny something, all of them, if results are omitted. None
	// if some of these deny: it is not known which do.
	Denying []string `json:"denying,omitempty"`
	// Verdict identifies which policies said something, how grave it is, and of which
	// resources, with those that are omitted. Messages are not part of it.
	Verdict Digest `json:"verdict"`
}

// Denies reports whether the plan must not be applied: a policy denies it, could not be
// evaluated, or is undecided.
func (r PolicyReport) Denies() bool {
	return len(r.Faults) > 0 || len(r.Undecided) > 0 || r.Count(PolicyDeny) > 0
}

// DeniesBut is Denies where the results of some policies do not count. What could not be
// evaluated counts, and so do results that are left out if it is not known whose they are.
func (r PolicyReport) DeniesBut(waived []string) bool {
	denies := func(policy string) bool { return !slices.Contains(waived, policy) }
	if len(r.Faults) > 0 || len(r.Undecided) > 0 || r.unnamed() || slices.ContainsFunc(r.Denying, denies) {
		return true
	}
	return slices.ContainsFunc(r.Results, func(result PolicyResult) bool {
		return result.Severity == PolicyDeny && denies(result.Policy)
	})
}

// unnamed reports whether results are omitted that may deny, and nobody knows whose they are.
func (r PolicyReport) unnamed() bool {
	return r.Omitted > 0 && len(r.Denying) == 0 && r.Count(PolicyDeny) > 0
}

// Shorten omits results beyond some. Which policies deny is still known then, if it was.
func (r *PolicyReport) Shorten(most int) {
	over := len(r.Results) - most
	if over <= 0 {
		return
	}
	if !r.unnamed() {
		r.Denying = slices.Clone(r.Denying)
		for _, result := range r.Results {
			if result.Severity == PolicyDeny && !slices.Contains(r.Denying, result.Policy) {
				r.Denying = append(r.Denying, result.Policy)
			}
		}
	}
	r.Results, r.Omitted = r.Results[:most:most], r.Omitted+over
}

// Count is how many of Results have a severity.
func (r PolicyReport) Count(severity PolicySeverity) (n int) {
	for _, result := range r.Results {
		if result.Severity == severity {
			n++
		}
	}
	return n
}

// Arrange sorts the results, gravest first, and drops those that are there twice.
func (r *PolicyReport) Arrange() {
	order := PolicySeverities()
	slices.SortFunc(r.Results, func(a, b PolicyResult) int {
		return cmp.Or(
			cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity)),
			cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Message, b.Message),
		)
	})
	r.Results = slices.Compact(r.Results)
}

// VerdictOf is the Verdict of a report with these results, faults and undecided policies.
func VerdictOf(r PolicyReport) Digest {
	var parts [][]string
	for _, result := range r.Results {
		parts = append(parts, []string{"result", result.Policy, string(result.Severity), result.Address})
	}
	for _, fault := range r.Faults {
		parts = append(parts, []string{"fault", fault.Policy, fault.File, ""})
	}
	for _, policy := range r.Undecided {
		parts = append(parts, []string{"undecided", policy, "", ""})
	}
	slices.SortFunc(parts, slices.Compare[[]string])
	parts = slices.CompactFunc(parts, slices.Equal[[]string])
	d := NewDigester("policy verdict")
	for _, p := range parts {
		d.Add(p...)
	}
	return d.Digest()
}

// PolicyWaiver is a document that waives a policy for a cluster.
type PolicyWaiver struct {
	Waiver
	By      string `json:"by"`
	Until   string `json:"until,omitempty"`   // its last day in UTC, YYYY-MM-DD; empty: recorded by an older version
	Expired bool   `json:"expired,omitempty"` // it counted no longer when the plan was made
}

// WaiverNotice is how long before its end a waiver says so.
const WaiverNotice = 7 * 24 * time.Hour

// End is the first moment at which the waiver no longer counts; zero if that is not known.
func (w PolicyWaiver) End() time.Time {
	day, err := time.Parse(time.DateOnly, w.Until)
	if err != nil {
		return time.Time{}
	}
	return day.AddDate(0, 0, 1)
}

// Over reports whether the waiver counts no longer at a time.
func (w PolicyWaiver) Over(now time.Time) bool {
	end := w.End()
	return w.Expired || !end.IsZero() && !now.Before(end)
}

// EndsSoon reports whether the waiver counts, and has to say that it will not for long.
func (w PolicyWaiver) EndsSoon(now time.Time) bool {
	end := w.End()
	return !w.Over(now) && !end.IsZero() && end.Sub(now) <= WaiverNotice
}

// WaivedByDocuments are the policies that documents waived for the run's plan, and still do.
func (r Run) WaivedByDocuments(now time.Time) (ids []string) {
	for _, w := range r.PolicyWaivers {
		if !w.Over(now) {
			ids = append(ids, w.Waives)
		}
	}
	return ids
}
