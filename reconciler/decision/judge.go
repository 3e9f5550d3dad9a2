package decision

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// Finding is what a drift check has found, after ignore rules.
type Finding struct {
	Items  []holdfast.DriftItem // what counts first, most dangerous first; then what is hidden, then what is harmless
	Counts holdfast.DriftCounts
	// destroys and hides say what an apply of the plan would do besides reverting
	// the drift.
	Destroys, Hides bool
	Causes          []string
	Fingerprint     holdfast.Digest // of what counts; empty if nothing does
}

// maxCauses bounds what a record remembers of what has drifted.
const maxCauses = 20

// Judge decides what in the plan of what was last applied is drift:
//
//	drifted, and an apply would change it       changed or gone
//	drifted, and an apply would leave it so     harmless
//	not drifted, and an apply would change it   input
//
// Of a resource that has drifted, what an apply would leave as it is counts as
// little: an engine reports every attribute that a provider computes again.
func Judge(plan holdfast.Plan, rules []holdfast.DriftRule, now time.Time) Finding {
	j := judging{
		rules: rules, now: now,
		entries: make(map[string][]string), causes: make(map[string]bool), ignored: make(map[string]bool),
	}
	changes := make(map[string]*holdfast.ResourceChange, len(plan.Changes))
	for _, change := range plan.Changes {
		j.finding.Destroys = j.finding.Destroys || change.Destroys()
		if change.Action != holdfast.ActionMove && change.Action != holdfast.ActionImport {
			changes[change.Address] = withoutEmptied(change)
		}
	}
	for _, drift := range plan.Drift {
		j.drifted(subject{drift: withoutEmptied(drift), change: changes[drift.Address]})
		delete(changes, drift.Address)
	}
	for _, address := range slices.Sorted(maps.Keys(changes)) {
		j.input(subject{change: changes[address]}, changes[address].Attributes)
	}
	return j.end()
}

// withoutEmptied leaves out that a map or a list was, or becomes, empty: rules hide what
// is added to it or taken from it.
func withoutEmptied(change holdfast.ResourceChange) *holdfast.ResourceChange {
	emptied := holdfast.Emptied(change.Attributes)
	var attributes []holdfast.AttributeChange
	for i, a := range change.Attributes {
		if !emptied[i] {
			attributes = append(attributes, a)
		}
	}
	change.Attributes = attributes
	return &change
}

// subject is one resource of a plan.
type subject struct {
	drift  *holdfast.ResourceChange // nil: it is as it was applied
	change *holdfast.ResourceChange // nil: an apply would leave it as it is
}

// judging is a finding in the making.
type judging struct {
	rules   []holdfast.DriftRule
	now     time.Time
	finding Finding
	entries map[string][]string // of the fingerprint, by address and kind
	causes  map[string]bool
	ignored map[string]bool // addresses of what is hidden, wholly or in part
}

// drifted judges a resource that is not as it was applied.
func (j *judging) drifted(s subject) {
	item := holdfast.DriftItem{Address: s.drift.Address, Type: s.drift.Type, Kind: holdfast.DriftChanged}
	if s.drift.Action == holdfast.ActionDelete {
		item.Kind = holdfast.DriftGone
	}
	if s.change != nil {
		item.Action = s.change.Action
	}
	item.Attributes = s.drift.Attributes
	shown, hidden, reason := j.split(item.Address, item.Attributes)
	whole := j.hidesWhole(item.Address)
	switch {
	case whole != "":
		j.ignore(item, whole, s.change != nil)
	case s.change == nil:
		j.harmless(item, shown, hidden, reason)
	case item.Kind == holdfast.DriftGone, s.change.Action == holdfast.ActionDelete, s.change.Action == holdfast.ActionForget:
		j.count(item, nil, s)
	default:
		j.changed(s, item, shown, hidden, reason)
	}
}

// changed judges a resource that an apply would change, attribute by attribute.
func (j *judging) changed(s subject, item holdfast.DriftItem, shown, hidden []holdfast.AttributeChange, reason string) {
	reverted := reverts(*s.change, item.Attributes)
	relevant := matching(shown, reverted)
	if len(hidden) > 0 {
		part := item
		part.Attributes = hidden
		j.ignore(part, reason, slices.ContainsFunc(hidden, reverted))
	}
	if len(relevant) > 0 || len(hidden) == 0 {
		part := item
		part.Attributes = shown
		j.count(part, relevant, s)
	}
	// What else an apply would change, to a known value, has another cause.
	rest := matching(s.change.Attributes, func(a holdfast.AttributeChange) bool {
		return !a.Unknown && !touches(item.Attributes, a.Path)
	})
	if len(rest) > 0 {
		j.input(s, rest)
	}
}

