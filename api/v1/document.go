package v1

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Document is a cluster as its YAML document defines it. Values of variables that have
// the name of a secret are masked.
type Document struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	RenamedFrom string            `json:"renamedFrom,omitempty"` // The name that the cluster had before.
	Project     string            `json:"project"`
	Environment string            `json:"environment"`

	Template  *TemplateRef   `json:"template,omitempty"` // Its template; absent: it has a module.
	Module    *ModuleRef     `json:"module,omitempty"`   // A root module that was written by hand.
	Provider  string         `json:"provider,omitempty"` // Key of the template's spec.providers.
	Region    string         `json:"region,omitempty"`
	Variables map[string]any `json:"variables,omitempty"`

	Engine    Engine           `json:"engine,omitzero"`     // Absent: it is detected.
	State     *StateBackend    `json:"state,omitempty"`     // Absent: the module's own backend, otherwise that of Holdfast.
	DependsOn []string         `json:"dependsOn,omitempty"` // Names of clusters that are applied first.
	Drift     DriftSettings    `json:"drift,omitzero"`
	Apply     ApplySettings    `json:"apply"`
	Deletion  DeletionSettings `json:"deletion,omitzero"`
	Limits    Limits           `json:"limits,omitzero"` // Limits of its engines; absent: those of the server's configuration.

	Path string `json:"path"` // The file in the repository.
	Line int    `json:"line"` // Where the document begins, from 1.
}

// TemplateRef names a template: by name and version, or by a folder of the same
// repository at the same revision.
type TemplateRef struct {
	Name     string `json:"name,omitempty"`
	Version  string `json:"version,omitempty"`  // An exact semantic version.
	Upgrades string `json:"upgrades,omitempty"` // Within which newer versions are proposed, such as "~> 1.4".
	Path     string `json:"path,omitempty"`     // Relative to the cluster's file.
}

// ModuleRef names a root module that was written by hand.
type ModuleRef struct {
	Path string `json:"path"` // From the root of the repository.
}

// Engine selects an engine.
type Engine struct {
	Name    string `json:"name,omitempty"`    // "terraform" or "tofu".
	Version string `json:"version,omitempty"` // A constraint.
}

// StateBackend is where a cluster's state is if its code does not say.
type StateBackend struct {
	Type   string         `json:"type"`   // s3, gcs, azurerm, kubernetes or http.
	Config map[string]any `json:"config"` // The arguments of the backend block.
}

// DriftSettings say when a cluster is checked for drift and what is done about it.
type DriftSettings struct {
	Schedule string      `json:"schedule,omitempty"` // Cron; absent: the server's default; "off": never.
	TimeZone string      `json:"timeZone,omitempty"` // Absent: UTC.
	OnDrift  string      `json:"onDrift,omitempty"`  // report (default), apply or ignore.
	Ignore   []DriftRule `json:"ignore,omitempty"`
}

// DriftRule hides drift that is expected.
type DriftRule struct {
	Address   string    `json:"address"`             // A glob of resource addresses: * is anything but a dot, ** is anything.
	Attribute string    `json:"attribute,omitempty"` // Such as scaling_config[0].desired_size; absent: the whole resource.
	Reason    string    `json:"reason"`
	Expires   time.Time `json:"expires,omitzero"` // When it stops hiding; absent: never.
}

func driftRuleOf(r holdfast.DriftRule) DriftRule { return DriftRule(r) }

// ApplySettings say what a merge does.
type ApplySettings struct {
	OnMerge  bool          `json:"onMerge"`            // False: after the merge the apply waits for a command.
	Requires []string      `json:"requires,omitempty"` // Of "approved", "mergeable", "policy", "cost" and "destroy", those of holdfast.yaml included.
	Terms    GateTerms     `json:"terms,omitzero"`     // What these ask for besides.
	Windows  []ApplyWindow `json:"windows,omitempty"`
}

// GateTerms are what conditions of an apply ask for besides their names.
type GateTerms struct {
	Approvals int         `json:"approvals,omitempty"` // How many people have to approve; absent: one.
	Destroys  int         `json:"destroys,omitempty"`  // How many people have to approve a destroy; absent: one.
	Costs     []CostTerms `json:"costs,omitempty"`     // Limits of what a plan adds to the monthly price: each has to be met.
}

