package planfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// planVersion is the version of the format, in Terraform since 0.13 and in OpenTofu.
const planVersion = 3

// Modes of plans.
const (
	modeNormal  = 0
	modeDestroy = 1
)

// Plan is what the member tfplan says, as far as it is compared.
type Plan struct {
	version   uint64
	mode      uint64
	errored   uint64
	variables map[string][]byte // encoded values, by name
	applyTime []string          // variables that an apply is given once more
	backend   *planBackend
	changes   map[object]change // by where the object is after moves
	moved     map[object]object // of managed resources, from where they were
}

type planBackend struct {
	kind, workspace string
	config          []byte // encoded
}

// change is what happens to one object of a resource.
type change struct {
	address, previous, deposed, provider string
	action                               uint64
	importing                            bool
}

// Numbers of fields of a plan. Terraform and OpenTofu use 22 for different ones.
const (
	fieldVersion        = 1
	fieldVariables      = 2
	fieldChanges        = 3
	fieldBackend        = 13
	fieldMode           = 17
	fieldErrored        = 20
	fieldHashes         = 22 // of results of functions; in OpenTofu names of ephemeral variables
	fieldApplyTime      = 28
	fieldTargets        = 5
	fieldExcluded       = 6
	fieldForced         = 16
	fieldDeferred       = 27
	fieldStateStore     = 29
	fieldActions        = 30
	fieldDeferredAction = 31
	fieldActionTargets  = 32
	fieldGraph          = 500_000_000
)

// refusedFields change what is applied, and are in no plan that Holdfast asks for
// or in none that it shows.
var refusedFields = map[protowire.Number]error{
	fieldTargets:        errors.New("the plan file is limited to targets, which no run asks for"),
	fieldExcluded:       errors.New("the plan file excludes resources, which no run asks for"),
	fieldForced:         errors.New("the plan file replaces resources by request, which no run asks for"),
	fieldActionTargets:  errors.New("the plan file invokes actions by request, which no run asks for"),
	fieldDeferred:       fmt.Errorf("the plan defers changes: that is %w", ErrUnsupported),
	fieldActions:        fmt.Errorf("the plan invokes actions: that is %w", ErrUnsupported),
	fieldDeferredAction: fmt.Errorf("the plan defers actions: that is %w", ErrUnsupported),
	fieldStateStore:     fmt.Errorf("the plan keeps the state in a state_store: that is %w", ErrUnsupported),
	fieldGraph:          fmt.Errorf("the plan has an execution graph: that is %w", ErrUnsupported),
}

// singleFields are there once: of two the engine would take the last.
var singleFields = map[protowire.Number]bool{fieldVersion: true, fieldBackend: true, fieldMode: true, fieldErrored: true}

// ignoredFields are for people, or are what another engine refuses: outputs are in
// the plan document.
var ignoredFields = map[protowire.Number]bool{
	4: true, 14: true, 15: true, 18: true, 19: true, 21: true, 25: true, 26: true, // outputs, engine, relevant attributes, drift, checks, time, applyable, complete
}

// Plan decodes the member tfplan. Whatever this version does not know is an error:
// it could change what is applied.
func (a *Archive) Plan(tofu bool) (*Plan, error) {
	r, err := a.open(memberPlan)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p := newPlan()
	if err := p.decode(bufio.NewReaderSize(r, 64<<10), tofu); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("read the plan file: %w", err)
	}
	switch {
	case p.version != planVersion:
		return nil, fmt.Errorf("the plan file has version %d of its format, not %d: that is %w", p.version, planVersion, ErrUnsupported)
	case p.errored != 0:
		return nil, fmt.Errorf("the engine could not finish the plan: that is %w", ErrUnsupported)
	case p.backend == nil:
		return nil, errors.New("the plan file names no backend")
	}
	return p, nil
}

func (p *Plan) decode(r *bufio.Reader, tofu bool) error {
	seen := map[protowire.Number]bool{}
	for {
		tag, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		number, kind := protowire.DecodeTag(tag)
		if err := refusedFields[number]; err != nil {
			return err
		}
		if singleFields[number] {
			if seen[number] {
				return fmt.Errorf("field %d is given twice", number)
			}
			seen[number] = true
		}
		switch kind {
		case protowire.VarintType:
			err = p.number(r, number)
		case protowire.BytesType:
			err = p.message(r, number, tofu)
		default:
			err = errUnknownField(number)
		}
		if err != nil {
			return err
		}
	}
}

func errUnknownField(number protowire.Number) error {
	return fmt.Errorf("field %d is unknown to this version of Holdfast: that is %w", number, ErrUnsupported)
}

func (p *Plan) number(r *bufio.Reader, field protowire.Number) error {
	value, err := binary.ReadUvarint(r)
	switch {
	case err != nil:
		return err
	case field == fieldVersion:
		p.version = value
	case field == fieldMode:
		p.mode = value
	case field == fieldErrored:
		p.errored = value
	case !ignoredFields[field]:
		return errUnknownField(field)
	}
	return nil
}

