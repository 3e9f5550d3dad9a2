package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/jsontree"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

// Options are what Read needs besides the engine's JSON.
type Options struct {
	// Key makes the hashes of what is secret. It must be the same wherever
	// documents are to be compared.
	Key []byte
	// Redactor knows secrets, and learns those that the plan marks. Nil: it knows
	// nothing yet.
	Redactor *redact.Redactor
	// Text is the engine's own rendering of the plan; warnings are taken from it.
	Text string
	// Code returns code of a module that is not in the engine's JSON: of the root
	// module without a path, otherwise of where the calls with those names lead; false
	// if it is not known. Nil: none is.
	Code func(module []string) (ModuleCode, bool)
	// Secrets are keyed hashes of the secret variables, by name.
	Secrets map[string]string
	// Compared is what the plan file and the given state differ in. Nil: nothing was
	// compared, and the engine's JSON is believed.
	Compared *Compared
}

// Result is what a plan says.
type Result struct {
	Document plandoc.Document
	Info     plandoc.Info
	// Resources are in the state that the plan was made from, by address, at most
	// MaxResources. A plan's prior state is what a refresh made of it: an object that
	// was deleted outside was in the state still.
	Resources []holdfast.Resource
	// Outputs are those of that state, by name; sensitive ones have no value.
	// They may have secrets that are marked elsewhere only.
	Outputs []holdfast.Output
}

// Read reads the engine's plan JSON as `show -json` prints it: twice, since what is
// secret may be marked after its place. Values under sensitive marks, what is named
// like a secret, and strings that have a known secret in them are replaced by marks.
//
// A plan that the engine could not finish, or that does something this version
// does not know, is an error.
func Read(r io.ReadSeeker, o Options) (Result, error) {
	if len(o.Key) == 0 {
		return Result{}, errors.New("parse plan: no fingerprint key")
	}
	if o.Redactor == nil {
		o.Redactor = redact.New(nil)
	}
	o.Code = remembered(o.Code)
	first := survey{compared: o.Compared != nil}
	if err := first.read(newStream(r)); err != nil {
		return Result{}, fmt.Errorf("parse plan: %w", readError(err))
	}
	o.Redactor.Add(first.secrets...)
	first.secrets = nil
	if o.Redactor.Withholds() {
		return Result{}, errors.New("parse plan: it has more secret values than can be kept out of what is shown")
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return Result{}, fmt.Errorf("parse plan: %w", err)
	}
	second := reading{options: o, first: &first, given: first.code.trace(o.Code), result: Result{
		Document:  plandoc.Document{Version: plandoc.Version},
		Info:      plandoc.Info{Text: o.Redactor.String(o.Text)},
		Resources: first.resources.Sorted(), Outputs: first.outputs,
	}}
	second.expect()
	if err := second.readAll(newStream(r)); err != nil {
		return Result{}, fmt.Errorf("parse plan: %w", readError(err))
	}
	if err := second.addCompared(); err != nil {
		return Result{}, fmt.Errorf("parse plan: %w", err)
	}
	return second.end()
}

// readError says what is wrong with the JSON without quoting it.
func readError(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("decode plan JSON: %w", jsontree.Error(err))
	}
	return err
}

// reading is the second look at a plan, in which the document is made.
type reading struct {
	first   *survey
	options Options
	given   given
	read    map[string]bool // addresses of reads in the document
	drifted map[objectKey]*drifted
	result  Result
}

func (p *reading) readAll(s stream) error {
	return s.object(func(key string) error {
		switch key {
		case "prior_state":
			return p.readState(s)
		case "resource_changes":
			return s.list(func() error { return p.resource(s, &p.result.Document.Resources, false) })
		case "resource_drift":
			return s.list(func() error { return p.resource(s, &p.result.Info.Drift, true) })
		case "output_changes":
			return s.object(func(name string) error { return p.output(s, name) })
		default:
			return s.skip()
		}
	})
}

// resource reads one change of a resource.
func (p *reading) resource(s stream, into *[]plandoc.Resource, drift bool) error {
	var rc *tfjson.ResourceChange
	if err := s.value(&rc); err != nil {
		return err
	}
	if rc == nil || rc.Change == nil {
		return nil
	}
	if rc.Mode == tfjson.DataResourceMode {
		after, _ := rc.Change.After.(map[string]any)
		if drift || after == nil && rc.Change.AfterUnknown == nil {
			return nil
		}
		return p.dataRead(rc.Address, after, marks{rc.Change.AfterSensitive}, rc.Change.AfterUnknown)
	}
	actions, err := actionsOf(rc.Change.Actions)
	if err != nil {
		return fmt.Errorf("%s: %w", p.options.Redactor.Known(rc.Address), err)
	}
	m := maker{key: p.options.Key, redactor: p.options.Redactor, address: rc.Address}
	r := plandoc.Resource{
		Address: m.name("", rc.Address), Deposed: rc.DeposedKey, Type: p.options.Redactor.Known(rc.Type),
		Provider: rc.ProviderName, Reason: string(rc.ActionReason), Actions: actions,
	}
	if rc.PreviousAddress != "" && rc.PreviousAddress != rc.Address {
		r.Previous = m.name("", rc.PreviousAddress)
	}
	changes := actions[0] != "no-op"
	if !changes && rc.Change.Importing == nil && (r.Previous == "" || drift) { // what only moves has not drifted
		return nil
	}
	if !drift {
		if err := p.checkBefore(objectKey{rc.Address, rc.DeposedKey}, rc.Change); err != nil {
			return fmt.Errorf("%s: %w", r.Address, err)
		}
	}
	if rc.Change.Importing != nil {
		if r.Importing, err = m.importing(rc.Change); err != nil {
			return fmt.Errorf("%s: %w", r.Address, err)
		}
	}
	for _, path := range rc.Change.ReplacePaths {
		r.Replace = append(r.Replace, m.name("(replace)", pathOfSteps(path)))
	}
	slices.Sort(r.Replace)
	r.Replace = slices.Compact(r.Replace)
	if drift {
		r.Previous, r.Importing = "", nil
		dropEqual(rc.Change)
	}
	if err := m.sides(rc.Change, &r.Before, &r.After); err != nil {
		return fmt.Errorf("%s: %w", r.Address, err)
	}
	*into = append(*into, r)
	return nil
}

