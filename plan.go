package holdfast

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Plan is what a run would change, for people: it is derived from a plan
// document (package plandoc), with everything secret left out, and from the
// information next to it.
type Plan struct {
	Counts        Counts           `json:"counts"`
	Changes       []ResourceChange `json:"changes,omitempty"` // most dangerous first, then by address
	Drift         []ResourceChange `json:"drift,omitempty"`   // changed outside of the engine
	OutputChanges []OutputChange   `json:"outputChanges,omitempty"`
	Reads         []PlanInput      `json:"reads,omitempty"` // what is given to what no change shows
	Warnings      []Diagnostic     `json:"warnings,omitempty"`
	Text          string           `json:"text,omitempty"` // the engine's rendering, redacted
	Fingerprint   Digest           `json:"fingerprint"`
	Digest        Digest           `json:"digest,omitempty"` // of the document; empty: it was made before there were any
	Cost          *Cost            `json:"cost,omitempty"`   // nil: it was not estimated
}

// HasChanges reports whether an apply of the plan would do anything.
func (p Plan) HasChanges() bool { return !p.Counts.Zero() }

// Counts are numbers of resource changes. A replace is neither a create nor a
// delete; reads are not counted.
type Counts struct {
	Create  int `json:"create"`
	Update  int `json:"update"`
	Replace int `json:"replace"`
	Delete  int `json:"delete"`
	Import  int `json:"import"`
	Move    int `json:"move"`
	Forget  int `json:"forget"`
	Outputs int `json:"outputs"` // output values that change
}

// Zero reports whether nothing changes.
func (c Counts) Zero() bool { return c == Counts{} }

// Add returns the sum.
func (c Counts) Add(o Counts) Counts {
	return Counts{
		Create: c.Create + o.Create, Update: c.Update + o.Update, Replace: c.Replace + o.Replace,
		Delete: c.Delete + o.Delete, Import: c.Import + o.Import, Move: c.Move + o.Move,
		Forget: c.Forget + o.Forget, Outputs: c.Outputs + o.Outputs,
	}
}

// ChangeAction is what happens to a resource.
type ChangeAction string

// The actions, most dangerous first.
const (
	ActionReplace ChangeAction = "replace"
	ActionDelete  ChangeAction = "delete"
	ActionForget  ChangeAction = "forget" // leaves the state; the object stays
	ActionUpdate  ChangeAction = "update"
	ActionCreate  ChangeAction = "create"
	ActionImport  ChangeAction = "import" // with nothing else to change
	ActionMove    ChangeAction = "move"   // with nothing else to change
)

// Reasons of changes that the engine makes in the state without listing them.
const (
	// GoneOutside: an object in the state no longer exists.
	GoneOutside = "gone_outside"
	// OtherObject: an address now refers to an object with another id than in the
	// state.
	OtherObject = "other_object"
)

// ResourceChange is one resource of a plan.
type ResourceChange struct {
	Address         string            `json:"address"`
	PreviousAddress string            `json:"previousAddress,omitempty"` // moved from there
	Type            string            `json:"type"`
	Provider        string            `json:"provider,omitempty"`
	Action          ChangeAction      `json:"action"`
	CreateFirst     bool              `json:"createFirst,omitempty"` // replace: created before the old one is destroyed
	Forgets         bool              `json:"forgets,omitempty"`     // replace: the old one leaves the state, but the object stays
	Reason          string            `json:"reason,omitempty"`      // the engine's action_reason, or one of the above
	ReplacePaths    []string          `json:"replacePaths,omitempty"`
	Importing       string            `json:"importing,omitempty"` // the id
	Attributes      []AttributeChange `json:"attributes,omitempty"`
}

// Destroys reports whether something existing is destroyed.
func (c ResourceChange) Destroys() bool {
	return c.Action == ActionReplace || c.Action == ActionDelete
}

// What is shown in place of a value.
const (
	SensitiveValue = "(sensitive value)"
	UnknownValue   = "(known after apply)"
)

// AttributeChange is one attribute of a ResourceChange. Before and After are
// JSON; sensitive values are the string "(sensitive value)", unknown ones
// "(known after apply)". What is not there is empty, and so is null at the top of a
// resource: inside of a value, a key that has null is another one than none.
type AttributeChange struct {
	Path      string          `json:"path"` // such as node_pool[0].size
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Sensitive bool            `json:"sensitive,omitempty"` // nothing of a value is shown; a part of one may be left out without it
	Unknown   bool            `json:"unknown,omitempty"`
	Forces    bool            `json:"forces,omitempty"` // forces the replacement
	// BeforeMark and AfterMark identify what is secret in Before and After: equal
	// values of the same address and path have equal ones. Empty: nothing is.
	BeforeMark Digest `json:"beforeMark,omitempty"`
	AfterMark  Digest `json:"afterMark,omitempty"`
}

// AttributePath names a part of a value, such as node_pool[0].size or
// tags["kubernetes.io/role"]. Empty is the value itself.
type AttributePath string

// Key returns the path of an attribute, or of a map's element.
func (p AttributePath) Key(key string) AttributePath {
	switch {
	case !IsIdentifier(key):
		return p + AttributePath("["+strconv.Quote(key)+"]")
	case p == "":
		return AttributePath(key)
	default:
		return p + "." + AttributePath(key)
	}
}

// Index returns the path of a list's element.
func (p AttributePath) Index(i int) AttributePath {
	return p + AttributePath("["+strconv.Itoa(i)+"]")
}

// Within reports whether p is base or below it.
func (p AttributePath) Within(base AttributePath) bool {
	rest, ok := strings.CutPrefix(string(p), string(base))
	return ok && (rest == "" || base == "" || rest[0] == '.' || rest[0] == '[')
}

// IsIdentifier reports whether s is a name in the engines' language: letters,
// digits, _ and -, and neither a digit nor - in front.
func IsIdentifier(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '-' && (r < '0' || r > '9')) {
			return false
		}
	}
	return s != ""
}

// Emptied reports for each attribute of a resource whether it says only that what is
// below it in the list was, or becomes, empty.
func Emptied(attributes []AttributeChange) []bool {
	out := make([]bool, len(attributes))
	for i, a := range attributes {
		one := string(a.Before) + string(a.After) // of which the other is nothing
		out[i] = (one == "{}" || one == "[]") && slices.ContainsFunc(attributes, func(below AttributeChange) bool {
			return below.Path != a.Path && AttributePath(below.Path).Within(AttributePath(a.Path))
		})
	}
	return out
}

// OutputChange is an output value that changes. Its values are as those of an
// AttributeChange.
type OutputChange struct {
	Name       string          `json:"name"`
	Action     ChangeAction    `json:"action"`
	Sensitive  bool            `json:"sensitive,omitempty"`
	Unknown    bool            `json:"unknown,omitempty"`
	Before     json.RawMessage `json:"before,omitempty"`
	After      json.RawMessage `json:"after,omitempty"`
	BeforeMark Digest          `json:"beforeMark,omitempty"`
	AfterMark  Digest          `json:"afterMark,omitempty"`
}

// PlanInput is a value that was read and is given to provisioners, providers or
// write-only arguments, of which no change says what they are given.
type PlanInput struct {
	Address    string            `json:"address"` // of a data source or a resource, or var.NAME of a secret variable
	Attributes []AttributeChange `json:"attributes,omitempty"`
}

// Output is an output value of a root module after an apply.
type Output struct {
	Name      string          `json:"name"`
	Sensitive bool            `json:"sensitive,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`
}
