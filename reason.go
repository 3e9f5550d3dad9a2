package holdfast

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Reason says why something is done, waits, was refused or has ended: a PascalCase
// word. It is kept in records, shown to people and a label of metrics, and so it
// never changes. A run that failed has the cause of its failure as its reason.
type Reason string

// The reasons. What they mean is in the table below.
const (
	ReasonAdopted           Reason = "Adopted"
	ReasonAdoptionCapped    Reason = "AdoptionCapped"
	ReasonAgentKilled       Reason = "AgentKilled"
	ReasonAgentSilent       Reason = "AgentSilent"
	ReasonApplied           Reason = "Applied"
	ReasonAppliedSince      Reason = "AppliedSince"
	ReasonApplyFailed       Reason = "ApplyFailed"
	ReasonApproved          Reason = "Approved"
	ReasonBackingOff        Reason = "BackingOff"
	ReasonCanceled          Reason = "Canceled"
	ReasonChecked           Reason = "Checked"
	ReasonClosed            Reason = "Closed"
	ReasonCostExceeded      Reason = "CostExceeded"
	ReasonCostUnknown       Reason = "CostUnknown"
	ReasonDependencyApplied Reason = "DependencyApplied"
	ReasonDependencyFailed  Reason = "DependencyFailed"
	ReasonDependencyMissing Reason = "DependencyMissing"
	ReasonDependencyPending Reason = "DependencyPending"
	ReasonDestroyFailed     Reason = "DestroyFailed"
	ReasonDestroyed         Reason = "Destroyed"
	ReasonDraft             Reason = "Draft"
	ReasonDriftHeld         Reason = "DriftHeld"
	ReasonDrifted           Reason = "Drifted"
	ReasonEngineKilled      Reason = "EngineKilled"
	ReasonFork              Reason = "Fork"
	ReasonHasDependents     Reason = "HasDependents"
	ReasonInProgress        Reason = "InProgress"
	ReasonInterrupted       Reason = "Interrupted"
	ReasonInvalid           Reason = "Invalid"
	ReasonLeaseLost         Reason = "LeaseLost"
	ReasonLocked            Reason = "Locked"
	ReasonManual            Reason = "Manual"
	ReasonMassDeletion      Reason = "MassDeletion"
	ReasonMayExist          Reason = "MayExist"
	ReasonMerged            Reason = "Merged"
	ReasonMissing           Reason = "Missing"
	ReasonNeverApplied      Reason = "NeverApplied"
	ReasonNewRevision       Reason = "NewRevision"
	ReasonNoAgent           Reason = "NoAgent"
	ReasonNotAffected       Reason = "NotAffected"
	ReasonNotApproved       Reason = "NotApproved"
	ReasonNotMergeable      Reason = "NotMergeable"
	ReasonNotMerged         Reason = "NotMerged"
	ReasonNothingPlanned    Reason = "NothingPlanned"
	ReasonOtherBase         Reason = "OtherBase"
	ReasonPlanChanged       Reason = "PlanChanged"
	ReasonPlanFailed        Reason = "PlanFailed"
	ReasonPlanMoved         Reason = "PlanMoved"
	ReasonPlanOutdated      Reason = "PlanOutdated"
	ReasonPolicyChanged     Reason = "PolicyChanged"
	ReasonPolicyDenied      Reason = "PolicyDenied"
	ReasonPolicyOutdated    Reason = "PolicyOutdated"
	ReasonPreempted         Reason = "Preempted"
	ReasonProtected         Reason = "Protected"
	ReasonProjectCapped     Reason = "ProjectCapped"
	ReasonProviderCapped    Reason = "ProviderCapped"
	ReasonProviderThrottled Reason = "ProviderThrottled"
	ReasonRemoved           Reason = "Removed"
	ReasonRenamed           Reason = "Renamed"
	ReasonReplanned         Reason = "Replanned"
	ReasonRepositoryUnread  Reason = "RepositoryUnread"
	ReasonRequested         Reason = "Requested"
	ReasonResumed           Reason = "Resumed"
	ReasonRevertFailed      Reason = "RevertFailed"
	ReasonRunnerCapped      Reason = "RunnerCapped"
	ReasonSchedule          Reason = "Schedule"
	ReasonStateMoved        Reason = "StateMoved"
	ReasonStateUnsaved      Reason = "StateUnsaved"
	ReasonStateWouldMove    Reason = "StateWouldMove"
	ReasonSuperseded        Reason = "Superseded"
	ReasonSuspended         Reason = "Suspended"
	ReasonTimeout           Reason = "Timeout"
	ReasonUnreadable        Reason = "Unreadable"
	ReasonUnreviewed        Reason = "Unreviewed"
	ReasonUpToDate          Reason = "UpToDate"
	ReasonWindowClosed      Reason = "WindowClosed"
)

