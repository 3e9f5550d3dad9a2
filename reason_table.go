package holdfast

import "maps"

// Effect is what a reason means for the object that has it.
type Effect string

// The effects.
const (
	Explains Effect = "explains" // it says why something was done, or has ended
	Passes   Effect = "passes"   // it waits, and resumes automatically
	Blocks   Effect = "blocks"   // somebody has to act
)

// ReasonInfo is what people are shown of a reason: in comments, commit statuses,
// answers to commands and docs/runs.md.
type ReasonInfo struct {
	Words  string // a clause about the cluster, the pull request or the run, which comes after a colon
	More   string // what the documentation adds: sentences without the last full stop
	Effect Effect
	Next   []Verb // the commands that help, best first
	Does   string // what the first command does
	Hint   string // what else to do: a sentence without its full stop
	Who    string // who may do it; where there is a command, writers unless the row says more
	Line   string // the command line that helps, with CLUSTER for its name; empty: as Next says
	See    string // where the documentation says more: a link
	Early  bool   // it is shown before the merge that it will hold up

	One    string // what one cluster needs, or what became of it: the predicate of a headline
	Many   string // the same of several clusters; empty: as One
	Failed bool   // something has failed: the headline shows it

	Cause     bool   // it is why an attempt failed
	Transient string // a cause: when it is retried automatically: "always" or a condition; empty: never
}

// Who may act. An operator has the role operator in the cluster's project, an approver the
// role approver.
const (
	writers   = "anyone with write permission, or an operator"
	reviewers = "anyone with write permission except the author, or an approver"
	operators = "an operator"
	mergers   = "anyone who may merge a change"
)

// together is one table of several.
func together(tables ...map[Reason]ReasonInfo) map[Reason]ReasonInfo {
	all := make(map[Reason]ReasonInfo)
	for _, table := range tables {
		maps.Copy(all, table)
	}
	return all
}

// AppliesShown is what apply does where a plan waits for a person.
const AppliesShown = "applies exactly the plan that is shown"

