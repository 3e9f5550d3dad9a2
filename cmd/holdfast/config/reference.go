package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Reference returns docs/config.md: every key with its type, default and
// meaning, from the Config struct itself.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# holdfast.yaml

One file configures a server. Unknown keys, wrong types and contradictions are errors with line and
column, all reported at once: ` + "`holdfast serve --check`" + ` reads the file, the secrets, keys and files that it names, and the dates of certificates. Every key may be left
out. Secrets are in files or in the server's environment (` + "`{file: path}` or `{env: NAME}`" + `), never
here. Relative paths start at the folder of holdfast.yaml. Durations are written like 30s, 5m, 2h, sizes like 512MiB, 4GiB.
Globs understand ` + "`*`, `?`, `[...]`, `{a,b}`" + ` and, across folders, ` + "`**`" + `.
`)
	section(&b, "", reflect.TypeFor[Config](), "")
	return b.String()
}

func section(b *strings.Builder, path string, t reflect.Type, doc string) {
	if path != "" {
		fmt.Fprintf(b, "\n## %s\n\n%s\n", path, doc)
	}
	b.WriteString("\n| Key | Type | Default | Meaning |\n|---|---|---|---|\n")
	type sub struct {
		path, doc string
		t         reflect.Type
	}
	var subs []sub
	for _, field := range reflect.VisibleFields(t) {
		key := field.Tag.Get("yaml")
		if key == "" {
			continue
		}
		name, doc := join(path, key), field.Tag.Get("doc")
		word, inner, suffix := typeWord(field.Type)
		if inner != nil {
			subs = append(subs, sub{name + suffix, doc, inner})
			word = fmt.Sprintf("[%s](#%s)", word, anchor(name+suffix))
		}
		def := ""
		if text, ok := field.Tag.Lookup("default"); ok {
			def = "`" + text + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", key, word, def, strings.ReplaceAll(doc, "|", `\|`))
	}
	for _, s := range subs {
		section(b, s.path, s.t, s.doc)
	}
}

func anchor(heading string) string {
	keep := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return -1
	}
	return strings.Map(keep, strings.ToLower(heading))
}

// typeWord names a type; inner is the struct that has its own section.
func typeWord(t reflect.Type) (word string, inner reflect.Type, suffix string) {
	switch {
	case t == durationType:
		return "duration", nil, ""
	case t == sizeType:
		return "size", nil, ""
	case t == reflect.TypeFor[Secret]():
		return "secret", nil, ""
	case t == reflect.TypeFor[TLS]():
		return "`{certFile, keyFile}`", nil, ""
	case t.Kind() == reflect.Struct:
		return "mapping", t, ""
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return "list", t.Elem(), "[]"
	case t.Kind() == reflect.Slice:
		return "list of text", nil, ""
	case t.Kind() == reflect.Map:
		word, inner, suffix := typeWord(t.Elem())
		if inner != nil {
			suffix = ".NAME" + suffix
		}
		return "name: " + word, inner, suffix
	case t.Kind() == reflect.Bool:
		return "true or false", nil, ""
	case t.Kind() == reflect.String:
		return "text", nil, ""
	default:
		return "number", nil, ""
	}
}
