package v1

import (
	"encoding/json"

	"github.com/holdfast-dev/holdfast"
)

// Plan is what a run would change, without what is secret.
type Plan struct {
	Counts        Counts           `json:"counts"`
	Changes       []ResourceChange `json:"changes,omitempty"`       // The most dangerous first, then by address.
	Drift         []ResourceChange `json:"drift,omitempty"`         // What was changed outside of the engine.
	OutputChanges []OutputChange   `json:"outputChanges,omitempty"` // Outputs of the root module that change.
	Reads         []PlanInput      `json:"reads,omitempty"`         // What provisioners, providers and write-only arguments are given.
	Warnings      []Diagnostic     `json:"warnings,omitempty"`      // Warnings of the engine.
	Text          string           `json:"text,omitempty"`          // The engine's own rendering, redacted.
	Fingerprint   holdfast.Digest  `json:"fingerprint"`             // Of what the plan would do.
	Digest        holdfast.Digest  `json:"digest,omitempty"`        // Of the plan document; absent: the plan is older than documents.
	Cost          *Cost            `json:"cost,omitempty"`          // What it changes of the monthly price; absent: it was not estimated.
}

// PlanOf returns what the API says of a plan.
func PlanOf(p holdfast.Plan) Plan {
	return Plan{
		Counts: Counts(p.Counts), Changes: all(p.Changes, resourceChangeOf), Drift: all(p.Drift, resourceChangeOf),
		OutputChanges: all(p.OutputChanges, outputChangeOf), Reads: all(p.Reads, planInputOf), Warnings: all(p.Warnings, diagnosticOf),
		Text: p.Text, Fingerprint: p.Fingerprint, Digest: p.Digest, Cost: costOf(p.Cost),
	}
}

// Plan returns the plan in the vocabulary of Holdfast, as far as the API says it.
func (p Plan) Plan() holdfast.Plan {
	return holdfast.Plan{
		Counts: holdfast.Counts(p.Counts), Changes: all(p.Changes, ResourceChange.change), Drift: all(p.Drift, ResourceChange.change),
		OutputChanges: all(p.OutputChanges, OutputChange.change), Reads: all(p.Reads, PlanInput.input), Warnings: all(p.Warnings, Diagnostic.diagnostic),
		Text: p.Text, Fingerprint: p.Fingerprint, Digest: p.Digest, Cost: p.Cost.Cost(),
	}
}

// Counts are numbers of resource changes. A replacement is neither a create nor a
// delete; reads are not counted.
type Counts struct {
	Create  int `json:"create"`
	Update  int `json:"update"`
	Replace int `json:"replace"`
	Delete  int `json:"delete"`
	Import  int `json:"import"`
	Move    int `json:"move"`
	Forget  int `json:"forget"`  // Removed from the state, not destroyed.
	Outputs int `json:"outputs"` // Output values that change.
}

// Zero reports whether nothing changes.
func (c Counts) Zero() bool { return c == Counts{} }

// ResourceChange is what happens to one resource of a plan.
type ResourceChange struct {
	Address         string                `json:"address"`
	PreviousAddress string                `json:"previousAddress,omitempty"` // It was moved from there.
	Type            string                `json:"type"`
	Provider        string                `json:"provider,omitempty"`
	Action          holdfast.ChangeAction `json:"action"`
	CreateFirst     bool                  `json:"createFirst,omitempty"`  // Of a replacement: the new one is created before the old one is destroyed.
	Forgets         bool                  `json:"forgets,omitempty"`      // Of a replacement: the old object is removed from the state but not destroyed.
	Reason          string                `json:"reason,omitempty"`       // The engine's action_reason.
	ReplacePaths    []string              `json:"replacePaths,omitempty"` // Attributes that force a replacement.
	Importing       string                `json:"importing,omitempty"`    // The id that is imported.
	Attributes      []AttributeChange     `json:"attributes,omitempty"`
}

func resourceChangeOf(c holdfast.ResourceChange) ResourceChange {
	return ResourceChange{
		Address: c.Address, PreviousAddress: c.PreviousAddress, Type: c.Type, Provider: c.Provider, Action: c.Action,
		CreateFirst: c.CreateFirst, Forgets: c.Forgets, Reason: c.Reason, ReplacePaths: c.ReplacePaths, Importing: c.Importing,
		Attributes: all(c.Attributes, attributeChangeOf),
	}
}

