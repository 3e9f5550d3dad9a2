package runner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
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
		if ok && change.Action != holdfast.ActionMove { // what only moves has not drifted
			plan.Drift = append(plan.Drift, change)
			plan.DriftPrints = append(plan.DriftPrints, driftPrint(rc, key))
		}
	}
	if plan.OutputChanges, err = outputChanges(doc.OutputChanges); err != nil {
		return holdfast.Plan{}, fmt.Errorf("parse plan: %w", err)
	}
	plan.Counts.Outputs = len(plan.OutputChanges)
	sortByDanger(plan.Changes)
	sortByDanger(plan.Drift)
	sortPrints(plan.DriftPrints)
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
	case holdfast.ActionImport, holdfast.ActionMove: // counted below
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
