package authoring

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// Suite is a file of test cases.
type Suite struct {
	File  string // in the tree
	Cases []Case
}

// Case is a cluster, and what is expected of it: faults; or none, and perhaps a
// root module or a plan.
type Case struct {
	Name string
	File string
	Line int

	Faults []ExpectedFault
	Golden string        // folder with the root module's files, in the tree; empty: it is not compared
	Plan   *ExpectedPlan // nil: no engine is asked

	doc     document.Document
	faults  holdfast.Faults // of the document alone
	text    *yaml.Node      // the document that was made of the case
	written *yaml.Node      // the case's cluster, where it is written
}

// ExpectedFault is a fault that a case is to have.
type ExpectedFault struct {
	At      string // dotted path such as spec.variables.node_count; empty: anywhere
	Message string // is contained in the fault's message or its hint
	Line    int
}

// ExpectedPlan is what a plan has to be. Counts that are nil are not compared; if all
// are, the root module only has to be valid for the engine.
type ExpectedPlan struct {
	Create, Change, Replace, Destroy *int
}

func (p *ExpectedPlan) onlyValid() bool {
	return p.Create == nil && p.Change == nil && p.Replace == nil && p.Destroy == nil
}

// Names that a case's cluster has if it gives none.
const caseName = "test"

// ParseSuite reads a file of test cases of the template in the folder dir, and
// returns all that is wrong with it.
func ParseSuite(file, dir string, data []byte) (Suite, holdfast.Faults) {
	r := &reader{file: file, left: maxNodes}
	suite := Suite{File: file}
	root, fault := parse(file, data)
	if fault != nil {
		return suite, holdfast.Faults{*fault}
	}
	root = r.expand(root, 0)
	if len(r.faults) > 0 {
		return suite, r.faults
	}
	s := &suiteReader{reader: r, dir: dir, names: map[string]int{}}
	found := false
	r.keys(root, "the file", map[string]func(_, _ *yaml.Node){
		"cases": func(_, value *yaml.Node) {
			found = true
			for i, item := range r.items(value, "cases") {
				if c, ok := s.one(item, fmt.Sprintf("cases[%d]", i)); ok {
					suite.Cases = append(suite.Cases, c)
				}
			}
		},
	})
	if !found && len(r.faults) == 0 {
		r.add(root, "file has no cases", "write cases: and a list of them")
	}
	return suite, r.faults
}

