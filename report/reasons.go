package report

import (
	"strings"
	"unicode"

	"github.com/holdfast-dev/holdfast"
)

// reason is a PascalCase reason in words, with what a person can do about it.
type reason struct {
	words string
	next  []holdfast.Verb // the commands that help, best first
	does  string          // what the first command does
	hint  string          // what else to do
	wait  bool            // it passes by itself
	told  bool            // people are told of it before the merge that it will hold up

	// one and many say in a headline what one cluster needs that it holds, and what
	// several do; an empty many is as one.
	one, many string
	failed    bool // something has failed: the headline shows it
}

// appliesShown is what apply does where a plan waits for a person.
const appliesShown = "applies exactly the plan that is shown"

var reasons = map[string]reason{
	"Unreviewed": {
		words: "no plan of this was shown before it was merged",
		one:   "needs an approved plan", many: "need an approved plan",
		next: []holdfast.Verb{holdfast.VerbApply}, does: appliesShown,
	},
	"PlanChanged": {
		words: "what would happen now is not what was reviewed",
		one:   "has another plan than the reviewed one", many: "have other plans than the reviewed ones",
		next: []holdfast.Verb{holdfast.VerbApply, holdfast.VerbPlan}, does: appliesShown,
	},
	"ApplyFailed": {
		words: "an apply failed in the middle; what is left to do is shown below",
		one:   "failed to apply", failed: true,
		next: []holdfast.Verb{holdfast.VerbApply, holdfast.VerbPlan}, does: appliesShown,
	},
	"Interrupted": {
		words: "the run was interrupted; it is planned again", wait: true,
	},
	"NotApproved": {
		words: "the pull request has no approving review, which this cluster requires",
		one:   "needs an approval", many: "need an approval",
		next: []holdfast.Verb{holdfast.VerbApprove}, does: "approves it",
	},
	"NotMergeable": {
		words: "the pull request cannot be merged into its base",
		one:   "could not be merged",
		hint:  "Resolve the conflict, then push",
	},
	"Manual": {
		words: "this cluster is applied by command (`onMerge: false`)",
		one:   "is applied by command", many: "are applied by command",
		next: []holdfast.Verb{holdfast.VerbApply}, does: "applies the reviewed plan",
	},
	"StateUnsaved": {
		words: "an apply could not save its state; nothing is planned or applied until that state is pushed",
		one:   "has an unsaved state", many: "have unsaved states", failed: true,
		hint: "It is pushed as soon as the backend takes it. `holdfast state push` does so now, `holdfast state get` writes the file, " +
			"`holdfast state waive` gives it up",
	},
	"Locked":     {words: "another run holds the cluster", wait: true},
	"BackingOff": {words: "transient failure; it is retried", wait: true},
	"InProgress": {words: "a run is in progress", wait: true},
	"Suspended": {
		words: "runs of this cluster are suspended",
		one:   "is suspended", many: "are suspended",
		hint: "An operator resumes them with `holdfast resume`",
	},
	"AgentSilent": {
		words: "the apply had started and its agent has stopped responding",
		one:   "has an agent that stopped responding", many: "have an agent that stopped responding", failed: true,
		next: []holdfast.Verb{holdfast.VerbUnlock}, does: "ends the run once its engine is certainly dead; what remains is planned again",
	},
	"NoAgent": {
		words: "no living agent executes such runs; it resumes automatically when one does", wait: true,
		hint: "`holdfast get agents` lists agents, and the logs of server and agents say why one is missing",
	},
	"WindowClosed": {
		words: "outside its apply windows; it is applied automatically in the next one",
		wait:  true,
	},
	"PlanFailed": {
		words: "there is no plan to apply: planning failed",
		one:   "failed to plan", failed: true,
		next: []holdfast.Verb{holdfast.VerbPlan}, does: "plans again",
	},
	"Replanned": {
		words: "its apply could not plan, and it was planned again since",
		one:   "needs an approved plan", many: "need an approved plan",
		next: []holdfast.Verb{holdfast.VerbApply, holdfast.VerbPlan}, does: appliesShown,
	},
	"Canceled": {
		words: "the run was cancelled",
		one:   "was cancelled", many: "were cancelled",
		next: []holdfast.Verb{holdfast.VerbPlan}, does: "plans again",
	},
	"Invalid":      {words: "the cluster's document has faults", hint: "Correct it in a new pull request"},
	"Removed":      {words: "its document was removed; the cluster will be destroyed", wait: true},
	"Fork":         {words: "it comes from a fork, and a plan executes its code; plans of forks are switched off"},
	"Draft":        {words: "it is a draft; it is planned when it is ready for review"},
	"OtherBase":    {words: "its base is not the tracked branch"},
	"Timeout":      {words: "the deadline of the run passed", next: []holdfast.Verb{holdfast.VerbPlan}, does: "plans again"},
	"LeaseLost":    {words: "the agent had lost the server before the apply began; nothing was applied"},
	"EngineKilled": {words: "the engine was killed"},
	"AgentKilled":  {words: "the agent that executed the run died"},
	"Superseded":   {words: "a newer revision replaces it", wait: true},
	"NewRevision":  {words: "a newer revision is planned", wait: true},
	"Preempted":    {words: "an apply goes first", wait: true},
	"AppliedSince": {words: "an apply has changed the cluster since", wait: true},
	"StateMoved":   {words: "the state has changed since", wait: true},
	"UpToDate":     {words: "the cluster is as Git says"},

	// Why runs are, or are not: these are never waited for.
	"Merged":         {words: "a plan that was reviewed was merged"},
	"Approved":       {words: "a person asked for the apply of a plan that they saw"},
	"Requested":      {words: "a person asked for it"},
	"Closed":         {words: "the pull request was closed or merged"},
	"NotAffected":    {words: "the pull request no longer changes the cluster"},
	"Resumed":        {words: "an apply continues with what is left of one that failed"},
	"Applied":        {words: "the apply succeeded"},
	"Adopted":        {words: "nothing differs: it is adopted without an apply"},
	"NotMerged":      {words: "it is not merged yet: an apply follows the merge"},
	"NothingPlanned": {words: "there is no plan that could be applied", next: []holdfast.Verb{holdfast.VerbPlan}, does: "plans again"},
	"PlanOutdated":   {words: "its plan was made by an earlier version and is planned again"},
	"PlanMoved":      {words: "there is a newer plan than the one that was seen"},
	"Checked":        {words: "a check for drift has ended"},

	"Schedule": {words: "a check for drift was due"},
	"Drifted":  {words: "the infrastructure is not as it was applied", hint: "`holdfast describe drift` shows what differs"},
	"DriftHeld": {
		words: "what would undo its drift needs a person's approval",
		next:  []holdfast.Verb{holdfast.VerbApply}, does: "undoes it by exactly the plan of the last check",
		hint: "`holdfast describe drift` shows it",
	},
	"RemedyFailed": {
		words: "the apply that was to undo its drift failed, and is not retried automatically",
		next:  []holdfast.Verb{holdfast.VerbApply}, does: "tries again with the plan of the last check",
	},

	"Protected": {
		words: "it is protected against destruction (`deletion.protected` was last applied)", told: true,
		one: "is protected", many: "are protected",
		hint: "To destroy it, merge `deletion.protected: false` first, then remove the document in another pull request",
	},
	"MassDeletion": {
		words: "too many clusters would be destroyed at once; someone has to confirm", told: true,
		one: "needs a confirmation", many: "need a confirmation",
		next: []holdfast.Verb{holdfast.VerbApply}, does: "confirms it and destroys them",
	},
	"DestroyFailed": {
		words: "its destroy has failed too often to be retried automatically; what is left is shown below",
		one:   "failed to be destroyed", failed: true,
		next: []holdfast.Verb{holdfast.VerbApply, holdfast.VerbPlan}, does: appliesShown,
	},
	"Destroyed":    {words: "it is destroyed"},
	"NeverApplied": {words: "it was never applied: there is nothing to destroy"},
	"Renamed":      {words: "another name has taken over its state and history"},
	"Missing": {
		words: "its document is missing, and nothing proves that it was removed: nothing is destroyed", told: true,
		one: "has no document", many: "have no document",
		hint: "Bring it back, or remove it in a commit whose files can all be read",
	},
	"HasDependents": {
		words: "clusters that depend on it are still there; it is destroyed when they are gone", told: true, wait: true,
	},

	"DependencyPending": {words: "a cluster that it depends on is to be applied first", wait: true},
	"DependencyFailed": {
		words: "a cluster that it depends on has failed", told: true,
		one: "depends on a failed cluster", many: "depend on a failed cluster",
		hint: "It resumes automatically when that one is applied",
	},
	"DependencyMissing": {
		words: "`dependsOn` names a cluster that does not exist", told: true,
		one: "depends on a cluster that does not exist", many: "depend on a cluster that does not exist",
		hint: "Correct `dependsOn`, or add that cluster: it resumes automatically then",
	},
	"DependencyApplied": {words: "a cluster that it depends on was applied since", wait: true},

	"ProviderThrottled": {words: "the cloud limits or refuses requests, and its runs are slowed down; it resumes automatically", wait: true},
	"ProviderCapped":    {words: "as many runs of its cloud as are allowed are running; it resumes automatically", wait: true},
	"PolicyAdopted":     {words: "its document has changed, its root module has not"},
}

// reasonOf returns the words for a reason, made of the reason itself if it is
// not known.
func reasonOf(name string) reason {
	if r, ok := reasons[name]; ok {
		return r
	}
	var b strings.Builder
	for i, c := range name {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return reason{words: words(b.String())}
}

// shownReason reports whether a pull request's own reason deserves a comment.
func shownReason(name string) bool { return name == "NotMergeable" || name == "Fork" }

// command returns a command for clusters, ready to be copied.
func command(verb holdfast.Verb, clusters ...string) string {
	var b strings.Builder
	b.WriteString("/holdfast " + string(verb))
	for _, name := range clusters {
		b.WriteString(" -c " + name)
	}
	return code(b.String())
}
