package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Source is a file with policies, or with data for them.
type Source = protocol.PolicySource

// Set is policies that were compiled together. It is safe for concurrent use.
type Set struct {
	id       holdfast.Digest
	compiler *ast.Compiler
	modules  map[string]*ast.Module // by path, with those of tests
	store    storage.Store
	rules    []rule
	faults   []holdfast.PolicyFault
}

// Digest identifies sources and the settings that they are given as data.holdfast: equal
// ones have the same digest, in whichever order.
func Digest(sources []Source, settings map[string]any) holdfast.Digest {
	sorted := slices.SortedFunc(slices.Values(sources), func(a, b Source) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Path, b.Path))
	})
	d := holdfast.NewDigester("policies")
	text, err := json.Marshal(settings)
	if err != nil {
		text = []byte(err.Error()) // Compile refuses it
	}
	d.Add(string(text))
	for _, s := range sorted {
		d.Add(s.From, s.Path, s.Text)
	}
	return d.Digest()
}

// Compile makes a Set of sources. Settings are what policies read as data.holdfast. What is
// wrong with a file is one of the faults of each report of the set: the policies of the other
// files are evaluated nevertheless.
func Compile(sources []Source, settings map[string]any) *Set {
	s := &Set{id: Digest(sources, settings), modules: map[string]*ast.Module{}}
	data := map[string]any{}
	for _, source := range sources {
		switch {
		case path.Ext(source.Path) == ".rego":
			s.parse(source)
		case path.Base(source.Path) == dataName:
			s.readData(source, data)
		}
	}
	s.checkData(data, settings)
	s.compile()
	s.findRules()
	return s
}

// dataName is the name of files with data, which policies find below the path of its folder.
const dataName = "data.json"

// IsSource reports whether a file of that name is one that Compile reads.
func IsSource(name string) bool { return path.Ext(name) == ".rego" || path.Base(name) == dataName }

// IsTest reports whether a file has tests of policies.
func IsTest(name string) bool { return strings.HasSuffix(name, "_test.rego") }

// Faults are what is wrong with the files of the set.
func (s *Set) Faults() []holdfast.PolicyFault { return s.faults }

// Policies are those of the set, by id.
func (s *Set) Policies() []holdfast.Policy {
	all := make([]holdfast.Policy, len(s.rules))
	for i, r := range s.rules {
		all[i] = r.Policy
	}
	return all
}

// shownAs is the path of a file as people see it.
func shownAs(source Source) string { return path.Join(source.From, source.Path) }

// parse reads a file in the language of Rego 1.0, or else in the one before.
func (s *Set) parse(source Source) {
	name := shownAs(source)
	options := func(version ast.RegoVersion) ast.ParserOptions {
		return ast.ParserOptions{ProcessAnnotation: true, RegoVersion: version}
	}
	module, err := ast.ParseModuleWithOpts(name, source.Text, options(ast.RegoV1))
	if err != nil {
		older, errOlder := ast.ParseModuleWithOpts(name, source.Text, options(ast.RegoV0))
		if errOlder == nil {
			module, err = older, nil
		}
	}
	switch {
	case err != nil:
		s.fail(name, err)
	case module == nil: // comments alone
		s.fault(name, nil, "it has no package", "a file with policies begins with the line \"package NAME\"")
	default:
		s.modules[name] = module
	}
}

// readData puts what a file has where policies find it: that of aws/data.json below data.aws.
func (s *Set) readData(source Source, all map[string]any) {
	dec := json.NewDecoder(strings.NewReader(source.Text))
	dec.UseNumber()
	var content map[string]any
	if err := dec.Decode(&content); err != nil {
		s.fault(shownAs(source), nil, "it is not a JSON object: "+err.Error(), "")
		return
	}
	at := all
	if dir := path.Dir(path.Clean(source.Path)); dir != "." && dir != "/" {
		for name := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
			next, ok := at[name].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[name] = next
			}
			at = next
		}
	}
	for key, value := range content {
		if _, taken := at[key]; taken {
			s.fault(shownAs(source), nil, fmt.Sprintf("there is another value for %q", key), "two files give data to the same place")
			continue
		}
		at[key] = value
	}
}

// checkData keeps what policies find below data.
func (s *Set) checkData(data, settings map[string]any) {
	if _, taken := data[settingsKey]; taken {
		s.fault(dataName, nil, fmt.Sprintf("it has a key %q", settingsKey), "settings of holdfast.yaml are there")
	}
	if settings == nil {
		settings = map[string]any{}
	}
	data[settingsKey] = settings
	s.store = inmem.NewFromObjectWithOpts(data, inmem.OptRoundTripOnWrite(false), inmem.OptReturnASTValuesOnRead(true))
}

// settingsKey is where settings are below data, and what is ours in the input.
const settingsKey = "holdfast"

// compile compiles all modules, without those that do not compile: what is wrong with them is
// noted.
func (s *Set) compile() {
	modules := make(map[string]*ast.Module, len(s.modules))
	for name, m := range s.modules {
		modules[name] = m
	}
	for {
		c := ast.NewCompiler().WithCapabilities(capabilities()).WithDefaultRegoVersion(ast.RegoV1).WithEnablePrintStatements(false)
		c.SetErrorLimit(0)
		copies := make(map[string]*ast.Module, len(modules))
		for name, m := range modules {
			copies[name] = m
		}
		c.Compile(copies)
		if s.compiler = c; !c.Failed() {
			s.modules = modules
			return
		}
		dropped := false
		for _, err := range c.Errors {
			if err.Location != nil && modules[err.Location.File] != nil {
				delete(modules, err.Location.File)
				dropped = true
			}
			s.fail("", err)
		}
		if !dropped {
			clear(modules) // nobody knows which of them is wrong
		}
	}
}

// capabilities are what policies may use: nothing that asks others, and nothing that is
// another one each time.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool { return slices.Contains(forbidden, b.Name) })
	c.AllowNet = []string{}
	return c
}

// forbidden are the functions that no policy has.
var forbidden = []string{
	"http.send", "net.lookup_ip_addr", "opa.runtime", "providers.aws.sign_req", "rand.intn", "time.now_ns", "uuid.rfc4122",
}

// fail notes what a parser or the compiler says.
func (s *Set) fail(file string, err error) {
	var several ast.Errors
	var one *ast.Error
	switch {
	case errors.As(err, &several):
		for _, e := range several {
			s.fail(file, e)
		}
	case errors.As(err, &one):
		if one.Location != nil {
			file = cmp.Or(file, one.Location.File)
		}
		s.fault(file, one.Location, one.Message, hintFor(one))
	default:
		s.fault(file, nil, err.Error(), "")
	}
}

// hintFor says what to do about an error of the parser or the compiler, where its words are
// not enough.
func hintFor(err *ast.Error) string {
	for _, name := range forbidden {
		if strings.Contains(err.Message, "undefined function "+name) {
			return "policies have no network, no clock and no random numbers"
		}
	}
	return ""
}

func (s *Set) fault(file string, at *ast.Location, message, hint string) {
	s.faults = append(s.faults, faultAt("", file, at, message, hint))
}

// faultAt is a fault at a place of a file.
func faultAt(policy, file string, at *ast.Location, message, hint string) holdfast.PolicyFault {
	f := holdfast.PolicyFault{Policy: policy, Fault: holdfast.Fault{File: file, Message: message, Hint: hint}}
	if at != nil {
		f.File, f.Line, f.Column = cmp.Or(at.File, file), at.Row, at.Col
	}
	return f
}
