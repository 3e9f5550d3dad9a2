package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Input is what a plan is made of, in parts that can be named.
type Input struct {
	Destroy   bool              `json:"destroy,omitempty"` // it is the plan of a destruction
	Source    holdfast.Digest   `json:"source"`
	Engine    string            `json:"engine"` // name and version
	LockFile  holdfast.Digest   `json:"lockFile,omitempty"`
	Providers map[string]string `json:"providers,omitempty"` // version by source address, from the lock file
	Modules   holdfast.Digest   `json:"modules,omitempty"`   // content of the modules that init fetched
	// Fetched are the modules that init fetched, by name, for words only. A module's
	// name is that of its call, after those that call it: net, or net.subnets.
	Fetched map[string]Module `json:"fetched,omitempty"`
	// Unit is what Terragrunt rendered, files and values of variables; empty: it is not a unit.
	Unit holdfast.Digest `json:"unit,omitempty"`
	// Secrets are keyed hashes of the secret variables, for words only: InputDigest
	// does not have them, as what they change is in the plan document.
	Secrets map[string]string `json:"secrets,omitempty"`
}

// Module is a module that init fetched.
type Module struct {
	Version string          `json:"version,omitempty"` // of a registry
	Content holdfast.Digest `json:"content"`
}

// ChangesSince returns in words how the input differs from a former one.
func (now Input) ChangesSince(then Input) []string {
	var words []string
	switch {
	case now.Destroy && !then.Destroy:
		words = append(words, "this is a destroy plan, and no destroy plan was reviewed")
	case then.Destroy && !now.Destroy:
		words = append(words, "a destroy plan was reviewed, but this is not one")
	}
	if now.Source != then.Source {
		words = append(words, "the cluster's code or variables have changed")
	}
	if now.Source == then.Source && now.Unit != then.Unit {
		words = append(words, "Terragrunt renders the unit otherwise: the module's source is not pinned, or a function gives another value")
	}
	if now.Engine != then.Engine {
		words = append(words, fmt.Sprintf("the engine is %s, it was %s", now.Engine, then.Engine))
	}
	if now.LockFile != then.LockFile {
		words = append(words, providerChanges(now.Providers, then.Providers)...)
	}
	if now.Modules != then.Modules {
		words = append(words, ModuleChanges(now.Fetched, then.Fetched)...)
	}
	return append(words, now.SecretChanges(then)...)
}

// ModuleChanges says in words how fetched modules differ from those of a former
// input that had other ones.
func ModuleChanges(now, then map[string]Module) []string {
	var words []string
	if len(then) == 0 && len(now) > 0 { // it did not note them
		now = nil
	}
	all := maps.Clone(then)
	if all == nil {
		all = map[string]Module{}
	}
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		is, here := now[name]
		was, there := then[name]
		switch {
		case !there:
			words = append(words, fmt.Sprintf("module %s is new", name))
		case !here:
			words = append(words, fmt.Sprintf("module %s is gone", name))
		case is.Version != was.Version:
			words = append(words, fmt.Sprintf("module %s is %s, it was %s", name, orNone(is.Version), orNone(was.Version)))
		case is.Content != was.Content:
			words = append(words, fmt.Sprintf("module %s has changed: its source is not pinned to a version or a commit", name))
		}
	}
	if len(words) == 0 {
		words = append(words, "a module that init fetches has changed: is its version pinned?")
	}
	return words
}

func orNone(version string) string { return cmp.Or(version, "of no version") }

func providerChanges(now, then map[string]string) []string {
	var words []string
	all := maps.Clone(then)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, now)
	for _, source := range slices.Sorted(maps.Keys(all)) {
		name := strings.TrimPrefix(strings.TrimPrefix(source, "registry.terraform.io/"), "registry.opentofu.org/")
		version, is := now[source]
		former, was := then[source]
		switch {
		case !was:
			words = append(words, fmt.Sprintf("provider %s %s is new", name, version))
		case !is:
			words = append(words, fmt.Sprintf("provider %s %s is gone", name, former))
		case version != former:
			words = append(words, fmt.Sprintf("provider %s is %s, it was %s", name, version, former))
		}
	}
	if len(words) == 0 {
		words = append(words, "the provider lock file has other constraints or checksums for the same versions")
	}
	return words
}

// changedSecrets returns the secret variables whose values are others than those
// that a former input was made with, sorted; none if that did not note them.
func (now Input) changedSecrets(then Input) []string {
	if len(then.Secrets) == 0 {
		return nil
	}
	var names []string
	for name, print := range now.Secrets {
		if then.Secrets[name] != print {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// SecretChanges says in words which secret variables have other values than in a
// former input; nil if none has, or if that did not note them.
func (now Input) SecretChanges(then Input) []string {
	names := now.changedSecrets(then)
	switch len(names) {
	case 0:
		return nil
	case 1:
		return []string{"the value of the secret variable " + names[0] + " has changed"}
	default:
		return []string{"the values of the secret variables " + strings.Join(names, ", ") + " have changed"}
	}
}
