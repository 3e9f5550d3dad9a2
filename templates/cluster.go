package templates

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"weak"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
)

// Document is a cluster as it was written, with the places of its values, so
// that what turns out wrong later can be told where it was written.
type Document struct {
	Cluster holdfast.Cluster

	file   *writtenFile // nil: nothing is known of places but where the document begins
	number int          // which of the file's documents it is
}

// writtenFile is a file as it was written. Places are asked for only when
// something is wrong, and take many times the room of the text: they are found
// again then, and forgotten when nobody has asked for a while.
type writtenFile struct {
	path string
	text []byte

	mu    sync.Mutex
	found weak.Pointer[[]*place]
}

// places returns the places of each document.
func (f *writtenFile) places() []*place {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.found.Value(); known != nil {
		return *known
	}
	roots, _ := parseYAML(f.path, f.text)
	places := make([]*place, len(roots))
	for i, root := range roots {
		r := &reader{file: f.path}
		if root = r.expand(root); len(r.faults) == 0 {
			places[i] = placesOf(root, root)
		}
	}
	f.found = weak.Make(&places)
	return places
}

// place is where a key and its value stand, 1-based, and the places below.
type place struct {
	keyLine, keyColumn, line, column int32

	below map[string]*place
}

// Fault returns a fault at the value of a path of keys, such as "spec",
// "region", or at the nearest of its parents that was written.
func (d Document) Fault(message, hint string, keys ...string) holdfast.Fault {
	return d.fault(message, hint, false, keys)
}

// keyFault is Fault at the key instead of its value.
func (d Document) keyFault(message, hint string, keys ...string) holdfast.Fault {
	return d.fault(message, hint, true, keys)
}

func (d Document) fault(message, hint string, atKey bool, keys []string) holdfast.Fault {
	f := holdfast.Fault{
		File: d.Cluster.Path, Line: d.Cluster.Line, Cluster: d.Cluster.Name,
		Message: visible(message), Hint: visible(hint),
	}
	var at *place
	if d.file != nil && len(keys) > 0 {
		at = d.file.places()[d.number]
	}
	found := 0
	for _, key := range keys {
		if at == nil || at.below[key] == nil {
			break
		}
		at, found = at.below[key], found+1
	}
	switch {
	case found == 0:
	case atKey || found < len(keys):
		f.Line, f.Column = int(at.keyLine), int(at.keyColumn)
	default:
		f.Line, f.Column = int(at.line), int(at.column)
	}
	return f
}

// IsCluster reports whether a file may hold clusters, by its name and a search
// through its bytes: cheap enough for every file of a repository.
// ParseClusters passes over the others.
func IsCluster(name string, data []byte) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml":
	default:
		return false
	}
	// The second is the word in UTF-16, which is refused with a clear word
	// rather than passed over.
	return bytes.Contains(data, []byte("holdfast.dev")) ||
		bytes.Contains(data, []byte("h\x00o\x00l\x00d\x00f\x00a\x00s\x00t\x00.\x00d\x00e\x00v"))
}

// ParseClusters returns the clusters of a file in its order, and all that is
// wrong with it. A cluster at fault whose name could be read is among them, so
// that nobody takes it for deleted, with no more than what could be read; its
// faults carry its name, and it must not be planned. Documents of other kinds
// are passed over. After a syntax error the rest of the file is unknown.
//
// What can only be known with the template or the module, such as the types of
// variables, is checked by Resolver.Resolve.
func ParseClusters(path string, data []byte) ([]Document, holdfast.Faults) {
	if !IsCluster(path, data) {
		return nil, nil
	}
	var docs []Document
	var faults holdfast.Faults
	roots, syntax := parseYAML(path, data)
	file := &writtenFile{path: path, text: bytes.Clone(data)}
	for i, root := range roots {
		doc, found, ok := parseCluster(path, root)
		faults = append(faults, found...)
		if ok {
			doc.file, doc.number = file, i
			docs = append(docs, doc)
		}
	}
	if syntax != nil {
		faults = append(faults, *syntax)
	}
	return docs, faults
}

// parseCluster reports ok if root is a document of kind Cluster with a name.
func parseCluster(path string, root *yaml.Node) (doc Document, faults holdfast.Faults, ok bool) {
	r := &reader{file: path, cluster: nameOf(root)}
	if !validName(r.cluster) {
		r.cluster = ""
	}
	c := holdfast.Cluster{Name: r.cluster, Path: path, Line: root.Line}
	if !r.isKind(root, kindCluster) {
		return Document{Cluster: c}, r.faults, c.Name != "" && len(r.faults) > 0
	}
	root = r.expand(root)
	if len(r.faults) > 0 {
		return Document{Cluster: c}, r.faults, c.Name != ""
	}
	top := r.object(root, "")
	top.get("apiVersion")
	top.get("kind")
	r.metadata(top.child("metadata"), &c)
	if !top.has("spec") {
		top.get("spec")
		top.missing("spec")
	} else {
		r.spec(top.child("spec"), &c)
	}
	top.done()
	sortFaults(r.faults)
	return Document{Cluster: c}, r.faults, validName(c.Name)
}

