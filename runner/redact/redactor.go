package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/jsontree"
)

const (
	// minSecret is how long a value must be to count as secret: shorter ones
	// occur everywhere.
	minSecret = 8
	// maxPattern bounds what is searched for as one piece, and with it what a
	// writer holds back. Longer secrets are searched for in pieces.
	maxPattern = 16 << 10
	// maxRedactedLine is how much of a line a writer holds to see it whole.
	maxRedactedLine = 64 << 10
)

// Redactor replaces secret values by "(sensitive value)", in the forms in which
// programs print them: as they are, line by line, escaped for JSON and HCL,
// URL-encoded, base64 at any alignment, and wrapped at a space. Values shorter
// than 8 bytes are ignored. It is safe for concurrent use.
type Redactor struct {
	mu      sync.Mutex
	secrets map[string]bool
	forms   map[string]bool
	current atomic.Pointer[secretMatcher] // nil: forms have been added since it was made
}

// New returns a Redactor for secrets. It finds text under secret-looking
// names even without any.
func New(secrets []string) *Redactor {
	r := &Redactor{secrets: map[string]bool{}, forms: map[string]bool{}}
	r.Add(secrets...)
	return r
}

// Add makes r know more secrets. Writers made before use them from their next
// Write on.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, secret := range secrets {
		if len(strings.TrimSpace(secret)) < minSecret || r.secrets[secret] {
			continue
		}
		r.secrets[secret] = true
		for _, form := range formsOf(secret) {
			r.forms[form] = true
		}
		r.current.Store(nil)
	}
}

func (r *Redactor) matcher() *secretMatcher {
	if m := r.current.Load(); m != nil {
		return m
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.current.Load(); m != nil {
		return m
	}
	m := newSecretMatcher(r.forms)
	r.current.Store(m)
	return m
}

// String returns s without the secrets.
func (r *Redactor) String(s string) string {
	out, changed := r.matcher().replace(nil, []byte(s))
	out, named := redactNamed(out)
	if !changed && !named {
		return s
	}
	return string(out)
}

// Known returns s without the secrets that r knows. What is only named like one
// stays.
func (r *Redactor) Known(s string) string {
	out, changed := r.matcher().replace(nil, []byte(s))
	if !changed {
		return s
	}
	return string(out)
}

// JSON returns a JSON value without the secrets in its strings and names.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return json.RawMessage(strconv.Quote(holdfast.SensitiveValue))
	}
	out, err := jsontree.Marshal(r.Value(value))
	if err != nil {
		return json.RawMessage(strconv.Quote(holdfast.SensitiveValue))
	}
	return out
}

// Value returns a decoded JSON value without known secrets, in names too, and
// without the text of what is named like a secret.
func (r *Redactor) Value(value any) any {
	switch v := value.(type) {
	case string:
		return r.String(v)
	case json.Number:
		if s := v.String(); r.Known(s) != s {
			return holdfast.SensitiveValue
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			if Name(key) {
				child = maskText(child)
			}
			out[r.Known(key)] = r.Value(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = r.Value(child)
		}
		return out
	default:
		return value
	}
}

// Writer returns a writer that passes on to w without the secrets, also those
// that come in several pieces. Text goes on line by line, as it comes; of a
// line without an end at most 64 KiB are held. Close passes on the rest and
// does not close w. The writer is for one goroutine at a time.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser {
	return &redactingWriter{redactor: r, w: w}
}

// redactingWriter works in two steps: known secrets, for which it holds back an
// end that may be the beginning of one, and then whole lines, for what is named
// like a secret.
type redactingWriter struct {
	redactor *Redactor
	w        io.Writer
	held     []byte // not searched for known secrets yet
	lines    []byte // searched; the last line is not whole
	names    namedScanner
	err      error
}

