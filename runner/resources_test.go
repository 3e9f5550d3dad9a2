//go:build !race

package runner_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// namedRoot has resources whose addresses are not plain.
const namedRoot = `
terraform {
  BACKEND
  required_providers {
    cloud = { source = "holdfast-dev/cloud" }
  }
}
provider "cloud" { folder = "WORLD" }
provider "cloud" {
  alias  = "west"
  folder = "WORLD"
}
module "m" {
  source   = "./m"
  for_each = toset(["a.b", "say \"hi\" $${x} é"])
}
resource "terraform_data" "counted" { count = 2 }
resource "cloud_cluster" "west" {
  provider = cloud.west
  name     = "west"
}
data "terraform_remote_state" "none" {
  backend  = "local"
  defaults = {}
  config   = { path = "/nowhere" }
  count    = 0
}
`

// namedResources are those of namedRoot.
var namedResources = []string{
	"cloud_cluster.west cloud_cluster registry.terraform.io/holdfast-dev/cloud cloud_cluster-west",
	`module.m["a.b"].terraform_data.x["k"] terraform_data terraform.io/builtin/terraform UUID`,
	`module.m["say \"hi\" $${x} é"].terraform_data.x["k"] terraform_data terraform.io/builtin/terraform UUID`,
	"terraform_data.counted[0] terraform_data terraform.io/builtin/terraform UUID",
	"terraform_data.counted[1] terraform_data terraform.io/builtin/terraform UUID",
}

// TestResources: after an apply, and with each look that finds the state, what is
// in it is listed; an engine is started for that only after an apply whose state
// the agent cannot see. Of another backend init is started until a state was read from it,
// for plans and for applies.
func TestResources(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]bool{"own state": true, "another backend": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "cloud")
			backend, another := "", 0
			if l.ours = own; !own {
				backend, another = fmt.Sprintf("backend \"local\" { path = %q }", filepath.Join(t.TempDir(), "s.tfstate")), 1
			}
			files := map[string]string{
				"main.tf": strings.Replace(namedRoot, "BACKEND", backend, 1),
				"m/m.tf":  "resource \"terraform_data\" \"x\" { for_each = toset([\"k\"]) }\n",
			}
			starts := func(what string, got map[string]int, more map[string]int) {
				t.Helper()
				want := map[string]int{"plan": 1, "show": 1, "state": another}
				for command, n := range more {
					want[command] += n
				}
				maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("starts of the engine in %s (-want +got):\n%s", what, diff)
				}
			}
			planned, got := l.run("plan-1", holdfast.RunPlan, files, nil)
			l.want(planned, "plan-1", holdfast.RunPlanned, "")
			starts("the first plan", got, map[string]int{"init": 1 + another})
			if list := l.resources("plan-1"); list != nil {
				t.Errorf("a plan with changes lists %v", list)
			}
			applied, got := l.run("apply-1", holdfast.RunApply, files, func(a *protocol.Assignment) { a.Reviews = review("plan-1", planned) })
			l.want(applied, "apply-1", holdfast.RunApplied, "")
			starts("the first apply", got, map[string]int{"init": another, "apply": 1, "state": another})
			second, got := l.run("plan-2", holdfast.RunPlan, files, nil)
			l.want(second, "plan-2", holdfast.RunNoChanges, "")
			starts("the first plan that finds a state", got, map[string]int{"init": another})
			checked, got := l.run("drift-1", holdfast.RunDrift, files, nil)
			l.want(checked, "drift-1", holdfast.RunNoChanges, "")
			starts("a check", got, nil)
			same, got := l.run("apply-2", holdfast.RunApply, files, nil)
			l.want(same, "apply-2", holdfast.RunNoChanges, "")
			starts("an apply of nothing", got, nil)
			for _, id := range []string{"apply-1", "plan-2", "drift-1", "apply-2"} {
				if diff := cmp.Diff(namedResources, l.resources(id)); diff != "" {
					t.Errorf("resources of %s (-want +got):\n%s", id, diff)
				}
			}
			if log := l.log("apply-1"); strings.Contains(log, `"serial"`) {
				t.Errorf("the log holds the state:\n%s", log)
			}

			files["main.tf"] = strings.Replace(files["main.tf"], "count = 2", "count = 3", 1)
			planned, got = l.run("plan-3", holdfast.RunPlan, files, nil)
			l.want(planned, "plan-3", holdfast.RunPlanned, "")
			starts("a plan", got, nil)
			applied, got = l.run("apply-3", holdfast.RunApply, files, func(a *protocol.Assignment) { a.Reviews = review("plan-3", planned) })
			l.want(applied, "apply-3", holdfast.RunApplied, "")
			starts("an apply", got, map[string]int{"apply": 1, "state": another})
		})
	}
}

