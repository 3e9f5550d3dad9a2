//go:build !race

package runner_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// An engine may print warnings before the documents that it is asked for.
func TestWarningsBeforeDocuments(t *testing.T) {
	t.Parallel()
	l := newScriptLab(t, "printf '\\nWarning: Unable to open CLI configuration file\\n\\n  {x} is not there.\\n\\n'\nexec \"$engine\" \"$@\"")
	l.ours = false
	files := map[string]string{"main.tf": `terraform {
  backend "local" { path = "WORLD/foreign.tfstate" }
}
resource "terraform_data" "x" { input = "made" }
output "x" { value = terraform_data.x.output }
`}
	planned, _ := l.run("plan", holdfast.RunPlan, files, nil)
	l.want(planned, "plan", holdfast.RunPlanned, "")
	applied, _ := l.run("apply", holdfast.RunApply, files, func(a *protocol.Assignment) { a.Reviews = review("plan", planned) })
	l.want(applied, "apply", holdfast.RunApplied, "")
	for _, name := range []string{protocol.ArtefactOutputs, protocol.ArtefactResources} {
		var kept string
		l.server.set(func() { kept = string(l.server.objects["apply/"+name]) })
		if !strings.Contains(kept, `"x"`) && !strings.Contains(kept, "terraform_data.x") {
			t.Errorf("kept as %s is %q", name, kept)
		}
	}
	again, _ := l.run("again", holdfast.RunPlan, files, nil)
	l.want(again, "again", holdfast.RunNoChanges, "")
}

// What honest plans make of a state is planned and applied: objects that are gone
// are made again, or are shown to leave the state; moves, imports, removed blocks
// and keys of all kinds are those that the engine lists; a state of a foreign
// backend is compared as well.
func TestHonestPriorStates(t *testing.T) {
	t.Parallel()
	for name, backend := range map[string]string{"own": "", "foreign": "terraform {\n  backend \"local\" { path = \"WORLD/foreign.tfstate\" }\n}\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "cloud")
			l.ours = backend == ""
			serial := 0
			// step plans and applies code, and wants these changes to be shown.
			step := func(kind holdfast.RunKind, code string, want ...string) {
				t.Helper()
				serial++
				id := strings.Repeat("i", serial)
				files := map[string]string{"main.tf": backend + code}
				planned, _ := l.run("plan-"+id, holdfast.RunPlan, files, func(a *protocol.Assignment) { a.Destroy = kind == holdfast.RunDestroy })
				if len(want) == 0 {
					l.want(planned, "plan-"+id, holdfast.RunNoChanges, "")
					return
				}
				l.want(planned, "plan-"+id, holdfast.RunPlanned, "")
				var got []string
				for _, change := range l.plan("plan-" + id).Changes {
					reason := ""
					if change.Action == holdfast.ActionForget && change.Reason == holdfast.GoneOutside {
						reason = " " + change.Reason
					}
					got = append(got, change.Address+" "+string(change.Action)+reason)
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("step %d shows %q, want %q", serial, got, want)
				}
				applied, _ := l.run("apply-"+id, kind, files, func(a *protocol.Assignment) { a.Reviews = review("plan-"+id, planned) })
				l.want(applied, "apply-"+id, holdfast.RunApplied, "")
			}
			step(holdfast.RunApply, cloudRoot, "cloud_cluster.main create", "cloud_network.net create", "cloud_node_pool.pool create")
			l.remove("cloud_node_pool.pool.json")
			if l.ours { // a foreign backend takes part in the comparison: one step of each kind shows that
				step(holdfast.RunApply, cloudRoot, "cloud_node_pool.pool create")
				l.remove("cloud_node_pool.pool.json")
			}
			pool := strings.Index(cloudRoot, `resource "cloud_node_pool"`)
			rest := cloudRoot[:pool] + cloudRoot[strings.Index(cloudRoot, "output "):]
			step(holdfast.RunApply, rest, "cloud_node_pool.pool forget gone_outside")
			step(holdfast.RunApply, rest)
			odd := `"a \"b\" $${x} %%{y} \\ ü ] . / \u200b\n"`
			keyed := strings.Replace(rest, `{ name = "net" }`, "{\n  for_each = toset(["+odd+"])\n  name     = \"net\"\n}", 1)
			keyed = strings.ReplaceAll(keyed, "cloud_network.net.id", "cloud_network.net["+odd+"].id")
			moved := "moved {\n  from = cloud_network.net\n  to   = cloud_network.net[" + odd + "]\n}\n"
			imported := "import {\n  to = terraform_data.i\n  id = \"imported\"\n}\nresource \"terraform_data\" \"i\" {}\n"
			step(holdfast.RunApply, keyed+moved+imported, "cloud_network.net["+odd+"] move", "terraform_data.i import")
			step(holdfast.RunApply, keyed+"removed {\n  from = terraform_data.i\n  lifecycle {\n    destroy = false\n  }\n}\n", "terraform_data.i forget")
			l.edit("cloud_cluster.main", func(object map[string]any) { object["region"] = "elsewhere" })
			if l.ours {
				planned, _ := l.run("drifted", holdfast.RunPlan, map[string]string{"main.tf": backend + keyed}, nil)
				l.want(planned, "drifted", holdfast.RunPlanned, "")
			}
			l.remove("cloud_cluster.main.json")
			step(holdfast.RunDestroy, keyed, "cloud_cluster.main forget gone_outside", "cloud_network.net["+odd+"] delete")
		})
	}
}
