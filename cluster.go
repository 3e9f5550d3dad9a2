package holdfast

import (
	"encoding/json"
	"time"
)

// Cluster is one YAML document of kind Cluster: the unit of planning, locking
// and applying, with one Terraform state.
type Cluster struct {
	Name   string            `json:"name"` // unique in the fleet: [a-z0-9-], at most 63 bytes
	Labels map[string]string `json:"labels,omitempty"`

	// RenamedFrom is the name that this cluster had before: its state and
	// history continue under the new one.
	RenamedFrom string `json:"renamedFrom,omitempty"`

	Project     string `json:"project"`
	Environment string `json:"environment"`

	// Exactly one of Template and Module is set.
	Template *TemplateRef `json:"template,omitempty"`
	Module   *ModuleRef   `json:"module,omitempty"`

	Provider  string         `json:"provider,omitempty"` // key of the template's spec.providers
	Region    string         `json:"region,omitempty"`
	Variables map[string]any `json:"variables,omitempty"`

	Engine    EngineRef     `json:"engine,omitzero"`
	State     *StateBackend `json:"state,omitempty"` // nil: the module's own backend block, otherwise Holdfast's HTTP backend
	DependsOn []string      `json:"dependsOn,omitempty"`

	Drift    DriftSettings    `json:"drift,omitzero"`
	Apply    ApplySettings    `json:"apply,omitzero"`
	Deletion DeletionSettings `json:"deletion,omitzero"`

	// Limits are what the engine of its runs should be allowed to use, within what
	// the server's configuration allows; a zero leaves it to that.
	Limits RunLimits `json:"limits,omitzero"`
	// Runner is what it asks of the runner of its environment; nil: nothing.
	Runner *ClusterRunner `json:"runner,omitempty"`

	// Path and Line say where the document is in its repository.
	Path string `json:"path"`
	Line int    `json:"line"`
}

// TemplateRef names the template of a cluster: a version of a named template
// (Name and Version), or a folder of the same repository at the same revision
// (Path, relative to the cluster's file).
type TemplateRef struct {
	Name     string `json:"name,omitempty"`
	Version  string `json:"version,omitempty"`  // exact semantic version
	Upgrades string `json:"upgrades,omitempty"` // constraint within which newer versions are proposed
	Path     string `json:"path,omitempty"`
}

// ModuleRef names a custom root module.
type ModuleRef struct {
	Path string `json:"path"` // relative to the root of the cluster's repository
}

// EngineRef selects an engine. The zero value leaves both to detection.
type EngineRef struct {
	Name    string `json:"name,omitempty"`    // "terraform", "tofu", or empty
	Version string `json:"version,omitempty"` // a version constraint, or empty
}

// StateBackend is where a cluster's state lives when its code does not say.
type StateBackend struct {
	Type   string         `json:"type"`   // s3, gcs, azurerm, kubernetes or http
	Config map[string]any `json:"config"` // the backend block's arguments; never secrets
}

// DriftSettings says when a cluster is checked for drift, and what happens then.
type DriftSettings struct {
	Schedule string      `json:"schedule,omitempty"` // cron, with an optional CRON_TZ; empty: the server's default; "off": none
	TimeZone string      `json:"timeZone,omitempty"` // of Schedule; empty means UTC
	OnDrift  string      `json:"onDrift,omitempty"`  // report (default), apply (revert it) or ignore (tell nobody)
	Ignore   []DriftRule `json:"ignore,omitempty"`
}

// ApplySettings says what a merge does.
type ApplySettings struct {
	// Manual is true for `onMerge: false`: after the merge the apply waits for
	// /holdfast apply.
	Manual   bool          `json:"manual,omitempty"`
	Requires []string      `json:"requires,omitempty"` // of "approved", "mergeable", "policy", "cost", "destroy"
	Terms    GateTerms     `json:"terms,omitzero"`     // of those in Requires
	Windows  []ApplyWindow `json:"windows,omitempty"`
}

// ApplyWindow allows or denies applies for a duration from each time that a
// cron schedule matches.
type ApplyWindow struct {
	Kind     string        `json:"kind"` // allow or deny
	Schedule string        `json:"schedule"`
	Duration time.Duration `json:"duration"`
	TimeZone string        `json:"timeZone,omitempty"` // empty means UTC
}

// DeletionSettings guards a cluster against destruction.
type DeletionSettings struct {
	Protected bool `json:"protected,omitempty"`
}

// ClusterRunner is what a cluster's document asks of the runner of its environment, within
// what that allows.
type ClusterRunner struct {
	Resources      RunLimits       `json:"resources,omitzero"`
	ServiceAccount string          `json:"serviceAccount,omitempty"`
	PodTemplate    json.RawMessage `json:"podTemplate,omitempty"`
}
