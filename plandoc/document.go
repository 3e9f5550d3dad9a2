package plandoc

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Version is that of the documents that this program makes, and the only one
// that it reads.
const Version = 1

// Document is what a plan would do, in one canonical form: every change of a
// resource or an output with its values, actions, replace paths, moves and
// imports. Everything that people are shown, that is counted and that an apply
// is compared with is made from it, and from nothing else. What changed
// outside, warnings and the engine's text are in an Info next to it.
//
// Agents make documents from the engine's plan JSON. The same plan always
// results in the same document: the lists are sorted, and values are in their
// canonical encoding. The zero Document is not valid; that of a plan without
// changes has a Version only.
type Document struct {
	Version   int        `json:"version"`
	Resources []Resource `json:"resources,omitempty"` // by address, then deposed key
	Outputs   []Output   `json:"outputs,omitempty"`   // by name
	Reads     []Read     `json:"reads,omitempty"`     // by address
}

// Resource is what happens to one object of a resource.
type Resource struct {
	Address  string `json:"address"`
	Deposed  string `json:"deposed,omitempty"`  // the key of a deposed object; empty: the current one
	Previous string `json:"previous,omitempty"` // the address that it moves from; empty: it does not move
	Type     string `json:"type"`
	Provider string `json:"provider,omitempty"`
	// Actions are the engine's: create, update, delete, forget, two of them for
	// a replacement, or no-op for what is only moved or imported.
	Actions []string `json:"actions"`
	Reason  string   `json:"reason,omitempty"` // the engine's action_reason, or holdfast.GoneOutside and the like
	// Importing is the id, or the identity, that is imported; nil: nothing is.
	Importing Value    `json:"importing,omitempty"`
	Replace   []string `json:"replace,omitempty"` // sorted paths that force a replacement
	Before    Value    `json:"before,omitempty"`
	After     Value    `json:"after,omitempty"`
}

// Output is an output value that changes.
type Output struct {
	Name    string   `json:"name"`
	Actions []string `json:"actions"` // create, update or delete
	Before  Value    `json:"before,omitempty"`
	After   Value    `json:"after,omitempty"`
}

// Read is what a plan has read and gives to what no change of a resource shows:
// provisioners, connections, write-only arguments and, except for secrets, the
// configuration of providers. It is compared, and is not a change.
type Read struct {
	// Address is that of a data source, of a resource that the plan does not change
	// or, if its provisioners are given what a refresh found, destroys, or var.NAME of
	// a secret variable.
	Address string `json:"address"`
	// Value has the attributes that are referred to. A secret that a data source
	// brings is a mark of where it is only: it is another one each time.
	Value Value `json:"value,omitempty"`
}

// Info is what a plan says besides what it would do. It is information: it is
// not compared, and an apply does not depend on it.
type Info struct {
	// Drift is what has changed outside of the engine: before as it was applied,
	// after as it is. By address, then deposed key.
	Drift    []Resource            `json:"drift,omitempty"`
	Warnings []holdfast.Diagnostic `json:"warnings,omitempty"`
	Text     string                `json:"text,omitempty"` // the engine's rendering, redacted
}

// Encode writes the canonical encoding: JSON of one line, of which Digest is
// made. Equal documents have equal encodings, different ones different.
func (d Document) Encode(w io.Writer) error {
	b := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(trimNewline{b})
	enc.SetEscapeHTML(false)
	fmt.Fprintf(b, `{"version":%d,"resources":[`, d.Version)
	for i := range d.Resources {
		if i > 0 {
			_ = b.WriteByte(',')
		}
		if err := enc.Encode(&d.Resources[i]); err != nil {
			return fmt.Errorf("encode %s: %w", d.Resources[i].Address, err)
		}
	}
	_, _ = b.WriteString(`],"outputs":[`)
	for i := range d.Outputs {
		if i > 0 {
			_ = b.WriteByte(',')
		}
		if err := enc.Encode(&d.Outputs[i]); err != nil {
			return fmt.Errorf("encode output %s: %w", d.Outputs[i].Name, err)
		}
	}
	_ = b.WriteByte(']')
	for i := range d.Reads { // a document without has no list: it is as it was before there were reads
		if i == 0 {
			_, _ = b.WriteString(`,"reads":[`)
		} else {
			_ = b.WriteByte(',')
		}
		if err := enc.Encode(&d.Reads[i]); err != nil {
			return fmt.Errorf("encode %s: %w", d.Reads[i].Address, err)
		}
		if i == len(d.Reads)-1 {
			_ = b.WriteByte(']')
		}
	}
	_, _ = b.WriteString("}\n")
	return b.Flush()
}

// trimNewline drops the newline that a json.Encoder writes after a value.
type trimNewline struct{ w io.Writer }

