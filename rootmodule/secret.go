package rootmodule

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// SecretRef says where the value of a secret variable is. Exactly one of Env,
// File and Store is set. What it points to is looked up by the agent, just
// before the engine starts; the value is in no record and in no bundle.
type SecretRef struct {
	Env   string `json:"env,omitempty"`   // a variable of the run's credentials
	File  string `json:"file,omitempty"`  // a file in one of the run's secret folders
	Store string `json:"store,omitempty"` // a secret store of the run's credentials
	Key   string `json:"key,omitempty"`   // of Store: which of its secrets
}

// Check reports why r does not say where a value is, or nil. What is wrong may be
// the secret itself, which somebody took for a reference: no error repeats it.
//
// Keys come from clusters' documents and end up in the arguments of a command that
// has a run's credentials. They must not be taken for something else than a key:
// an option, a file to read, a way to what another key means.
func (r SecretRef) Check() error {
	ways := 0
	for _, way := range []string{r.Env, r.File, r.Store} {
		if way != "" {
			ways++
		}
	}
	switch {
	case ways != 1:
		return errors.New("exactly one of env, file and store says where the value is")
	case r.Env != "" && !isName(r.Env, "_", "_"):
		return errors.New("env is the name of an environment variable")
	case r.File != "" && (!path.IsAbs(r.File) || hasControl(r.File) || len(r.File) > 4096):
		return errors.New("file is an absolute path, such as /run/secrets/db")
	case r.Store != "" && !isName(r.Store, "0123456789", "_.-"):
		return errors.New("store is the name of a secret store, such as vault")
	case r.Store != "":
		return checkKey(r.Key)
	case r.Key != "":
		return errors.New("a key is only valid with a store")
	}
	return nil
}

// isName reports whether s begins with a letter or one of first, and continues
// with letters, digits and others.
func isName(s, first, others string) bool {
	for i, c := range s {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		case i == 0 && strings.ContainsRune(first, c):
		case i > 0 && (c >= '0' && c <= '9' || strings.ContainsRune(others, c)):
		default:
			return false
		}
	}
	return s != "" && len(s) <= 256
}

func checkKey(key string) error {
	switch lower := strings.ToLower(key); {
	case key == "":
		return errors.New("a store needs a key: {secret: {store: vault, key: prod/db}}")
	case hasControl(key) || len(key) > 1024:
		return errors.New("the key has control characters, or more than 1024 bytes")
	case key[0] < utf8.RuneSelf && !isName(key[:1], "0123456789/._", "") || strings.HasSuffix(key, " "):
		return errors.New("the key begins with a letter, a digit, /, . or _, and does not end with a space")
	case strings.HasPrefix(lower, "file:") || strings.HasPrefix(lower, "fileb:"):
		return errors.New("the key must not be the URL of a file")
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(key, `\`, "/"), "/") {
		if part == ".." {
			return errors.New("the key must not have .. in it")
		}
	}
	return nil
}

func hasControl(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// EncodeSecrets makes the content of SecretFile.
func EncodeSecrets(refs map[string]SecretRef) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(refs); err != nil {
		return nil, fmt.Errorf("encode references to secrets: %w", err)
	}
	return b.Bytes(), nil
}
