package holdfast

import "slices"

// CauseInvalidOutcome is the cause if what an agent reported of an attempt cannot be.
const CauseInvalidOutcome = "InvalidOutcome"

// CauseStateUnsaved is the cause if the engine could not save its state.
const CauseStateUnsaved = "StateUnsaved"

// causes are why attempts fail, in their order.
var causes = []string{
	"ArtefactUnavailable", "Assignment", "BundleUnusable", "Conflict", "Credentials", "DiskFull", "DownloadFailed",
	"EngineFailed", "Internal", "InvalidConfiguration", CauseInvalidOutcome, "Network", "NoEngine", "NoIsolation", "NotFound", "OutOfMemory",
	"Permission", "ProviderCrashed", "Quota", "ResourceTimeout", "SecretUnavailable", "ServiceUnavailable", "StalePlan",
	"StateBackend", "StateLocked", CauseStateUnsaved, "Throttled", "TooManyProcesses", "UnreadablePlan", "UntrustedPlan", "Workspace",
	"WorkspaceFailed", "WorkspaceTooLarge",
}

// reportedReasons are what agents give as reasons beside causes.
var reportedReasons = []string{
	ReasonPlanChanged, ReasonCanceled, ReasonTimeout, ReasonLeaseLost, ReasonEngineKilled, ReasonAgentKilled,
}

// Causes returns the words for why attempts fail, sorted.
func Causes() []string { return slices.Clone(causes) }

// Reportable reports whether word is one that an agent may give as a reason or as
// a cause. Others are not taken from it: reasons are shown to people, decided by
// and labels of metrics.
func Reportable(word string) bool {
	return word == "" || slices.Contains(causes, word) || slices.Contains(reportedReasons, word)
}