func (t trimNewline) Write(p []byte) (int, error) {
	if _, err := t.w.Write(p[:len(p)-1]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Digest identifies the document. Equal digests mean: the same changes with the
// same values, of which sensitive ones are compared by their keyed hashes, and
// unknown ones are equal to unknown ones only. It is empty if the document has
// a value that is not JSON, which Validate finds.
func (d Document) Digest() holdfast.Digest {
	h := sha256.New()
	if err := d.Encode(h); err != nil {
		return ""
	}
	return holdfast.Digest("sha256:" + hex.EncodeToString(h.Sum(nil)))
}

// Decode reads what Encode wrote, and validates it.
func Decode(r io.Reader) (Document, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var d Document
	if err := dec.Decode(&d); err != nil {
		return Document{}, fmt.Errorf("decode plan document: %w", jsonError(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Document{}, errors.New("decode plan document: there is something behind its end")
	}
	if err := d.Validate(); err != nil {
		return Document{}, err
	}
	return d, nil
}

// jsonError says where a document is broken without quoting it.
func jsonError(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("unexpected %s at byte %d", kind.Value, kind.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("it ends too early")
	default:
		return err
	}
}

// Sort brings the lists into their canonical order.
func (d *Document) Sort() {
	slices.SortFunc(d.Resources, Resource.Compare)
	slices.SortFunc(d.Outputs, func(a, b Output) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(d.Reads, Read.Compare)
}

// Compare orders what is read as documents list it.
func (r Read) Compare(other Read) int { return strings.Compare(r.Address, other.Address) }

// Compare orders resources as documents list them.
func (r Resource) Compare(other Resource) int {
	return cmp.Or(strings.Compare(r.Address, other.Address), strings.Compare(r.Deposed, other.Deposed))
}

// Counts returns how many resources and outputs change. It counts as the
// engines do: what is imported or moved and changed as well counts twice.
func (d Document) Counts() holdfast.Counts {
	var c holdfast.Counts
	for _, r := range d.Resources {
		switch action, _ := r.Action(); action {
		case holdfast.ActionCreate:
			c.Create++
		case holdfast.ActionUpdate:
			c.Update++
		case holdfast.ActionReplace:
			c.Replace++
		case holdfast.ActionDelete:
			c.Delete++
		case holdfast.ActionForget:
			c.Forget++
		case holdfast.ActionImport, holdfast.ActionMove: // counted below
		}
		if r.Importing != nil {
			c.Import++
		}
		if r.Previous != "" {
			c.Move++
		}
	}
	c.Outputs = len(d.Outputs)
	return c
}

// Fingerprint is of what the plan would do: addresses, actions, values, replace
// paths, moves and imports, without what the document says for people only.
func (d Document) Fingerprint() holdfast.Digest {
	f := holdfast.NewDigester("plan fingerprint 2")
	list := func(name string, values []string) {
		f.Add(name, fmt.Sprint(len(values)))
		f.Add(values...)
	}
	for _, r := range d.Resources {
		f.Add("resource", r.Address, r.Deposed, r.Previous, string(r.Importing))
		list("actions", r.Actions)
		list("replace", r.Replace)
		f.Add(string(r.Before), string(r.After))
	}
	for _, o := range d.Outputs {
		f.Add("output", o.Name)
		list("actions", o.Actions)
		f.Add(string(o.Before), string(o.After))
	}
	return f.Digest()
}

// FullAddress distinguishes the deposed objects of a resource from its current one, in
// words: "aws_vpc.main (deposed object 1a2b3c4d)".
func (r Resource) FullAddress() string {
	if r.Deposed == "" {
		return r.Address
	}
	return r.Address + " (deposed object " + r.Deposed + ")"
}

// Action is what happens to the resource, empty if the document is not valid.
// createFirst says of a replacement that the new object is created before the
// old one goes.
func (r Resource) Action() (action holdfast.ChangeAction, createFirst bool) {
	switch strings.Join(r.Actions, ",") {
	case "create":
		return holdfast.ActionCreate, false
	case "update":
		return holdfast.ActionUpdate, false
	case "delete":
		return holdfast.ActionDelete, false
	case "forget":
		return holdfast.ActionForget, false
	case "delete,create", "forget,create":
		return holdfast.ActionReplace, false
	case "create,delete", "create,forget":
		return holdfast.ActionReplace, true
	case "no-op":
		switch {
		case r.Importing != nil:
			return holdfast.ActionImport, false
		case r.Previous != "":
			return holdfast.ActionMove, false
		}
	}
	return "", false
}

// Action is what happens to the output, empty if the document is not valid.
func (o Output) Action() holdfast.ChangeAction {
	if len(o.Actions) != 1 {
		return ""
	}
	action := holdfast.ChangeAction(o.Actions[0])
	if action != holdfast.ActionCreate && action != holdfast.ActionUpdate && action != holdfast.ActionDelete {
		return ""
	}
	return action
}