// CostTerms bound what a plan may add to the monthly price.
type CostTerms struct {
	MaxIncrease holdfast.Amount `json:"maxIncrease"`
	Currency    string          `json:"currency"`             // ISO 4217.
	ApprovedBy  []string        `json:"approvedBy,omitempty"` // Of whom one may let a plan pass that adds more, or of which the cost is not known.
	Unpriced    bool            `json:"unpriced,omitempty"`   // What has no price does not matter.
}

func gateTermsOf(t holdfast.GateTerms) GateTerms {
	return GateTerms{Approvals: t.Approvals, Destroys: t.Destroys, Costs: all(t.Costs, func(c holdfast.CostTerms) CostTerms { return CostTerms(c) })}
}

// ApplyWindow allows or denies applies for a time.
type ApplyWindow struct {
	Kind     string `json:"kind"`               // allow or deny.
	Schedule string `json:"schedule"`           // Cron: when it begins.
	Duration string `json:"duration"`           // How long it lasts, such as "2h30m0s".
	TimeZone string `json:"timeZone,omitempty"` // Absent: UTC.
}

func applyWindowOf(w holdfast.ApplyWindow) ApplyWindow {
	return ApplyWindow{Kind: w.Kind, Schedule: w.Schedule, Duration: w.Duration.String(), TimeZone: w.TimeZone}
}

// DeletionSettings guard a cluster against a destroy.
type DeletionSettings struct {
	Protected bool `json:"protected,omitempty"`
}

// Limits are limits of an engine, including every process that it starts.
type Limits struct {
	Memory    int64   `json:"memory,omitempty"`    // Bytes.
	Processes int     `json:"processes,omitempty"` // Processes and threads.
	CPU       float64 `json:"cpu,omitempty"`       // Processors.
}

// DocumentOf returns what the API says of a document; the zero value if there is none.
func DocumentOf(c holdfast.Cluster) Document {
	if c.Name == "" && c.Project == "" && c.Path == "" {
		return Document{}
	}
	doc := Document{
		Name: c.Name, Labels: c.Labels, RenamedFrom: c.RenamedFrom, Project: c.Project, Environment: c.Environment,
		Provider: c.Provider, Region: c.Region, Variables: maskMap(c.Variables), Engine: Engine(c.Engine), DependsOn: c.DependsOn,
		Drift: DriftSettings{
			Schedule: c.Drift.Schedule, TimeZone: c.Drift.TimeZone, OnDrift: c.Drift.OnDrift, Ignore: all(c.Drift.Ignore, driftRuleOf),
		},
		Apply:    ApplySettings{OnMerge: !c.Apply.Manual, Requires: c.Apply.Requires, Terms: gateTermsOf(c.Apply.Terms), Windows: all(c.Apply.Windows, applyWindowOf)},
		Deletion: DeletionSettings(c.Deletion), Limits: Limits(c.Limits), Path: c.Path, Line: c.Line,
	}
	if c.Template != nil {
		template := TemplateRef(*c.Template)
		doc.Template = &template
	}
	if c.Module != nil {
		module := ModuleRef(*c.Module)
		doc.Module = &module
	}
	if c.State != nil {
		doc.State = &StateBackend{Type: c.State.Type, Config: maskMap(c.State.Config)}
		if doc.State.Config == nil {
			doc.State.Config = map[string]any{} // null surprises clients
		}
	}
	return doc
}

// Fault is a mistake in a file that a person wrote.
type Fault struct {
	File    string `json:"file"`              // Its path in the repository.
	Line    int    `json:"line,omitempty"`    // From 1; absent: the whole file.
	Column  int    `json:"column,omitempty"`  // From 1; absent: the whole line.
	Cluster string `json:"cluster,omitempty"` // The cluster that cannot be planned; absent: not known.
	Message string `json:"message"`           // What is wrong, with the value.
	Hint    string `json:"hint,omitempty"`    // What to do about it.
}

func faultOf(f holdfast.Fault) Fault { return Fault(f) }

// Error returns "file:line:column: message (hint)".
func (f Fault) Error() string { return holdfast.Fault(f).Error() }