// TestResourcesOfAFailedApply: what an apply has made before it failed is listed,
// and an object that it had to leave aside does not count twice.
func TestResourcesOfAFailedApply(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]bool{"own state": true, "another backend": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "cloud")
			backend := ""
			if l.ours = own; !own {
				backend = fmt.Sprintf("terraform {\n  backend \"local\" { path = %q }\n}\n", filepath.Join(t.TempDir(), "s.tfstate"))
			}
			root := func(name string) map[string]string {
				return map[string]string{"main.tf": backend + strings.Replace(cloudRoot, `name   = "pool"`, `name   = "`+name+"\"\n  lifecycle {\n    create_before_destroy = true\n  }", 1)}
			}
			l.apply("run-1", root("pool"))
			l.put("fail.delete.pool", "deleting the pool: Throttling\nRate exceeded\n")
			planned, _ := l.run("plan-2", holdfast.RunPlan, root("pond"), nil)
			l.want(planned, "plan-2", holdfast.RunPlanned, "")
			failed, starts := l.run("apply-2", holdfast.RunApply, root("pond"), func(a *protocol.Assignment) { a.Reviews = review("plan-2", planned) })
			l.want(failed, "apply-2", holdfast.RunErrored, "Throttled")
			if want := map[bool]int{true: 0, false: 2}[own]; starts["state"] != want {
				t.Errorf("starts of the engine: %v", starts)
			}
			const provider = " registry.terraform.io/holdfast-dev/cloud "
			want := []string{
				"cloud_cluster.main cloud_cluster" + provider + "cloud_cluster-main",
				"cloud_network.net cloud_network" + provider + "cloud_network-net",
				"cloud_node_pool.pool cloud_node_pool" + provider + "cloud_node_pool-pond",
			}
			if diff := cmp.Diff(want, l.resources("apply-2")); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"cloud_node_pool.pool: created"}, failed.Failure.Completed); diff != "" || failed.Failure.Remaining != nil {
				t.Errorf("remaining %v, completed (-want +got):\n%s", failed.Failure.Remaining, diff)
			}
			checked, _ := l.run("drift", holdfast.RunDrift, root("pond"), nil)
			l.want(checked, "drift", holdfast.RunPlanned, "")
			if diff := cmp.Diff(want, l.resources("drift")); diff != "" {
				t.Errorf("resources of a check (-want +got):\n%s", diff)
			}
		})
	}
}

// TestResourcesOfOddStates: whatever is in a state, no secret and nothing but
// resources comes of it.
func TestResourcesOfOddStates(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts an engine many times")
	}
	resource := func(mode, name, rest string) string {
		return fmt.Sprintf(`{"mode": %q, "type": "t", "name": %q, "provider": "provider[\"example.com/a/t\"].west", "instances": [%s]}`, mode, name, rest)
	}
	long := strings.Repeat("x", 2000)
	state := `{"version": 4, "serial": 1, "lineage": "l", "outputs": {}, "resources": [` + strings.Join([]string{
		resource("managed", "plain", `{"attributes": {"id": "a"}}`),
		resource("managed", "number", `{"attributes": {"id": 12345678901234567890}}`),
		resource("managed", "none", `{"attributes": {"name": "x"}}, {"index_key": "old", "attributes": null}, {"index_key": "flat", "attributes_flat": {"id": "f"}}`),
		resource("managed", "object", `{"attributes": {"id": {"a": 1}}}`),
		resource("managed", "marked", `{"attributes": {"id": "sensitive-by-mark"}, "sensitive_attributes": [[{"type": "get_attr", "value": "id"}]]}`),
		resource("managed", "other_mark", `{"attributes": {"id": "id-that-is-shown", "x": {"id": "a"}}, "sensitive_attributes": [[{"type": "get_attr", "value": "x"}, {"type": "get_attr", "value": "id"}]]}`),
		resource("managed", "all_marked", `{"attributes": {"id": "sensitive-as-all"}, "sensitive_attributes": [[]]}`),
		resource("managed", "known", `{"attributes": {"id": "host/the-run-token/x"}}`),
		resource("managed", "url", `{"attributes": {"id": "https://user:hunter2hunter2@host/"}}`),
		resource("managed", "long", `{"attributes": {"id": "`+long+`"}}`),
		resource("managed", "deposed", `{"deposed": "11111111", "attributes": {"id": "old"}}, {"attributes": {"id": "new"}}, {"deposed": "22222222", "attributes": {"id": "older"}}`),
		resource("managed", "left", `{"deposed": "11111111", "attributes": {"id": "left"}}, {"deposed": "22222222", "attributes": {"id": "right"}}`),
		resource("data", "read", `{"attributes": {"id": "data"}}`),
		resource("ephemeral", "e", `{"attributes": {"id": "data"}}`),
	}, ", ") + "]}"
	list := oddState(t, state)
	got := map[string]string{}
	for _, r := range list {
		got[r.Address] = r.ID
		if r.Type != "t" || r.Provider != "example.com/a/t" || r.Cluster != "" || r.Run != "" {
			t.Errorf("resource %+v", r)
		}
	}
	want := map[string]string{
		"t.plain": "a", "t.number": "12345678901234567890", "t.none": "", `t.none["old"]`: "", `t.none["flat"]`: "", "t.object": "",
		"t.marked": "", "t.other_mark": "id-that-is-shown", "t.all_marked": "", "t.known": "", "t.url": "", "t.long": "",
		"t.deposed": "new", "t.left": "left",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}

	var many []string
	for i := range 50_010 {
		many = append(many, fmt.Sprintf(`{"index_key": %d, "attributes": {}}`, i))
	}
	state = `{"version": 4, "resources": [` + resource("managed", "many", strings.Join(many, ",")) + `]}`
	if list := oddState(t, state); len(list) != 50_000 {
		t.Errorf("%d resources listed, want 50000", len(list))
	}
	for _, state := range []string{`{"version": 3, "modules": []}`, `{"version": 4, "resources": {}}`, "no state", `[]`} {
		if list := oddState(t, state); list != nil {
			t.Errorf("of %s: %+v", state, list)
		}
	}
	if list := oddState(t, ""); list == nil || len(list) > 0 {
		t.Errorf("of nothing: %+v", list)
	}
}

