// What a state holds.

package attempt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/jsontree"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

const (
	// maxRemaining bounds what is reported of what a failed destroy has left.
	maxRemaining = 200
)

// stateKnown reports whether the secrets of the state are known before the engine
// prints anything of it.
func (t *attempt) stateKnown() bool { return t.watched && t.sharesBackend() && !t.sealed.Load() }

// keepPlanned keeps what the state holds as the plan has it, which costs no
// engine: the resources after a drift check and a plan without changes, the
// outputs of a cluster that may be adopted and has no apply that would tell.
// Sensitive ones go without their values.
func (t *planning) keepPlanned(ctx context.Context, found plan.Result) error {
	if addr, _, _ := t.session.StateAddress(); t.a.OwnState && addr == "" {
		return nil // an empty stand-in was planned against
	}
	if t.counts.Zero() && !t.a.Kind.Writes() && !t.destroys() && len(found.Outputs) > 0 {
		for i := range found.Outputs {
			found.Outputs[i].Value = t.redact.JSON(found.Outputs[i].Value)
		}
		if err := t.putJSON(ctx, holdfast.ArtefactOutputs, found.Outputs); err != nil {
			return err
		}
	}
	if t.a.Kind != holdfast.RunDrift && !t.counts.Zero() {
		return nil
	}
	return t.putResources(ctx, cleanResources(t.redact, found.Resources))
}

// keepLeft keeps what the state holds after an apply that failed, if that can be
// told: not while the newest state is saved nowhere, and not if the engine
// refused to begin.
func (t *applying) keepLeft(ctx context.Context, before []byte, ended error) {
	var known *failure.Error
	if errors.As(ended, &known) && (known.Cause == holdfast.CauseStateUnsaved || known.Cause == holdfast.CauseStalePlan) {
		return
	}
	if ctx.Err() != nil && !t.watched {
		if reason, _ := failure.StopReason(ctx); reason == holdfast.ReasonLeaseLost || reason == holdfast.ReasonAgentKilled {
			return // there is no time for another engine
		}
	}
	t.unkept(ctx, "resources", t.whenDiskIsBack(ctx, func() error {
		found, err := t.readContents(ctx)
		if err != nil {
			return err
		}
		t.noteSaved(before, found)
		return t.keepResources(ctx, found)
	}))
}

// remaining returns the addresses that a failed destroy has left in the state.
func (t *attempt) remaining() []string {
	if t.a.Kind != holdfast.RunDestroy {
		return nil
	}
	var list []string
	for _, resource := range t.left[:min(len(t.left), maxRemaining)] {
		list = append(list, resource.Address)
	}
	return list
}

// cleanResources returns a copy of the list without secrets: an id that is or
// has one is left out as a whole.
func cleanResources(r *redact.Redactor, list []holdfast.Resource) []holdfast.Resource {
	list = slices.Clone(list)
	for i := range list {
		resource := &list[i]
		resource.Address = r.Known(resource.Address)
		if r.String(resource.ID) != resource.ID {
			resource.ID = ""
		}
	}
	return list
}

// stateDocument is the part of an engine's state that says what is in it.
type stateDocument struct {
	Version int `json:"version"`
	Outputs map[string]struct {
		Sensitive bool            `json:"sensitive"`
		Value     json.RawMessage `json:"value"`
	} `json:"outputs"`
	Resources []struct {
		Module    string `json:"module"`
		Mode      string `json:"mode"`
		Type      string `json:"type"`
		Name      string `json:"name"`
		Provider  string `json:"provider"`
		Instances []struct {
			IndexKey   any    `json:"index_key"`
			Deposed    string `json:"deposed"`
			Attributes struct {
				ID any `json:"id"`
			} `json:"attributes"`
			Sensitive [][]struct {
				Value any `json:"value"`
			} `json:"sensitive_attributes"`
		} `json:"instances"`
	} `json:"resources"`
}

// contents is what a state holds.
type contents struct {
	objects   map[string]string   // ids of managed ones that are not deposed, by address
	outputs   []holdfast.Output   // by name
	resources []holdfast.Resource // managed ones, by address, at most 50,000
}

// contentsOf reads a state as the engines store it. An empty one holds nothing.
func contentsOf(state []byte) (contents, error) {
	var found plan.ResourceList
	objects := map[string]string{}
	if len(bytes.TrimSpace(state)) == 0 {
		return contents{objects: objects, resources: found.Sorted()}, nil
	}
	var doc stateDocument
	if err := jsontree.Decode(state, &doc); err != nil {
		return contents{}, fmt.Errorf("read state: %w", jsontree.Error(err))
	}
	if doc.Version != 4 {
		return contents{}, fmt.Errorf("read state: its version is %d, not 4", doc.Version)
	}
	for _, r := range doc.Resources {
		if r.Mode != "managed" {
			continue
		}
		address := r.Type + "." + r.Name
		if r.Module != "" {
			address = r.Module + "." + address
		}
		for _, instance := range r.Instances {
			id := plan.IDOf(instance.Attributes.ID)
			for _, path := range instance.Sensitive {
				if len(path) == 0 || path[0].Value == "id" {
					id = ""
				}
			}
			if at := address + indexOf(instance.IndexKey); instance.Deposed == "" {
				objects[at] = plan.IDOf(instance.Attributes.ID)
			}
			found.Add(holdfast.Resource{
				Address: address + indexOf(instance.IndexKey), Type: r.Type, Provider: providerSource(r.Provider), ID: id,
			}, instance.Deposed != "")
		}
	}
	c := contents{objects: objects, outputs: make([]holdfast.Output, 0, len(doc.Outputs)), resources: found.Sorted()}
	for name, output := range doc.Outputs {
		c.outputs = append(c.outputs, holdfast.Output{Name: name, Sensitive: output.Sensitive, Value: output.Value})
	}
	slices.SortFunc(c.outputs, func(a, b holdfast.Output) int { return strings.Compare(a.Name, b.Name) })
	return c, nil
}

// indexOf renders the key of an instance as the engines do.
func indexOf(key any) string {
	switch k := key.(type) {
	case json.Number:
		return "[" + k.String() + "]"
	case string:
		return `["` + redact.EscapeHCL(k) + `"]`
	default:
		return ""
	}
}

// providerSource takes the source address out of a provider's address in a
// state, such as module.x.provider["registry.terraform.io/hashicorp/aws"].west.
func providerSource(address string) string {
	_, rest, ok := strings.Cut(address, `provider["`)
	if !ok {
		return strings.TrimPrefix(address, "provider.")
	}
	source, _, _ := strings.Cut(rest, `"]`)
	return source
}
