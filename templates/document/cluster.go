package document

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// Document is a cluster as it was written, with the places of its values, so that what
// turns out wrong later can be reported with the place where it was written.
type Document struct {
	Cluster holdfast.Cluster

	file   *writtenFile // nil: nothing is known of places but where the document begins
	number int          // which of the file's documents it is
	unread []string     // see Unread
	faulty bool
}

// Faulty reports whether the document itself has faults: no root module is made of it.
func (d Document) Faulty() bool { return d.faulty }

// Unread reports whether a key of spec has faults, so that nothing more can be said of its
// value: template (module, too), provider, region or variables.
func (d Document) Unread(key string) bool { return slices.Contains(d.unread, key) }

// Fault returns a fault at the value of a path of keys, such as "spec",
// "region", or at the nearest of its parents that was written.
func (d Document) Fault(message, hint string, keys ...string) holdfast.Fault {
	return d.FaultAt(message, hint, false, keys)
}

// KeyFault is Fault at the key instead of its value.
func (d Document) KeyFault(message, hint string, keys ...string) holdfast.Fault {
	return d.FaultAt(message, hint, true, keys)
}

// FaultAt is KeyFault or Fault, for those who know only at run time which.
func (d Document) FaultAt(message, hint string, atKey bool, keys []string) holdfast.Fault {
	f := holdfast.Fault{
		File: d.Cluster.Path, Line: d.Cluster.Line, Cluster: d.Cluster.Name,
		Message: wording.Visible(message), Hint: wording.Visible(hint),
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

// ParseClusters returns the clusters of a file in its order, and all that is
// wrong with it. A cluster at fault whose name could be read is among them, so
// that nobody takes it for deleted, with no more than what could be read; its
// faults carry its name, and it must not be planned. Documents of other kinds
// are passed over, unless they resemble one of ours: a word of its head is
// misspelt or missing, it is an item of a list, or it ran into the one before it.
// After a syntax error the rest of the file is unknown.
//
// What can only be known with the template or the module, such as the types of
// variables, is checked by templates.Resolver: of a cluster at fault by its Check, so
// that all faults are reported at once.
func ParseClusters(path string, data []byte) ([]Document, holdfast.Faults) {
	if !decode.IsCluster(path, data) {
		return nil, nil
	}
	var docs []Document
	var faults holdfast.Faults
	roots, syntax := decode.Parse(path, data)
	file := &writtenFile{path: path, text: bytes.Clone(data)}
	for i, root := range roots {
		doc, found, ok := parseCluster(path, root)
		faults = append(faults, found...)
		if ok {
			doc.file, doc.number = file, i
			docs = append(docs, doc)
		}
	}
	if syntax != nil && (decode.NamesUs(data) || len(docs) > 0 || len(faults) > 0) { // otherwise it is somebody else's
		faults = append(faults, *syntax)
	}
	return docs, faults
}

// clusterReader reads the parts of a cluster's document.
type clusterReader struct{ *decode.Reader }

// parseCluster reports ok if root is a document of kind Cluster with a name.
func parseCluster(path string, root *yaml.Node) (doc Document, faults holdfast.Faults, ok bool) {
	r := clusterReader{&decode.Reader{File: path, Cluster: decode.NameOf(root)}}
	if !decode.ValidName(r.Cluster) {
		r.Cluster = ""
	}
	c := holdfast.Cluster{Name: r.Cluster, Path: path, Line: root.Line}
	if !r.IsKind(root, decode.KindCluster) {
		if c.Name = r.Cluster; root.Kind == yaml.SequenceNode && len(r.Faults) > 0 {
			c.Name = r.Faults[0].Cluster
		}
		return Document{Cluster: c}, r.Faults, c.Name != "" && len(r.Faults) > 0
	}
	root = r.Expand(root)
	if len(r.Faults) > 0 {
		return Document{Cluster: c}, r.Faults, c.Name != ""
	}
	top := r.Object(root, "")
	top.Get("apiVersion")
	top.Get("kind")
	r.metadata(top.Child("metadata"), &c)
	var unread []string
	if !top.Has("spec") {
		top.Get("spec")
		top.Missing("spec")
	} else {
		unread = r.spec(top.Child("spec"), &c)
	}
	top.Done()
	decode.SortFaults(r.Faults)
	return Document{Cluster: c, unread: unread, faulty: len(r.Faults) > 0}, r.Faults, decode.ValidName(c.Name)
}

func (r clusterReader) metadata(o *decode.Object, c *holdfast.Cluster) {
	c.Name = o.Name("name")
	labels := o.Child("labels")
	if labels.Node != nil {
		c.Labels = map[string]string{}
		for i := 0; i+1 < len(labels.Node.Content); i += 2 {
			key := labels.Node.Content[i].Value
			c.Labels[key] = labels.Text(key)
		}
	}
	if from := o.Get("renamedFrom"); from != nil {
		c.RenamedFrom = o.Name("renamedFrom")
		if c.RenamedFrom == c.Name {
			r.Add(from, "metadata.renamedFrom is the cluster's own name", "write the name that it had before")
		}
	}
	o.Done()
}

// spec returns the keys of Document.Unread.
func (r clusterReader) spec(o *decode.Object, c *holdfast.Cluster) (unread []string) {
	c.Project = o.Name("project")
	c.Environment = o.Name("environment")
	reading := func(key string, read func()) {
		before := len(r.Faults)
		if read(); len(r.Faults) > before || before == decode.MaxFaults {
			unread = append(unread, key)
		}
	}
	reading("template", func() { r.root(o, c) })
	reading("provider", func() { c.Provider = o.Text("provider") })
	reading("region", func() { c.Region = o.Text("region") })
	reading("variables", func() {
		if variables := o.Child("variables"); variables.Node != nil {
			c.Variables, _ = r.Value(variables.Node).(map[string]any)
		}
	})
	r.engine(o.Child("engine"), c)
	if state := o.Child("state"); state.Node != nil {
		c.State = r.state(state, c)
	}
	r.dependencies(o, c)
	r.drift(o.Child("drift"), c)
	r.apply(o.Child("apply"), c)
	deletion := o.Child("deletion")
	c.Deletion.Protected = deletion.Bool("protected", false)
	deletion.Done()
	c.Limits = o.Child("limits").RunLimits("leave it out for the server's own limit")
	c.Runner = r.runner(o.Child("runner"))
	return append(unread, o.Done()...)
}

// root reads what the cluster is made from: a template or a module.
func (r clusterReader) root(o *decode.Object, c *holdfast.Cluster) {
	template, module := o.Has("template"), o.Has("module")
	if t := o.Child("template"); t.Node != nil {
		c.Template = r.templateRef(t)
	}
	if m := o.Child("module"); m.Node != nil {
		c.Module = &holdfast.ModuleRef{Path: m.Required("path")}
		if c.Module.Path != "" && !LocalPath(c.Module.Path) {
			r.Add(m.Get("path"), fmt.Sprintf("spec.module.path %q leaves the repository", wording.Clip(c.Module.Path)),
				"write a path from the root of the repository, without ..")
		}
		m.Done()
	}
	switch {
	case template && module:
		key, _ := o.Find("module")
		r.Add(key, "spec has both template and module", "remove one of them")
	case !template && !module:
		r.Add(o.Node, "spec has neither template nor module", "add template: {name: …, version: …}, template: {path: …} or module: {path: …}")
	}
}

// LocalPath reports whether p stays below the folder that it starts from.
func LocalPath(p string) bool {
	clean := path.Clean(p)
	return !path.IsAbs(p) && clean != ".." && !strings.HasPrefix(clean, "../") && !strings.ContainsAny(p, "\\\x00")
}

func (r clusterReader) templateRef(o *decode.Object) *holdfast.TemplateRef {
	ref := &holdfast.TemplateRef{Name: o.Text("name"), Path: o.Text("path"), Upgrades: o.Text("upgrades")}
	o.Get("version")
	named, pathed := o.Has("name"), o.Has("path")
	switch {
	case named && pathed:
		key, _ := o.Find("path")
		r.Add(key, "spec.template has both name and path", "name and version for a released template, path for one of the same repository")
	case !named && !pathed:
		r.Add(o.Node, "spec.template has neither name nor path", "name and version for a released template, path for one of the same repository")
	}
	if named && ref.Name != "" && !decode.ValidName(ref.Name) {
		r.Add(o.Get("name"), fmt.Sprintf("spec.template.name is %q", wording.Clip(ref.Name)), decode.NameHint)
	}
	if pathed && !named {
		for _, key := range []string{"version", "upgrades"} {
			if at, _ := o.Find(key); at != nil {
				r.Add(at, fmt.Sprintf("spec.template.%s is only valid with a name, not with a path", key), "a template by path is the one of the same revision")
			}
		}
	}
	if named && !pathed {
		ref.Version = o.ExactVersion("version")
		o.Constraint("upgrades", ref.Upgrades)
	}
	o.Done()
	return ref
}

func (r clusterReader) engine(o *decode.Object, c *holdfast.Cluster) {
	c.Engine.Name = o.Choice("name", "terraform", "tofu")
	c.Engine.Version = o.Text("version")
	o.Constraint("version", c.Engine.Version)
	o.Done()
}

func (r clusterReader) dependencies(o *decode.Object, c *holdfast.Cluster) {
	names, nodes := o.Strings("dependsOn")
	for i, name := range names {
		switch {
		case !decode.ValidName(name):
			r.Add(nodes[i], fmt.Sprintf("spec.dependsOn names %q, which cannot be a cluster", wording.Clip(name)), decode.NameHint)
		case name == c.Name:
			r.Add(nodes[i], "the cluster depends on itself", "")
		case slices.Contains(c.DependsOn, name):
			r.Add(nodes[i], fmt.Sprintf("spec.dependsOn names %q twice", name), "")
		default:
			c.DependsOn = append(c.DependsOn, name)
		}
	}
}
