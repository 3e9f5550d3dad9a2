package redact

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// secretWords are words that make a name secret wherever they are in it.
var secretWords = []string{
	"password", "passwords", "passwd", "passphrase", "pwd", "secret", "secrets", "token", "tokens", "credential",
	"credentials", "bearer", "kubeconfig", "apikey", "privatekey", "secretkey", "authorization",
}

// secretKeys are words that make "key" after them secret.
var secretKeys = []string{
	"private", "api", "access", "client", "signing", "encryption", "account", "shared", "master", "storage", "auth",
}

// plainWords are last words that say that a name is about a secret, not one:
// secret_name, token_ttl, private_key_path.
var plainWords = []string{
	"name", "names", "id", "ids", "arn", "ttl", "type", "version", "versions", "length", "enabled", "path", "file", "ref",
	"url", "uri", "endpoint", "expiry", "expiration", "expires", "at", "rotation", "policy", "count", "mode", "algorithm",
	"usage", "namespace", "prefix", "wo", "days", "seconds", "hours", "required", "hash", "size", "bits",
}

// Name reports whether a name, such as that of an attribute or a variable,
// says that its value is secret.
func Name(name string) bool {
	if len(name) < 3 || len(name) > 128 {
		return false
	}
	words := wordsOf(name)
	if len(words) == 0 || slices.Contains(plainWords, words[len(words)-1]) {
		return false
	}
	for i, word := range words {
		switch {
		case slices.Contains(secretWords, word):
			return true
		case i > 0 && (word == "key" || word == "keys") && slices.Contains(secretKeys, words[i-1]):
			return true
		case i > 0 && word == "config" && words[i-1] == "kube":
			return true
		}
	}
	return false
}

// wordsOf splits snake_case, kebab-case, dotted and camelCase names into
// lower-case words.
func wordsOf(name string) []string {
	var words []string
	start := 0
	cut := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(name[start:end]))
		}
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c == '_' || c == '-' || c == '.' || c == ' ' || c == '/':
			cut(i)
			start = i + 1
		case c >= 'A' && c <= 'Z' && i > start && name[i-1] >= 'a' && name[i-1] <= 'z':
			cut(i)
			start = i
		}
	}
	cut(len(name))
	return words
}

// redactNamed replaces what is named like a secret in a whole text.
func redactNamed(text []byte) ([]byte, bool) {
	var s namedScanner
	return s.redact(text)
}

// namedScanner replaces values that are written next to a secret-looking name,
// as in
//
//   - password = "..." -> "..."
//     "api_token": "..."
//     private_key = <<-EOT ... EOT
//     Authorization: Bearer ...
//     https://user:password@host
//
// A here document continues over lines; the scanner is fed whole ones. One that does not
// end is left out up to the next line of an agent, and no more than 256 KiB of it.
type namedScanner struct {
	until string // the end of the here document that is being left out; empty: none
	left  int    // bytes of it that may still be left out
}

const (
	maxHereDocument = 256 << 10
	ownLine         = "holdfast: " // what lines of agents begin with: no engine prints meanwhile
)

// redact returns text, which is unchanged if there is nothing to replace.
func (s *namedScanner) redact(text []byte) ([]byte, bool) {
	if s.until == "" && !mayName(text) {
		return text, false
	}
	out, changed := make([]byte, 0, len(text)), false
	for len(text) > 0 {
		line := text
		if newline := bytes.IndexByte(text, '\n'); newline >= 0 {
			line = text[:newline+1]
		}
		text = text[len(line):]
		if s.until != "" {
			changed = true
			if string(bytes.Trim(line, " \t\r\n+-~│")) == s.until {
				s.until = ""
				out = append(out, line...)
				continue
			}
			if s.left -= len(line); s.left >= 0 && !bytes.HasPrefix(line, []byte(ownLine)) {
				continue
			}
			s.until = ""
		}
		var named bool
		out, named = s.line(out, line)
		changed = changed || named
	}
	return out, changed
}

// mayName is a quick look: without one of these there is nothing to replace.
func mayName(text []byte) bool {
	return bytes.IndexByte(text, '"') >= 0 || bytes.Contains(text, []byte("<<")) || bytes.Contains(text, []byte("://")) ||
		bytes.Contains(text, []byte("uthorization"))
}