// sides makes the values before and after a change.
func (m maker) sides(change *tfjson.Change, before, after *plandoc.Value) (err error) {
	sensitive := marks{change.BeforeSensitive, change.AfterSensitive}
	if *before, err = m.value(change.Before, sensitive, nil); err != nil {
		return err
	}
	*after, err = m.value(change.After, sensitive, change.AfterUnknown)
	return err
}

// dropEqual leaves out the attributes that are equal before and after.
func dropEqual(change *tfjson.Change) {
	before, _ := change.Before.(map[string]any)
	after, _ := change.After.(map[string]any)
	for key, value := range before {
		if other, ok := after[key]; ok && equal(value, other) {
			delete(before, key)
			delete(after, key)
		}
	}
}

func equal(a, b any) bool {
	first, errFirst := jsontree.Marshal(a)
	second, errSecond := jsontree.Marshal(b)
	return errFirst == nil && errSecond == nil && string(first) == string(second)
}

// importing is what is imported. Where the object that the engine found has another
// id, that is a part of it: for some resources the two differ, and a state can have
// any object.
func (m maker) importing(change *tfjson.Change) (plandoc.Value, error) {
	const path, name = holdfast.AttributePath("(import)"), ""
	importing, id := change.Importing, jsontree.Field(change.Before, "id")
	switch {
	case importing.ID != "" && id != nil && IDOf(id) != importing.ID:
		sensitive := marks{change.BeforeSensitive, change.AfterSensitive}.at("id")
		return plandoc.NewValue(map[string]any{
			"id": m.tree(path, name, importing.ID, nil, nil), "object": m.tree(path.Key("object"), "id", id, sensitive, nil),
		})
	case importing.ID != "":
		return plandoc.NewValue(m.tree(path, name, importing.ID, nil, nil))
	case importing.Unknown:
		return plandoc.NewValue(plandoc.Mark{Unknown: true})
	case importing.Identity == nil:
		return plandoc.NewValue("(by identity)")
	default:
		return plandoc.NewValue(m.tree(path, name, importing.Identity, nil, nil))
	}
}

func (p *reading) output(s stream, name string) error {
	var change *tfjson.Change
	if err := s.value(&change); err != nil || change == nil {
		return err
	}
	actions, err := actionsOf(change.Actions)
	if err != nil {
		return fmt.Errorf("output %s: %w", p.options.Redactor.Known(name), err)
	}
	sensitive := []any{change.BeforeSensitive, change.AfterSensitive}
	if err := p.checkOutput(name, change.After, sensitive, actions[0] != "no-op"); err != nil {
		return fmt.Errorf("output %s: %w", p.options.Redactor.Known(name), err)
	}
	if actions[0] == "no-op" {
		return nil
	}
	m := maker{key: p.options.Key, redactor: p.options.Redactor, address: "output." + name}
	o := plandoc.Output{Name: m.name("", name), Actions: actions}
	if err := m.sides(change, &o.Before, &o.After); err != nil {
		return fmt.Errorf("output %s: %w", o.Name, err)
	}
	p.result.Document.Outputs = append(p.result.Document.Outputs, o)
	return nil
}

// end sorts and checks what was read.
func (p *reading) end() (Result, error) {
	if err := errors.Join(p.readSecrets(), p.readFiles()); err != nil {
		return Result{}, fmt.Errorf("parse plan: %w", err)
	}
	result := p.result
	if len(result.Document.Resources)+len(result.Document.Outputs) == 0 {
		result.Document.Reads = nil // nothing is done with it
	}
	result.Document.Sort()
	slices.SortFunc(result.Info.Drift, func(a, b plandoc.Resource) int {
		return cmp.Or(strings.Compare(a.Address, b.Address), strings.Compare(a.Deposed, b.Deposed))
	})
	result.Info.Warnings = warningsIn(p.options.Text)
	for i := range result.Info.Warnings {
		w, r := &result.Info.Warnings[i], p.options.Redactor
		w.Summary, w.Detail, w.Address, w.File = r.String(w.Summary), r.String(w.Detail), r.Known(w.Address), r.Known(w.File)
	}
	if err := errors.Join(result.Document.Validate(), result.Info.Validate()); err != nil {
		return Result{}, fmt.Errorf("parse plan: %w", err)
	}
	return result, nil
}

// actionsOf returns the engine's actions; no-op for none. What an engine of the
// future might do is refused: nobody could have reviewed it.
func actionsOf(actions tfjson.Actions) ([]string, error) {
	names := make([]string, len(actions))
	for i, a := range actions {
		names[i] = string(a)
	}
	switch joined := strings.Join(names, ","); joined {
	case "", "no-op", "read":
		return []string{"no-op"}, nil
	case "create", "update", "delete", "forget", "delete,create", "create,delete", "create,forget", "forget,create":
		return names, nil
	default:
		return nil, fmt.Errorf("unknown actions %q", joined)
	}
}
