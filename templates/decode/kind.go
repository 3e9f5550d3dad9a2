package decode

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// clusterLine finds a value Cluster, with a mistake in its case or number.
var clusterLine = regexp.MustCompile(`(?m):[ \t]*["']?[Cc]lusters?["']?[ \t\r]*([,}#\n]|$)`)

// IsCluster reports whether a file may hold clusters, by its name and a search
// through its bytes: cheap enough for every file of a repository.
// ParseClusters passes over the others.
func IsCluster(name string, data []byte) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml":
		return NamesUs(data) || bytes.Contains(data, []byte("luster")) && clusterLine.Match(data)
	default:
		return false
	}
}

// NamesUs reports whether a file has the name of our API in it.
func NamesUs(data []byte) bool {
	// The second is the word in UTF-16, which is refused with a clear message rather
	// than passed over.
	return bytes.Contains(data, []byte(apiGroup)) ||
		bytes.Contains(data, []byte("h\x00o\x00l\x00d\x00f\x00a\x00s\x00t\x00.\x00d\x00e\x00v"))
}

// IsKind reports whether root is a document of ours of that kind. One that only
// resembles a document of ours is a fault: passed over, it would be a cluster that
// nobody keeps, or one that counts as removed.
func (r *Reader) IsKind(root *yaml.Node, want string) bool {
	h := headOf(root)
	if root.Kind == yaml.MappingNode {
		if len(h.versions) > 0 && scalar(h.versions[0]) == APIVersion && len(h.kinds) > 0 && scalar(h.kinds[0]) == want {
			return true // if one of the two is given twice, expand reports it
		}
		r.resembles(root, h, want)
		return false
	}
	if root.Kind == yaml.ScalarNode && (strings.Contains(root.Value, apiGroup) || clusterLine.MatchString(root.Value)) {
		r.Add(root, "this Holdfast document is written as a string", "remove what follows the --- above it")
	}
	r.listed(root)
	return false
}

// head is what says of which kind a document is: the values of the two keys,
// of which there are several in documents that lost the line between them, and
// the keys that resemble them.
type head struct {
	versions, kinds         []*yaml.Node
	likeVersion, likeKind   *yaml.Node // keys
	versionBelow, kindBelow *yaml.Node // their values
	named, spec             bool
}

func headOf(root *yaml.Node) head {
	var h head
	if root.Kind != yaml.MappingNode {
		return h
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], resolved(root.Content[i+1])
		switch key.Value {
		case "apiVersion":
			h.versions = append(h.versions, value)
			continue
		case "kind":
			h.kinds = append(h.kinds, value)
			continue
		case "metadata":
			h.named = value.Kind == yaml.MappingNode && NameOf(root) != ""
			continue
		case "spec":
			h.spec = value.Kind == yaml.MappingNode
			continue
		}
		switch word := letters(key.Value); {
		case nearest.Distance(word, "apiversion") <= 3:
			h.likeVersion, h.versionBelow = key, value
		case nearest.Distance(word, "kind") <= 2:
			h.likeKind, h.kindBelow = key, value
		}
	}
	return h
}

// resembles reports what makes a mapping that is not of the wanted kind look like
// a document of ours.
func (r *Reader) resembles(root *yaml.Node, h head, want string) {
	switch {
	case len(h.versions) > 1 || len(h.kinds) > 1:
		r.merged(h)
	case len(h.versions) == 1 && isGroup(scalar(h.versions[0])):
		r.ourVersion(root, h, want)
	case len(h.versions) == 1 && wrongGroup(h):
		r.wrongVersion(h.versions[0])
	case len(h.versions) == 1 && scalar(h.versions[0]) != "":
		// somebody else's
		r.nested(root)
	case h.likeVersion != nil && (isGroup(scalar(h.versionBelow)) || kindOfOurs(h)):
		r.unknownKey(h.likeVersion, "apiVersion")
	case kindOfOurs(h):
		r.Add(root, "apiVersion is missing", "write apiVersion: "+APIVersion)
	case h.likeKind != nil && likeKinds(h.kindBelow) && (h.named || h.spec):
		r.unknownKey(h.likeKind, "kind")
	case h.named && h.spec && len(h.kinds) == 0:
		r.Add(root, "apiVersion and kind are missing", "write apiVersion: "+APIVersion+" and kind: "+want)
	default:
		r.nested(root)
	}
}

// kindOfOurs reports whether a document without a version of ours has a kind of
// ours.
func kindOfOurs(h head) bool {
	return len(h.kinds) > 0 && likeKinds(h.kinds[0]) && (scalar(h.kinds[0]) == KindCluster || h.named || h.spec)
}

// wrongGroup reports whether a version is one of ours with a mistake. Other APIs
// have clusters, too: their groups are names of domains.
func wrongGroup(h head) bool {
	version := scalar(h.versions[0])
	group, _, _ := strings.Cut(version, "/")
	kinds := len(h.kinds) == 0 || likeKinds(h.kinds[0])
	return likeGroup(version) && kinds ||
		version != "" && !strings.Contains(group, ".") && len(h.kinds) > 0 && scalar(h.kinds[0]) == KindCluster
}

