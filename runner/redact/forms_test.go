package redact_test

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/runner/redact"
)

// encoders are how programs print a value.
var encoders = map[string]func(string) string{
	"as it is":             func(s string) string { return s },
	"upper case":           strings.ToUpper,
	"lower case":           strings.ToLower,
	"JSON":                 toJSON,
	"JSON without HTML":    func(s string) string { return plainJSON(s) },
	"JSON in JSON":         func(s string) string { return plainJSON(plainJSON(s)) },
	"JSON in JSON, HTML":   func(s string) string { return toJSON(toJSON(s)) },
	"JSON in JSON in JSON": func(s string) string { return plainJSON(plainJSON(plainJSON(s))) },
	"JSON in HCL":          func(s string) string { return redact.EscapeHCL(plainJSON(s)) },
	"ASCII JSON":           asciiJSON,
	"ASCII JSON, upper":    func(s string) string { return hexEscapes.ReplaceAllStringFunc(asciiJSON(s), upperDigits) },
	"HCL":                  redact.EscapeHCL,
	"Go":                   func(s string) string { q := strconv.QuoteToASCII(s); return q[1 : len(q)-1] },
	"HTML":                 html.EscapeString,
	"HTML by name":         strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;").Replace,
	"HTML in JSON":         func(s string) string { return plainJSON(html.EscapeString(s)) },
	"XML":                  func(s string) string { var b bytes.Buffer; _ = xml.EscapeText(&b, []byte(s)); return b.String() },
	"URL query":            url.QueryEscape,
	"URL path":             url.PathEscape,
	"URL, lower case":      func(s string) string { return strings.ToLower(percent(s)) },
	"URL query, lower":     func(s string) string { return hexEscapes.ReplaceAllStringFunc(url.QueryEscape(s), strings.ToLower) },
	"URL, every byte":      percent,
	"hex":                  func(s string) string { return hex.EncodeToString([]byte(s)) },
	"hex, upper case":      func(s string) string { return fmt.Sprintf("%X", s) },
	"hex with colons":      func(s string) string { return strings.ReplaceAll(fmt.Sprintf("% x", s), " ", ":") },
	"hex, colons, upper":   func(s string) string { return strings.ReplaceAll(fmt.Sprintf("% X", s), " ", ":") },
	"base32":               func(s string) string { return base32.StdEncoding.EncodeToString([]byte(s)) },
	"base32, 4 bytes in":   func(s string) string { return base32.StdEncoding.EncodeToString([]byte("xyzx" + s + "yz"))[7:] },
	"base64":               func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 for URLs":      func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"base64, one byte in":  func(s string) string { return base64.StdEncoding.EncodeToString([]byte("x" + s + "yz"))[2:] },
	"base64, two bytes in": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("xy" + s + "z"))[3:] },
}

var hexEscapes = regexp.MustCompile(`%[0-9A-F]{2}|\\u[0-9a-f]{4}`)

func upperDigits(s string) string { return s[:2] + strings.ToUpper(s[2:]) }

func toJSON(s string) string {
	out, _ := json.Marshal(s)
	return string(out[1 : len(out)-1])
}

func plainJSON(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)
	out := strings.TrimSuffix(b.String(), "\n")
	return out[1 : len(out)-1]
}