// oddState returns what an apply lists whose engine pulls that state; nil if it
// lists nothing.
func oddState(t *testing.T, state string) []holdfast.Resource {
	t.Helper()
	e, _ := engineExecutor(t, nil)
	files := map[string]string{"main.tf": "", "pulled": state, "prior": state, "fake": "state print pulled\n"}
	s := newMemorySession(files)
	s.state = "http://127.0.0.1:1/x"
	a := engineAssignment("run-1", holdfast.RunPlan)
	planned := e.Execute(t.Context(), a, s)
	if planned.Reason == holdfast.CauseUnreadablePlan || planned.Reason == holdfast.CauseUntrustedPlan {
		return nil // it is not a state that anything could be planned against
	}
	wantStatus(t, planned, holdfast.RunPlanned, "", s)
	a.Run, a.Kind, a.Reviews = "run-2", holdfast.RunApply, review("run-1", planned)
	wantStatus(t, e.Execute(t.Context(), a, s), holdfast.RunApplied, "", s)
	data := s.artefact(protocol.ArtefactResources)
	if data == nil {
		if !strings.Contains(s.logged(), "the resources in the state could not be listed") {
			t.Errorf("nothing listed, nothing said:\n%s", s.logged())
		}
		return nil
	}
	var list []holdfast.Resource
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// sealedSession shows states that an engine might send.
type sealedSession struct{ *memorySession }

func (s sealedSession) WatchState(saw func([]byte)) {
	s.onStep = func(step string) {
		if step == "plan" || step == "apply" {
			saw([]byte(`{"serial": 1, "lineage": "l", "meta": {}, "encrypted_data": "AAAA", "encryption_version": "v0"}`))
		}
	}
}

// TestResourcesOfAnEncryptedState: of a state that only the engine can read
// nothing is known before the engine has said it: it is asked for what is in it,
// and shows no ids until then.
func TestResourcesOfAnEncryptedState(t *testing.T) {
	t.Parallel()
	e, calls := engineExecutor(t, nil)
	state := `{"version": 4, "resources": [{"mode": "managed", "type": "t", "name": "n", "provider": "provider[\"a/b/c\"]", "instances": [{"attributes": {"id": "i"}}]}]}`
	files := map[string]string{
		"main.tf": "terraform {\n  backend \"http\" {}\n}\n",
		"pulled":  state,
		"prior":   state,
		"fake":    "state print pulled\nplan say t.n: Refreshing state... [id=what-may-be-secret]\n",
	}
	a := engineAssignment("run-1", holdfast.RunPlan)
	s := newMemorySession(files)
	s.state = "http://127.0.0.1:1/x"
	planned := e.Execute(t.Context(), a, sealedSession{s})
	wantStatus(t, planned, holdfast.RunPlanned, "", s)
	if log := s.logged(); strings.Contains(log, "what-may-be-secret") || !strings.Contains(log, "Refreshing state") {
		t.Errorf("the log of a plan:\n%s", log)
	}
	a.Run, a.Kind, a.Reviews = "run-2", holdfast.RunApply, review("run-1", planned)
	wantStatus(t, e.Execute(t.Context(), a, sealedSession{s}), holdfast.RunApplied, "", s)
	var list []holdfast.Resource
	if err := json.Unmarshal(s.artefact(protocol.ArtefactResources), &list); err != nil {
		t.Fatal(err)
	}
	want := []holdfast.Resource{{Address: "t.n", Type: "t", Provider: "a/b/c", ID: "i"}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("resources (-want +got):\n%s\n%v", diff, calls())
	}
}
