package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast"
)

const (
	// maxResources bounds how many resources of one state are kept.
	maxResources = 50_000
	// maxResourceID bounds an id: some providers make a document of it.
	maxResourceID = 1 << 10
	// maxRemaining bounds what is told of what a failed destroy has left.
	maxRemaining = 200
)

// newestState is the state of Holdfast's own backend as it was seen last. It is
// safe for concurrent use.
type newestState struct {
	mu   sync.Mutex
	data []byte // nil: none was seen
}

func (n *newestState) note(state []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.data = bytes.Clone(state)
}

func (n *newestState) get() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.data
}

// learn takes in the secrets of a state that the engine is about to see, or has
// made.
func (t *attempt) learn(state []byte) {
	secrets, ok := secretsOfState(state)
	if !ok {
		t.sealed.Store(true)
	}
	t.redact.Add(secrets...)
	if t.a.Kind.Writes() {
		t.newest.note(state)
	}
}

// stateKnown reports whether the secrets of the state are known before the engine
// prints anything of it.
func (t *attempt) stateKnown() bool { return t.watched && t.sharesBackend() && !t.sealed.Load() }

// keepPlanned keeps what the state holds as the plan document has it, which
// costs no engine.
func (t *attempt) keepPlanned(ctx context.Context, document []byte) error {
	if addr, _, _ := t.session.StateAddress(); t.a.OwnState && addr == "" {
		return nil // an empty stand-in was planned against
	}
	list, err := resourcesOfPlan(document)
	if err != nil {
		return &attemptError{cause: causeBadPlan, err: fmt.Errorf("read plan: %w", err)}
	}
	return t.putResources(ctx, t.redact.resources(list))
}

// keepPlannedOutputs keeps the outputs that the state holds as the document of a
// plan without changes has them, which costs no engine: a cluster that is adopted
// has no apply that would tell. Sensitive ones go without their values.
func (t *attempt) keepPlannedOutputs(ctx context.Context, document []byte) error {
	if addr, _, _ := t.session.StateAddress(); t.a.OwnState && addr == "" {
		return nil // an empty stand-in was planned against
	}
	list, err := outputsOfPlan(document)
	if err != nil {
		return &attemptError{cause: causeBadPlan, err: fmt.Errorf("read plan: %w", err)}
	}
	if len(list) == 0 {
		return nil
	}
	for i := range list {
		list[i].Value = t.redact.json(list[i].Value)
	}
	return t.putJSON(ctx, holdfast.ArtefactOutputs, list)
}

// outputsOfPlan returns the outputs in the state that a plan was made from, by
// name.
func outputsOfPlan(planJSON []byte) ([]holdfast.Output, error) {
	var doc struct {
		Prior struct {
			Values struct {
				Outputs map[string]struct {
					Sensitive bool            `json:"sensitive"`
					Value     json.RawMessage `json:"value"`
				} `json:"outputs"`
			} `json:"values"`
		} `json:"prior_state"`
	}
	if err := json.Unmarshal(planJSON, &doc); err != nil {
		return nil, jsonError(err)
	}
	var list []holdfast.Output
	for _, name := range slices.Sorted(maps.Keys(doc.Prior.Values.Outputs)) {
		output := doc.Prior.Values.Outputs[name]
		if output.Sensitive {
			output.Value = nil
		}
		list = append(list, holdfast.Output{Name: name, Sensitive: output.Sensitive, Value: output.Value})
	}
	return list, nil
}

func (t *attempt) putResources(ctx context.Context, list []holdfast.Resource) error {
	if len(list) == maxResources {
		t.say("only the first %d resources in the state are listed", maxResources)
	}
	return t.putJSON(ctx, holdfast.ArtefactResources, list)
}

// keepApplied keeps what the state holds after an apply. That it cannot does not
// make an apply undone, so it is told in the log only.
func (t *attempt) keepApplied(ctx context.Context) {
	list, err := t.readResources(ctx)
	if err == nil {
		err = t.putResources(ctx, list)
	}
	if err != nil {
		t.say("the resources in the state could not be listed: %v", err)
		t.logger.WarnContext(ctx, "resources not kept", "err", t.redact.String(err.Error()))
		return
	}
	t.left = list
}

// keepLeft keeps what the state holds after an apply that failed, if that can be
// told: not while the newest state is saved nowhere, and not if the engine
// refused to begin.
func (t *attempt) keepLeft(ctx context.Context, failure error) {
	var known *attemptError
	if errors.As(failure, &known) && (known.cause == causeStateUnsaved || known.cause == causeStalePlan) {
		return
	}
	if ctx.Err() != nil && !t.watched {
		switch reason, _ := stopReason(ctx); reason {
		case holdfast.ReasonLeaseLost, holdfast.ReasonAgentKilled:
			return // there is no time for another engine
		}
	}
	t.keepApplied(ctx)
}

