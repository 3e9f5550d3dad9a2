package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/nearest"
)

// rule is a policy: a name in a package whose rules say what they have against a plan.
type rule struct {
	holdfast.Policy
	ref       ast.Ref // data.PACKAGE.NAME
	exception ast.Ref // data.PACKAGE.exception; nil if the package has none
	name      string  // of its rules
	suffix    string  // by which exceptions name it
}

// verbs are the names of rules that are policies, alone or before an underscore.
var verbs = map[string]holdfast.PolicySeverity{
	"deny": holdfast.PolicyDeny, "violation": holdfast.PolicyDeny, "warn": holdfast.PolicyWarn, "info": holdfast.PolicyInfo,
}

// exceptionName is the rule by which a package takes back what its policies say, as conftest
// has it.
const exceptionName = "exception"

// findRules finds the policies of all files but tests, and what makes one unusable.
func (s *Set) findRules() {
	found := map[string]*rule{} // by reference
	for _, file := range sortedKeys(s.modules) {
		if IsTest(file) {
			continue
		}
		module := s.modules[file]
		says := false
		for _, r := range module.Rules {
			name := nameOf(r)
			severity, suffix, ok := parseName(name)
			if !ok {
				continue
			}
			says = true
			if len(r.Head.Args) > 0 {
				s.fault(file, r.Location, fmt.Sprintf("%s is a function", name), "a policy is a rule without arguments, such as \"deny contains message if { ... }\"")
				continue
			}
			ref := module.Package.Path.Append(ast.StringTerm(name))
			if found[ref.String()] == nil {
				found[ref.String()] = s.newRule(module, r, ref, severity, suffix)
			}
		}
		if !says {
			s.checkSilent(file, module)
		}
	}
	for _, r := range found {
		s.rules = append(s.rules, *r)
	}
	slices.SortFunc(s.rules, func(a, b rule) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.File, b.File)) })
	s.checkNames()
}

// nameOf is the name of a rule in its package.
func nameOf(r *ast.Rule) string {
	ref := r.Head.Ref()
	if name, ok := ref[0].Value.(ast.Var); ok {
		return string(name)
	}
	return ""
}

// parseName takes the name of a policy's rule apart.
func parseName(name string) (severity holdfast.PolicySeverity, suffix string, ok bool) {
	verb, suffix, _ := strings.Cut(name, "_")
	severity, ok = verbs[verb]
	return severity, suffix, ok
}

// newRule is the policy that begins with r.
func (s *Set) newRule(module *ast.Module, r *ast.Rule, ref ast.Ref, severity holdfast.PolicySeverity, suffix string) *rule {
	name := nameOf(r)
	out := &rule{ref: ref, name: name, suffix: suffix, Policy: holdfast.Policy{
		ID: strings.Join(packageNames(module), ".") + "." + name, Severity: severity, File: r.Location.File, Line: r.Location.Row, V0: module.RegoVersion() == ast.RegoV0,
	}}
	exception := module.Package.Path.Append(ast.StringTerm(exceptionName))
	if len(s.compiler.GetRulesExact(exception)) > 0 {
		out.exception = exception
	}
	s.annotate(out, module, ref)
	return out
}

// packageNames are the parts of the name of a module's package.
func packageNames(module *ast.Module) (names []string) {
	for _, term := range module.Package.Path[1:] {
		if name, ok := term.Value.(ast.String); ok {
			names = append(names, string(name))
		}
	}
	return names
}

// annotate adds what the METADATA comments of the package, and then those of the rule, say. An
// id of the package is that of its rule deny; others have their name behind it.
func (s *Set) annotate(r *rule, module *ast.Module, ref ast.Ref) {
	for _, a := range module.Annotations {
		if a.Scope == "package" || a.Scope == "subpackages" {
			s.applyAnnotation(r, a, true)
		}
	}
	for _, a := range module.Annotations {
		if a.Scope != "rule" && a.Scope != "document" {
			continue
		}
		if path := a.GetTargetPath(); path != nil && path.HasPrefix(ref) {
			s.applyAnnotation(r, a, false)
		}
	}
}

