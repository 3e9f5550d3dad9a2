package document

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/semver"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// VersionEdit gives the cluster of a document another version of its template.
type VersionEdit struct {
	Document Document
	Version  string // exact
}

// SetVersion returns a file with another version of the template in one of its
// documents, doc, which was read from data. See SetVersions.
func SetVersion(data []byte, doc Document, version string) ([]byte, error) {
	return SetVersions(data, []VersionEdit{{doc, version}})
}

// SetVersions returns a file with other versions of the templates in some of its
// documents. Nothing else changes, to the byte: no comment, no quotes, no line end. A
// version that is not written as a plain value (an alias, an anchor, a tag, an escape,
// a merged mapping) is refused, and so is an edit after which the file would say
// anything else that is new. The documents must have been read from data.
func SetVersions(data []byte, edits []VersionEdit) ([]byte, error) {
	if len(edits) == 0 {
		return data, nil
	}
	file := edits[0].Document.Cluster.Path
	before, fault := decode.Parse(file, data)
	if fault != nil {
		return nil, fmt.Errorf("edit %s: %w", file, fault)
	}
	spots := make([]spot, 0, len(edits))
	lines := lineStarts(data)
	for _, edit := range edits {
		s, err := find(data, lines, before, edit)
		if err != nil {
			return nil, fmt.Errorf("edit %s: cluster %q: %w", file, edit.Document.Cluster.Name, err)
		}
		spots = append(spots, s)
	}
	slices.SortFunc(spots, func(a, b spot) int { return a.start - b.start })
	var out bytes.Buffer
	at := 0
	for _, s := range spots {
		if s.start < at {
			return nil, fmt.Errorf("edit %s: two versions are in one place", file)
		}
		out.Write(data[at:s.start])
		out.WriteString(s.version)
		at = s.end
	}
	out.Write(data[at:])
	if err := proveEdits(file, data, out.Bytes(), before, spots, edits); err != nil {
		return nil, fmt.Errorf("edit %s: %w", file, err)
	}
	return out.Bytes(), nil
}

// spot is where a version is in a file, without its quotes.
type spot struct {
	node       *yaml.Node
	start, end int // bytes
	version    string
}

func find(data []byte, lines []int, roots []*yaml.Node, edit VersionEdit) (spot, error) {
	doc := edit.Document
	switch {
	case !semver.IsExact(edit.Version):
		return spot{}, fmt.Errorf("%q is not an exact version", wording.Clip(edit.Version))
	case doc.Cluster.Template == nil || doc.Cluster.Template.Version == "":
		return spot{}, errors.New("its document names no version of a template")
	case doc.file == nil || doc.number >= len(roots) || decode.NameOf(roots[doc.number]) != doc.Cluster.Name:
		return spot{}, fmt.Errorf("its document is not where it was: %w", holdfast.ErrConflict)
	}
	node := roots[doc.number]
	for _, key := range []string{"spec", "template", "version"} {
		if node.Kind == yaml.AliasNode {
			return spot{}, fmt.Errorf("%s is inside an alias (line %d): write it out, or edit it by hand", key, node.Line)
		}
		if node = valueOf(node, key); node == nil {
			return spot{}, fmt.Errorf("%s is not written in its own document: write it out, or edit it by hand", key)
		}
	}
	return locate(data, lines, node, doc.Cluster.Template.Version, edit.Version)
}

// valueOf returns the value of a key that is written in a mapping itself; nil if
// there is none, or several.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	var found *yaml.Node
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if k := n.Content[i]; k.Kind == yaml.ScalarNode && k.Value == key {
			if found != nil {
				return nil
			}
			found = n.Content[i+1]
		}
	}
	return found
}

func locate(data []byte, lines []int, n *yaml.Node, from, to string) (spot, error) {
	quote := ""
	switch {
	case n.Kind == yaml.AliasNode:
		return spot{}, fmt.Errorf("its version is an alias (line %d): write it out, or edit it by hand", n.Line)
	case n.Anchor != "":
		return spot{}, fmt.Errorf("its version has an anchor, &%s (line %d), and is used elsewhere too: edit it by hand", wording.Clip(n.Anchor), n.Line)
	case n.Kind != yaml.ScalarNode || n.Style&yaml.TaggedStyle != 0:
		return spot{}, fmt.Errorf("its version is not plain text (line %d): edit it by hand", n.Line)
	case n.Value != from:
		return spot{}, fmt.Errorf("its version is %q, not %q: %w", wording.Clip(n.Value), from, holdfast.ErrConflict)
	case n.Style&yaml.DoubleQuotedStyle != 0:
		quote = `"`
	case n.Style&yaml.SingleQuotedStyle != 0:
		quote = "'"
	}
	start, ok := offset(data, lines, n.Line, n.Column)
	written := quote + from + quote
	if !ok || !bytes.HasPrefix(data[start:], []byte(written)) {
		return spot{}, fmt.Errorf("its version is not written as it reads (line %d): edit it by hand", n.Line)
	}
	start += len(quote)
	return spot{node: n, start: start, end: start + len(from), version: to}, nil
}