func (p *Plan) message(r *bufio.Reader, field protowire.Number, tofu bool) error {
	length, err := binary.ReadUvarint(r)
	if err != nil {
		return err
	}
	if length > 1<<40 {
		return errors.New("a field is too long")
	}
	if ignoredFields[field] || field == fieldHashes && !tofu {
		_, err := io.CopyN(io.Discard, r, int64(length))
		return err
	}
	var data bytes.Buffer
	if _, err := io.CopyN(&data, r, int64(length)); err != nil {
		return err
	}
	switch field {
	case fieldVariables:
		return p.variable(data.Bytes())
	case fieldChanges:
		c, err := decodeChange(data.Bytes())
		if err != nil {
			return err
		}
		return p.add(c)
	case fieldBackend:
		p.backend, err = decodeBackend(data.Bytes())
		return err
	case fieldApplyTime, fieldHashes:
		if p.applyTime = append(p.applyTime, data.String()); len(p.applyTime) > maxObjects {
			return fmt.Errorf("it has more than %d ephemeral variables", maxObjects)
		}
		return nil
	default:
		return errUnknownField(field)
	}
}

func newPlan() *Plan {
	return &Plan{variables: map[string][]byte{}, changes: map[object]change{}, moved: map[object]object{}}
}

// add notes a change. They are bounded as they come: a file can have very many that
// are very small. A change of a data source moves no object of a managed resource.
func (p *Plan) add(c change) error {
	at := object{c.address, c.deposed}
	if _, twice := p.changes[at]; twice {
		return fmt.Errorf("it has two changes of %s", c.address)
	}
	if len(p.changes) == maxObjects {
		return fmt.Errorf("it has more than %d changes", maxObjects)
	}
	p.changes[at] = c
	if c.previous != "" && !isData(c.address) {
		p.moved[object{c.previous, c.deposed}] = at
	}
	return nil
}

func (p *Plan) variable(data []byte) error {
	var name string
	var value []byte
	err := fields(data, func(number protowire.Number, content []byte) (err error) {
		switch number {
		case 1:
			name = string(content)
		case 2:
			value, err = decodeValue(content)
		default:
			err = errUnknownField(number)
		}
		return err
	})
	if _, twice := p.variables[name]; twice && err == nil {
		err = fmt.Errorf("variable %q is given twice", name)
	}
	p.variables[name] = value
	return err
}

func decodeBackend(data []byte) (*planBackend, error) {
	b := &planBackend{}
	err := fields(data, func(number protowire.Number, content []byte) (err error) {
		switch number {
		case 1:
			b.kind = string(content)
		case 2:
			b.config, err = decodeValue(content)
		case 3:
			b.workspace = string(content)
		default:
			err = errUnknownField(number)
		}
		return err
	})
	return b, err
}

// decodeValue returns the encoding of a value.
func decodeValue(data []byte) (value []byte, err error) {
	err = fields(data, func(number protowire.Number, content []byte) error {
		if number != 1 {
			return errUnknownField(number)
		}
		value = bytes.Clone(content)
		return nil
	})
	return value, err
}

// fields calls visit for the fields of a message, which has each at most once, and
// only such as are bytes.
func fields(data []byte, visit func(number protowire.Number, content []byte) error) error {
	seen := map[protowire.Number]bool{}
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if kind != protowire.BytesType {
			return errUnknownField(number)
		}
		content, m := protowire.ConsumeBytes(data[n:])
		if m < 0 {
			return protowire.ParseError(m)
		}
		if seen[number] {
			return fmt.Errorf("field %d is given twice", number)
		}
		seen[number] = true
		if err := visit(number, content); err != nil {
			return err
		}
		data = data[n+m:]
	}
	return nil
}

// decodeChange decodes what is compared of a change: the rest is shown.
func decodeChange(data []byte) (c change, err error) {
	seen := map[protowire.Number]bool{}
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return c, protowire.ParseError(n)
		}
		m := protowire.ConsumeFieldValue(number, kind, data[n:])
		if m < 0 {
			return c, protowire.ParseError(m)
		}
		var content []byte
		if kind == protowire.BytesType {
			content, _ = protowire.ConsumeBytes(data[n:])
		}
		if seen[number] && number != 11 {
			return c, fmt.Errorf("field %d of a change is given twice", number)
		}
		seen[number] = true
		switch number {
		case 13:
			c.address = string(content)
		case 14:
			c.previous = string(content)
		case 7:
			c.deposed = string(content)
		case 8:
			c.provider = string(content)
		case 9:
			if c.action, c.importing, err = decodeAction(content); err != nil {
				return c, err
			}
		case 10, 11, 12: // private data of the provider, replace paths, reason
		default:
			return c, errUnknownField(number)
		}
		data = data[n+m:]
	}
	if c.address == "" {
		return c, errors.New("a change has no address")
	}
	return c, nil
}

func decodeAction(data []byte) (action uint64, importing bool, err error) {
	seen := false
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return 0, false, protowire.ParseError(n)
		}
		m := protowire.ConsumeFieldValue(number, kind, data[n:])
		if m < 0 {
			return 0, false, protowire.ParseError(m)
		}
		switch {
		case number == 1 && kind == protowire.VarintType && !seen:
			action, _ = protowire.ConsumeVarint(data[n:])
			seen = true
		case number == 5 && kind == protowire.BytesType:
			importing = true
		case number == 1 || number > 8:
			return 0, false, errUnknownField(number)
		}
		data = data[n+m:]
	}
	return action, importing, nil
}
