package planfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// State is what of an engine's state is compared: which objects of managed
// resources it has, and which ones they are.
type State struct {
	lineage string
	serial  string
	objects map[object]instance
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
}

// ReadState reads a state as the engines store it; one without a byte is that of
// a cluster without a state.
func ReadState(r io.Reader) (*State, error) {
	s := &State{objects: map[object]instance{}}
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
			return fmt.Errorf("%q is there twice", name)
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
			return fmt.Errorf("%s is there twice", at.address)
		}
		if len(s.objects) == maxObjects {
			return fmt.Errorf("it has more than %d objects", maxObjects)
		}
		made, err := stored.instance(r)
		if err != nil {
			return fmt.Errorf("%s: %w", at.address, err)
		}
		s.objects[at] = made
	}
	return nil
}

func (i storedInstance) instance(r storedResource) (instance, error) {
	made := instance{id: i.Flat["id"], status: i.Status, kind: r.Type, provider: sourceOf(r.Provider), config: r.Provider}
	if len(i.Identity) > 0 && string(i.Identity) != "null" {
		made.identity = canonical(i.Identity)
	}
	if len(i.Attributes) == 0 || string(i.Attributes) == "null" {
		return made, nil
	}
	dec, seen := json.NewDecoder(bytes.NewReader(i.Attributes)), false
	dec.UseNumber()
	err := members(dec, func(name string) error {
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return errNoState
		}
		if name != "id" {
			return nil
		}
		if seen {
			return errors.New(`"id" is there twice`)
		}
		seen = true
		if string(value) != "null" {
			made.id = canonical(value)
		}
		var text string
		if json.Unmarshal(value, &text) == nil {
			made.id = text
		}
		return nil
	})
	return made, err
}

// canonical makes layout and the order of keys of JSON irrelevant.
func canonical(data json.RawMessage) string {
	var value any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if dec.Decode(&value) != nil {
		return string(data)
	}
	made, err := json.Marshal(value)
	if err != nil {
		return string(data)
	}
	return string(made)
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
	s, err := ReadState(r)
	if err != nil {
		return nil, fmt.Errorf("read %s of the plan file: %w", memberState, err)
	}
	return s, nil
}

// Unshown is a difference between the state that the engine was given and the one
// in the plan file that no change of the plan shows, and that an apply would write.
type Unshown struct {
	// Address is where the object is after moves. Deposed is the key of a deposed
	// one, empty for the current one. Provider is a source address.
	Address, Deposed, Type, Provider string
	// Gone: it is in the state no longer.
	Gone bool
	// WasID identified it, ID identifies it now.
	WasID, ID string
}

// ErrOtherState is wrapped by the error about a plan that was made from a state of
// another serial or lineage than the given one.
var ErrOtherState = errors.New("the plan was made from another state than the run was given")

// Actions that change nothing.
const (
	actionNone = 0
	actionRead = 2
)

// actionDelete destroys an object for good.
const actionDelete = 5

// isData reports whether an address is that of a data source.
func isData(address string) bool {
	for {
		rest, ok := strings.CutPrefix(address, "module.")
		if !ok {
			return strings.HasPrefix(address, "data.")
		}
		end, quoted, escaped, depth := len(rest), false, false, 0
		for i, b := range []byte(rest) {
			switch {
			case escaped:
				escaped = false
			case quoted && b == '\\':
				escaped = true
			case depth > 0 && b == '"':
				quoted = !quoted
			case quoted:
			case b == '[':
				depth++
			case b == ']':
				depth--
			case b == '.' && depth == 0:
				end = i + 1
			}
			if end < len(rest) {
				break
			}
		}
		address = rest[end:]
	}
}

// CheckState compares the state that the engine was given with the one in the plan
// file. Objects that are gone and show no change, and objects with another id or
// identity, are returned by address. An error are objects that are new and not
// imported, and such that are no longer tainted, or have become it.
func (p *Plan) CheckState(given, prior *State) ([]Unshown, error) {
	if len(given.objects) > 0 && (given.lineage != prior.lineage || given.serial != prior.serial) {
		return nil, ErrOtherState
	}
	taken := map[object]bool{}
	var unshown []Unshown
	for _, was := range given.sorted() {
		at := was
		if to, ok := p.moved[was]; ok {
			at = to
		} else if to, ok := p.moved[object{was.address, ""}]; ok {
			at.address = to.address
		}
		if taken[at] {
			return nil, fmt.Errorf("the plan file has one object for two in the state: %s", at.address)
		}
		taken[at] = true
		before, c := given.objects[was], p.changes[at]
		after, there := prior.objects[at]
		u := Unshown{Address: at.address, Deposed: at.deposed, Type: before.kind, Provider: before.provider, WasID: before.name(), ID: after.name()}
		switch {
		case !there && c.address != "" && c.action != actionNone && c.action != actionRead:
		case !there:
			u.Gone = true
			unshown = append(unshown, u)
		case before.status != after.status || before.kind != after.kind && at == was:
			return nil, fmt.Errorf("the plan file has %s in another condition (type, tainted or not) than the state", at.address)
		case c.action == actionDelete && (c.provider != before.config || after.config != before.config):
			return nil, fmt.Errorf("the plan file destroys %s with another configuration of its provider (%s) than it was made with (%s)",
				at.address, strings.TrimSpace(c.provider+" "+after.config), before.config)
		case before.id != after.id || before.identity != "" && before.identity != after.identity:
			unshown = append(unshown, u)
		}
	}
	for _, at := range prior.sorted() {
		if !taken[at] && !p.changes[at].importing {
			return nil, fmt.Errorf("the plan file has %s in its state, which the run's state does not have and which is not imported", at.address)
		}
	}
	return unshown, nil
}

func (s *State) sorted() []object {
	list := make([]object, 0, len(s.objects))
	for at := range s.objects {
		list = append(list, at)
	}
	slices.SortFunc(list, func(a, b object) int {
		return strings.Compare(a.address+"\x00"+a.deposed, b.address+"\x00"+b.deposed)
	})
	return list
}

// name is what identifies an object.
func (i instance) name() string {
	if i.identity == "" {
		return i.id
	}
	return strings.TrimSpace(i.id + " " + i.identity)
}
