package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// stateCheck judges the states in the stores of somebody else: a store has of a cluster
// all that was applied, and nothing besides.
type stateCheck struct {
	wrong func(text string)
	last  map[string]storedState // by cluster
}

// storedState is what is judged of a state of a worker.
type storedState struct {
	Lineage   string
	Serial    int64
	Outputs   struct{ Generation struct{ Value string } }
	Resources []struct {
		Type, Name string
		Instances  []storedInstance
	}
}

type storedInstance struct {
	Status, Deposed string
	Attributes      struct {
		ID              string
		Output          struct{ Value any }
		TriggersReplace struct{ Value any } `json:"triggers_replace"`
	}
}

func newStateCheck(wrong func(text string)) *stateCheck {
	return &stateCheck{wrong: wrong, last: make(map[string]storedState)}
}

// see judges the state of a cluster that has a generation of a worker applied, and for which
// nothing runs.
func (k *stateCheck) see(name, text, generation string) {
	var is storedState
	if err := json.Unmarshal([]byte(text), &is); err != nil {
		k.wrong(fmt.Sprintf("generation %s of %s is applied, and its store has no state: %q", generation, name, text))
		return
	}
	was, known := k.last[name]
	k.last[name] = is
	if known && (is.Lineage != was.Lineage || is.Serial < was.Serial) {
		k.wrong(fmt.Sprintf("the state of %s has serial %d of %s after serial %d of %s", name, is.Serial, is.Lineage, was.Serial, was.Lineage))
	}
	if is.Outputs.Generation.Value != generation {
		k.wrong(fmt.Sprintf("generation %s of %s is applied, and its state has %q", generation, name, is.Outputs.Generation.Value))
	}
	if want, has := []string{"terraform_data.before " + generation, "terraform_data.work " + generation}, is.resources(); !slices.Equal(has, want) {
		k.wrong(fmt.Sprintf("the state of %s has %q, want %q", name, has, want))
	}
}

// resources are those of a worker in a state, in order, each with its generation and
// whatever else there is to say of it.
func (s storedState) resources() []string {
	var before storedInstance
	for _, r := range s.Resources {
		for _, i := range r.Instances {
			if r.Name == "before" && i.Deposed == "" {
				before = i
			}
		}
	}
	var all []string
	for _, r := range s.Resources {
		for _, i := range r.Instances {
			generation := fmt.Sprint(i.Attributes.Output.Value)
			if r.Name == "work" {
				generation = fmt.Sprint(i.Attributes.TriggersReplace.Value)
				generation = strings.TrimSuffix(strings.TrimPrefix(generation, "["), " "+before.Attributes.ID+"]")
			}
			parts := []string{r.Type + "." + r.Name, generation, i.Status, i.Deposed}
			all = append(all, strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " "))
		}
	}
	slices.Sort(all)
	return all
}

// workerState is the state of a worker, as an engine writes it.
func workerState(lineage string, serial int, before, work string) string {
	const state = `{"version": 4, "terraform_version": "1.11.4", "serial": %d, "lineage": %q,
  "outputs": {"generation": {"value": %[3]q, "type": "string"}},
  "resources": [
    {"mode": "managed", "type": "terraform_data", "name": "before", "provider": "provider[\"terraform.io/builtin/terraform\"]", "instances": [
      {"schema_version": 0, "attributes": {
        "id": "id-%[3]s", "input": {"value": %[3]q, "type": "string"}, "output": {"value": %[3]q, "type": "string"}, "triggers_replace": null}}]},
    {"mode": "managed", "type": "terraform_data", "name": "work", "provider": "provider[\"terraform.io/builtin/terraform\"]", "instances": [
      {"schema_version": 0, "attributes": {
        "id": "work", "input": null, "output": null,
        "triggers_replace": {"value": [%[4]q, "id-%[3]s"], "type": ["tuple", ["string", "string"]]}}}]}]}`
	return fmt.Sprintf(state, serial, lineage, before, work)
}

// A state that a store has lost, or has of an earlier apply, of another history or with something
// twice, is found, and one that is as it was applied is not.
func TestStoredStatesAreChecked(t *testing.T) {
	t.Parallel()
	good := workerState("one", 7, "3", "3")
	head, _, _ := strings.Cut(good, `"resources"`)
	none := strings.Replace(head, `"3"`, `""`, 1) + `"resources": []}`
	for name, tc := range map[string]struct {
		text  string
		wrong []string // what is found, in order
	}{
		"as it was applied":          {good, nil},
		"a newer one of the same":    {workerState("one", 9, "3", "3"), nil},
		"lost":                       {"", []string{"its store has no state"}},
		"not a state":                {"psql: connection refused", []string{"its store has no state"}},
		"the one before the apply":   {workerState("one", 5, "2", "2"), []string{"serial 5 of one after serial 6 of one", `its state has "2"`, "terraform_data.work 2"}},
		"of another history":         {workerState("two", 7, "3", "3"), []string{"serial 7 of two after serial 6 of one"}},
		"without resources":          {none, []string{`its state has ""`, `has []`}},
		"with a part of the apply":   {workerState("one", 7, "3", "2"), []string{"terraform_data.work 2"}},
		"with something half done":   {strings.Replace(good, `"id": "work"`, `"id": "work"}, "status": "tainted", "attributes": {"id": "work"`, 1), []string{"tainted"}},
		"with something that is old": {strings.Replace(good, `"instances": [`, `"instances": [{"deposed": "0a1b2c3d", "attributes": {"id": "id-2"}},`, 1), []string{"0a1b2c3d"}},
	} {
		var wrong []string
		check := newStateCheck(func(text string) { wrong = append(wrong, text) })
		check.see("epsilon", workerState("one", 6, "2", "2"), "2")
		if len(wrong) > 0 {
			t.Fatalf("%s: found %q in the state before", name, wrong)
		}
		check.see("epsilon", tc.text, "3")
		found := len(wrong) == len(tc.wrong)
		for i := range tc.wrong {
			found = found && strings.Contains(wrong[i], tc.wrong[i])
		}
		if !found {
			t.Errorf("%s: found %q, want %q", name, wrong, tc.wrong)
		}
	}
}
