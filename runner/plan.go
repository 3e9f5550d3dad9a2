package runner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/holdfast-dev/holdfast"
)

const (
	sensitiveValue = "(sensitive value)"
	unknownValue   = "(known after apply)"
)

// planDocument is the part of an engine's plan JSON that says what would
// happen. The rest, such as the configuration, is not decoded: it is most of
// the document.
type planDocument struct {
	FormatVersion   string                    `json:"format_version"`
	Errored         bool                      `json:"errored"`
	ResourceDrift   []*tfjson.ResourceChange  `json:"resource_drift"`
	ResourceChanges []*tfjson.ResourceChange  `json:"resource_changes"`
	OutputChanges   map[string]*tfjson.Change `json:"output_changes"`
}

// ParsePlan reads the engine's plan JSON as `show -json` prints it. key makes
// the fingerprint's hashes and must be the same wherever fingerprints are to be
// compared. text is the engine's own rendering of the plan; warnings are taken
// from it. Values under sensitive marks, and strings that contain one of them,
// are left out of the Plan and of its text; they count in the fingerprint.
//
// A plan that the engine could not finish, or that does something this version
// does not know, is an error.
func ParsePlan(planJSON []byte, key []byte, text string) (holdfast.Plan, error) {
	if len(key) == 0 {
		return holdfast.Plan{}, errors.New("parse plan: no fingerprint key")
	}
	doc, err := decodePlan(planJSON)
	if err != nil {
		return holdfast.Plan{}, fmt.Errorf("parse plan: %w", err)
	}
	plan := holdfast.Plan{Text: text, Warnings: warningsIn(text)}
	for _, rc := range doc.ResourceChanges {
		change, ok, err := resourceChange(rc)
		if err != nil {
			return holdfast.Plan{}, fmt.Errorf("parse plan: %w", err)
		}
		if ok {
			plan.Changes = append(plan.Changes, change)
			countChange(&plan.Counts, change)
		}
	}
	for _, rc := range doc.ResourceDrift {
		change, ok, err := resourceChange(rc)
		if err != nil {
			return holdfast.Plan{}, fmt.Errorf("parse plan: drift: %w", err)
		}
		if ok && change.Action != holdfast.ActionMove {
			plan.Drift = append(plan.Drift, change)
		}
	}
	if plan.OutputChanges, err = outputChanges(doc.OutputChanges); err != nil {
		return holdfast.Plan{}, fmt.Errorf("parse plan: %w", err)
	}
	plan.Counts.Outputs = len(plan.OutputChanges)
	sortByDanger(plan.Changes)
	sortByDanger(plan.Drift)
	plan.Prints = printsOf(doc, key)
	plan.Fingerprint = fingerprintOf(plan.Prints)
	return NewRedactor(SecretsOf(planJSON)).Plan(plan), nil
}

// decodePlan keeps numbers as they are written: a float would make large ones
// equal that are not.
func decodePlan(planJSON []byte) (*planDocument, error) {
	dec := json.NewDecoder(bytes.NewReader(planJSON))
	dec.UseNumber()
	var doc planDocument
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("decode plan JSON: %w", jsonError(err))
	}
	switch {
	case !strings.HasPrefix(doc.FormatVersion, "0.") && !strings.HasPrefix(doc.FormatVersion, "1."):
		return nil, fmt.Errorf("format version %q of the plan JSON is not one of 0.x and 1.x", doc.FormatVersion)
	case doc.Errored:
		return nil, errors.New("the engine could not finish the plan")
	}
	return &doc, nil
}

// jsonError says where a document is broken without quoting it.
func jsonError(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("unexpected %s at byte %d", kind.Value, kind.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("the document ends too early")
	default:
		return errors.New("not a plan document")
	}
}