// isKind reports whether root is a document of ours of that kind. A near miss
// is a fault: passed over, it would mean a cluster that nobody keeps.
func (r *reader) isKind(root *yaml.Node, want string) bool {
	version, versionNode := scalarOf(root, "apiVersion")
	kind, kindNode := scalarOf(root, "kind")
	switch {
	case version == apiVersion && kind == want:
		return true
	case version == apiVersion && kind != kindCluster && kind != kindTemplate:
		if near := holdfast.Nearest(kind, []string{kindCluster, kindTemplate}); near == want && len(kind) > 0 {
			r.add(kindNode, fmt.Sprintf("kind is %q", clip(kind)), fmt.Sprintf("did you mean %q?", want))
		}
	case version != apiVersion && kind == want && (version == "holdfast.dev" || strings.HasPrefix(version, "holdfast.dev/")):
		r.add(versionNode, fmt.Sprintf("apiVersion is %q", clip(version)), "this Holdfast knows "+apiVersion)
	}
	return false
}

func placesOf(key, value *yaml.Node) *place {
	p := &place{keyLine: int32(key.Line), keyColumn: int32(key.Column), line: int32(value.Line), column: int32(value.Column)}
	switch {
	case len(value.Content) == 0:
	case value.Kind == yaml.SequenceNode:
		p.below = make(map[string]*place, len(value.Content))
		for i, item := range value.Content {
			p.below[strconv.Itoa(i)] = placesOf(item, item)
		}
	case value.Kind == yaml.MappingNode:
		p.below = make(map[string]*place, len(value.Content)/2)
		for i := 0; i+1 < len(value.Content); i += 2 {
			p.below[value.Content[i].Value] = placesOf(value.Content[i], value.Content[i+1])
		}
	}
	return p
}