// merged reports documents that became one, if one of them is ours.
func (r *Reader) merged(h head) {
	for _, version := range h.versions {
		if likeGroup(scalar(version)) {
			r.Cluster = "" // the name is that of the first
			r.Add(version, "apiVersion or kind is given twice in one document", "separate documents with a line ---")
			return
		}
	}
}

// ourVersion reports a wrong kind next to a version of ours.
func (r *Reader) ourVersion(root *yaml.Node, h head, want string) {
	kinds := []string{KindCluster, KindTemplate, KindRunner, KindRunnerRule}
	switch version := h.versions[0]; {
	case len(h.kinds) == 0 && h.likeKind != nil:
		r.unknownKey(h.likeKind, "kind")
	case len(h.kinds) == 0:
		r.Add(root, "kind is missing", "write kind: "+want)
	case h.kinds[0].Kind != yaml.ScalarNode || h.kinds[0].Tag == "!!null":
		r.Add(h.kinds[0], "kind must be text, not "+Describe(h.kinds[0]), wording.OneOf(kinds))
	case scalar(version) != APIVersion && likeKinds(h.kinds[0]):
		r.wrongVersion(version)
	case scalar(version) == APIVersion && !slices.Contains(kinds, scalar(h.kinds[0])):
		r.Add(h.kinds[0], fmt.Sprintf("kind is %q", wording.Clip(scalar(h.kinds[0]))), wording.DidYouMean(scalar(h.kinds[0]), kinds))
	}
}

func (r *Reader) wrongVersion(version *yaml.Node) {
	r.Add(version, fmt.Sprintf("apiVersion is %q", wording.Clip(scalar(version))), "this Holdfast knows "+APIVersion)
}

func (r *Reader) unknownKey(key *yaml.Node, meant string) {
	r.Add(key, fmt.Sprintf("unknown key %q in the document", wording.Clip(key.Value)), fmt.Sprintf("did you mean %q?", meant))
}

// nested reports documents of ours that are values of another one's keys.
func (r *Reader) nested(root *yaml.Node) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], resolved(root.Content[i+1])
		switch {
		case key.Value == "items":
			r.listed(value)
		case isOurs(value):
			r.Add(key, fmt.Sprintf("this Holdfast document is nested below the key %q", wording.Clip(key.Value)), "write it without that key and without indentation")
		}
	}
}

// listed reports documents of ours that are items of a list.
func (r *Reader) listed(list *yaml.Node) {
	if list.Kind != yaml.SequenceNode {
		return
	}
	for _, item := range list.Content {
		if item = resolved(item); isOurs(item) {
			one := Reader{File: r.File, Cluster: NameOf(item)}
			if !ValidName(one.Cluster) {
				one.Cluster = ""
			}
			one.Add(item, "this Holdfast document is an item of a list", `write it without "- " and indentation, and separate documents with a line ---`)
			for _, fault := range one.Faults {
				r.Put(fault)
			}
		}
	}
}

// isOurs reports whether a mapping within another document is one of ours.
func isOurs(n *yaml.Node) bool {
	h := headOf(n)
	return len(h.versions) > 0 && likeGroup(scalar(h.versions[0])) ||
		len(h.versions) == 0 && len(h.kinds) > 0 && scalar(h.kinds[0]) == KindCluster && (h.named || h.spec)
}

// Names returns the lines of the documents of a file that have a name and are not
// clusters, by that name: where one has the name of a cluster that is gone, it may be
// that cluster's document with a broken head.
func Names(path string, data []byte) map[string]int {
	names := make(map[string]int)
	roots, _ := Parse(path, data)
	for _, root := range roots {
		r := &Reader{File: path}
		if name := NameOf(root); name != "" && !r.IsKind(root, KindCluster) && names[name] == 0 {
			names[name] = root.Line
		}
	}
	return names
}

// ClusterLines returns the lines of the clusters of a file, by their names, whatever the
// file is called.
func ClusterLines(path string, data []byte) map[string]int {
	lines := make(map[string]int)
	if !NamesUs(data) {
		return lines
	}
	roots, _ := Parse(path, data)
	for _, root := range roots {
		r := &Reader{File: path}
		if name := NameOf(root); name != "" && r.IsKind(root, KindCluster) && lines[name] == 0 {
			lines[name] = root.Line
		}
	}
	return lines
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// scalar is the text of a scalar, empty for anything else.
func scalar(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// isGroup reports whether a version is one of our API's.
func isGroup(version string) bool {
	return version == apiGroup || strings.HasPrefix(version, apiGroup+"/")
}

// likeGroup reports whether a version is one of our API's except for a few letters.
func likeGroup(version string) bool {
	group, _, _ := strings.Cut(version, "/")
	group = strings.ToLower(strings.TrimSpace(group))
	return len(group) <= 100 && (strings.HasPrefix(group, "holdfast") || nearest.Distance(group, apiGroup) <= 3)
}

// likeKinds reports whether a value is a kind of ours except for a few letters.
func likeKinds(n *yaml.Node) bool {
	word := letters(scalar(n))
	return word != "" && slices.ContainsFunc([]string{"cluster", "template", "runner", "runnerrule"},
		func(kind string) bool { return nearest.Distance(word, kind) <= 2 })
}

// letters is a short word without invisible characters and in lower case; a long one is
// like no other.
func letters(word string) string {
	const longest = 100
	if len(word) > longest {
		return ""
	}
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, word))
}
