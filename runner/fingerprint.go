package runner

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/holdfast-dev/holdfast"
)

const (
	// unknownPrint stands for a value that is known only after the apply. A
	// sensitive value of which a part is unknown is unknownPrint, a colon, and
	// the hash of what is known.
	unknownPrint = "unknown"

	// movedPrint and importPrint are in ChangePrint.Before beside the
	// attributes; no attribute is called so.
	movedPrint  = "(moved from)"
	importPrint = "(import)"

	outputPrefix = "output."
)

// printsOf returns what a plan would do in a form that can be compared without
// being read: every value is a keyed hash. Nothing in it comes from a commit or
// a clock, and the order of the plan's lists of changes does not matter.
func printsOf(doc *planDocument, key []byte) []holdfast.ChangePrint {
	var prints []holdfast.ChangePrint
	for _, rc := range doc.ResourceChanges {
		if rc == nil || rc.Change == nil || rc.Mode == tfjson.DataResourceMode {
			continue
		}
		if print, ok := printOf(rc, key); ok {
			prints = append(prints, print)
		}
	}
	for name, change := range doc.OutputChanges {
		if change == nil || change.Actions.NoOp() || len(change.Actions) == 0 {
			continue
		}
		h := hasher{key: key, address: outputPrefix + name}
		prints = append(prints, h.print(change))
	}
	sortPrints(prints)
	return prints
}

func printOf(rc *tfjson.ResourceChange, key []byte) (holdfast.ChangePrint, bool) {
	moved := rc.PreviousAddress != "" && rc.PreviousAddress != rc.Address
	imported := rc.Change.Importing != nil
	if action, _, _ := actionOf(rc.Change.Actions); action == "" && !moved && !imported {
		return holdfast.ChangePrint{}, false
	}
	h := hasher{key: key, address: rc.Address}
	print := h.print(rc.Change)
	print.Address = addressOf(rc)
	if moved {
		print.Before[movedPrint] = h.sum(movedPrint, rc.PreviousAddress)
	}
	if imported {
		print.Before[importPrint] = h.sum(importPrint, importID(rc.Change.Importing))
	}
	return print, true
}

// driftPrint returns what has become of a resource outside of the engine: hashes
// of the values that differ, before as it was applied and after as it is. What
// stayed the same is left out, so that the print is of the drift and not of the
// rest of the resource. A move that the plan makes is no part of it.
func driftPrint(rc *tfjson.ResourceChange, key []byte) holdfast.ChangePrint {
	print := hasher{key: key, address: rc.Address}.print(rc.Change)
	print.Address = addressOf(rc)
	for path, sum := range print.Before {
		if print.After[path] == sum {
			delete(print.Before, path)
			delete(print.After, path)
		}
	}
	return print
}

func sortPrints(prints []holdfast.ChangePrint) {
	slices.SortFunc(prints, func(a, b holdfast.ChangePrint) int { return strings.Compare(a.Address, b.Address) })
}

// hasher makes the hashes of one change. The address and the path are part of
// what is hashed: equal values at two places have different hashes, so that a
// secret cannot be found by comparing.
type hasher struct {
	key     []byte
	address string
}

func (h hasher) print(change *tfjson.Change) holdfast.ChangePrint {
	print := holdfast.ChangePrint{Address: h.address, Before: map[string]string{}, After: map[string]string{}}
	for _, action := range change.Actions {
		print.Actions = append(print.Actions, string(action))
	}
	for _, path := range change.ReplacePaths {
		print.Replace = append(print.Replace, pathOfSteps(path))
	}
	sort.Strings(print.Replace)
	h.flatten(print.Before, "", planSide{change.Before, change.BeforeSensitive}, nil)
	h.flatten(print.After, "", planSide{change.After, change.AfterSensitive}, change.AfterUnknown)
	return print
}