// reverts returns what tells which of the attributes that have drifted an apply
// would change back. One that is known only after the apply is computed again
// with any change, and is not why there is one; where nothing else has drifted,
// it may be.
func reverts(change holdfast.ResourceChange, drifted []holdfast.AttributeChange) func(holdfast.AttributeChange) bool {
	known := matching(change.Attributes, func(a holdfast.AttributeChange) bool { return !a.Unknown })
	for _, planned := range [][]holdfast.AttributeChange{known, change.Attributes} {
		reverted := func(a holdfast.AttributeChange) bool { return touches(planned, a.Path) }
		if slices.ContainsFunc(drifted, reverted) {
			return reverted
		}
	}
	return func(holdfast.AttributeChange) bool { return true } // not distinguished by what made the plan
}

// harmless counts what an apply would leave as it is.
func (j *judging) harmless(item holdfast.DriftItem, shown, hidden []holdfast.AttributeChange, reason string) {
	if len(hidden) > 0 && item.Kind == holdfast.DriftChanged {
		part := item
		part.Attributes = hidden
		j.ignore(part, reason, false)
		if len(shown) == 0 {
			return
		}
		item.Attributes = shown
	}
	j.finding.Counts.Harmless++
	j.finding.Items = append(j.finding.Items, item)
}

// input judges what an apply would change though it is as it was applied.
func (j *judging) input(s subject, attributes []holdfast.AttributeChange) {
	item := holdfast.DriftItem{
		Address: s.change.Address, Type: s.change.Type, Kind: holdfast.DriftInput,
		Action: s.change.Action, Attributes: attributes,
	}
	if reason := j.hidesWhole(item.Address); reason != "" {
		j.ignore(item, reason, true)
		return
	}
	if item.Action != holdfast.ActionUpdate && item.Action != holdfast.ActionReplace {
		j.count(item, attributes, s)
		return
	}
	shown, hidden, reason := j.split(item.Address, attributes)
	if len(hidden) > 0 {
		part := item
		part.Attributes = hidden
		j.ignore(part, reason, true)
	}
	// Values that are known only after the apply go with what is hidden.
	known := slices.ContainsFunc(shown, func(a holdfast.AttributeChange) bool { return !a.Unknown })
	if known || len(hidden) == 0 {
		item.Attributes = shown
		j.count(item, shown, s)
	}
}

// count counts what is drift, for relevant among its attributes.
func (j *judging) count(item holdfast.DriftItem, relevant []holdfast.AttributeChange, s subject) {
	counts := &j.finding.Counts
	switch item.Kind {
	case holdfast.DriftGone:
		counts.Gone++
	case holdfast.DriftInput:
		counts.Input++
	case holdfast.DriftChanged:
		counts.Changed++
	}
	j.finding.Items = append(j.finding.Items, item)
	entry := []string{item.Address, string(item.Kind), string(item.Action)}
	for _, a := range relevant {
		before, after := values(a)
		entry = append(entry, a.Path, before, after)
	}
	j.entries[item.Address+"\x00"+string(item.Kind)] = entry
	for _, what := range causesOf(item, relevant) {
		j.causes[item.Type+" "+what] = true
	}
}

// causesOf is what has happened to a resource, without where.
func causesOf(item holdfast.DriftItem, relevant []holdfast.AttributeChange) []string {
	known := matching(relevant, func(a holdfast.AttributeChange) bool { return !a.Unknown })
	if len(known) == 0 {
		known = relevant
	}
	switch {
	case item.Kind == holdfast.DriftGone:
		return []string{"gone"}
	case item.Action != holdfast.ActionUpdate && item.Action != holdfast.ActionReplace, len(known) == 0:
		return []string{string(item.Action)}
	}
	out := make([]string, 0, len(known))
	for _, a := range known {
		out = append(out, topOf(a.Path))
	}
	return out
}

// ignore counts what a rule hides. changed says whether an apply would change it all
// the same.
func (j *judging) ignore(item holdfast.DriftItem, reason string, changed bool) {
	item.Ignored = reason
	j.ignored[item.Address] = true
	j.finding.Hides = j.finding.Hides || changed
	j.finding.Items = append(j.finding.Items, item)
}

