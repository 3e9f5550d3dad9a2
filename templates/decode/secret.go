package decode

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// SecretKey is the only key of a reference to a secret.
const SecretKey = "secret"

// SecretExample is such a reference, for messages.
const SecretExample = "{secret: {env: DB_PASSWORD}}"

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

var storeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// BadSecret is what is wrong with a reference to a secret. It never contains what was
// written: that may be the secret itself.
type BadSecret struct {
	Path []string // from the variable's value
	Key  bool     // it is about the key at path
	Hint string
}

// ReadSecret reads a reference such as {secret: {env: DB_PASSWORD}}. bad is nil if it is
// one.
func ReadSecret(value any) (ref rootmodule.SecretRef, bad *BadSecret) {
	outer, _ := value.(map[string]any)
	inner, _ := outer[SecretKey].(map[string]any)
	if len(outer) != 1 || inner == nil {
		return ref, &BadSecret{}
	}
	into := map[string]*string{"env": &ref.Env, "file": &ref.File, "store": &ref.Store, "key": &ref.Key}
	for _, name := range slices.Sorted(maps.Keys(inner)) {
		text, isText := inner[name].(string)
		switch to := into[name]; {
		case to == nil:
			// The hint is made of our own words only.
			hint := wording.OneOf(slices.Collect(maps.Keys(into)))
			if near := nearest.Of(name, slices.Collect(maps.Keys(into))); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			return ref, &BadSecret{Path: []string{SecretKey, name}, Key: true, Hint: hint}
		case !isText || text == "":
			return ref, &BadSecret{Path: []string{SecretKey, name}, Hint: name + " is a text"}
		default:
			*to = text
		}
	}
	ways := 0
	for _, way := range []string{ref.Env, ref.File, ref.Store} {
		if way != "" {
			ways++
		}
	}
	at := func(name, hint string) *BadSecret { return &BadSecret{Path: []string{SecretKey, name}, Hint: hint} }
	switch {
	case ways != 1:
		return ref, &BadSecret{Path: []string{SecretKey}, Hint: "exactly one of env, file and store"}
	case ref.Env != "" && !envName.MatchString(ref.Env):
		return ref, at("env", "env is the name of an environment variable")
	case ref.File != "" && (!path.IsAbs(ref.File) || strings.ContainsRune(ref.File, 0)):
		return ref, at("file", "file is an absolute path, such as /run/secrets/db")
	case ref.Store != "" && !storeName.MatchString(ref.Store):
		return ref, at("store", "store is the name of a secret store, such as vault")
	case ref.Store != "" && ref.Key == "":
		return ref, &BadSecret{Path: []string{SecretKey}, Hint: "a store needs a key: {secret: {store: vault, key: prod/db}}"}
	case ref.Store == "" && ref.Key != "":
		return ref, &BadSecret{Path: []string{SecretKey, "key"}, Key: true, Hint: "a key is only valid with a store"}
	}
	if err := ref.Check(); err != nil { // as the agent checks it: a key, or something too long
		for _, name := range []string{"env", "file", "store"} {
			if inner[name] != nil && ref.Key == "" {
				return ref, at(name, err.Error())
			}
		}
		return ref, at("key", err.Error())
	}
	return ref, nil
}

// LooksSecret reports whether a value is meant as a reference to a secret.
func LooksSecret(value any) bool {
	outer, _ := value.(map[string]any)
	inner, _ := outer[SecretKey].(map[string]any)
	if len(outer) != 1 {
		return false
	}
	return inner["env"] != nil || inner["file"] != nil || inner["store"] != nil
}
