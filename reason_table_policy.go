package holdfast

// policyReasons are those that policies give.
var policyReasons = map[Reason]ReasonInfo{
	ReasonPolicyChanged: {
		Effect: Blocks, Words: "the new plan has other policy results than the reviewed one",
		More: "The apply has evaluated the policies again: another policy has a result, or for other resources, or with another severity",
		One:  "has other policy results than reviewed", Many: "have other policy results than reviewed",
		Next: []Verb{VerbApply, VerbPlan}, Does: AppliesShown,
	},
	ReasonPolicyDenied: {
		Effect: Blocks, Words: "policies deny the plan, or could not be evaluated",
		More: "A result with the severity `deny`, a policy that fails, and one that was not evaluated at all",
		One:  "is denied by a policy", Many: "are denied by policies",
		Next: []Verb{VerbPlan}, Does: "plans again, and evaluates the policies again",
		Hint: "Correct the code or the policy",
	},
	ReasonPolicyOutdated: {
		Effect: Passes, Words: "its policies have changed since its plan was made: it is planned again",
		More: "Or policies were added since then",
	},
}
