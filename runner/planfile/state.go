package planfile

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// State is the part of an engine's state that is compared: which objects of managed
// resources it has, which ones they are, and their attributes.
type State struct {
	lineage    string
	serial     string
	objects    map[object]instance
	attributes int  // of all objects
	values     bool // attributes are kept with their values, and outputs are

	// Outputs are those of a state that ReadState has read.
	Outputs map[string]Output
}

// Output is an output value in a state.
type Output struct {
	Value     json.RawMessage `json:"value"`
	Sensitive bool            `json:"sensitive"`
}

// object is the current object of a resource instance, or a deposed one.
type object struct{ address, deposed string }

type instance struct {
	id       string // empty: it has none
	identity string // as JSON, of engines and providers that have such; empty: none
	status   string // tainted, or empty
	kind     string // type of the resource
	provider string // source address
	config   string // which configuration of the provider it is managed with, as the state has it

	attributes map[string]attribute // without those that are null; nil: it is in a form that is not compared
	hidden     map[string]bool      // attributes that are sensitive, or have something sensitive
	allHidden  bool
}

// attribute is one at the top of an object.
type attribute struct {
	sum   [sha256.Size]byte // of the value
	value json.RawMessage
}

// ReadState reads the state that an engine was given, as the engines store it; one
// without a byte is that of a cluster without a state.
func ReadState(r io.Reader) (*State, error) { return readState(r, true) }

func readState(r io.Reader, values bool) (*State, error) {
	s := &State{objects: map[object]instance{}, values: values}
	buffered := bufio.NewReaderSize(r, 64<<10)
	if err := skipSpace(buffered); errors.Is(err, io.EOF) {
		return s, nil
	}
	dec := json.NewDecoder(buffered)
	dec.UseNumber()
	seen := map[string]bool{}
	err := members(dec, func(name string) error {
		if !stateMembers[name] { // engines take it for another one, in other letters
			return fmt.Errorf("%q is not a member of a state", name)
		}
		if seen[name] {
			return fmt.Errorf("%q is given twice", name)
		}
		seen[name] = true
		switch name {
		case "version":
			var version int
			if err := dec.Decode(&version); err != nil || version != 4 {
				return errors.New("its version is not 4")
			}
			return nil
		case "lineage":
			return dec.Decode(&s.lineage)
		case "serial":
			var serial json.Number
			err := dec.Decode(&serial)
			s.serial = serial.String()
			return err
		case "resources":
			return s.resources(dec)
		case "outputs":
			if s.values {
				return dec.Decode(&s.Outputs)
			}
			fallthrough
		default:
			var skipped json.RawMessage
			return dec.Decode(&skipped)
		}
	})
	if err != nil {
		return nil, err
	}
	if !seen["version"] {
		return nil, errors.New("its version is not 4")
	}
	return s, nil
}

// stateMembers are what both engines write at the top of a state of version 4.
var stateMembers = map[string]bool{
	"version": true, "terraform_version": true, "serial": true, "lineage": true, "outputs": true, "resources": true,
	"check_results": true, "encrypted_data": true, "meta": true, "encryption_version": true,
}

func skipSpace(r *bufio.Reader) error {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return err
		}
		if !bytes.ContainsRune([]byte(" \t\r\n"), rune(b)) {
			return r.UnreadByte()
		}
	}
}

// members calls visit for the name of each member of the next value, an object;
// visit reads the member's value.
func members(dec *json.Decoder, visit func(name string) error) error {
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return errNoState
	}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return errNoState
		}
		name, _ := token.(string)
		if err := visit(name); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return errNoState
	}
	return nil
}

var errNoState = errors.New("it is not a state")

type storedResource struct {
	Module    string          `json:"module"`
	Mode      string          `json:"mode"`
	Type      string          `json:"type"`
	Name      string          `json:"name"`
	Provider  string          `json:"provider"`
	Instances json.RawMessage `json:"instances"`
}

type storedInstance struct {
	IndexKey   any               `json:"index_key"`
	Status     string            `json:"status"`
	Deposed    string            `json:"deposed"`
	Attributes json.RawMessage   `json:"attributes"`
	Flat       map[string]string `json:"attributes_flat"`
	Identity   json.RawMessage   `json:"identity"`
	Sensitive  [][]struct {
		Value any `json:"value"`
	} `json:"sensitive_attributes"`
}

