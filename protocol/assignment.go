package protocol

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Assignment is a run to execute. It carries no forge credential.
type Assignment struct {
	holdfast.AttemptRef
	Token    string           `json:"token"` // this attempt's credential
	Kind     holdfast.RunKind `json:"kind"`
	Cluster  string           `json:"cluster"`
	Deadline time.Time        `json:"deadline"` // the engine is interrupted then
	// Lease is how long the server believes in the attempt without a heartbeat.
	// The agent beats at a sixth of it, and has lost it when three quarters
	// have passed since a beat that was answered was sent.
	Lease time.Duration `json:"lease"`

	Bundle       holdfast.Digest `json:"bundle"`
	Dir          string          `json:"dir"`
	SourceDigest holdfast.Digest `json:"sourceDigest"`

	// Destroy: a plan of the destruction of everything.
	Destroy bool `json:"destroy,omitempty"`
	// LockFile is the provider lock file to start from where the bundle has none: of
	// the reviewed plan, otherwise of the last applied run.
	LockFile []byte `json:"lockFile,omitempty"`
	// Modules is the run whose fetched modules the attempt should have: the one that
	// was applied last, if that is what the attempt looks at. Empty: it fetches them,
	// or has those of a review.
	Modules string `json:"modules,omitempty"`

	EngineChoice
	AssignedEnv
	AssignedState

	// Limits bound each start of the engine, with all that it starts.
	Limits holdfast.RunLimits `json:"limits,omitzero"`

	AssignedReviews
	AssignedResume

	FingerprintKey []byte `json:"fingerprintKey"` // 32 bytes
	TraceParent    string `json:"traceParent,omitempty"`
}

// AssignedReviews is what a plan is compared with.
type AssignedReviews struct {
	// Reviews are the plans of which one must be what an apply finds: it plans
	// itself, always, inside its lock.
	Reviews []holdfast.Review `json:"reviews,omitempty"`
	// Policies are evaluated over the plan; nil: none are.
	Policies *AssignedPolicies `json:"policies,omitempty"`
}

// AssignedResume is what an attempt has to know of the applies that failed before it.
type AssignedResume struct {
	// Resume: what remains of a reviewed plan suffices.
	Resume bool `json:"resume,omitempty"`
	// MayExist are addresses that must not be created without a person's consent: an
	// apply that died was creating them, or may not have saved that it had. A plan that
	// would create one of them says so.
	MayExist []string `json:"mayExist,omitempty"`
	// AnyMayExist: what that apply had begun to create is not known, so that it may
	// be anything.
	AnyMayExist bool `json:"anyMayExist,omitempty"`
}

// EngineChoice says which engine an attempt has.
type EngineChoice struct {
	Engine holdfast.EngineRef `json:"engine,omitzero"` // what the cluster asks for
	// PinName and PinVersion are the engine of the last applied run, kept as
	// long as the constraints allow it.
	PinName    string `json:"pinName,omitempty"`
	PinVersion string `json:"pinVersion,omitempty"`
	// Exact: PinName and PinVersion are the engine, whatever Engine and the code
	// ask for.
	Exact bool `json:"exact,omitempty"`
}

// AssignedEnv is the environment of an attempt, and where its secret variables are.
type AssignedEnv struct {
	Env     map[string]string `json:"env,omitempty"`     // credentials and settings of (project, environment, plan | apply)
	Secrets []string          `json:"secrets,omitempty"` // names in Env whose values are secret

	// Missing are names that are to be in Env, whose values could not be read. A
	// run that needs one of them fails before its engine starts.
	Missing []string `json:"missing,omitempty"`
	// Referenced are those of Missing that secret variables of clusters refer to: only
	// a run whose own do needs them. The others may be a provider's.
	Referenced []string `json:"referenced,omitempty"`

	// SecretDirs are the folders in which the secret variables' files may be, and
	// SecretStores the commands that print a secret of a store, by its name, with
	// "{key}" for which: see SecretFile.
	SecretDirs   []string            `json:"secretDirs,omitempty"`
	SecretStores map[string][]string `json:"secretStores,omitempty"`

	// Identities are the identities that the engine can prove without a stored
	// credential.
	Identities Identities `json:"identities,omitzero"`
}

// AssignedState is where an attempt's state is.
type AssignedState struct {
	// OwnState is true if the state is in Holdfast's own backend at StateLocation;
	// otherwise the code or the rendered root says where.
	OwnState      bool   `json:"ownState,omitempty"`
	StateLocation string `json:"stateLocation"`

	// LockTimeout is how long the engine waits for the state's lock, in
	// nanoseconds; nil: as the agent's own setting says.
	LockTimeout *time.Duration `json:"lockTimeout,omitempty"`
	// State is what a run of kind RunState or RunUnlock does; nil of any other kind.
	State *holdfast.StateJob `json:"state,omitempty"`
}

// Credentials are the environment that a run gets.
type Credentials struct {
	Env     map[string]string // names and values
	Secrets []string          // names in Env whose values are secret
	Missing []string          // names that are to be in Env and whose values could not be read

	Identities Identities // whom it can prove to be without any of them
}