// flatten writes a hash for every leaf. What is sensitive as a whole gets one
// hash: its keys are secret too. Null is the same as nothing.
func (h hasher) flatten(into map[string]string, path string, s planSide, unknown any) {
	switch {
	case unknown == true:
		into[path] = unknownPrint
		return
	case s.marks == true:
		if anyTrue(unknown) {
			into[path] = unknownPrint + ":" + h.sumValue(path, s.value)
		} else if s.value != nil {
			into[path] = h.sumValue(path, s.value)
		}
		return
	}
	switch v := s.value.(type) {
	case nil:
		for _, key := range keysOf(unknown) {
			h.flatten(into, joinKey(path, key), s.at(key), fieldOf(unknown, key))
		}
	case map[string]any:
		if len(v)+sizeOf(unknown) == 0 {
			into[path] = h.sumValue(path, v)
		}
		for _, key := range keysOf(v, unknown) {
			h.flatten(into, joinKey(path, key), s.at(key), fieldOf(unknown, key))
		}
	case []any:
		if len(v) == 0 {
			into[path] = h.sumValue(path, v)
		}
		for i := range v {
			h.flatten(into, joinIndex(path, i), s.item(i), itemOf(unknown, i))
		}
	default:
		into[path] = h.sumValue(path, v)
	}
}

// sumValue hashes a decoded JSON value; encoding sorts the keys of objects.
func (h hasher) sumValue(path string, value any) string {
	raw, err := marshalJSON(value)
	if err != nil { // cannot be: it was decoded from JSON
		return unknownPrint
	}
	return h.sum(path, string(raw))
}