// applyAnnotation takes over what one comment says.
func (s *Set) applyAnnotation(r *rule, a *ast.Annotations, ofPackage bool) {
	r.Title = cmp.Or(a.Title, r.Title)
	r.Description = cmp.Or(strings.TrimSpace(a.Description), r.Description)
	if len(a.RelatedResources) > 0 {
		r.Link = a.RelatedResources[0].Ref.String()
	}
	for key, value := range a.Custom {
		switch text, isText := value.(string); {
		case key == "id" && isText && ofPackage && r.name != "deny":
			r.ID = text + "/" + r.name
		case key == "id" && isText && text != "":
			r.ID = text
		case key == "link" && isText:
			r.Link = text
		case key == "waivable":
			waivable, ok := value.(bool)
			if !ok {
				s.fault(r.File, a.Location, "waivable is neither true nor false", "")
			}
			r.Strict = !waivable
		case key == "owners":
			r.Owners = s.ownersOf(r, a, value)
		}
	}
}

// ownersOf reads a list of owners, or a single one.
func (s *Set) ownersOf(r *rule, a *ast.Annotations, value any) (owners []string) {
	list, ok := value.([]any)
	if text, single := value.(string); single {
		list, ok = []any{text}, true
	}
	for _, item := range list {
		text, isText := item.(string)
		ok = ok && isText && text != ""
		owners = append(owners, text)
	}
	if !ok {
		s.fault(r.File, a.Location, "owners is not a list of names", "owners are written as in a CODEOWNERS file, such as \"@acme/platform\"")
		return nil
	}
	return owners
}

// checkSilent faults a file that says nothing although nothing else needs it: a policy with a
// misspelt name would pass every plan.
func (s *Set) checkSilent(file string, module *ast.Module) {
	if s.isUsed(module.Package.Path) {
		return
	}
	hint := "call its rules deny, warn, violation or info, with _NAME behind it where there are several"
	for _, r := range module.Rules {
		for verb := range verbs {
			if name := nameOf(r); nearest.Distance(strings.ToLower(name), verb) <= 2 {
				s.fault(file, r.Location, fmt.Sprintf("the rule %s is not a policy, and nothing uses package %s", name, strings.Join(packageNames(module), ".")), hint)
				return
			}
		}
	}
	s.fault(file, module.Package.Location, fmt.Sprintf("no rule of it is a policy, and nothing uses package %s", strings.Join(packageNames(module), ".")), hint)
}

// isUsed reports whether a package has policies in another file, or another package refers to
// it. Tests do not count.
func (s *Set) isUsed(path ast.Ref) bool {
	for name, module := range s.modules {
		if IsTest(name) {
			continue
		}
		used := false
		if module.Package.Path.Equal(path) {
			used = slices.ContainsFunc(module.Rules, func(r *ast.Rule) bool {
				_, _, ok := parseName(nameOf(r))
				return ok
			})
		} else {
			ast.WalkRefs(module, func(ref ast.Ref) bool {
				used = used || ref.HasPrefix(path)
				return used
			})
		}
		if used {
			return true
		}
	}
	return false
}

// checkNames faults policies that have one id: a waiver of one would be of both.
func (s *Set) checkNames() {
	for i := 1; i < len(s.rules); i++ {
		one, other := s.rules[i-1], s.rules[i]
		if one.ID == other.ID {
			s.faults = append(s.faults, holdfast.PolicyFault{Policy: other.ID, Fault: holdfast.Fault{
				File: other.File, Line: other.Line, Message: fmt.Sprintf("there is another policy with the id %s, at %s:%d", other.ID, one.File, one.Line),
				Hint: "give each an id of its own: \"# METADATA\", \"# custom:\", \"#   id: NAME\" above the package or the rule",
			}})
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