// end sorts what was found and sums it up.
func (j *judging) end() Finding {
	v := j.finding
	v.Counts.Ignored = len(j.ignored)
	slices.SortStableFunc(v.Items, func(a, b holdfast.DriftItem) int {
		return cmp.Or(
			cmp.Compare(rankOf(a), rankOf(b)),
			cmp.Compare(dangerOf(b), dangerOf(a)),
			strings.Compare(a.Address, b.Address),
			strings.Compare(string(a.Kind), string(b.Kind)),
		)
	})
	v.Causes = slices.Sorted(maps.Keys(j.causes))
	v.Causes = v.Causes[:min(len(v.Causes), maxCauses)]
	if len(j.entries) == 0 {
		return v
	}
	d := holdfast.NewDigester("drift fingerprint 1")
	for _, key := range slices.Sorted(maps.Keys(j.entries)) {
		d.Add(fmt.Sprint(len(j.entries[key])))
		d.Add(j.entries[key]...)
	}
	v.Fingerprint = d.Digest()
	return v
}

// rankOf orders items: by what an apply would do, most dangerous first, then
// what is hidden, then what is harmless.
func rankOf(item holdfast.DriftItem) int {
	actions := []holdfast.ChangeAction{
		holdfast.ActionReplace, holdfast.ActionDelete, holdfast.ActionForget, holdfast.ActionUpdate, holdfast.ActionCreate,
	}
	switch rank := slices.Index(actions, item.Action); {
	case item.Ignored != "":
		return len(actions) + 1
	case item.Action == "":
		return len(actions) + 2
	case rank < 0:
		return len(actions)
	default:
		return rank
	}
}

func dangerOf(item holdfast.DriftItem) plandiff.Danger {
	return plandiff.DangerOf(holdfast.ResourceChange{Address: item.Address, Type: item.Type})
}

// hidesWhole returns the reason of the rule that hides the resource; empty if
// none does.
func (j *judging) hidesWhole(address string) string {
	for _, rule := range j.rules {
		if document.Hides(rule, j.now, address) {
			return reasonFor(rule)
		}
	}
	return ""
}

// split separates what rules hide of a resource's attributes from what they do not,
// with the first of their reasons.
func (j *judging) split(address string, attributes []holdfast.AttributeChange) (shown, hidden []holdfast.AttributeChange, reason string) {
	for _, a := range attributes {
		i := slices.IndexFunc(j.rules, func(rule holdfast.DriftRule) bool {
			return document.HidesAttribute(rule, j.now, address, a.Path)
		})
		if i < 0 {
			shown = append(shown, a)
			continue
		}
		if hidden = append(hidden, a); reason == "" {
			reason = reasonFor(j.rules[i])
		}
	}
	return shown, hidden, reason
}

func reasonFor(rule holdfast.DriftRule) string {
	return cmp.Or(rule.Reason, "a rule without a reason")
}

func matching(attributes []holdfast.AttributeChange, match func(holdfast.AttributeChange) bool) []holdfast.AttributeChange {
	var out []holdfast.AttributeChange
	for _, a := range attributes {
		if match(a) {
			out = append(out, a)
		}
	}
	return out
}

// touches reports whether one of the attributes is at path, above it or below
// it.
func touches(attributes []holdfast.AttributeChange, path string) bool {
	return slices.ContainsFunc(attributes, func(a holdfast.AttributeChange) bool {
		return within(a.Path, path) || within(path, a.Path)
	})
}

// within reports whether path is base or below it.
func within(path, base string) bool {
	rest, ok := strings.CutPrefix(path, base)
	return ok && (rest == "" || base == "" || rest[0] == '.' || rest[0] == '[')
}

// topOf is the first step of a path: the attribute's name for people.
func topOf(path string) string {
	if end := strings.IndexAny(path, ".["); end > 0 {
		path = path[:end]
	}
	return cmp.Or(path, "value")
}

// values returns an attribute's values in a form that can be compared: with the
// marks of what is secret in them, so that secret ones count, too.
func values(a holdfast.AttributeChange) (before, after string) {
	return string(a.Before) + "\x00" + string(a.BeforeMark), string(a.After) + "\x00" + string(a.AfterMark)
}

// RulesDigest is of the rules that hide anything at now; empty if none does.
func RulesDigest(rules []holdfast.DriftRule, now time.Time) holdfast.Digest {
	var live []holdfast.DriftRule
	for _, rule := range rules {
		if rule.Expires.IsZero() || now.Before(rule.Expires) {
			live = append(live, rule)
		}
	}
	if len(live) == 0 {
		return ""
	}
	data, err := json.Marshal(live)
	if err != nil { // cannot be: it has no type that could fail
		return ""
	}
	return holdfast.DigestOf(data)
}
