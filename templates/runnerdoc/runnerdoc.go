package runnerdoc

import (
	"bytes"
	"path"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// Options are what documents are held to besides their own keys. The zero value knows
// no secrets.
type Options struct {
	// Secrets are the names of the server's secrets, to which documents refer.
	Secrets []string
	// AnySecret: which these are is not known here, so that any name may be one.
	AnySecret bool
	// Check returns what else is wrong with a runner whose keys are right: what only those
	// know who start its agents. Nil: nothing.
	Check func(runnerspec.Runner) []runnerspec.FieldFault
}

// Document is a runner or a rule as it was written.
type Document struct {
	Runner *runnerspec.Runner // nil: it is a rule
	Rule   *runnerspec.Rule   // nil: it is a runner
	Path   string
	Line   int
	Lines  int             // that it has, up to its last value
	Faults holdfast.Faults // none: what it says is what was written

	root *yaml.Node
}

// Kind is that of the document.
func (d Document) Kind() string {
	if d.Rule != nil {
		return decode.KindRunnerRule
	}
	return decode.KindRunner
}

// Name is that of the document.
func (d Document) Name() string {
	if d.Rule != nil {
		return d.Rule.Name
	}
	return d.Runner.Name
}

// Fault returns a fault at the value of a path of keys and numbers of items, such as
// "spec", "runner", or at the nearest of its parents that was written.
func (d Document) Fault(message, hint string, keys ...string) holdfast.Fault {
	f := holdfast.Fault{
		File: d.Path, Line: d.Line, Message: wording.Visible(message), Hint: wording.Visible(hint),
	}
	if at := d.at(keys); at != nil {
		f.Line, f.Column = at.Line, at.Column
	}
	return f
}

// at is the value of a path of keys, the key of which there is no value, or the nearest
// parent; nil if nothing is known.
func (d Document) at(keys []string) *yaml.Node {
	at := d.root
	for _, key := range keys {
		var next *yaml.Node
		switch {
		case at == nil:
		case at.Kind == yaml.MappingNode:
			_, next = decode.Lookup(at, key)
		case at.Kind == yaml.SequenceNode:
			if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(at.Content) {
				next = at.Content[i]
			}
		}
		if next == nil {
			break
		}
		at = next
	}
	return at
}

// IsDocument reports whether a file may hold runners or rules, by its name and a search
// through its bytes. Parse passes over the others.
func IsDocument(name string, data []byte) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml":
		return decode.NamesUs(data) && bytes.Contains(data, []byte(decode.KindRunner))
	default:
		return false
	}
}

// Parse returns the runners and rules of a file in its order, each with what is wrong with
// it, and what is wrong with the file or with documents whose names cannot be read.
// Documents of other kinds are passed over. Alone: nobody looks for clusters in the file,
// so that it is said here what only resembles a document of ours, and what is not YAML.
func Parse(file string, data []byte, alone bool, opts Options) ([]Document, holdfast.Faults) {
	if !IsDocument(file, data) && (!alone || !decode.IsCluster(file, data)) {
		return nil, nil
	}
	var docs []Document
	var faults holdfast.Faults
	roots, syntax := decode.Parse(file, data)
	for _, root := range roots {
		kind, _ := decode.ScalarOf(root, "kind")
		version, _ := decode.ScalarOf(root, "apiVersion")
		if version == decode.APIVersion && (kind == decode.KindRunner || kind == decode.KindRunnerRule) {
			doc, named := parse(file, kind, root, opts)
			if named {
				docs = append(docs, doc)
			} else {
				faults = append(faults, doc.Faults...)
			}
		} else if alone {
			r := &decode.Reader{File: file}
			r.IsKind(root, decode.KindRunner)
			faults = append(faults, r.Faults...)
		}
	}
	if syntax != nil && alone {
		faults = append(faults, *syntax)
	}
	return docs, faults
}

// parse reads one document. It is not named if its name cannot be read.
func parse(file, kind string, root *yaml.Node, opts Options) (doc Document, named bool) {
	r := reader{Reader: &decode.Reader{File: file}, opts: opts}
	doc = Document{Path: file, Line: root.Line, Lines: lastLine(root) - root.Line + 1, root: root}
	name := decode.NameOf(root)
	if expanded := r.Expand(root); len(r.Faults) == 0 {
		doc.root = expanded
		top := r.Object(expanded, "")
		top.Get("apiVersion")
		top.Get("kind")
		metadata := top.Child("metadata")
		name = metadata.Name("name")
		metadata.Done()
		if !top.Has("spec") {
			top.Get("spec")
			top.Missing("spec")
		} else if kind == decode.KindRunner {
			doc.Runner = r.runner(top.Child("spec"))
		} else {
			doc.Rule = r.rule(top.Child("spec"))
		}
		top.Done()
	}
	if kind == decode.KindRunner {
		if doc.Runner == nil {
			doc.Runner = &runnerspec.Runner{}
		}
		doc.Runner.Name = name
	} else {
		if doc.Rule == nil {
			doc.Rule = &runnerspec.Rule{}
		}
		doc.Rule.Name = name
	}
	doc.Faults = r.Faults
	doc.check(opts)
	decode.SortFaults(doc.Faults)
	return doc, decode.ValidName(name)
}

// lastLine is that of the last value that is written at a node.
func lastLine(n *yaml.Node) int {
	last := n.Line
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		last += strings.Count(n.Value, "\n")
	}
	for _, below := range n.Content {
		last = max(last, lastLine(below))
	}
	return last
}

// check adds what is wrong with a document whose keys are right.
func (d *Document) check(opts Options) {
	if d.Runner == nil {
		return
	}
	if d.Runner.Name == holdfast.LocalRunner {
		d.Faults = append(d.Faults, d.Fault(
			"metadata.name local is that of the runner which is always there", "give it another name", "metadata", "name"))
	}
	if len(d.Faults) > 0 || opts.Check == nil {
		return
	}
	for _, fault := range opts.Check(*d.Runner) {
		if len(d.Faults) < decode.MaxFaults {
			d.Faults = append(d.Faults, d.Fault(fault.Message, fault.Hint, append([]string{"spec"}, fault.Path...)...))
		}
	}
}

// reader reads the parts of a document.
type reader struct {
	*decode.Reader
	opts Options
}

// rule reads the spec of a RunnerRule.
func (r reader) rule(o *decode.Object) *runnerspec.Rule {
	rule := &runnerspec.Rule{Runner: o.Name("runner")}
	if o.Get("project") != nil {
		rule.Project = o.Name("project")
	}
	if o.Get("environment") != nil {
		rule.Environment = o.Name("environment")
	}
	o.Done()
	return rule
}
