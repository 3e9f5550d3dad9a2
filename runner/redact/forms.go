package redact

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
)

// extent says how much of a form a text must have for that to be secret.
type extent int

const (
	allOfIt      extent = iota // the form has words, such as the host in a kubeconfig, that are not secrets
	escapedPiece               // a long piece in which something is escaped: the words are between the escapes
	anyPiece                   // any long piece
)

// formsOf returns the forms in which a piece of a secret may be printed, each at least
// minSecret bytes long.
func formsOf(piece string) map[string]extent {
	out := make(map[string]extent)
	printed := encodedForms(piece)
	for _, cased := range []string{strings.ToUpper(piece), strings.ToLower(piece)} {
		if cased != piece {
			printed = append(printed, cased, jsonEscape(cased, true), jsonEscape(cased, false))
		}
	}
	addForms(out, printed, func(form string) extent {
		if isToken(form) {
			return anyPiece
		}
		return allOfIt
	})
	addForms(out, urlForms(piece), func(string) extent {
		if isToken(piece) {
			return anyPiece
		}
		return escapedPiece
	})
	return out
}

// plainForms are those of formsOf in which engines, JSON and base64 print a piece: each
// is found as a whole only, and so takes little memory.
func plainForms(piece string) map[string]extent {
	out := make(map[string]extent)
	forms := append([]string{piece, EscapeHCL(piece), jsonEscape(piece, true), jsonEscape(piece, false)}, base64Forms(piece)...)
	addForms(out, forms, func(string) extent { return allOfIt })
	return out
}

// addForms adds those of the forms that are long enough, in pieces if they are too
// long. A form of two encoders is as secret as it is to the stricter of them.
func addForms(to map[string]extent, forms []string, extentOf func(form string) extent) {
	for _, form := range forms {
		for len(form) >= minSecret {
			piece := form[:min(len(form), maxPattern)]
			form = form[len(piece):]
			to[piece] = max(to[piece], extentOf(piece))
		}
	}
}

// isToken reports whether a piece of a form is secret alone: it is one long
// word, or a PEM block.
func isToken(form string) bool {
	return !strings.ContainsAny(form, " \t\r\n{") && !strings.Contains(form, `\n`) || strings.HasPrefix(form, "-----BEGIN")
}

// encodedForms returns what encoders make of a piece, some of them twice. Those for
// URLs are in urlForms.
func encodedForms(piece string) []string {
	forms := []string{piece, EscapeHCL(piece), asciiEscape(piece)}
	forms = append(forms, jsonForms(piece)...)
	for _, once := range forms[:3] { // HCL, HTML and JSON in JSON, and that in JSON
		for range 3 {
			once = jsonEscape(once, false)
			forms = append(forms, once, EscapeHCL(once), jsonEscape(once, true))
		}
	}
	for _, once := range jsonForms(piece) {
		for range 2 {
			forms = append(forms, jsonForms(once)...)
			once = jsonEscape(once, true)
		}
	}
	forms = append(forms, htmlForms(piece)...)
	for _, form := range htmlForms(piece) {
		forms = append(forms, jsonEscape(form, true), jsonEscape(form, false))
	}
	forms = append(inBothCases(forms), hexForms(piece)...)
	return slices.Concat(forms, base64Forms(piece), base32Forms(piece))
}

// urlForms returns what encoders for URLs make of a piece.
func urlForms(piece string) []string {
	query := url.QueryEscape(piece)
	return inBothCases([]string{query, url.PathEscape(piece), strings.ReplaceAll(query, "+", "%20"), percentAll(piece)})
}

// inBothCases appends forms with the digits of their escapes in lower and in upper
// case.
func inBothCases(forms []string) []string {
	for _, form := range forms {
		if strings.Contains(form, "%") || strings.Contains(form, `\u`) {
			forms = append(forms, lowerEscapes(form), upperEscapes(form))
		}
	}
	return forms
}

// jsonForms returns what encoders of JSON make of a string: with and without
// escapes for HTML, and in ASCII, where what is beyond two bytes is a pair.
func jsonForms(s string) []string {
	plain := jsonEscape(s, false)
	var ascii strings.Builder
	for _, r := range plain {
		switch {
		case r < utf8.RuneSelf:
			ascii.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&ascii, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&ascii, `\u%04x`, r)
		}
	}
	return []string{plain, jsonEscape(s, true), ascii.String(), strings.ReplaceAll(plain, "/", `\/`)}
}

// htmlForms returns what encoders of HTML and XML make of a string.
func htmlForms(s string) []string {
	escape := func(double, single string) string {
		return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, double, "'", single).Replace(s)
	}
	return []string{
		escape("&#34;", "&#39;"), escape("&quot;", "&#39;"), escape("&quot;", "&#x27;"), escape("&quot;", "&apos;"),
		strings.NewReplacer("\n", "&#xA;", "\r", "&#xD;", "\t", "&#x9;").Replace(escape("&#34;", "&#39;")),
		escape("&#x22;", "&#x27;"), escape(`"`, "'"), escape("&quot;", "'"), escape(`"`, "&#39;"),
	}
}