// The causes of failures.
const (
	CauseArtefactUnavailable  Reason = "ArtefactUnavailable"
	CauseAssignment           Reason = "Assignment"
	CauseBundleUnusable       Reason = "BundleUnusable"
	CauseCapacityUnavailable  Reason = "CapacityUnavailable"
	CauseCloudForbidden       Reason = "CloudForbidden"
	CauseCloudIdentityRefused Reason = "CloudIdentityRefused"
	CauseConflict             Reason = "Conflict"
	CauseCredentials          Reason = "Credentials"
	CauseDiskFull             Reason = "DiskFull"
	CauseDownloadFailed       Reason = "DownloadFailed"
	CauseEngineFailed         Reason = "EngineFailed"
	CauseEvicted              Reason = "Evicted"
	CauseImagePullFailed      Reason = "ImagePullFailed"
	CauseInternal             Reason = "Internal"
	CauseInvalidConfiguration Reason = "InvalidConfiguration"
	CauseInvalidOutcome       Reason = "InvalidOutcome"
	CauseJobDeadline          Reason = "JobDeadline"
	CauseJobDeleted           Reason = "JobDeleted"
	CauseMigrationUnproven    Reason = "MigrationUnproven"
	CauseNamespaceMissing     Reason = "NamespaceMissing"
	CauseNetwork              Reason = "Network"
	CauseNoEngine             Reason = "NoEngine"
	CauseNoIsolation          Reason = "NoIsolation"
	CauseNodeLost             Reason = "NodeLost"
	CauseNotFound             Reason = "NotFound"
	CauseOutOfMemory          Reason = "OutOfMemory"
	CausePermission           Reason = "Permission"
	CausePodConfiguration     Reason = "PodConfiguration"
	CausePodTemplateRefused   Reason = "PodTemplateRefused"
	CauseProviderCrashed      Reason = "ProviderCrashed"
	CauseQuota                Reason = "Quota"
	CauseResourceTimeout      Reason = "ResourceTimeout"
	CauseRunnerClusterMissing Reason = "RunnerClusterMissing"
	CauseRunnerForbidden      Reason = "RunnerForbidden"
	CauseRunnerQuota          Reason = "RunnerQuota"
	CauseRunnerUnauthorized   Reason = "RunnerUnauthorized"
	CauseRunnerUnreachable    Reason = "RunnerUnreachable"
	CauseRunnerUnusable       Reason = "RunnerUnusable"
	CauseSecretUnavailable    Reason = "SecretUnavailable"
	CauseServiceUnavailable   Reason = "ServiceUnavailable"
	CauseStalePlan            Reason = "StalePlan"
	CauseStartTimeout         Reason = "StartTimeout"
	CauseStateBackend         Reason = "StateBackend"
	CauseStateLocked          Reason = "StateLocked"
	CauseTaskConfiguration    Reason = "TaskConfiguration"
	CauseTaskInterrupted      Reason = "TaskInterrupted"
	CauseThrottled            Reason = "Throttled"
	CauseTooManyProcesses     Reason = "TooManyProcesses"
	CauseUnreadablePlan       Reason = "UnreadablePlan"
	CauseUnschedulable        Reason = "Unschedulable"
	CauseUntrustedPlan        Reason = "UntrustedPlan"
	CauseWorkspace            Reason = "Workspace"
	CauseWorkspaceFailed      Reason = "WorkspaceFailed"
	CauseWorkspaceTooLarge    Reason = "WorkspaceTooLarge"
)

// CauseStateUnsaved is the cause if the engine could not save its state. The cluster
// then waits for the same reason.
const CauseStateUnsaved = ReasonStateUnsaved

// reportedReasons are what agents give as reasons besides causes.
var reportedReasons = []Reason{
	ReasonPlanChanged, ReasonPolicyChanged, ReasonPolicyDenied, ReasonMayExist, ReasonCanceled, ReasonTimeout, ReasonLeaseLost, ReasonEngineKilled, ReasonAgentKilled,
}

// Reasons returns all reasons in the order of their words, causes of failures
// among them.
func Reasons() []Reason { return slices.Sorted(maps.Keys(reasonInfos)) }

// Info returns what people are shown of a reason. The words for one that is not
// known, such as one that an older version recorded, are made of the reason itself.
func (r Reason) Info() ReasonInfo {
	if info, ok := reasonInfos[r]; ok {
		if info.Who == "" && len(info.Next) > 0 {
			info.Who = writers
		}
		return info
	}
	var b strings.Builder
	for i, c := range string(r) {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return ReasonInfo{Words: b.String(), Effect: Blocks}
}

// Known reports whether a reason is in the table.
func (r Reason) Known() bool {
	_, ok := reasonInfos[r]
	return ok
}

// Refusal says why a command is refused, with the detail if there is one, and what
// to do instead.
func (r Reason) Refusal(detail string) string {
	info := r.Info()
	text := info.Words
	if detail != "" {
		text += ": " + detail
	}
	switch {
	case len(info.Next) > 0 && info.Next[0] != VerbApply:
		return text + ". `/holdfast " + string(info.Next[0]) + "` " + info.Does
	case info.Hint != "":
		return text + ". " + info.Hint
	default:
		return text
	}
}

// Command returns the command line that helps a cluster that waits for r; empty if none
// does. Without a name it has CLUSTER in its place.
func (r Reason) Command(cluster string) string {
	info := r.Info()
	text := info.Line
	if text == "" && len(info.Next) > 0 {
		text = "holdfast " + string(info.Next[0]) + " CLUSTER"
		if info.Next[0] == VerbPlan {
			text = "holdfast replan CLUSTER" // plan is the one without a server
		}
	}
	if cluster != "" {
		text = strings.Replace(text, " CLUSTER", " "+cluster, 1)
	}
	return text
}

// IsCause reports whether attempts fail because of r.
func (r Reason) IsCause() bool { return r == CauseStateUnsaved || r.Info().Cause }

// Reportable reports whether an agent may give r as a reason or as a cause. Others
// are not taken from it: reasons are shown to people, decided by and labels of
// metrics.
func (r Reason) Reportable() bool {
	return r == "" || r.IsCause() || slices.Contains(reportedReasons, r)
}
