package redact

import (
	"bytes"
	"encoding/json"
	"io"
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
	// maxEager is how much a writer holds that it searches at each Write.
	maxEager = 4 << 10
	// maxRedactedLine is how much of a line a writer holds to see it whole.
	maxRedactedLine = 64 << 10
	// maxForms is how many bytes of forms are known in every detail, which takes up to 30
	// times as much memory; what secrets are added after that are looked for in few forms,
	// and as a whole only. There are 30 to 100 bytes of forms for each byte of a secret.
	maxForms = 4 << 20
	// maxPlainForms bounds those, too, at about 10 bytes for each byte of a secret. If
	// there are more, everything is withheld.
	maxPlainForms = 32 << 20
)

// Redactor replaces secret values by "(sensitive value)", in the forms in which programs print
// them: as they are, in upper or lower case, line by line, escaped for JSON (also inside of JSON),
// HCL, HTML and URLs, in hex, and in base64 and base32 at any alignment; in base64 of base64, line
// by line; each of the others also wrapped at any column, behind the prefixes that engines put
// before the lines of provisioners too. Of a form without spaces pieces of 24 bytes are found, such
// as lines that each have another prefix. Values shorter than 8 bytes are ignored. With many and
// large secrets, beyond about 100 KiB together, the later ones are found in fewer forms; beyond
// about 3 MiB nothing is passed on at all, see [Redactor.Withholds]. It is safe for concurrent use.
type Redactor struct {
	mu       sync.Mutex
	secrets  map[string]bool
	pieces   map[string]bool // of secrets, whose forms are known
	forms    map[string]extent
	size     int                    // bytes in forms
	current  atomic.Pointer[finder] // nil: forms have been added since it was made
	withheld atomic.Bool
}

// New returns a Redactor for secrets. It finds text under secret-looking
// names even without any.
func New(secrets []string) *Redactor {
	r := &Redactor{secrets: map[string]bool{}, pieces: map[string]bool{}, forms: map[string]extent{}}
	r.Add(secrets...)
	return r
}

// Add makes r know more secrets. Writers made before use them from their next
// Write on.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, secret := range secrets {
		if len(strings.TrimSpace(secret)) < minSecret || r.secrets[secret] || r.withheld.Load() {
			continue
		}
		r.secrets[secret] = true
		for _, piece := range piecesOf(secret) {
			r.learn(piece)
		}
		r.current.Store(nil)
	}
}

// learn adds the forms of a piece, as many as there is room for.
func (r *Redactor) learn(piece string) {
	if r.withheld.Load() || r.pieces[piece] {
		return
	}
	r.pieces[piece] = true
	forms := plainForms
	if r.size < maxForms {
		forms = formsOf
	}
	for form, needed := range forms(piece) {
		if _, known := r.forms[form]; !known {
			r.size += len(form)
		}
		r.forms[form] = max(needed, r.forms[form])
	}
	if r.size > maxPlainForms {
		r.withheld.Store(true)
		clear(r.forms)
		clear(r.pieces)
	}
}

// Withholds reports whether r knows of more secrets than it can look for. It then takes
// every text, and all of a JSON value, for secret.
func (r *Redactor) Withholds() bool { return r.withheld.Load() }

func (r *Redactor) matcher() *finder {
	if m := r.current.Load(); m != nil {
		return m
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.current.Load(); m != nil {
		return m
	}
	m := newFinder(r.forms)
	r.current.Store(m)
	return m
}

// String returns s without the secrets.
func (r *Redactor) String(s string) string {
	out, changed := r.known([]byte(s))
	out, named := redactNamed(out)
	if !changed && !named {
		return s
	}
	return string(out)
}

// Known returns s without the secrets that r knows. What is only named like one
// stays.
func (r *Redactor) Known(s string) string {
	out, changed := r.known([]byte(s))
	if !changed {
		return s
	}
	return string(out)
}

func (r *Redactor) known(text []byte) ([]byte, bool) {
	if r.Withholds() && len(text) > 0 {
		return []byte(holdfast.SensitiveValue), true
	}
	m := r.matcher()
	out, changed := m.replace(nil, text)
	decoded, twice := m.decodeTwice(nil, out)
	return decoded, changed || twice
}

// JSON returns a JSON value without the secrets in its strings and names.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	if r.Withholds() {
		return json.RawMessage(strconv.Quote(holdfast.SensitiveValue))
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
	if value != nil && r.Withholds() {
		return holdfast.SensitiveValue // of names, too, hardly one would be left
	}
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
// that come in several pieces. Text continues line by line, as it comes; of a
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
	next     int // how long held must be to be searched again
	withheld bool
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
	if w.redactor.Withholds() {
		w.withhold()
		return
	}
	if !all && len(w.held) < w.next {
		return
	}
	var done int
	w.lines, done, _ = w.redactor.matcher().scan(w.lines, w.held, all)
	w.held = append(w.held[:0], w.held[done:]...)
	// What may be a long secret is not searched again for each byte of it.
	if w.next = 0; len(w.held) > maxEager {
		w.next = len(w.held) + len(w.held)/2
	}

	end := bytes.LastIndexByte(w.lines, '\n') + 1
	if all || end == 0 && len(w.lines) >= maxRedactedLine {
		end = len(w.lines)
	}
	if end == 0 {
		return
	}
	decoded, _ := w.redactor.matcher().decodeTwice(nil, w.lines[:end])
	text, _ := w.names.redact(decoded)
	if len(text) > 0 {
		_, w.err = w.w.Write(text)
	}
	w.lines = append(w.lines[:0], w.lines[end:]...)
}

// withhold drops what is held, and says so once.
func (w *redactingWriter) withhold() {
	w.held, w.lines = nil, nil
	if !w.withheld {
		w.withheld = true
		_, w.err = io.WriteString(w.w, holdfast.SensitiveValue+": what follows is withheld, as there are more secret values than can be looked for\n")
	}
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