func (s *State) resources(dec *json.Decoder) error {
	token, err := dec.Token()
	if err != nil {
		return errNoState
	} else if token == nil {
		return nil // null
	} else if token != json.Delim('[') {
		return errNoState
	}
	for dec.More() {
		var r storedResource
		if err := dec.Decode(&r); err != nil {
			return errNoState
		}
		if r.Mode != "managed" {
			continue
		}
		address := r.Type + "." + r.Name
		if r.Module != "" {
			address = r.Module + "." + address
		}
		if err := s.instances(r, address); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// maxObjects bounds what is kept of a state: the largest that engines bear have some
// ten thousand objects.
const maxObjects = 1_000_000

// instances reads the instances of a resource one by one: their number is not
// bounded by their size.
func (s *State) instances(r storedResource, address string) error {
	if len(r.Instances) == 0 || string(r.Instances) == "null" {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(r.Instances))
	dec.UseNumber()
	if token, err := dec.Token(); err != nil || token != json.Delim('[') {
		return errNoState
	}
	for dec.More() {
		var stored storedInstance
		if err := dec.Decode(&stored); err != nil {
			return errNoState
		}
		at := object{address + indexOf(stored.IndexKey), stored.Deposed}
		if _, twice := s.objects[at]; twice {
			return fmt.Errorf("%s is given twice", at.address)
		}
		if len(s.objects) == maxObjects {
			return fmt.Errorf("it has more than %d objects", maxObjects)
		}
		made, err := s.instance(stored, r)
		if err != nil {
			return fmt.Errorf("%s: %w", at.address, err)
		}
		s.objects[at] = made
	}
	return nil
}

// maxAttributes bounds how many attributes of all objects are kept.
const maxAttributes = 5_000_000

func (s *State) instance(i storedInstance, r storedResource) (instance, error) {
	made := instance{id: i.Flat["id"], status: i.Status, kind: r.Type, provider: sourceOf(r.Provider), config: r.Provider}
	if len(i.Identity) > 0 && string(i.Identity) != "null" {
		made.identity = canonical(i.Identity)
	}
	if len(i.Attributes) == 0 || string(i.Attributes) == "null" {
		return made, nil
	}
	made.attributes = map[string]attribute{}
	dec, seen := json.NewDecoder(bytes.NewReader(i.Attributes)), map[string]bool{}
	dec.UseNumber()
	err := members(dec, func(name string) error {
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return errNoState
		}
		if seen[name] {
			return fmt.Errorf("%q is given twice", name)
		}
		seen[name] = true
		if s.attributes++; s.attributes > maxAttributes {
			return fmt.Errorf("it has more than %d attributes", maxAttributes)
		}
		text := canonical(value)
		if name == "id" {
			made.id = idOf(value)
		}
		if text == "null" {
			return nil
		}
		kept := attribute{sum: sha256.Sum256([]byte(text))}
		if s.values {
			kept.value = value
		}
		made.attributes[name] = kept
		return nil
	})
	if s.values {
		made.hide(i)
	}
	return made, err
}

// hide notes which attributes have something that the state marks as sensitive.
func (i *instance) hide(stored storedInstance) {
	i.hidden = map[string]bool{}
	for _, path := range stored.Sensitive {
		name := ""
		if len(path) > 0 {
			name, _ = path[0].Value.(string)
		}
		i.allHidden = i.allHidden || name == ""
		i.hidden[name] = true
	}
}

// idOf is an id as text; empty if it is null.
func idOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return canonical(value)
}

// canonical makes layout, the order of keys, and keys with null irrelevant.
func canonical(data json.RawMessage) string {
	var value any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if dec.Decode(&value) != nil {
		return string(data)
	}
	made, err := json.Marshal(withoutNull(value))
	if err != nil {
		return string(data)
	}
	return string(made)
}

func withoutNull(value any) any {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, child any) bool { return child == nil })
		for key, child := range v {
			v[key] = withoutNull(child)
		}
	case []any:
		for i := range v {
			v[i] = withoutNull(v[i])
		}
	}
	return value
}

// indexOf renders the key of an instance as the engines do.
func indexOf(key any) string {
	switch k := key.(type) {
	case json.Number:
		return "[" + k.String() + "]"
	case float64:
		return fmt.Sprintf("[%d]", int64(k))
	case string:
		return "[" + quote(k) + "]"
	default:
		return ""
	}
}

// quote renders a key as a string of HCL.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case (r == '$' || r == '%') && strings.HasPrefix(s[i+1:], "{"):
			b.WriteRune(r)
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// sourceOf takes the source address out of a provider's address in a state, such
// as module.x.provider["registry.terraform.io/hashicorp/aws"].west.
func sourceOf(address string) string {
	_, rest, ok := strings.Cut(address, `provider["`)
	if !ok {
		return strings.TrimPrefix(address, "provider.")
	}
	source, _, _ := strings.Cut(rest, `"]`)
	return source
}

// State reads the state in the plan file that its changes start from: what a
// refresh has made of the one that the engine was given.
func (a *Archive) State() (*State, error) {
	r, err := a.open(memberState)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	s, err := readState(r, false)
	if err != nil {
		return nil, fmt.Errorf("read %s of the plan file: %w", memberState, err)
	}
	return s, nil
}

func (s *State) sorted() []object {
	return slices.SortedFunc(maps.Keys(s.objects), compareObjects)
}

func compareObjects(a, b object) int {
	return cmp.Or(strings.Compare(a.address, b.address), strings.Compare(a.deposed, b.deposed))
}

// name is what identifies an object.
func (i instance) name() string {
	if i.identity == "" {
		return i.id
	}
	return strings.TrimSpace(i.id + " " + i.identity)
}