// reasonInfos is the one place where reasons are worded: here, and in the tables that are
// copied into it.
var reasonInfos = together(map[Reason]ReasonInfo{
	ReasonAdopted: {Effect: Explains, Words: "a new cluster has an empty plan: it is adopted without an apply"},
	ReasonAdoptionCapped: {
		Effect: Passes, Words: "the hourly limit of first plans is reached; it continues automatically",
		More: "`adopt.maxPerHour` sets it",
	},
	ReasonAgentKilled: {
		Effect: Explains, Words: "the agent that executed the run died",
		More: "It was gone, or had been silent for longer than its lease",
		Hint: "If the run does not continue, look at the agent's log and at the resources that the report lists as unrecorded",
	},
	ReasonAgentSilent: {
		Effect: Blocks, Words: "the apply had started and its agent has stopped responding",
		More: "Its state cannot be taken over safely",
		One:  "has an agent that stopped responding", Many: "have an agent that stopped responding", Failed: true,
		Next: []Verb{VerbUnlock}, Does: "ends the run once its engine is certainly dead; what remains is planned again",
		Hint: "Bring the agent back, or make sure that its engine is dead",
	},
	ReasonApplied:      {Effect: Explains, Words: "the apply succeeded"},
	ReasonAppliedSince: {Effect: Passes, Words: "an apply has changed the cluster since"},
	ReasonApplyFailed: {
		Effect: Blocks, Words: "an apply failed partway; its new plan shows what is left to do",
		One: "failed to apply", Failed: true,
		Next: []Verb{VerbApply, VerbPlan}, Does: AppliesShown,
		Hint: "Read the failure and the plan, or correct the code in a new pull request",
	},
	ReasonApproved: {Effect: Explains, Words: "someone asked to apply a plan they had seen"},
	ReasonBackingOff: {
		Effect: Passes, Who: writers, Words: "transient failure; it is retried",
		Hint: "`holdfast cancel` cancels it",
		Line: "holdfast cancel CLUSTER",
	},
	ReasonCanceled: {
		Effect: Blocks, Words: "the run was canceled",
		One: "was canceled", Many: "were canceled",
		Next: []Verb{VerbPlan}, Does: "plans again",
	},
	ReasonChecked: {
		Effect: Explains, Words: "a drift check has ended",
		More: "Or the drift rules have changed, and its result was evaluated again",
		Hint: "`holdfast describe drift` shows what was found",
	},
	ReasonClosed:            {Effect: Explains, Words: "the pull request was closed or merged", More: "Its plans end"},
	ReasonDependencyApplied: {Effect: Passes, Words: "a cluster that it depends on was applied in the meantime", More: "It is planned again"},
	ReasonDependencyFailed: {
		Effect: Blocks, Who: mergers, Words: "a cluster that it depends on has failed",
		One: "depends on a failed cluster", Many: "depend on a failed cluster", Early: true,
		Hint: "It resumes automatically when that cluster is applied",
		Line: "holdfast describe cluster CLUSTER",
	},
	ReasonDependencyMissing: {
		Effect: Blocks, Who: mergers, Words: "`dependsOn` names a cluster that does not exist",
		One: "depends on a cluster that does not exist", Many: "depend on a cluster that does not exist", Early: true,
		Hint: "Correct `dependsOn`, or add that cluster; it then resumes automatically",
	},
	ReasonDependencyPending: {
		Effect: Passes, Words: "a cluster that it depends on must be applied first",
		Hint: "If it does not continue, look at what that cluster waits for",
		Line: "holdfast describe cluster CLUSTER",
	},
	ReasonDestroyFailed: {
		Effect: Blocks, Words: "its destroy has failed too often to be retried automatically; its new plan shows what is left",
		One: "failed to be destroyed", Failed: true,
		Next: []Verb{VerbApply, VerbPlan}, Does: AppliesShown,
		Hint: "Find out what prevents the destroy, and remove it in the cloud",
	},
	ReasonDestroyed: {Effect: Explains, Words: "it is destroyed"},
	ReasonDraft: {
		Effect: Blocks, Who: "the author, or anyone with write permission", Words: "it is a draft; it is planned when it is ready for review",
		Hint: "Mark the pull request as ready for review, or set `repositories[].drafts`",
	},
	ReasonDriftHeld: {
		Effect: Blocks, Words: "reverting its drift needs a person's approval",
		More: "With `onDrift: apply`, the revert would destroy something or undo a change that a rule hides, or the cluster requires an approval",
		Next: []Verb{VerbApply}, Does: "reverts it by exactly the plan of the last check",
		Hint: "`holdfast describe drift` shows it",
	},
	ReasonDrifted: {
		Effect: Explains, Words: "the infrastructure differs from the last apply",
		More: "`onDrift: apply` reverts it",
		Hint: "`holdfast describe drift` shows what differs",
	},
	ReasonEngineKilled: {
		Effect: Explains, Words: "the engine was killed",
		More: "By a signal that Holdfast did not send",
		Hint: "Look at the memory of the agent's machine",
	},
	ReasonFork: {
		Effect: Blocks, Who: "anyone with write permission", Words: "it comes from a fork, and a plan executes its code; plans of forks are switched off",
		Hint: "Push the branch to the repository itself, or set `repositories[].forks`, which `isolation: none` overrides",
	},
	ReasonHasDependents: {
		Effect: Passes, Words: "clusters that depend on it still exist; it is destroyed after them",
		Early: true,
		Hint:  "Remove those too, or restore its document",
	},
	ReasonInProgress:  {Effect: Passes, Words: "a run is in progress", Line: "holdfast get runs --cluster CLUSTER"},
	ReasonInterrupted: {Effect: Passes, Words: "the run was interrupted; it is planned again"},
	ReasonInvalid: {
		Effect: Blocks, Who: mergers, Words: "the cluster's document has faults",
		Hint: "Correct it in a new pull request: `holdfast validate` names file, line and column",
		Line: "holdfast validate",
	},
	ReasonLeaseLost: {
		Effect: Explains, Words: "the agent lost contact with the server before the apply began; nothing was applied",
		Hint: "Look at the network between agent and server, and at Redis",
	},
	ReasonLocked: {
		Effect: Passes, Who: writers, Words: "another run holds the cluster's lock",
		Hint: "`holdfast unlock` shows the holder",
		Line: "holdfast unlock CLUSTER",
	},
	ReasonManual: {
		Effect: Blocks, Words: "this cluster is applied by command (`onMerge: false`)",
		One: "is applied by command", Many: "are applied by command",
		Next: []Verb{VerbApply}, Does: "applies the reviewed plan",
	},
	ReasonMassDeletion: {
		Effect: Blocks, Words: "too many clusters would be destroyed at once; someone has to confirm",
		More: "More than 5; or at least two, if that is more than a tenth of the repository's clusters",
		One:  "needs a confirmation", Many: "need a confirmation", Early: true,
		Next: []Verb{VerbApply}, Does: "confirms it and destroys them",
		Hint: "Read which clusters these are; `holdfast apply CLUSTER…` destroys only some of them",
	},
	ReasonMayExist: {
		Effect: Blocks, Words: "the apply would create resources that may exist already",
		More: "An earlier apply died while it created them, or before it recorded them. The comment names them",
		One:  "would create resources that may exist", Many: "would create resources that may exist", Early: true,
		Next: []Verb{VerbApply, VerbPlan}, Does: "creates them anyway, as the plan shows",
		Hint: "Look for them in the cloud first: import existing ones into the state, or remove them",
	},
	ReasonMerged: {Effect: Explains, Words: "a plan that was reviewed was merged"},
	ReasonMissing: {
		Effect: Blocks, Who: mergers, Words: "its document is missing, and nothing proves that it was removed: nothing is destroyed",
		One: "has no document", Many: "have no document", Early: true,
		Hint: "Restore it, or remove it in a commit in which every file can be read and every name is defined once",
	},
	ReasonNeverApplied: {Effect: Explains, Words: "it was never applied: there is nothing to destroy"},
	ReasonNewRevision:  {Effect: Passes, Words: "a newer revision is planned"},
	ReasonNoAgent: {
		Effect: Passes, Words: "no running agent executes such runs; it resumes automatically when one does",
		More: "Such runs have this kind, project and runner. It is reported after 30 s",
		Hint: "`holdfast get agents` lists agents, and the logs of server and agents say why one is missing; `holdfast get environments` shows the runner of an environment",
		Line: "holdfast get agents",
	},
	ReasonNotAffected: {Effect: Explains, Words: "the pull request does not change the cluster"},
	ReasonNotApproved: {
		Effect: Blocks, Who: reviewers, Words: "the pull request has no approving review, which this cluster requires",
		More: "With `apply.requires: [approved]`, nobody has approved what was shown, or somebody requests changes",
		One:  "needs an approval", Many: "need an approval",
		Next: []Verb{VerbApprove}, Does: "approves it",
	},
	ReasonNotMergeable: {
		Effect: Blocks, Who: reviewers, Words: "the pull request cannot be merged into its base",
		More: "It conflicts with its base, or was not mergeable and `apply.requires` says that it must be",
		One:  "could not be merged",
		Hint: "Resolve the conflict, then push; if it is merged already, someone else can run `/holdfast approve`",
	},
	ReasonNotMerged: {Effect: Blocks, Words: "it is not merged yet: an apply follows the merge", Hint: "Merge the pull request", Who: mergers},
	ReasonNothingPlanned: {
		Effect: Blocks, Words: "there is no plan to apply",
		Next: []Verb{VerbPlan}, Does: "plans again",
	},
	ReasonOtherBase: {Effect: Explains, Words: "its base is not the tracked branch"},
	ReasonPlanChanged: {
		Effect: Blocks, Words: "the new plan differs from the reviewed one",
		More: "Or an earlier version recorded no plan document for the reviewed plan. `apply` plans again, and applies only if the result is exactly the plan that is shown",
		One:  "has a different plan than reviewed", Many: "have different plans than reviewed",
		Next: []Verb{VerbApply, VerbPlan}, Does: AppliesShown,
	},
	ReasonPlanFailed: {
		Effect: Blocks, Words: "there is no plan to apply: planning failed",
		One: "failed to plan", Failed: true,
		Next: []Verb{VerbPlan}, Does: "plans again",
		Hint: "Read the failure, then push a correction",
	},
	ReasonPlanMoved: {
		Effect: Blocks, Who: writers, Words: "there is a newer plan than the one that was shown",
		Hint: "Look at the newer plan, then run the command again",
	},
	ReasonPlanOutdated: {
		Effect: Passes, Words: "its plan was made by an earlier version and is planned again",
		More: "That version kept no plan document with which an apply could be compared",
	},
	ReasonPreempted: {Effect: Passes, Words: "an apply takes precedence", More: "It is planned again afterwards"},
	ReasonProjectCapped: {
		Effect: Passes, Words: "the limit of runs for its project is reached; it resumes automatically",
		More: "`runs.maxPerProject` sets it",
	},
	ReasonProtected: {
		Effect: Blocks, Who: mergers, Words: "it is protected against destruction (`deletion.protected` was last applied)",
		One: "is protected", Many: "are protected", Early: true,
		Hint: "To destroy it, merge `deletion.protected: false` first, then remove the document in another pull request",
	},
	ReasonProviderCapped: {
		Effect: Passes, Words: "the limit of runs for its cloud is reached; it resumes automatically",
		More: "`runs.maxPerProvider` sets it",
	},
	ReasonProviderThrottled: {
		Effect: Passes, Words: "the cloud limits or refuses requests, and its runs are slowed down; it resumes automatically",
		More: "Runs of several clusters of this provider were throttled. Those of other providers continue",
	},
	ReasonRemoved: {Effect: Passes, Words: "its document was removed; the cluster will be destroyed", More: "Another reason says what it waits for"},
	ReasonRenamed: {
		Effect: Explains, Words: "another name has taken over its state and history",
		More: "`metadata.renamedFrom` names it",
	},
	ReasonReplanned: {
		Effect: Blocks, Words: "its apply failed to plan, and it has been planned again since",
		One: "needs an approved plan", Many: "need an approved plan",
		Next: []Verb{VerbApply, VerbPlan}, Does: AppliesShown,
	},
	ReasonRepositoryUnread: {
		Effect: Passes, Words: "its repository has not been read since the server started; it continues once that is done",
		More: "An apply waits for a minute at most, a destroy until it is read",
		Hint: "If it does not continue, `/readyz` of the server says why the repository cannot be read",
	},
	ReasonRequested: {Effect: Explains, Words: "a person asked for it"},
	ReasonResumed: {
		Effect: Explains, Words: "an apply continues with what is left of one that failed",
		More: "The remaining changes are part of what was reviewed",
	},
	ReasonRevertFailed: {
		Effect: Blocks, Words: "the apply to revert its drift failed, and is not retried automatically",
		More: "Or the same drift is back",
		Next: []Verb{VerbApply}, Does: "retries with the plan of the last check",
		Hint: "Find out what causes the drift, or change the code or the rules",
	},
	ReasonRunnerCapped: {
		Effect: Passes, Words: "the limit of runs for its runner is reached; it resumes automatically",
		More: "`spec.maxRuns` of the runner's document sets it",
	},
	ReasonSchedule: {Effect: Explains, Words: "a drift check was due"},
	ReasonStateMoved: {
		Effect: Passes, Words: "the state has changed in the meantime",
		More: "Someone else has written it. It is planned again",
		Hint: "`holdfast replan` or `holdfast drift check` checks it again",
		Line: "holdfast drift check CLUSTER",
	},
	ReasonStateUnsaved: {
		Effect: Blocks, Who: operators, Words: "an apply could not save its state; nothing is planned or applied until that state is pushed",
		One: "has an unsaved state", Many: "have unsaved states", Failed: true,
		Hint: "It is pushed as soon as the backend accepts it. `holdfast state push` does so now, `holdfast state get` writes the file, `holdfast state waive` discards it",
		Line: "holdfast state push CLUSTER",
	},
	ReasonStateWouldMove: {
		Effect: Blocks, Who: operators, Words: "its state would move to another place; nothing is planned or applied until it is migrated",
		More: "The state stays where it was at the first apply. The code, `spec.state`, another environment or the storage of a runner defines another place",
		One:  "would get another state", Many: "would get other states", Early: true,
		Hint: "Merge, then run `holdfast state migrate`, which moves the state and proves that nothing changes; or revert the change",
		Line: "holdfast state migrate CLUSTER", See: "lifecycle.md#another-state",
	},
	ReasonSuperseded: {Effect: Passes, Words: "a newer revision replaces it", Hint: "Try again in a moment"},
	ReasonSuspended: {
		Effect: Blocks, Who: operators, Words: "runs of this cluster are suspended",
		More: "Or those of its project, or all of them. `holdfast get suspensions` says who suspended them, and why",
		One:  "is suspended", Many: "are suspended",
		Hint: "An operator resumes them with `holdfast resume`",
		Line: "holdfast resume CLUSTER",
	},
	ReasonTimeout: {
		Effect: Blocks, Words: "the run exceeded its time limit",
		More: "`runs.timeout` sets it",
		Next: []Verb{VerbPlan}, Does: "plans again",
		Hint: "Raise `runs.timeout`, or find out what hangs",
	},
	ReasonUnreadable: {
		Effect: Blocks, Who: "anyone who may push to the pull request", Words: "the changes of the pull request cannot be read",
		More: "Reading it has failed for a minute, and not because of an outage: for example, it or the tracked branch is too large",
		Hint: "Remove what the message names, then push; operators find more in the server's log. It is retried automatically",
	},
	ReasonUnreviewed: {
		Effect: Blocks, Words: "no plan for this was shown before it was merged",
		More: "It came by a direct push or with a fresh database, or its plan was unfinished or had failed when it was merged",
		One:  "needs an approved plan", Many: "need an approved plan",
		Next: []Verb{VerbApply}, Does: AppliesShown,
	},
	ReasonUpToDate:     {Effect: Explains, Words: "the cluster matches Git"},
	ReasonWindowClosed: {Effect: Passes, Words: "outside its apply windows; it is applied automatically in the next one"},

	// Causes of failures.

	CauseArtefactUnavailable: {
		Effect: Explains, Cause: true, Words: "the results of the run could not be stored",
		Transient: "if the server was unavailable",
		Hint:      "`/holdfast plan`",
	},
	CauseAssignment: {
		Effect: Explains, Cause: true, Words: "the server could not prepare the run: a reviewed plan or a credential is missing",
		Hint: "Read the failure; check `credentials` in holdfast.yaml",
	},
	CauseBundleUnusable: {
		Effect: Explains, Cause: true, Words: "the root module cannot be fetched, unpacked or read",
		Transient: "if the server was unavailable",
		Hint:      "Read the failure",
	},
	CauseConflict: {
		Effect: Explains, Cause: true, Words: "the cloud refuses this in the current state of the resource: it exists already, is in use, or is being changed",
		Transient: "if it is a change in progress",
		Hint:      "Read the failure: import it, rename it, or free it",
	},
	CauseCredentials: {
		Effect: Explains, Cause: true, Words: "there are no credentials, or they are no longer valid",
		Hint: "Check the credentials bound to this project, environment and phase",
	},
	CauseDiskFull: {
		Effect: Explains, Cause: true, Words: "the agent's disk is full",
		Transient: "always",
		Hint:      "Free some space",
	},
	CauseDownloadFailed: {
		Effect: Explains, Cause: true, Words: "the engine could not be downloaded or verified, or no release fits",
		Transient: "if the mirror could not be reached, or what it sent was incomplete",
		Hint:      "Read the failure: it has the address and the mirror's answer, and what is installed; check `engines.validation`",
	},
	CauseEngineFailed: {
		Effect: Explains, Cause: true, Words: "the engine failed with an error that Holdfast does not recognise",
		Hint: "Read the error",
	},
	CauseInternal: {
		Effect: Explains, Cause: true, Words: "an internal error of Holdfast",
		Hint: "Report it, with the agent's log",
	},
	CauseInvalidConfiguration: {
		Effect: Explains, Cause: true, Words: "the code is not valid, or is too large or nested too deeply to be compared with a review; or constraints on the engine's version contradict each other; or the code asks for a different engine than the last apply used",
		Hint: "Correct it, or set `spec.engine.name`", See: "#which-engine",
	},
	CauseInvalidOutcome: {
		Effect: Explains, Cause: true, Words: "the agent reported something impossible: a plan that applied something, a reason that does not exist",
		Hint: "Look at the agent's log: it may be of another version than the server, or code in a plan may have answered instead of it. The whole report is discarded",
	},
	CauseMigrationUnproven: {
		Effect: Explains, Cause: true, Words: "the state was not moved: a plan of the last apply has changes, or there is another state at the new place",
		Hint: "Read the failure. The former place stays in use; `holdfast state migrate` can be repeated", See: "lifecycle.md#another-state",
	},
	CauseNetwork: {
		Effect: Explains, Cause: true, Words: "a name, a connection or a handshake failed",
		Transient: "yes, except for certificates",
		Hint:      "Wait, or look at the network",
	},
	CauseNoEngine: {
		Effect: Explains, Cause: true, Words: "no engine satisfies the constraint, and none may be downloaded",
		Transient: "if an engine was killed, or did not answer, while it was asked for its version",
		Hint:      "Install one, or set `engines.download`",
	},
	CauseNoIsolation: {
		Effect: Explains, Cause: true, Words: "the agent cannot isolate engines from itself and from other runs, or not well enough for an apply",
		Hint: "Give the agent what a mode needs; or set `isolation: none` (an agent that `serve` does not start needs `--isolation none`, too)", See: "security.md",
	},
	CauseNotFound: {
		Effect: Explains, Cause: true, Words: "something that the code refers to does not exist",
		Hint: "Create it, or correct its name, region or account",
	},
	CauseOutOfMemory: {
		Effect: Explains, Cause: true, Words: "the run hit its limit of memory, or the agent's machine has none left; the failure says which, with \"probably\" if memory use could not be measured",
		Transient: "unless it was the run's own limit",
		Hint:      "Raise `runs.limits.memory`; or give the machine more, or let it execute fewer runs at once", See: "#limits",
	},
	CausePermission: {
		Effect: Explains, Cause: true, Words: "the credentials, or the agent's user, may not do this",
		Hint: "Give them the permission that the message names",
	},
	CauseProviderCrashed: {
		Effect: Explains, Cause: true, Words: "a provider's process died",
		Transient: "if it died without an error message",
		Hint:      "Read the log: pin another version, or give the agent's machine more memory",
	},
	CauseQuota: {
		Effect: Explains, Cause: true, Words: "a quota of the cloud is used up, or the cloud has no capacity left",
		Hint: "Raise it, ask for less, or choose another zone",
	},
	CauseResourceTimeout: {
		Effect: Explains, Cause: true, Words: "a resource took longer than the provider waits",
		Transient: "always",
		Hint:      "Look at the resource in the cloud; raise its `timeouts` in the code",
	},
	CauseSecretUnavailable: {
		Effect: Explains, Cause: true, Words: "a secret variable has no value: what its document refers to is not among the run's credentials, or the store refuses",
		Transient: "if a secret store could not be reached, or was slow",
		Hint:      "Read the failure: it names the variable, the reference, and where in holdfast.yaml to put it",
	},
	CauseServiceUnavailable: {
		Effect: Explains, Cause: true, Words: "a service answered with a server error (5xx)",
		Transient: "always", Hint: "Wait",
	},
	CauseStalePlan: {
		Effect: Explains, Cause: true, Words: "the state changed while it was planned, or between the plan and the apply of one run",
		Transient: "if it changed while it was planned", Hint: "Plan again",
	},
	CauseStateBackend: {
		Effect: Explains, Cause: true, Words: "the state's backend failed or refused",
		Transient: "if it could not be reached",
		Hint:      "Read the failure; check the backend and its credentials",
	},
	CauseStateLocked: {
		Effect: Passes, Who: operators, Cause: true, Words: "somebody else holds the engine's own lock on the state",
		Transient: "always",
		Hint:      "Wait, or find out who holds it with `holdfast unlock`", See: "#locks-of-backends",
		Line: "holdfast unlock CLUSTER",
	},
	CauseThrottled: {
		Effect: Explains, Cause: true, Words: "the cloud limits the rate of calls",
		Transient: "always",
		Hint:      "Wait",
	},
	CauseTooManyProcesses: {
		Effect: Explains, Cause: true, Words: "the run hit its limit of processes and threads",
		Hint: "Raise `runs.limits.processes`", See: "#limits",
	},
	CauseUnreadablePlan: {
		Effect: Explains, Cause: true, Words: "the engine's plan cannot be read, or has something that is not supported: actions, deferred changes, an encrypted plan file",
		Hint: "Read the failure",
	},
	CauseUntrustedPlan: {
		Effect: Explains, Cause: true, Words: "code executed in a plan changed files of the repository, or the plan file does not belong to the code, the variables, the backend or the state of the run, or an apply has written no state",
		Hint: "Let code that is executed in plans write to new files only", See: "security.md#a-run",
	},
	CauseWorkspace: {
		Effect: Explains, Cause: true, Words: "the agent could not start the attempt",
		Transient: "always",
		Hint:      "Look at the agent's disk and log",
	},
	CauseWorkspaceFailed: {
		Effect: Explains, Cause: true, Words: "the agent could not write or read its workspace",
		Transient: "always",
		Hint:      "Look at the agent's disk and log",
	},
	CauseWorkspaceTooLarge: {
		Effect: Explains, Cause: true, Words: "a plan left, or `init` fetched, more than 1,000,000 files and folders, or folders nested deeper than 200; or `init` fetched more than 8 GiB",
		Hint: "Let code that is executed in plans clean up, or write outside of the bundle's folders (to `TMPDIR`)",
	},
}, startReasons, policyReasons, costReasons)