func (c ResourceChange) change() holdfast.ResourceChange {
	return holdfast.ResourceChange{
		Address: c.Address, PreviousAddress: c.PreviousAddress, Type: c.Type, Provider: c.Provider, Action: c.Action,
		CreateFirst: c.CreateFirst, Forgets: c.Forgets, Reason: c.Reason, ReplacePaths: c.ReplacePaths, Importing: c.Importing,
		Attributes: all(c.Attributes, AttributeChange.change),
	}
}

// AttributeChange is what happens to one attribute of a resource. Before and after are
// any JSON; a sensitive value is the text "(sensitive value)", one that is not known yet
// "(known after apply)".
type AttributeChange struct {
	Path      string          `json:"path"` // Such as node_pool[0].size.
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Sensitive bool            `json:"sensitive,omitempty"` // Nothing of a value is shown.
	Unknown   bool            `json:"unknown,omitempty"`   // The value after the apply is not known yet.
	Forces    bool            `json:"forces,omitempty"`    // It forces the replacement.
}

func attributeChangeOf(a holdfast.AttributeChange) AttributeChange {
	shown := AttributeChange{Path: a.Path, Before: a.Before, After: a.After, Sensitive: a.Sensitive, Unknown: a.Unknown, Forces: a.Forces}
	if a.Sensitive {
		shown.Before, shown.After = maskJSON(a.Before), maskJSON(a.After)
	}
	return shown
}

func (a AttributeChange) change() holdfast.AttributeChange {
	return holdfast.AttributeChange{Path: a.Path, Before: a.Before, After: a.After, Sensitive: a.Sensitive, Unknown: a.Unknown, Forces: a.Forces}
}

// OutputChange is an output value that changes. Its values are as those of an attribute.
type OutputChange struct {
	Name      string                `json:"name"`
	Action    holdfast.ChangeAction `json:"action"`
	Sensitive bool                  `json:"sensitive,omitempty"`
	Unknown   bool                  `json:"unknown,omitempty"`
	Before    json.RawMessage       `json:"before,omitempty"`
	After     json.RawMessage       `json:"after,omitempty"`
}

func outputChangeOf(o holdfast.OutputChange) OutputChange {
	shown := OutputChange{Name: o.Name, Action: o.Action, Sensitive: o.Sensitive, Unknown: o.Unknown, Before: o.Before, After: o.After}
	if o.Sensitive {
		shown.Before, shown.After = maskJSON(o.Before), maskJSON(o.After)
	}
	return shown
}

func (o OutputChange) change() holdfast.OutputChange {
	return holdfast.OutputChange{Name: o.Name, Action: o.Action, Sensitive: o.Sensitive, Unknown: o.Unknown, Before: o.Before, After: o.After}
}

// PlanInput is a value that was read and is given to provisioners, providers or
// write-only arguments, of which no change says what they are given.
type PlanInput struct {
	Address    string            `json:"address"` // Of a data source or a resource, or var.NAME of a secret variable.
	Attributes []AttributeChange `json:"attributes,omitempty"`
}

func planInputOf(i holdfast.PlanInput) PlanInput {
	return PlanInput{Address: i.Address, Attributes: all(i.Attributes, attributeChangeOf)}
}

func (i PlanInput) input() holdfast.PlanInput {
	return holdfast.PlanInput{Address: i.Address, Attributes: all(i.Attributes, AttributeChange.change)}
}

// Output is an output value of a cluster's last apply.
type Output struct {
	Name      string          `json:"name"`
	Sensitive bool            `json:"sensitive,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`   // Any JSON; absent of what is sensitive, or has the name of a secret.
	Omitted   int64           `json:"omitted,omitempty"` // The bytes of a value that is absent because the answer would be too large.
}

// OutputOf returns what the API says of an output.
func OutputOf(o holdfast.Output) Output {
	if o.Sensitive || secretName.MatchString(o.Name) {
		o.Value = nil
	}
	return Output{Name: o.Name, Sensitive: o.Sensitive, Value: o.Value}
}