// line appends a line to out.
func (s *namedScanner) line(out, line []byte) ([]byte, bool) {
	copied, pos := 0, 0
	for {
		next := bytes.IndexAny(line[pos:], `"<:=`)
		if next < 0 {
			return append(out, line[copied:]...), copied > 0
		}
		i := pos + next
		var from, to int // what to replace
		switch c := line[i]; {
		case c == '"' && nameBefore(line[:i]):
			from, to = i+1, closingQuote(line, i+1)
		case c == '<' && bytes.HasPrefix(line[i:], []byte("<<")) && nameBefore(line[:i]):
			if s.until = string(bytes.Trim(line[i+2:], "-~ \t\r\n\"")); s.until != "" {
				s.left = maxHereDocument
				return append(append(append(out, line[copied:]...), holdfast.SensitiveValue...), '\n'), true
			}
		case c == ':' && bytes.HasPrefix(line[i:], []byte("://")):
			from, to = userInfo(line, i+3)
		case c == ':' || c == '=':
			from, to = authorization(line, i)
		}
		if to <= from {
			pos = i + 1
			continue
		}
		out = append(append(out, line[copied:from]...), holdfast.SensitiveValue...)
		copied = to
		if after, ok := bytes.CutPrefix(line[to:], []byte(`" -> "`)); ok && line[i] == '"' {
			out = append(append(out, `" -> "`...), holdfast.SensitiveValue...)
			copied = len(line) - len(after) + closingQuote(after, 0)
		}
		pos = min(copied+1, len(line)) // past the closing quote
	}
}

// nameBefore reports whether text ends in a secret-looking name and = or :,
// escaped quotes around the name and the value included.
func nameBefore(text []byte) bool {
	text = bytes.TrimRight(text, " \t\\")
	if len(text) == 0 || text[len(text)-1] != '=' && text[len(text)-1] != ':' {
		return false
	}
	text = bytes.TrimRight(text[:len(text)-1], " \t\"\\'")
	start := len(text)
	for start > 0 && isNameByte(text[start-1]) {
		start--
	}
	return Name(string(text[start:]))
}

func isNameByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// closingQuote returns the index of the quote that ends a string, or the end
// of the line. A quote that was itself escaped ends at an escaped one.
func closingQuote(line []byte, from int) int {
	escaped := from >= 2 && line[from-2] == '\\'
	for i := from; i < len(line); i++ {
		switch line[i] {
		case '\\':
			if escaped && i+1 < len(line) && line[i+1] == '"' {
				return i
			}
			i++
		case '"':
			return i
		case '\n':
			return i
		}
	}
	return len(line)
}

// userInfo finds the password in a URL whose authority begins at from.
func userInfo(line []byte, from int) (int, int) {
	end := from
	for end < len(line) && bytes.IndexByte([]byte("/?# \t\r\n\"'<>`"), line[end]) < 0 {
		end++
	}
	at := bytes.LastIndexByte(line[from:end], '@')
	if at < 0 {
		return 0, 0
	}
	colon := bytes.IndexByte(line[from:from+at], ':')
	if colon < 0 || colon+1 >= at || string(line[from+colon+1:from+at]) == holdfast.SensitiveValue {
		return 0, 0
	}
	return from + colon + 1, from + at
}

// authorization finds the credential of an Authorization header whose colon or
// equals sign is at i.
func authorization(line []byte, i int) (int, int) {
	name := bytes.TrimRight(line[:i], " \"'\\")
	if len(name) < 13 || !bytes.EqualFold(name[len(name)-13:], []byte("authorization")) {
		return 0, 0
	}
	rest := line[i+1 : min(i+25, len(line))] // a scheme comes at once
	for _, scheme := range []string{"bearer ", "basic ", "token "} {
		at := bytes.Index(bytes.ToLower(rest), []byte(scheme))
		if at < 0 || len(bytes.Trim(rest[:at], " \"'\\[")) > 0 {
			continue
		}
		from := i + 1 + at + len(scheme)
		to := from
		for to < len(line) && bytes.IndexByte([]byte(" \t\r\n\"'\\],"), line[to]) < 0 {
			to++
		}
		return from, to
	}
	return 0, 0
}

// Names reports whether a text has a value by a secret's name in it, as connection
// strings have: "host=db password=...".
func Names(text string) bool {
	return slices.ContainsFunc(valueNames.FindAllStringSubmatch(text, -1), func(m []string) bool { return Name(m[1]) })
}

var valueNames = regexp.MustCompile(`([\w.-]+)\s*=`)