// resourceChange returns what happens to a resource; false if nothing that
// people or Holdfast care for.
func resourceChange(rc *tfjson.ResourceChange) (holdfast.ResourceChange, bool, error) {
	if rc == nil || rc.Change == nil || rc.Mode == tfjson.DataResourceMode {
		return holdfast.ResourceChange{}, false, nil
	}
	action, createFirst, err := actionOf(rc.Change.Actions)
	if err != nil {
		return holdfast.ResourceChange{}, false, fmt.Errorf("%s: %w", rc.Address, err)
	}
	change := holdfast.ResourceChange{
		Address: addressOf(rc), Type: rc.Type, Provider: rc.ProviderName, Action: action, CreateFirst: createFirst,
		Reason: string(rc.ActionReason),
	}
	if rc.PreviousAddress != rc.Address {
		change.PreviousAddress = rc.PreviousAddress
	}
	if rc.Change.Importing != nil {
		change.Importing = importID(rc.Change.Importing)
	}
	switch {
	case action != "":
	case change.Importing != "":
		change.Action = holdfast.ActionImport
	case change.PreviousAddress != "":
		change.Action = holdfast.ActionMove
	default:
		return holdfast.ResourceChange{}, false, nil
	}
	for _, path := range rc.Change.ReplacePaths {
		change.ReplacePaths = append(change.ReplacePaths, pathOfSteps(path))
	}
	slices.Sort(change.ReplacePaths)
	change.Attributes = attributeChanges(rc.Change, change.ReplacePaths)
	return change, true, nil
}

// actionOf returns the action, empty for none. What an engine of the future
// might do is refused: nobody could have reviewed it.
func actionOf(actions tfjson.Actions) (action holdfast.ChangeAction, createFirst bool, err error) {
	names := make([]string, len(actions))
	for i, a := range actions {
		names[i] = string(a)
	}
	switch joined := strings.Join(names, ","); joined {
	case "", "no-op", "read":
		return "", false, nil
	case "create":
		return holdfast.ActionCreate, false, nil
	case "update":
		return holdfast.ActionUpdate, false, nil
	case "delete":
		return holdfast.ActionDelete, false, nil
	case "forget":
		return holdfast.ActionForget, false, nil
	case "delete,create":
		return holdfast.ActionReplace, false, nil
	case "create,delete", "create,forget":
		return holdfast.ActionReplace, true, nil
	case "forget,create":
		return holdfast.ActionReplace, false, nil
	default:
		return "", false, fmt.Errorf("unknown actions %q", joined)
	}
}

// addressOf tells the deposed objects of a resource from its current one.
func addressOf(rc *tfjson.ResourceChange) string {
	if rc.DeposedKey == "" {
		return rc.Address
	}
	return rc.Address + deposedMark + rc.DeposedKey + ")"
}

const deposedMark = " (deposed object "

func importID(importing *tfjson.Importing) string {
	switch {
	case importing.ID != "":
		return importing.ID
	case importing.Unknown:
		return unknownValue
	default:
		id, err := json.Marshal(importing.Identity)
		if err != nil || importing.Identity == nil {
			return "(by identity)"
		}
		return string(id)
	}
}

// countChange counts as the engines do: what is imported or moved and changed as
// well counts twice.
func countChange(counts *holdfast.Counts, change holdfast.ResourceChange) {
	switch change.Action {
	case holdfast.ActionCreate:
		counts.Create++
	case holdfast.ActionUpdate:
		counts.Update++
	case holdfast.ActionReplace:
		counts.Replace++
	case holdfast.ActionDelete:
		counts.Delete++
	case holdfast.ActionForget:
		counts.Forget++
	}
	if change.Importing != "" {
		counts.Import++
	}
	if change.PreviousAddress != "" {
		counts.Move++
	}
}

func outputChanges(changes map[string]*tfjson.Change) ([]holdfast.OutputChange, error) {
	var out []holdfast.OutputChange
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if changes[name] == nil {
			continue
		}
		action, _, err := actionOf(changes[name].Actions)
		if err != nil {
			return nil, fmt.Errorf("output %s: %w", name, err)
		}
		if action == "" {
			continue
		}
		out = append(out, holdfast.OutputChange{
			Name: name, Action: action,
			Sensitive: isMarked(changes[name].BeforeSensitive) || isMarked(changes[name].AfterSensitive),
		})
	}
	return out, nil
}