func sortFaults(faults holdfast.Faults) {
	slices.SortStableFunc(faults, func(a, b holdfast.Fault) int {
		switch {
		case a.File != b.File:
			return strings.Compare(a.File, b.File)
		case a.Line != b.Line:
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
}

// A name is part of lock keys, file names, labels and command lines.
var namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func validName(name string) bool { return namePattern.MatchString(name) }

const nameHint = "use a-z, 0-9 and - inside, at most 63 characters"

// name returns a required name.
func (o *object) name(key string) string {
	s := o.required(key)
	if s != "" && !validName(s) {
		o.r.add(o.get(key), fmt.Sprintf("%s is %q", o.label(key), clip(s)), nameHint)
	}
	return s
}

func (r *reader) metadata(o *object, c *holdfast.Cluster) {
	c.Name = o.name("name")
	labels := o.child("labels")
	if labels.node != nil {
		c.Labels = map[string]string{}
		for i := 0; i+1 < len(labels.node.Content); i += 2 {
			key := labels.node.Content[i].Value
			c.Labels[key] = labels.str(key)
		}
	}
	if from := o.get("renamedFrom"); from != nil {
		c.RenamedFrom = o.name("renamedFrom")
		if c.RenamedFrom == c.Name {
			r.add(from, "metadata.renamedFrom is the cluster's own name", "write the name that it had before")
		}
	}
	o.done()
}

func (r *reader) spec(o *object, c *holdfast.Cluster) {
	c.Project = o.name("project")
	c.Environment = o.name("environment")
	r.root(o, c)
	c.Provider = o.str("provider")
	c.Region = o.str("region")
	if variables := o.child("variables"); variables.node != nil {
		c.Variables, _ = r.value(variables.node).(map[string]any)
	}
	r.engine(o.child("engine"), c)
	if state := o.child("state"); state.node != nil {
		c.State = r.state(state, c)
	}
	r.dependencies(o, c)
	r.drift(o.child("drift"), c)
	r.apply(o.child("apply"), c)
	deletion := o.child("deletion")
	c.Deletion.Protected = deletion.boolean("protected", false)
	deletion.done()
	o.done()
}

// root reads what the cluster is made from: a template or a module.
func (r *reader) root(o *object, c *holdfast.Cluster) {
	template, module := o.has("template"), o.has("module")
	if t := o.child("template"); t.node != nil {
		c.Template = r.templateRef(t)
	}
	if m := o.child("module"); m.node != nil {
		c.Module = &holdfast.ModuleRef{Path: m.required("path")}
		if c.Module.Path != "" && !localPath(c.Module.Path) {
			r.add(m.get("path"), fmt.Sprintf("spec.module.path %q leaves the repository", clip(c.Module.Path)),
				"write a path from the root of the repository, without ..")
		}
		m.done()
	}
	switch {
	case template && module:
		key, _ := o.find("module")
		r.add(key, "spec has both template and module", "remove one of them")
	case !template && !module:
		r.add(o.node, "spec has neither template nor module", "add template: {name: …, version: …}, template: {path: …} or module: {path: …}")
	}
}

// localPath reports whether p stays below the folder that it starts from.
func localPath(p string) bool {
	clean := path.Clean(p)
	return !path.IsAbs(p) && clean != ".." && !strings.HasPrefix(clean, "../") && !strings.ContainsAny(p, "\\\x00")
}

func (r *reader) templateRef(o *object) *holdfast.TemplateRef {
	ref := &holdfast.TemplateRef{Name: o.str("name"), Path: o.str("path"), Upgrades: o.str("upgrades")}
	version := o.get("version")
	named, pathed := o.has("name"), o.has("path")
	switch {
	case named && pathed:
		key, _ := o.find("path")
		r.add(key, "spec.template has both name and path", "name and version for a released template, path for one of the same repository")
	case !named && !pathed:
		r.add(o.node, "spec.template has neither name nor path", "name and version for a released template, path for one of the same repository")
	}
	if named && ref.Name != "" && !validName(ref.Name) {
		r.add(o.get("name"), fmt.Sprintf("spec.template.name is %q", clip(ref.Name)), nameHint)
	}
	if pathed && !named {
		for _, key := range []string{"version", "upgrades"} {
			if at, _ := o.find(key); at != nil {
				r.add(at, fmt.Sprintf("spec.template.%s goes with a name, not with a path", key), "a template by path is the one of the same revision")
			}
		}
	}
	if named && !pathed {
		ref.Version = r.exactVersion(o, version)
		r.constraint(o, "upgrades", ref.Upgrades)
	}
	o.done()
	return ref
}

func (r *reader) exactVersion(o *object, n *yaml.Node) string {
	const hint = "write an exact version such as 1.4.2"
	switch {
	case n == nil:
		o.missing("version")
	case n.Kind != yaml.ScalarNode:
		r.add(n, fmt.Sprintf("%s must be a version, not %s", o.label("version"), describe(n)), hint)
	case !semver.MatchString(n.Value):
		better := hint
		if v := strings.TrimPrefix(n.Value, "v"); semver.MatchString(v) {
			better = "write " + v
		} else if strings.ContainsAny(n.Value, "<>=~^* ,") {
			better = hint + "; constraints go into upgrades"
		}
		r.add(n, fmt.Sprintf("%s %q is not an exact version", o.label("version"), clip(n.Value)), better)
	default:
		return n.Value
	}
	return ""
}

func (r *reader) engine(o *object, c *holdfast.Cluster) {
	c.Engine.Name = o.choice("name", "terraform", "tofu")
	c.Engine.Version = o.str("version")
	r.constraint(o, "version", c.Engine.Version)
	o.done()
}

func (r *reader) dependencies(o *object, c *holdfast.Cluster) {
	names, nodes := o.strings("dependsOn")
	for i, name := range names {
		switch {
		case !validName(name):
			r.add(nodes[i], fmt.Sprintf("spec.dependsOn names %q, which cannot be a cluster", clip(name)), nameHint)
		case name == c.Name:
			r.add(nodes[i], "the cluster depends on itself", "")
		case slices.Contains(c.DependsOn, name):
			r.add(nodes[i], fmt.Sprintf("spec.dependsOn names %q twice", name), "")
		default:
			c.DependsOn = append(c.DependsOn, name)
		}
	}
}

// Conflicts tells what is wrong between clusters that are fine by themselves:
// names claimed twice, and clusters that depend on one another in a circle. The
// first document with a name, in the order given, has it.
func Conflicts(docs []Document) holdfast.Faults {
	var faults holdfast.Faults
	first := map[string]Document{}
	for _, doc := range docs {
		other, taken := first[doc.Cluster.Name]
		if !taken {
			first[doc.Cluster.Name] = doc
			continue
		}
		faults = append(faults, doc.Fault(
			fmt.Sprintf("the name %q is taken by %s:%d", doc.Cluster.Name, other.Cluster.Path, other.Cluster.Line),
			"names are unique in the fleet", "metadata", "name"))
	}
	edges := map[string][]string{}
	for name, doc := range first {
		edges[name] = doc.Cluster.DependsOn
	}
	for _, cycle := range cycles(slices.Sorted(maps.Keys(first)), edges) {
		faults = append(faults, first[cycle[0]].Fault(
			"clusters depend on one another in a circle: "+strings.Join(cycle, " → "), "", "spec", "dependsOn"))
	}
	sortFaults(faults)
	return faults
}

// cycles returns circles of edges, each node in at most one, from the first
// node in order back to itself.
func cycles(nodes []string, edges map[string][]string) [][]string {
	const open, closed = 1, 2
	state := map[string]int{}
	var stack []string
	var found [][]string
	var visit func(string)
	visit = func(n string) {
		state[n] = open
		stack = append(stack, n)
		for _, next := range edges[n] {
			switch _, known := edges[next]; {
			case !known:
			case state[next] == 0:
				visit(next)
			case state[next] == open:
				from := slices.Index(stack, next)
				found = append(found, append(slices.Clone(stack[from:]), next))
			}
		}
		stack = stack[:len(stack)-1]
		state[n] = closed
	}
	for _, n := range nodes {
		if state[n] == 0 {
			visit(n)
		}
	}
	return found
}