func (w *redactingWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && w.err == nil; {
		n := min(len(rest), maxRedactedLine)
		w.held = append(w.held, rest[:n]...)
		rest = rest[n:]
		w.flush(false)
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// Close passes on what is held.
func (w *redactingWriter) Close() error {
	if w.err == nil {
		w.flush(true)
	}
	return w.err
}

func (w *redactingWriter) flush(all bool) {
	var done int
	w.lines, done, _ = w.redactor.matcher().scan(w.lines, w.held, all)
	w.held = append(w.held[:0], w.held[done:]...)

	end := bytes.LastIndexByte(w.lines, '\n') + 1
	if all || end == 0 && len(w.lines) >= maxRedactedLine {
		end = len(w.lines)
	}
	if end == 0 {
		return
	}
	text, _ := w.names.redact(w.lines[:end])
	if len(text) > 0 {
		_, w.err = w.w.Write(text)
	}
	w.lines = append(w.lines[:0], w.lines[end:]...)
}

// formsOf returns the forms in which a secret may be printed, each at least
// minSecret bytes long.
func formsOf(secret string) []string {
	var forms []string
	for _, piece := range piecesOf(secret) {
		forms = append(forms, piece, jsonEscape(piece, true), jsonEscape(piece, false), EscapeHCL(piece), asciiEscape(piece),
			url.QueryEscape(piece), url.PathEscape(piece), strings.ReplaceAll(url.QueryEscape(piece), "+", "%20"))
		forms = append(forms, base64Forms(piece)...)
		forms = append(forms, wrappedForms(piece)...)
	}
	var out []string
	for _, form := range forms {
		for len(form) > maxPattern {
			out = append(out, form[:maxPattern])
			form = form[maxPattern:]
		}
		if len(form) >= minSecret {
			out = append(out, form)
		}
	}
	return out
}

// piecesOf returns the secret, its lines, and the secret values in it if it is
// a JSON document.
func piecesOf(secret string) []string {
	pieces := []string{secret}
	if trimmed := strings.TrimSpace(secret); trimmed != secret {
		pieces = append(pieces, trimmed)
	}
	if strings.ContainsAny(secret, "\r\n") {
		for _, line := range strings.FieldsFunc(secret, func(r rune) bool { return r == '\n' || r == '\r' }) {
			if line = strings.TrimSpace(line); len(line) >= minSecret && !isPlainField(line) {
				pieces = append(pieces, line)
			}
		}
	}
	if strings.HasPrefix(strings.TrimSpace(secret), "{") {
		var doc any
		if json.Unmarshal([]byte(secret), &doc) == nil {
			for _, value := range namedSecrets(doc, "", nil) {
				pieces = append(pieces, piecesOf(value)...)
			}
		}
	}
	return pieces
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

// base64Forms returns the secret's base64 alone and, for each of the three
// alignments that it can have inside of something longer, the characters that
// do not depend on its neighbours.
func base64Forms(s string) []string {
	var forms []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		forms = append(forms, enc.EncodeToString([]byte(s)), enc.WithPadding('=').EncodeToString([]byte(s)))
		for shift := range 3 {
			text := enc.EncodeToString(append(make([]byte, shift), s...))
			first := (shift*8 + 5) / 6
			last := (shift + len(s)) * 8 / 6
			if first < last {
				forms = append(forms, text[first:last])
			}
		}
	}
	return forms
}

// wrappedForms returns the secret broken at one of its spaces, as the engines
// wrap their messages.
func wrappedForms(s string) []string {
	const most = 16
	var forms []string
	for i := 0; i < len(s) && len(forms) < 3*most; i++ {
		if s[i] == ' ' {
			for _, wrap := range []string{"\n", "\n│ ", "\n    "} {
				forms = append(forms, s[:i]+wrap+s[i+1:])
			}
		}
	}
	return forms
}

// secretMatcher finds many strings at once: Wu and Manber's way. It looks at blocks
// of three bytes and skips ahead as far as no string can end; most text is
// passed over in steps of six bytes.
type secretMatcher struct {
	shift   []uint8 // by hash of a block: how far to go on
	byStart map[[minSecret]byte][]string
	starts  [][minSecret]byte // sorted
}

const (
	blockSize = 3
	shiftBits = 15
	maxShift  = minSecret - blockSize + 1
)

func newSecretMatcher(forms map[string]bool) *secretMatcher {
	m := &secretMatcher{shift: make([]uint8, 1<<shiftBits), byStart: make(map[[minSecret]byte][]string, len(forms))}
	for i := range m.shift {
		m.shift[i] = maxShift
	}
	for form := range forms {
		start := [minSecret]byte([]byte(form[:minSecret]))
		m.byStart[start] = append(m.byStart[start], form)
		for end := blockSize; end <= minSecret; end++ {
			slot := &m.shift[blockHash(form[end-blockSize], form[end-2], form[end-1])]
			*slot = min(*slot, uint8(minSecret-end))
		}
	}
	for start, list := range m.byStart {
		m.starts = append(m.starts, start)
		slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) }) // the longest wins
	}
	slices.SortFunc(m.starts, func(a, b [minSecret]byte) int { return bytes.Compare(a[:], b[:]) })
	return m
}

