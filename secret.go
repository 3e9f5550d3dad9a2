package holdfast

import (
	"errors"
	"path"
	"strings"
	"unicode/utf8"
)

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