func asciiJSON(s string) string {
	var b strings.Builder
	for _, r := range plainJSON(s) {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

// wraps are what comes between the columns of what is wrapped.
var wraps = map[string]string{
	"lines": "\n", "indented lines": "\n      ", "network lines": "\r\n", "a frame": "\n│ ", "escaped lines": `\n`, "lines escaped twice": `\\n`,
	"lines with a prefix":    "\nstep-1 | ",
	"lines of a provisioner": "\nmodule.a[\"b c\"].null_resource.this (local-exec): ",
	"lines of another":       "\r\naws_instance.a[0] (remote-exec): ",
}

func wrap(s, between string, column int) string {
	var b strings.Builder
	for i, r := range []rune(s) {
		if i > 0 && i%column == 0 {
			b.WriteString(between)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// left returns a part of a printed secret that is in text still: n bytes of it
// that are not white space.
func left(text, printed string, n int) string {
	bare := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) || r == '│' {
				return -1
			}
			return r
		}, s)
	}
	text, printed = bare(strings.ReplaceAll(text, redacted, "\x00")), bare(printed)
	n = min(n, len(printed))
	for i := 0; i+n <= len(printed); i++ {
		if part := printed[i : i+n]; strings.Contains(text, part) {
			return part
		}
	}
	return ""
}

// Words that only look like an engine's hide nothing.
func TestSecretBeforeAProvisionersWords(t *testing.T) {
	t.Parallel()
	const secret = "ghs_0123456789abcdefghijklmnopqrstuvwxyzABCDEF"
	r := redact.New([]string{secret})
	for _, text := range []string{
		"first\n" + secret + " (local-exec): last\n",
		"first\nthe token is " + secret[:20] + "\n" + secret[20:] + " (local-exec): last\n",
	} {
		if got := r.String(text); strings.Contains(got, secret[20:]) || strings.Contains(got, secret[:20]) {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// A secret of odd text is found in each form, wrapped.
func TestFormsOfOddText(t *testing.T) {
	t.Parallel()
	names, between := slices.Sorted(maps.Keys(encoders)), slices.Sorted(maps.Keys(wraps))
	for before, secret := range map[string]string{
		"before ": "correct horse battery 🔋 staple & more",
		`C:\`:     `p4$$"w'ö<r>d&/\x`,
	} {
		for i, name := range names {
			gap := between[i%len(between)]
			if strings.Contains(gap, "prefix") {
				gap = "lines"
			}
			printed := encoders[name](secret)
			text := before + wrap(printed, wraps[gap], 8+i) + "\nnext\n"
			got := redact.New([]string{secret}).String(text)
			if part := left(got, printed, 24); part != "" {
				t.Errorf("%s, %s: %q of %q is left in %q", name, gap, part, text, got)
			}
		}
	}
}

// pemBody are lines of base64, as in a key.
const pemBody = `MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj
MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu
NMoSfm76oqFvAp8Gy0iz5sxjZmSnXyCdPEovGhLa0VzMaQ8s+CLOyS56YyCFGeJZ
qgtzJ6GR3eqoYSW9b9UMvkBpZODSctWSNGj3P7jRFDO5VoTwCQAWbFnOjDfH5Ulg
p2PKSQnSJP3AJLQNFNe7br1XbrhV//eO+t51mIpGSDCUv3E0DDFcWDTH9cXDTTlR
ZVEiR2BwpZOOkE/Z0/BVnhZYL71oZV34bKfWjQIt6V/isSMahdsAASACp4ZTGtwi
VuNd9tybAgMBAAECggEBAKTmjaS6tkK8BlPXClTQ2vpz/N6uxDeS35mXpqasqskV
laAidgg/sWqpjXDbXr93otIMLlWsM+X0CqMDgSXKejLS2jx4GDjI1ZTXg++0AMJ8
sJ74pWzVDOfmCEQ/7wXs3+cbnXhKriO8Z036q92Qc1+N87SI38nkGa0ABH9CN83H
mQqt4fB7UdHzuIRe/me2PGhIq5ZBzj6h3BpoPGzEP+x3l9YmK8t/1cN0pqI+dQwY
dgfGjackLu/2qH80MCF7IyQaseZUOJyKrCLtSD/Iixv/hzDEUPfOCjFDgTpzf3cw
ta8+oE4wHCo1iI1/4TlPkwmXx4qSXtmw4aQPz7IDQvECgYEA8KNThCO2gsC2I9PQ`

// What is encoded in base64 twice is not in the log, in lines either, and wherever the
// secret begins in it; other words in the alphabet are.
func TestBase64Twice(t *testing.T) {
	t.Parallel()
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	const secret = "hunter2-is-quite-long-and-secret"
	r := redact.New([]string{secret, "shortish"})
	for name, text := range map[string]string{
		"whole":            encode(encode(secret)),
		"for URLs":         base64.RawURLEncoding.EncodeToString([]byte(base64.RawURLEncoding.EncodeToString([]byte(secret)))),
		"a short one":      encode(encode("shortish")),
		"one byte in":      encode(encode("x" + secret + "yz")),
		"two bytes in":     encode(encode("xy" + secret)),
		"behind an escape": `\n` + encode(encode(secret)),
		"long":             encode(encode(strings.Repeat("words before it ", 50) + secret + strings.Repeat(" and after", 50))),
	} {
		line := "value = " + text + " as it is"
		if got := r.String(line); strings.Contains(got, text) || !strings.HasSuffix(got, "(sensitive value) as it is") {
			t.Errorf("%s: %q", name, got)
		}
		var out strings.Builder
		w := r.Writer(&out)
		for _, c := range []byte(line + "\n") {
			if _, err := w.Write([]byte{c}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil || strings.Contains(out.String(), text) {
			t.Errorf("%s, written: %q, %v", name, out.String(), err)
		}
	}
	wrapped := encode(encode(strings.Repeat(secret, 8)))
	for at := 76; at < len(wrapped); at += 77 {
		wrapped = wrapped[:at] + "\n" + wrapped[at:]
	}
	for _, line := range strings.Split(wrapped, "\n") {
		if got := r.String("  " + line); len(line) == 76 && strings.Contains(got, line) {
			t.Errorf("a line of it: %q", got)
		}
	}
	for _, text := range []string{"aws_eks_node_group-with-a-long-name/and/path", encode(encode("nothing that is a secret here")), encode("just once and no secret")} {
		if got := r.String(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