func blockHash(a, b, c byte) uint32 {
	return (uint32(a)<<10 ^ uint32(b)<<5 ^ uint32(c)) & (1<<shiftBits - 1)
}

// replace appends text to dst with "(sensitive value)" for each string found
// and reports whether there was one.
func (m *secretMatcher) replace(dst, text []byte) ([]byte, bool) {
	dst, _, changed := m.scan(dst, text, true)
	return dst, changed
}

// scan is replace for a text that goes on, unless it is final: it stops before
// what may be the beginning of a string, and returns how much of text it has
// taken. Of strings that overlap the leftmost is taken, then the longest.
func (m *secretMatcher) scan(dst, text []byte, final bool) (out []byte, taken int, changed bool) {
	if len(m.byStart) == 0 {
		return append(dst, text...), len(text), false
	}
	copied := 0
	for pos := minSecret - 1; pos < len(text); {
		if skip := m.shift[blockHash(text[pos-2], text[pos-1], text[pos])]; skip > 0 {
			pos += int(skip)
			continue
		}
		start := pos - (minSecret - 1)
		found, more := m.at(text[start:], final)
		switch {
		case more:
			return append(dst, text[copied:start]...), start, changed
		case found == 0:
			pos++
		default:
			dst = append(dst, text[copied:start]...)
			dst = append(dst, holdfast.SensitiveValue...)
			copied, changed = start+found, true
			pos = copied + minSecret - 1
		}
	}
	end := len(text)
	if !final {
		for end = max(copied, len(text)-minSecret+1); end < len(text) && !m.begins(text[end:]); {
			end++
		}
	}
	return append(dst, text[copied:end]...), end, changed
}

// at returns the length of the longest string that text begins with. more says
// that a longer one may come, unless text is final.
func (m *secretMatcher) at(text []byte, final bool) (found int, more bool) {
	for _, form := range m.byStart[[minSecret]byte(text[:minSecret])] {
		switch n := min(len(form), len(text)); {
		case form[:n] != string(text[:n]):
		case n == len(form):
			return n, false
		case !final:
			return 0, true
		}
	}
	return 0, false
}

// begins reports whether a string begins with the short text.
func (m *secretMatcher) begins(text []byte) bool {
	i, _ := slices.BinarySearchFunc(m.starts, text, func(start [minSecret]byte, text []byte) int {
		return bytes.Compare(start[:], text)
	})
	return i < len(m.starts) && bytes.HasPrefix(m.starts[i][:], text)
}

// maskText replaces the strings and numbers in value.
func maskText(value any) any {
	switch v := value.(type) {
	case string:
		if v == "" {
			return v
		}
		return holdfast.SensitiveValue
	case json.Number:
		return holdfast.SensitiveValue
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			out[key] = maskText(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = maskText(child)
		}
		return out
	default:
		return value
	}
}