func (h hasher) sum(path, value string) string {
	mac := hmac.New(sha256.New, h.key)
	var size [8]byte
	for _, part := range []string{h.address, path, value} {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		mac.Write(size[:])
		mac.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// fingerprintOf returns the digest of sorted prints.
func fingerprintOf(prints []holdfast.ChangePrint) holdfast.Digest {
	d := holdfast.NewDigester("plan fingerprint 1")
	for _, print := range prints {
		d.Add("change", print.Address)
		addList(d, "actions", print.Actions)
		addMap(d, "before", print.Before)
		addMap(d, "after", print.After)
		addList(d, "replace", print.Replace)
	}
	return d.Digest()
}

func addList(d *holdfast.Digester, name string, list []string) {
	d.Add(name, fmt.Sprint(len(list)))
	d.Add(list...)
}

func addMap(d *holdfast.Digester, name string, m map[string]string) {
	d.Add(name, fmt.Sprint(len(m)))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		d.Add(key, m[key])
	}
}

// Subset reports whether everything that rest would do was in reviewed: the
// same address with the same actions, the same values before and after. A value
// that was unknown when it was reviewed may be anything now. Of a replacement
// one half may be done: its create remains, or the delete of the object that it
// deposed. A move or an import may be done. Outputs may change in another way,
// to the reviewed value. It is what remains of an apply that failed in the
// middle that is asked about.
func Subset(rest, reviewed []holdfast.ChangePrint) bool {
	by := byAddress(reviewed)
	for _, print := range rest {
		if reviewedPrint, ok := by.find(print); !ok || remainder(print, reviewedPrint) != "" {
			return false
		}
	}
	return true
}

type printIndex map[string]holdfast.ChangePrint

func byAddress(prints []holdfast.ChangePrint) printIndex {
	by := make(printIndex, len(prints))
	for _, print := range prints {
		by[print.Address] = print
	}
	return by
}

// find returns the reviewed print that print could be what remains of.
func (by printIndex) find(print holdfast.ChangePrint) (holdfast.ChangePrint, bool) {
	if reviewed, ok := by[print.Address]; ok {
		return reviewed, true
	}
	address, _, deposed := strings.Cut(print.Address, deposedMark)
	reviewed, ok := by[address]
	return reviewed, ok && deposed && slices.Equal(reviewed.Actions, []string{"create", "delete"})
}

// remainder says why print is not what remains of reviewed; empty if it is.
func remainder(print, reviewed holdfast.ChangePrint) string {
	switch {
	case strings.HasPrefix(print.Address, outputPrefix):
		return unlike("after", print.After, reviewed.After)
	case print.Address != reviewed.Address: // the deposed half of a replacement
		if !slices.Equal(print.Actions, []string{"delete"}) {
			return "actions"
		}
		return unlike("before", print.Before, reviewed.Before)
	case slices.Equal(print.Actions, []string{"create"}) && slices.Equal(reviewed.Actions, []string{"delete", "create"}):
		return unlike("after", print.After, reviewed.After)
	case !slices.Equal(print.Actions, reviewed.Actions):
		return "actions"
	case !slices.Equal(print.Replace, reviewed.Replace):
		return "replace"
	}
	before := maps.Clone(reviewed.Before)
	for _, done := range []string{movedPrint, importPrint} {
		if _, ok := print.Before[done]; !ok {
			delete(before, done)
		}
	}
	if path := unlike("before", print.Before, before); path != "" {
		return path
	}
	return unlike("after", print.After, reviewed.After)
}

// unlike returns the first path at which the hashes differ, but for what was
// reviewed as unknown; empty if there is none. what tells before from after.
func unlike(what string, found, reviewed map[string]string) string {
	var unknown []string
	for path, sum := range reviewed {
		if sum == unknownPrint || strings.HasPrefix(sum, unknownPrint+":") {
			unknown = append(unknown, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		if found[path] == reviewed[path] {
			continue
		}
		if !slices.ContainsFunc(unknown, func(base string) bool { return pathWithin(path, base) }) {
			return what + " " + path
		}
	}
	for _, path := range slices.Sorted(maps.Keys(reviewed)) {
		if _, ok := found[path]; !ok && !slices.Contains(unknown, path) {
			return what + " " + path
		}
	}
	return ""
}

// maxDifferenceLines bounds what Differences says.
const maxDifferenceLines = 20

// Differences says in words how what was found differs from what was reviewed:
// one line for each change that is new, gone or different, at most 21 lines.
// It is empty if both would do the same.
func Differences(found, reviewed []holdfast.ChangePrint) []string {
	have, want := byAddress(found), byAddress(reviewed)
	var lines []string
	for _, address := range slices.Sorted(maps.Keys(have)) {
		before, ok := want[address]
		if !ok {
			lines = append(lines, fmt.Sprintf("%s: %s, which was not reviewed", address, printVerb(have[address])))
			continue
		}
		if line := difference(have[address], before); line != "" {
			lines = append(lines, address+": "+line)
		}
	}
	for _, address := range slices.Sorted(maps.Keys(want)) {
		if _, ok := have[address]; !ok {
			lines = append(lines, fmt.Sprintf("%s: was to be %s, nothing is to be done now", address, printPast(want[address])))
		}
	}
	if more := len(lines) - maxDifferenceLines; more > 0 {
		lines = append(lines[:maxDifferenceLines], fmt.Sprintf("and %d more", more))
	}
	return lines
}

func difference(found, reviewed holdfast.ChangePrint) string {
	switch {
	case !slices.Equal(found.Actions, reviewed.Actions):
		return fmt.Sprintf("%s now, was to be %s", printVerb(found), printPast(reviewed))
	case !slices.Equal(found.Replace, reviewed.Replace):
		return fmt.Sprintf("replaced because of %s now, because of %s when it was reviewed",
			orNothing(found.Replace), orNothing(reviewed.Replace))
	}
	after, before := changedPaths(found.After, reviewed.After), changedPaths(found.Before, reviewed.Before)
	switch {
	case len(after) > 0:
		return "another value is planned for " + someOf(after)
	case len(before) > 0:
		return "it is not what it was when it was reviewed: " + someOf(before)
	default:
		return ""
	}
}

func changedPaths(a, b map[string]string) []string {
	paths := map[string]bool{}
	for path, sum := range a {
		paths[path] = b[path] != sum
	}
	for path, sum := range b {
		paths[path] = a[path] != sum
	}
	maps.DeleteFunc(paths, func(_ string, differs bool) bool { return !differs })
	return slices.Sorted(maps.Keys(paths))
}

func someOf(paths []string) string {
	const limit = 4
	for i, path := range paths {
		if path == "" {
			paths[i] = "its value"
		}
	}
	if len(paths) <= limit {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:limit], ", "), len(paths)-limit)
}

func orNothing(paths []string) string {
	if len(paths) == 0 {
		return "nothing named"
	}
	return strings.Join(paths, ", ")
}

func printVerb(print holdfast.ChangePrint) string {
	if printPast(print) == "left as it is" {
		return printPast(print)
	}
	return "to be " + printPast(print)
}

func printPast(print holdfast.ChangePrint) string {
	if _, ok := print.Before[importPrint]; ok && slices.Equal(print.Actions, []string{"no-op"}) {
		return "imported"
	}
	if _, ok := print.Before[movedPrint]; ok && slices.Equal(print.Actions, []string{"no-op"}) {
		return "moved"
	}
	switch strings.Join(print.Actions, ",") {
	case "create":
		return "created"
	case "update":
		return "updated"
	case "delete":
		return "destroyed"
	case "forget":
		return "forgotten"
	case "no-op":
		return "left as it is"
	default:
		return "replaced"
	}
}
