package migration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
)

// snapshot is a state as it is compared: without what an engine writes of itself.
type snapshot struct {
	Lineage string
	Serial  int64
	rest    map[string]any
}

func readSnapshot(state []byte) (snapshot, error) {
	var s snapshot
	if len(bytes.TrimSpace(state)) == 0 {
		return s, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(state))
	decoder.UseNumber()
	if err := decoder.Decode(&s.rest); err != nil {
		return s, fmt.Errorf("read state: %w", err)
	}
	s.Lineage, _ = s.rest["lineage"].(string)
	if n, ok := s.rest["serial"].(json.Number); ok {
		var err error
		if s.Serial, err = n.Int64(); err != nil {
			return s, fmt.Errorf("read state: %w", err)
		}
	}
	s.rest = map[string]any{"resources": s.rest["resources"], "outputs": s.rest["outputs"]}
	return s, nil
}

// empty reports whether nothing is lost with it.
func (s snapshot) empty() bool {
	resources, _ := s.rest["resources"].([]any)
	outputs, _ := s.rest["outputs"].(map[string]any)
	return len(resources) == 0 && len(outputs) == 0
}

func (s snapshot) same(other snapshot) bool {
	return s.Lineage == other.Lineage && s.Serial == other.Serial && reflect.DeepEqual(s.rest, other.rest)
}

// bring copies the state to the new place, with its lineage and its serial, unless it is there
// already. What else is there, or newer, is not written over.
func (m *mover) bring(ctx context.Context, state []byte, to string) error {
	m.steps.Begin(stepPush)
	was, err := readSnapshot(state)
	if err != nil {
		return err
	}
	there, err := m.snapshotThere(ctx)
	if err != nil {
		return err
	}
	switch {
	case was.Lineage == "" && there.empty(), was.Lineage != "" && was.same(there):
		m.steps.Say("the state is at %s already", to)
		return nil
	case was.Lineage != "" && (there.empty() || there.Lineage == was.Lineage && there.Serial < was.Serial):
	default:
		return occupied(to, there)
	}
	if err := m.pushOver(ctx, state, was, there); err != nil {
		return err
	}
	if there, err = m.snapshotThere(ctx); err != nil {
		return err
	}
	if !was.same(there) {
		return &failure.Error{Cause: holdfast.CauseMigrationUnproven, Err: fmt.Errorf("migrate: what is read at %s is not what was written there: %q, serial %d", to, there.Lineage, there.Serial)}
	}
	return nil
}

func occupied(to string, there snapshot) error {
	return &failure.Error{
		Cause: holdfast.CauseMigrationUnproven,
		Err:   fmt.Errorf("migrate: there is another state at %s already: lineage %q, serial %d", to, there.Lineage, there.Serial),
		Hint:  "nothing is written over: look whose it is, and remove it or name another place",
	}
}

func (m *mover) snapshotThere(ctx context.Context) (snapshot, error) {
	state, err := m.state.Pull(ctx)
	if err != nil {
		return snapshot{}, err
	}
	return readSnapshot(state)
}

// pushOver has the engine write the state over what is there. Where there is none, engines make
// up their own lineage: so that an empty state comes first. They count the serial up: so that
// they are given the one before.
func (m *mover) pushOver(ctx context.Context, state []byte, was, there snapshot) error {
	if there.Lineage == "" {
		nothing, err := withFields(state, map[string]any{"serial": 1, "resources": []any{}, "outputs": map[string]any{}, "check_results": nil})
		if err != nil {
			return err
		}
		if err := m.state.Push(ctx, nothing, false); err != nil {
			return err
		}
	}
	before, err := withFields(state, map[string]any{"serial": was.Serial - 1})
	if err != nil {
		return err
	}
	return m.state.Push(ctx, before, true)
}

// withFields is a state with other values of fields; nil takes one away.
func withFields(state []byte, fields map[string]any) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(state, &all); err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	for name, value := range fields {
		if value == nil {
			delete(all, name)
			continue
		}
		data, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("write state: %w", err)
		}
		all[name] = data
	}
	return json.Marshal(all)
}