var syntaxError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// parse returns the one document of a YAML file.
func parse(file string, data []byte) (root *yaml.Node, fault *holdfast.Fault) {
	// The parser is third-party code: a bug in it must not end the process.
	defer func() {
		if p := recover(); p != nil {
			fault = &holdfast.Fault{File: file, Message: fmt.Sprintf("file is not valid YAML: %v", p)}
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var node yaml.Node
	err := decoder.Decode(&node)
	if errors.Is(err, io.EOF) || err == nil && len(node.Content) == 0 {
		return nil, &holdfast.Fault{File: file, Message: "file is empty", Hint: "write cases: and a list of them, or remove the file"}
	}
	if err != nil {
		fault := &holdfast.Fault{File: file, Message: "file is not valid YAML: " + err.Error()}
		if m := syntaxError.FindStringSubmatch(err.Error()); m != nil {
			fault.Line, _ = strconv.Atoi(m[1])
			fault.Message = "file is not valid YAML: " + m[2]
		}
		return nil, fault
	}
	var second yaml.Node
	if err := decoder.Decode(&second); err == nil {
		return nil, &holdfast.Fault{File: file, Line: second.Line, Message: "a second document in one file", Hint: "put its cases into the first, or into a file of their own"}
	}
	return node.Content[0], nil
}

type suiteReader struct {
	*reader
	dir   string         // of the template
	names map[string]int // name → line
}

func (s *suiteReader) one(n *yaml.Node, label string) (Case, bool) {
	before := len(s.faults)
	c := Case{File: s.file, Line: n.Line}
	if n.Kind != yaml.MappingNode {
		s.add(n, fmt.Sprintf("%s must be a mapping, not %s", label, describe(n)), "")
		return c, false
	}
	var golden *yaml.Node
	s.keys(n, label, map[string]func(_, _ *yaml.Node){
		"name":    func(_, v *yaml.Node) { c.Name = s.name(v, label) },
		"cluster": func(_, v *yaml.Node) { c.written = v },
		"faults": func(_, v *yaml.Node) {
			for i, item := range s.items(v, label+".faults") {
				c.Faults = append(c.Faults, s.fault(item, fmt.Sprintf("%s.faults[%d]", label, i)))
			}
			if v.Kind == yaml.SequenceNode && len(v.Content) == 0 {
				s.add(v, label+".faults is empty", "leave it out: without it the cluster must be valid")
			}
		},
		"golden": func(_, v *yaml.Node) {
			golden = v
			p := s.text(v, label+".golden")
			if p != "" && !inside(p) {
				s.add(v, fmt.Sprintf("%s.golden %q leaves the folder of the file", label, clip(p)), "write a folder next to the file, such as golden/basic")
			}
			c.Golden = path.Join(path.Dir(s.file), p)
		},
		"plan": func(_, v *yaml.Node) { c.Plan = s.plan(v, label+".plan") },
	})
	if c.Name == "" && len(s.faults) == before {
		s.add(n, label+".name is missing", "say in a few words what the case shows")
	}
	if c.written == nil {
		s.add(n, label+".cluster is missing", "write the spec of a cluster, such as {provider: local, variables: {}}")
	}
	if len(c.Faults) > 0 && (golden != nil || c.Plan != nil) {
		s.add(n, label+" expects faults, and a root module or a plan", "a cluster with faults has neither: make it two cases")
	}
	if len(s.faults) > before {
		return c, false
	}
	s.document(&c, label)
	return c, len(s.faults) == before
}

func (s *suiteReader) name(v *yaml.Node, label string) string {
	name := s.text(v, label+".name")
	if line, taken := s.names[name]; taken && name != "" {
		s.add(v, fmt.Sprintf("%s.name %q is that of the case in line %d", label, clip(name), line), "names tell cases apart")
	}
	s.names[name] = v.Line
	return name
}

func (s *suiteReader) fault(n *yaml.Node, label string) ExpectedFault {
	want := ExpectedFault{Line: n.Line}
	s.keys(n, label, map[string]func(_, _ *yaml.Node){
		"at":      func(_, v *yaml.Node) { want.At = s.text(v, label+".at") },
		"message": func(_, v *yaml.Node) { want.Message = s.text(v, label+".message") },
	})
	first, _, _ := strings.Cut(want.At, ".")
	if want.At != "" && first != "spec" && first != "metadata" {
		s.add(n, fmt.Sprintf("%s.at is %q", label, clip(want.At)), "write a path from the document's root, such as spec.variables.node_count")
	}
	if want.At == "" && want.Message == "" && n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		s.add(n, label+" says neither at nor message", "say where the fault is, or what it says")
	}
	return want
}

func (s *suiteReader) plan(n *yaml.Node, label string) *ExpectedPlan {
	plan := &ExpectedPlan{}
	valid := (*yaml.Node)(nil)
	number := func(to **int) func(_, _ *yaml.Node) {
		return func(key, v *yaml.Node) {
			i, err := strconv.Atoi(v.Value)
			if v.Kind != yaml.ScalarNode || v.Tag != "!!int" || err != nil || i < 0 {
				s.add(v, fmt.Sprintf("%s.%s must be a number of resources, not %s", label, key.Value, describe(v)), "")
				return
			}
			*to = &i
		}
	}
	s.keys(n, label, map[string]func(_, _ *yaml.Node){
		"create": number(&plan.Create), "change": number(&plan.Change),
		"replace": number(&plan.Replace), "destroy": number(&plan.Destroy),
		"valid": func(_, v *yaml.Node) {
			if valid = v; v.Tag != "!!bool" || v.Value != "true" {
				s.add(v, label+".valid can only be true", "a root module that is not valid for the engine is a fault of the template")
			}
		},
	})
	switch {
	case valid != nil && !plan.onlyValid():
		s.add(valid, label+" has valid and numbers", "a plan that can be counted is valid: remove valid")
	case valid == nil && plan.onlyValid() && n.Kind == yaml.MappingNode && len(n.Content) == 0:
		s.add(n, label+" says nothing", "write {valid: true}, or numbers such as {create: 3}")
	}
	return plan
}

// document makes the document of a case, and reads it as Holdfast does.
func (s *suiteReader) document(c *Case, label string) {
	if c.written.Kind != yaml.MappingNode {
		s.add(c.written, fmt.Sprintf("%s.cluster must be a mapping, not %s", label, describe(c.written)), "write the spec of a cluster")
		return
	}
	name := caseName
	spec := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	for i := 0; i+1 < len(c.written.Content); i += 2 {
		key, value := c.written.Content[i], c.written.Content[i+1]
		switch key.Value {
		case "name":
			if name = s.text(value, label+".cluster.name"); name != "" && !validName.MatchString(name) {
				s.add(value, fmt.Sprintf("%s.cluster.name is %q", label, clip(name)), "use a-z, 0-9 and - inside, at most 63 characters")
			}
			continue
		case "template", "module":
			s.add(key, fmt.Sprintf("%s.cluster has %s", label, key.Value), "remove it: a case is of the template next to it")
			return
		}
		spec.Content = append(spec.Content, key, value)
	}
	for _, field := range []string{"project", "environment"} {
		if below(spec, field) == nil {
			spec.Content = append(spec.Content, text(field), text(caseName))
		}
	}
	if !validName.MatchString(name) {
		return
	}
	spec.Content = append(spec.Content, text("template"), mapping(text("path"), text(relative(path.Dir(s.file), s.dir))))
	data, err := yaml.Marshal(mapping(
		text("apiVersion"), text("holdfast.dev/v1"), text("kind"), text("Cluster"),
		text("metadata"), mapping(text("name"), text(name)), text("spec"), spec,
	))
	if err != nil {
		s.add(c.written, fmt.Sprintf("%s.cluster cannot be written as a document: %v", label, err), "")
		return
	}
	root, fault := parse(s.file, data)
	docs, faults := document.ParseClusters(s.file, data)
	if fault != nil || len(docs) != 1 {
		s.add(c.written, label+".cluster does not make a cluster", "")
		return
	}
	c.doc, c.faults, c.text = docs[0], faults, root
}

func text(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
}

func mapping(content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: yaml.FlowStyle, Content: content}
}

// relative is the way from one folder of the tree to another.
func relative(from, to string) string {
	split := func(p string) []string {
		if p == "." {
			return nil
		}
		return strings.Split(p, "/")
	}
	a, b := split(path.Clean(from)), split(path.Clean(to))
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	words := make([]string, 0, len(a)+len(b)+1)
	for range a {
		words = append(words, "..")
	}
	words = append(words, b...)
	if len(words) == 0 {
		return "."
	}
	return strings.Join(words, "/")
}