// lineStarts returns where the lines of a file begin, as editors count them.
func lineStarts(data []byte) []int {
	starts := []int{0}
	for i, c := range data {
		if c == '\n' || c == '\r' && (i+1 == len(data) || data[i+1] != '\n') {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// offset returns the byte at a line and column, both from 1. Columns are of
// characters; a mark of the byte order at the beginning of the file does not count.
func offset(data []byte, lines []int, line, column int) (int, bool) {
	if line < 1 || line > len(lines) || column < 1 {
		return 0, false
	}
	at := lines[line-1]
	if at == 0 && bytes.HasPrefix(data, []byte("\ufeff")) {
		at = len("\ufeff")
	}
	for range column - 1 {
		if at >= len(data) {
			return 0, false
		}
		_, size := utf8.DecodeRune(data[at:])
		at += size
	}
	return at, at < len(data)
}

// proveEdits reads the file as it has become, and refuses it unless it differs
// from what it was in the versions alone: as YAML, and in what its clusters mean.
func proveEdits(file string, old, now []byte, before []*yaml.Node, spots []spot, edits []VersionEdit) error {
	after, fault := decode.Parse(file, now)
	if fault != nil {
		return fmt.Errorf("it could not be read afterwards: %w", fault)
	}
	versions := make(map[*yaml.Node]string, len(spots))
	for _, s := range spots {
		versions[s.node] = s.version
	}
	equal := len(before) == len(after)
	for i := 0; equal && i < len(before); i++ {
		equal = sameBut(before[i], after[i], versions)
	}
	if !equal {
		return errors.New("more than the version would change")
	}
	return proveMeaning(file, old, now, edits)
}

// sameBut reports whether two trees of YAML are the same except for the values of
// some nodes of the first.
func sameBut(a, b *yaml.Node, values map[*yaml.Node]string) bool {
	want := a.Value
	if value, ok := values[a]; ok {
		want = value
	}
	if a.Kind != b.Kind || a.Style != b.Style || a.Tag != b.Tag || b.Value != want || a.Anchor != b.Anchor ||
		a.Line != b.Line || len(a.Content) != len(b.Content) ||
		a.HeadComment != b.HeadComment || a.LineComment != b.LineComment || a.FootComment != b.FootComment {
		return false
	}
	for i := range a.Content { // what an alias stands for is compared where it is written
		if !sameBut(a.Content[i], b.Content[i], values) {
			return false
		}
	}
	return true
}

func proveMeaning(file string, old, now []byte, edits []VersionEdit) error {
	versions := make(map[int]string, len(edits))
	for _, edit := range edits {
		versions[edit.Document.number] = edit.Version
	}
	was, faultsBefore := ParseClusters(file, old)
	is, faultsAfter := ParseClusters(file, now)
	equal := len(was) == len(is) && len(faultsBefore) == len(faultsAfter)
	for i := range faultsAfter {
		equal = equal && faultsBefore[i].Message == faultsAfter[i].Message && faultsBefore[i].Line == faultsAfter[i].Line
	}
	edited := 0
	for i := 0; equal && i < len(was); i++ {
		want := was[i].Cluster
		if version, ok := versions[was[i].number]; ok && want.Template != nil {
			ref := *want.Template
			ref.Version, want.Template = version, &ref
			edited++
		}
		equal = reflect.DeepEqual(want, is[i].Cluster)
	}
	switch {
	case !equal:
		return errors.New("something else than the version would mean something else (an alias of it?): edit it by hand")
	case edited != len(versions):
		return fmt.Errorf("a document is not where it was: %w", holdfast.ErrConflict)
	}
	return nil
}

// WrittenVersion is the document with another version of its template, as it
// would be read after SetVersion. Positions of faults are those of the document.
func (d Document) WrittenVersion(version string) Document {
	if d.Cluster.Template == nil {
		return d
	}
	ref := *d.Cluster.Template
	ref.Version = version
	d.Cluster.Template = &ref
	return d
}
