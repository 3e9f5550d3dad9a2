package holdfast

// costReasons are the reasons that the cost of a plan gives.
var costReasons = map[Reason]ReasonInfo{
	ReasonCostExceeded: {
		Effect: Blocks, Words: "the plan adds more to the monthly price than it may",
		More: "The upper end of what it adds is more than a limit of the condition `cost`, and none of those who may has approved it",
		One:  "costs more than it may", Many: "cost more than they may",
		Next: []Verb{VerbApprove, VerbPlan}, Does: "lets this plan pass, by those whom the limit names",
		Hint: "Lower what the plan adds, or have it approved",
	},
	ReasonCostUnknown: {
		Effect: Blocks, Words: "it is not known whether the plan adds more to the monthly price than it may",
		More: "Something has no price, or one in another currency, or the plan was made before costs were estimated",
		One:  "has a cost that is not known", Many: "have a cost that is not known",
		Next: []Verb{VerbApprove, VerbPlan}, Does: "lets this plan pass, by those whom the limit names",
		Hint: "Give what has no price one in a price book, and plan again; or have it approved",
	},
}