// percentAll escapes each byte as in a URL.
func percentAll(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

var escapes = regexp.MustCompile(`%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}`)

func lowerEscapes(s string) string { return escapes.ReplaceAllStringFunc(s, strings.ToLower) }

// upperEscapes has digits in upper case, and the u of \u as it is.
func upperEscapes(s string) string {
	return escapes.ReplaceAllStringFunc(s, func(e string) string { return strings.ReplaceAll(strings.ToUpper(e), "U", "u") })
}

// maxSecretDocument is how long a secret is at most whose values are looked for one by
// one if it is a JSON document.
const maxSecretDocument = 1 << 20

// piecesOf returns the secret, its lines, and the secret values in it if it is
// a JSON document; all of them cut to the length that is searched for.
func piecesOf(secret string) []string {
	pieces := cut(nil, secret)
	if trimmed := strings.TrimSpace(secret); trimmed != secret {
		pieces = cut(pieces, trimmed)
	}
	if strings.ContainsAny(secret, "\r\n") {
		for line := range strings.FieldsFuncSeq(secret, func(r rune) bool { return r == '\n' || r == '\r' }) {
			if line = strings.TrimSpace(line); len(line) >= minSecret && !isPlainField(line) {
				pieces = cut(pieces, line)
			}
		}
	}
	if len(secret) <= maxSecretDocument && strings.HasPrefix(strings.TrimSpace(secret), "{") {
		var doc any
		if json.Unmarshal([]byte(secret), &doc) == nil {
			for _, value := range namedSecrets(doc, "", nil) {
				pieces = append(pieces, piecesOf(value)...)
			}
		}
	}
	return pieces
}

// cutLength is how long the pieces of a secret are that is too long to be searched for at
// once: encoders make a hundred times as much of it. Base64 and base32 of pieces of this
// length join to that of the secret.
const cutLength = 3 * 5 * 273

// cut appends a secret to pieces, as several of them if it is longer than maxPattern.
func cut(pieces []string, secret string) []string {
	if len(secret) <= maxPattern {
		return append(pieces, secret)
	}
	for len(secret) > cutLength+minSecret {
		to := runeStart(secret, cutLength)
		pieces, secret = append(pieces, secret[:to]), secret[to:]
	}
	return append(pieces, secret)
}

// runeStart returns where the character begins that is at an index of s.
func runeStart(s string, at int) int {
	for back := 0; back < utf8.UTFMax && at > back; back++ {
		if utf8.RuneStart(s[at-back]) {
			return at - back
		}
	}
	return at // no text
}

// isPlainField reports whether a line of a secret document is a field without a
// value, or with one too short to be secret, such as "kind: Config".
func isPlainField(line string) bool {
	name, value, ok := strings.Cut(line, ":")
	name = strings.Trim(strings.TrimPrefix(name, "- "), `"`)
	return ok && holdfast.IsIdentifier(name) && len(strings.Trim(strings.TrimSpace(value), `",{[`)) < minSecret
}

func namedSecrets(value any, name string, found []string) []string {
	switch v := value.(type) {
	case string:
		if len(v) >= minSecret && Name(name) {
			found = append(found, v)
		}
	case map[string]any:
		for key, child := range v {
			found = namedSecrets(child, key, found)
		}
	case []any:
		for _, child := range v {
			found = namedSecrets(child, name, found)
		}
	}
	return found
}

func jsonEscape(s string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(s); err != nil {
		return ""
	}
	out := strings.TrimSuffix(b.String(), "\n")
	return out[1 : len(out)-1]
}

// EscapeHCL escapes as the engines do when they print a string.
func EscapeHCL(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "${", "$${", "%{", "%%{").Replace(s)
}

// asciiEscape escapes as encoders do that print ASCII only.
func asciiEscape(s string) string {
	out := strconv.QuoteToASCII(s)
	return out[1 : len(out)-1]
}

// base64Forms returns the secret's base64 alone and, for each alignment that it can
// have inside of something longer, the characters that do not depend on its neighbours.
func base64Forms(s string) []string {
	var forms []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		forms = append(forms, enc.EncodeToString([]byte(s)), enc.WithPadding('=').EncodeToString([]byte(s)))
		forms = append(forms, aligned(enc.EncodeToString, s, 6, 3)...)
	}
	return forms
}

// base32Forms are the same in base32.
func base32Forms(s string) []string {
	enc := base32.StdEncoding.WithPadding(base32.NoPadding)
	return append(aligned(enc.EncodeToString, s, 5, 5), enc.EncodeToString([]byte(s)), base32.StdEncoding.EncodeToString([]byte(s)))
}

// aligned returns what an encoder with so many bits in a character makes of s behind 0,
// 1 and more bytes, without the characters that depend on others than s.
func aligned(encode func([]byte) string, s string, bits, alignments int) []string {
	var forms []string
	for shift := range alignments {
		text := encode(append(make([]byte, shift), s...))
		first := (shift*8 + bits - 1) / bits
		last := (shift + len(s)) * 8 / bits
		if first < last {
			forms = append(forms, text[first:last])
		}
	}
	return forms
}

// hexForms returns the secret's bytes in hex, as they are and with colons between.
func hexForms(s string) []string {
	digits := hex.EncodeToString([]byte(s))
	colons := strings.ReplaceAll(strings.TrimSpace(fmt.Sprintf("% x", s)), " ", ":")
	return []string{digits, strings.ToUpper(digits), colons, strings.ToUpper(colons)}
}