// readResources returns what the state holds now: as the session has seen it on
// its way, else, or if the engine has encrypted it, as the engine reads it.
func (t *attempt) readResources(ctx context.Context) ([]holdfast.Resource, error) {
	if seen := t.newest.get(); t.watched && seen != nil {
		if list, err := resourcesOfState(seen); err == nil {
			return t.redact.resources(list), nil
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), artefactTimeout)
	defer cancel()
	raw := &bounded{limit: maxState}
	if err := t.start(ctx, raw, true, "state", "pull"); err != nil {
		return nil, err
	}
	state, err := raw.bytes()
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	t.redact.Add(SecretsOfState(state)...)
	list, err := resourcesOfState(state)
	if err != nil {
		return nil, err
	}
	return t.redact.resources(list), nil
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

// resources returns a copy of the list without secrets: an id that is or has one
// is left out as a whole.
func (r *Redactor) resources(list []holdfast.Resource) []holdfast.Resource {
	list = slices.Clone(list)
	for i := range list {
		resource := &list[i]
		resource.Address = r.known(resource.Address)
		if r.String(resource.ID) != resource.ID {
			resource.ID = ""
		}
	}
	return list
}

// resourceList collects resources, each address once: an object that was deposed
// counts only where there is no current one.
type resourceList struct {
	list []holdfast.Resource
	at   map[string]int // index by address
}

func (l *resourceList) add(resource holdfast.Resource, deposed bool) {
	if len(resource.ID) > maxResourceID {
		resource.ID = ""
	}
	if i, ok := l.at[resource.Address]; ok {
		if !deposed {
			l.list[i] = resource
		}
		return
	}
	if len(l.list) >= maxResources {
		return
	}
	if l.at == nil {
		l.at = map[string]int{}
	}
	l.at[resource.Address] = len(l.list)
	l.list = append(l.list, resource)
}

// sorted returns the resources by address; never nil.
func (l *resourceList) sorted() []holdfast.Resource {
	slices.SortFunc(l.list, func(a, b holdfast.Resource) int { return strings.Compare(a.Address, b.Address) })
	if l.list == nil {
		return []holdfast.Resource{}
	}
	return l.list
}

// stateResources is the part of an engine's state that says what is in it.
type stateResources struct {
	Version   int `json:"version"`
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

// resourcesOfState returns the managed resources in a state as the engines store
// it, by address, at most 50,000. An empty state has none.
func resourcesOfState(state []byte) ([]holdfast.Resource, error) {
	var found resourceList
	if len(bytes.TrimSpace(state)) == 0 {
		return found.sorted(), nil
	}
	var doc stateResources
	if err := decodeNumbers(state, &doc); err != nil {
		return nil, fmt.Errorf("read state: %w", jsonError(err))
	}
	if doc.Version != 4 {
		return nil, fmt.Errorf("read state: its version is %d, not 4", doc.Version)
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
			id := idOf(instance.Attributes.ID)
			for _, path := range instance.Sensitive {
				if len(path) == 0 || path[0].Value == "id" {
					id = ""
				}
			}
			found.add(holdfast.Resource{
				Address: address + indexOf(instance.IndexKey), Type: r.Type, Provider: providerSource(r.Provider), ID: id,
			}, instance.Deposed != "")
		}
	}
	return found.sorted(), nil
}

// indexOf renders the key of an instance as the engines do.
func indexOf(key any) string {
	switch k := key.(type) {
	case json.Number:
		return "[" + k.String() + "]"
	case string:
		return `["` + hclEscape(k) + `"]`
	default:
		return ""
	}
}

// idOf returns an id as text; empty if there is none.
func idOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
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

// plannedModule is a module in a plan's prior state.
type plannedModule struct {
	Resources []struct {
		Address  string `json:"address"`
		Mode     string `json:"mode"`
		Type     string `json:"type"`
		Provider string `json:"provider_name"`
		Deposed  string `json:"deposed_key"`
		Values   struct {
			ID any `json:"id"`
		} `json:"values"`
		Sensitive any `json:"sensitive_values"`
	} `json:"resources"`
	Children []plannedModule `json:"child_modules"`
}

// resourcesOfPlan returns the managed resources in the state that a plan was
// made from, by address, at most 50,000. The plan's prior state is what a refresh
// made of it: what is gone in the world was in the state still.
func resourcesOfPlan(planJSON []byte) ([]holdfast.Resource, error) {
	var doc struct {
		Prior struct {
			Values struct {
				Root plannedModule `json:"root_module"`
			} `json:"values"`
		} `json:"prior_state"`
		Drift []struct {
			Address  string `json:"address"`
			Mode     string `json:"mode"`
			Type     string `json:"type"`
			Provider string `json:"provider_name"`
			Deposed  string `json:"deposed"`
			Change   struct {
				Actions []string `json:"actions"`
				Before  struct {
					ID any `json:"id"`
				} `json:"before"`
				Sensitive any `json:"before_sensitive"`
			} `json:"change"`
		} `json:"resource_drift"`
	}
	if err := decodeNumbers(planJSON, &doc); err != nil {
		return nil, jsonError(err)
	}
	var found resourceList
	found.module(doc.Prior.Values.Root)
	for _, drift := range doc.Drift {
		if drift.Mode != "managed" || !slices.Equal(drift.Change.Actions, []string{"delete"}) {
			continue
		}
		found.add(holdfast.Resource{
			Address: drift.Address, Type: drift.Type, Provider: drift.Provider,
			ID: unlessSensitive(drift.Change.Before.ID, drift.Change.Sensitive),
		}, true) // what is there now counts more
	}
	return found.sorted(), nil
}

func (l *resourceList) module(module plannedModule) {
	for _, r := range module.Resources {
		if r.Mode == "managed" {
			l.add(holdfast.Resource{
				Address: r.Address, Type: r.Type, Provider: r.Provider, ID: unlessSensitive(r.Values.ID, r.Sensitive),
			}, r.Deposed != "")
		}
	}
	for _, child := range module.Children {
		l.module(child)
	}
}

func unlessSensitive(id, marks any) string {
	if marks == true || anyTrue(fieldOf(marks, "id")) {
		return ""
	}
	return idOf(id)
}
