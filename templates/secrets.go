package templates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

const (
	secretKey     = "secret"
	secretExample = "{secret: {env: DB_PASSWORD}}"
)

var (
	envName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	storeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
)

// badSecret is what is wrong with a reference to a secret. What stood there is
// never in it: it may be the secret itself.
type badSecret struct {
	path []string // from the variable's value
	key  bool     // it is about the key at path
	hint string
}

// secretRef reads a reference such as {secret: {env: DB_PASSWORD}}.
func secretRef(value any) (ref holdfast.SecretRef, bad *badSecret) {
	outer, _ := value.(map[string]any)
	inner, _ := outer[secretKey].(map[string]any)
	if len(outer) != 1 || inner == nil {
		return ref, &badSecret{}
	}
	into := map[string]*string{"env": &ref.Env, "file": &ref.File, "store": &ref.Store, "key": &ref.Key}
	for _, name := range slices.Sorted(maps.Keys(inner)) {
		text, isText := inner[name].(string)
		switch to := into[name]; {
		case to == nil:
			// The hint is made of our own words only.
			hint := oneOf(slices.Collect(maps.Keys(into)))
			if near := holdfast.Nearest(name, slices.Collect(maps.Keys(into))); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			return ref, &badSecret{path: []string{secretKey, name}, key: true, hint: hint}
		case !isText || text == "":
			return ref, &badSecret{path: []string{secretKey, name}, hint: name + " is a text"}
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
	at := func(name, hint string) *badSecret { return &badSecret{path: []string{secretKey, name}, hint: hint} }
	switch {
	case ways != 1:
		return ref, &badSecret{path: []string{secretKey}, hint: "exactly one of env, file and store"}
	case ref.Env != "" && !envName.MatchString(ref.Env):
		return ref, at("env", "env is the name of an environment variable")
	case ref.File != "" && (!path.IsAbs(ref.File) || strings.ContainsRune(ref.File, 0)):
		return ref, at("file", "file is an absolute path, such as /run/secrets/db")
	case ref.Store != "" && !storeName.MatchString(ref.Store):
		return ref, at("store", "store is the name of a secret store, such as vault")
	case ref.Store != "" && ref.Key == "":
		return ref, &badSecret{path: []string{secretKey}, hint: "a store needs a key: {secret: {store: vault, key: prod/db}}"}
	case ref.Store == "" && ref.Key != "":
		return ref, &badSecret{path: []string{secretKey, "key"}, key: true, hint: "a key goes with a store"}
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

// looksSecret reports whether a value is meant as a reference to a secret.
func looksSecret(value any) bool {
	outer, _ := value.(map[string]any)
	inner, _ := outer[secretKey].(map[string]any)
	if len(outer) != 1 {
		return false
	}
	return inner["env"] != nil || inner["file"] != nil || inner["store"] != nil
}

// takeSecrets parts variables into those whose values are in Git and references
// to secrets, and returns what is wrong with the latter.
func (s *schema) takeSecrets(variables map[string]any) (plain map[string]any, refs map[string]holdfast.SecretRef, bad []violation) {
	plain = make(map[string]any, len(variables))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		value := variables[name]
		switch {
		case s.secrets[name]:
			ref, wrong := secretRef(value)
			if wrong != nil {
				bad = append(bad, violation{
					path: append([]string{name}, wrong.path...), key: wrong.key,
					message: name + " is secret: say where its value is, such as " + secretExample, hint: wrong.hint,
				})
			}
			if refs == nil {
				refs = map[string]holdfast.SecretRef{}
			}
			refs[name] = ref
		case looksSecret(value) && s.properties[name] != nil && !s.hasSecretField(name):
			bad = append(bad, violation{
				path:    []string{name},
				message: fmt.Sprintf("variable %s is not secret: its value stands here", name),
				hint:    "the template makes a variable secret by writeOnly: true",
			})
		default:
			plain[name] = value
		}
	}
	return plain, refs, bad
}

// hasSecretField reports whether a variable is an object that has a field
// called secret by itself.
func (s *schema) hasSecretField(name string) bool {
	shape := s.shapes[name]
	return shape != nil && shape.kind == shapeObject && shape.fields[secretKey] != nil
}

// renderSecrets makes the file that says where the secrets are.
func renderSecrets(refs map[string]holdfast.SecretRef) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(refs); err != nil {
		return nil, fmt.Errorf("encode references to secrets: %w", err)
	}
	return b.Bytes(), nil
}

// secretVariables returns the variables that the code in a folder keeps in a file
// of its own. What is wrong with that file the agent says.
func (g *gatherer) secretVariables(dir string) []string {
	file, ok := g.entries[path.Join(dir, holdfast.SecretFile)]
	if !ok {
		return nil
	}
	data, err := g.tree.ReadFile(file.source)
	var refs map[string]json.RawMessage
	if err != nil || json.Unmarshal(data, &refs) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(refs))
}