// sortByDanger puts first what destroys the most.
func sortByDanger(changes []holdfast.ResourceChange) {
	slices.SortStableFunc(changes, func(a, b holdfast.ResourceChange) int {
		return cmp.Or(
			cmp.Compare(actionRank(a.Action), actionRank(b.Action)),
			cmp.Compare(b.Danger(), a.Danger()),
			strings.Compare(a.Address, b.Address),
		)
	})
}

func actionRank(action holdfast.ChangeAction) int {
	switch action {
	case holdfast.ActionReplace, holdfast.ActionDelete:
		return 0 // both destroy
	case holdfast.ActionForget:
		return 1
	case holdfast.ActionUpdate:
		return 2
	case holdfast.ActionCreate:
		return 3
	case holdfast.ActionImport:
		return 4
	default:
		return 5
	}
}

// attributeChanges compares what was with what will be, attribute by attribute.
func attributeChanges(change *tfjson.Change, forces []string) []holdfast.AttributeChange {
	d := differ{forces: forces}
	d.compare("", "", planSide{change.Before, change.BeforeSensitive}, planSide{change.After, change.AfterSensitive}, change.AfterUnknown)
	slices.SortStableFunc(d.found, func(a, b holdfast.AttributeChange) int {
		if a.Forces != b.Forces {
			if a.Forces {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	return d.found
}

// planSide is a value before or after a change, with its sensitive marks: true, or
// the shape of the value with true at its sensitive parts.
type planSide struct{ value, marks any }

func (s planSide) at(key string) planSide {
	return planSide{fieldOf(s.value, key), fieldOf(s.marks, key)}
}

func (s planSide) item(i int) planSide {
	return planSide{itemOf(s.value, i), itemOf(s.marks, i)}
}

type differ struct {
	forces []string
	found  []holdfast.AttributeChange
}

// compare adds the differences at path and below. name is the last attribute
// name in path.
func (d *differ) compare(path, name string, before, after planSide, unknown any) {
	switch {
	case unknown == true:
		d.add(path, name, before, after, true)
	case before.marks == true || after.marks == true || secretName(name):
		if !reflect.DeepEqual(before.value, after.value) || anyTrue(unknown) {
			d.add(path, name, before, after, false)
		}
	case isObject(before.value, after.value) && (path == "" || sizeOf(before.value)+sizeOf(after.value)+sizeOf(unknown) > 0):
		for _, key := range keysOf(before.value, after.value, unknown) {
			d.compare(joinKey(path, key), key, before.at(key), after.at(key), fieldOf(unknown, key))
		}
	case isList(before.value, after.value) && sizeOf(before.value)+sizeOf(after.value) > 0:
		for i := range max(sizeOf(before.value), sizeOf(after.value)) {
			d.compare(joinIndex(path, i), name, before.item(i), after.item(i), itemOf(unknown, i))
		}
	case !reflect.DeepEqual(before.value, after.value):
		d.add(path, name, before, after, false)
	}
}

func (d *differ) add(path, name string, before, after planSide, unknown bool) {
	secret := secretName(name) && (isText(before.value) || isText(after.value))
	change := holdfast.AttributeChange{
		Path: path, Unknown: unknown, Forces: d.forcesAt(path),
		Sensitive: secret || isMarked(before.marks) || isMarked(after.marks),
		Before:    shownValue(before, secret),
	}
	if unknown {
		change.After = jsonString(unknownValue)
	} else {
		change.After = shownValue(after, secret)
	}
	d.found = append(d.found, change)
}

// forcesAt reports whether a replace path is at path, above it or below it.
func (d *differ) forcesAt(path string) bool {
	return slices.ContainsFunc(d.forces, func(force string) bool { return pathWithin(path, force) || pathWithin(force, path) })
}

// pathWithin reports whether path is base or below it.
func pathWithin(path, base string) bool {
	rest, ok := strings.CutPrefix(path, base)
	return ok && (rest == "" || base == "" || rest[0] == '.' || rest[0] == '[')
}

// shownValue returns a value as it may be shown; nil for none.
func shownValue(s planSide, secret bool) json.RawMessage {
	if s.value == nil {
		return nil
	}
	if secret || s.marks == true {
		return jsonString(sensitiveValue)
	}
	raw, err := marshalJSON(masked(s.value, s.marks))
	if err != nil {
		return jsonString(sensitiveValue) // cannot be: it was decoded from JSON
	}
	return raw
}

func jsonString(s string) json.RawMessage { return json.RawMessage(strconv.Quote(s)) }

// marshalJSON is json.Marshal without the escapes for HTML.
func marshalJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// masked returns a copy of value with "(sensitive value)" in place of what is
// marked, or named like a secret.
func masked(value, marks any) any {
	if marks == true {
		if value == nil {
			return nil
		}
		return sensitiveValue
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			if secretName(key) {
				child = maskText(child)
			}
			out[key] = masked(child, fieldOf(marks, key))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = masked(child, itemOf(marks, i))
		}
		return out
	default:
		return value
	}
}

// maskText replaces the strings and numbers in value.
func maskText(value any) any {
	switch v := value.(type) {
	case string:
		if v == "" {
			return v
		}
		return sensitiveValue
	case json.Number:
		return sensitiveValue
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			out[key] = maskText(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = maskText(child)
		}
		return out
	default:
		return value
	}
}

// isText reports whether value holds text that a name could make secret.
func isText(value any) bool {
	switch v := value.(type) {
	case string:
		return v != ""
	case json.Number, map[string]any, []any:
		return true
	default:
		return false
	}
}

func fieldOf(value any, key string) any {
	if m, ok := value.(map[string]any); ok {
		return m[key]
	}
	return nil
}

func itemOf(value any, i int) any {
	if l, ok := value.([]any); ok && i < len(l) {
		return l[i]
	}
	return nil
}

func sizeOf(value any) int {
	switch v := value.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	default:
		return 0
	}
}

// isObject reports whether both are objects, or one is and the other is
// nothing.
func isObject(a, b any) bool {
	_, first := a.(map[string]any)
	_, second := b.(map[string]any)
	return (first || a == nil) && (second || b == nil) && (first || second)
}

func isList(a, b any) bool {
	_, first := a.([]any)
	_, second := b.([]any)
	return (first || a == nil) && (second || b == nil) && (first || second)
}

func keysOf(values ...any) []string {
	keys := map[string]bool{}
	for _, value := range values {
		if m, ok := value.(map[string]any); ok {
			for key := range m {
				keys[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// isMarked reports whether marks has a true anywhere.
func isMarked(marks any) bool { return anyTrue(marks) }

func anyTrue(value any) bool {
	switch v := value.(type) {
	case bool:
		return v
	case map[string]any:
		for _, child := range v {
			if anyTrue(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, anyTrue)
	}
	return false
}

func joinKey(path, key string) string {
	switch {
	case !isIdentifier(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

func joinIndex(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func isIdentifier(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '-' && (r < '0' || r > '9')) {
			return false
		}
	}
	return s != ""
}

// pathOfSteps renders a path as the plan JSON has it: a list of names and
// indexes.
func pathOfSteps(steps any) string {
	list, ok := steps.([]any)
	if !ok {
		return fmt.Sprint(steps)
	}
	path := ""
	for _, step := range list {
		switch s := step.(type) {
		case string:
			path = joinKey(path, s)
		case json.Number:
			path += "[" + s.String() + "]"
		default:
			path += "[?]"
		}
	}
	return path
}
