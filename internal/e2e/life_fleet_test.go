package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// phases are those that a cluster has been in, oldest first, as its history
// tells.
func (w *world) phases(cluster string) []string {
	w.t.Helper()
	var list struct{ Items []v1.Transition }
	w.getJSON("clusters/"+cluster+"/history", nil, &list)
	var out []string
	for _, change := range list.Items {
		if change.What == "phase" {
			out = append(out, change.To)
		}
	}
	slices.Reverse(out)
	return out
}

// Whoever looks at a cluster sees where it is in its life, and how it came there.
func TestLifeOfACluster(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	fragile := w.fileModule("alpha", `
resource "terraform_data" "fragile" {
  input = var.files["a"]

  provisioner "local-exec" {
    command = "test ${self.input} != bad || test -e `+w.path("mended")+`"
  }

  lifecycle {
    replace_triggered_by = [local_file.node["a"]]
  }
}
`)
	shows := func(phase holdfast.Phase, says ...string) {
		t.Helper()
		w.untilPhase("alpha", phase)
		w.do("describe cluster alpha", append(says, string(phase)+" since")...)
		w.do("get clusters --all", string(phase))
	}

	sha := fleet.push(join(keeps("alpha", "a=one"), fragile, cluster("beta", "nodes: 1")))
	w.untilWaiting("alpha", "Unreviewed")
	shows(holdfast.PhasePending, "ApplyUpToDate  False    Unreviewed", "Blocked        True     Unreviewed", "Healthy        Unknown")
	w.hold("apply", "alpha")
	w.do("apply alpha")
	w.untilHeld("apply", "alpha")
	shows(holdfast.PhaseProvisioning, "InProgress")
	w.release("apply", "alpha")
	shows(holdfast.PhaseActive, "CommitPlanned  True", "PlanUpToDate   True", "ApplyUpToDate  True     Applied", "Blocked        False",
		holdfast.Revision(sha).Short())

	update := fleet.open(keeps("alpha", "a=two"))
	update.untilPlanned()
	w.hold("apply", "alpha")
	update.merge()
	w.untilHeld("apply", "alpha")
	shows(holdfast.PhaseUpdating)
	w.release("apply", "alpha")
	shows(holdfast.PhaseActive)

	bad := fleet.open(keeps("alpha", "a=bad"))
	bad.untilPlanned()
	bad.merge()
	w.untilWaiting("alpha", "ApplyFailed")
	shows(holdfast.PhaseFailed, "ApplyUpToDate  False    ApplyFailed", "Blocked        True     ApplyFailed")
	w.do("describe run "+w.newest("alpha", holdfast.RunApply).ID, "terraform_data.fragile", "local-exec")
	if _, stderr, code := w.cli("drift", "check", "alpha", "--wait"); code == 0 || !strings.Contains(stderr, "failed partway") {
		t.Errorf("what failed in the middle is checked for drift: code %d: %s", code, stderr)
	}
	w.write("mended", "", 0o644)
	w.untilIdle()
	w.do("apply alpha")
	shows(holdfast.PhaseActive, "Blocked        False")

	end := fleet.open(gone("alpha"))
	end.untilPlanned("1 to be destroyed")
	w.hold("apply", "alpha")
	end.merge()
	w.untilHeld("apply", "alpha")
	shows(holdfast.PhaseDeleting, "the document was removed")
	w.release("apply", "alpha")
	shows(holdfast.PhaseDeleted, "Destroyed")

	want := []string{"Pending", "Provisioning", "Active", "Updating", "Active", "Updating", "Failed", "Updating", "Active", "Deleting", "Deleted"}
	if diff := cmp.Diff(want, w.phases("alpha")); diff != "" {
		t.Errorf("its phases (-want +got):\n%s", diff)
	}
	w.do("describe cluster alpha --history", "Pending → Provisioning", "Updating → Failed", "Deleting → Deleted", w.newest("alpha", holdfast.RunDestroy).ID)
}

// A project is suspended, or everything: what would change something waits and says so,
// what only looks continues, and what was held follows automatically.
func TestSuspensionsOfMany(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	elsewhere := func(f files) files {
		out := join(f)
		for name, text := range out {
			out[name] = strings.Replace(text, "project: shop", "project: lab", 1)
		}
		return out
	}
	fleet.bring(join(w.keeper("alpha", "a=one"), elsewhere(w.keeper("beta", "b=one"))))

	w.do("suspend --project shop --reason inventory")
	w.do("get suspensions", "project shop", "inventory")
	both := fleet.open(join(keeps("alpha", "a=one c=two"), elsewhere(keeps("beta", "b=one c=two"))))
	both.untilPlanned("2 clusters: 2 to create")
	both.merge()
	w.untilWaiting("alpha", "Suspended")
	w.until("the other project continues", func() (bool, string) {
		things := w.things("beta")
		return things == "b=one c=two", things
	})
	fleet.untilStatus(both.merged, holdfast.ContextApply, holdfast.StatusPending, "Suspended")
	both.untilComment("Suspended")
	w.do("describe cluster alpha", "Suspended", "inventory")
	if _, stderr, code := w.cli("drift", "check", "alpha", "--wait"); code == 0 || !strings.Contains(stderr, "suspended") {
		t.Errorf("a suspended project is checked for drift: code %d: %s", code, stderr)
	}
	w.do("resume --project shop")
	both.untilApplied("2 created")

	w.do("suspend --all")
	w.do("get suspensions", "all clusters")
	going := fleet.open(gone("alpha"))
	going.untilPlanned("1 to be destroyed")
	going.merge()
	w.untilWaiting("alpha", "Suspended")
	w.untilIdle()
	if got := w.things("alpha"); got != "a=one c=two" {
		t.Errorf("alpha keeps %q", got)
	}
	w.do("resume --all")
	going.untilApplied("2 destroyed")
	w.do("get suspensions", "nothing is suspended")
}

// The inventory says what there is, and which apply last changed it, as soon as a
// status tells of that.
func TestInventory(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	fleet.bring(join(w.keeper("alpha", "a=one b=two"), cluster("beta", "nodes: 2")))
	first := w.record("alpha").Applied.Run
	w.do("get resources --cluster alpha", `local_file.node["a"]`, `local_file.node["b"]`, "local_file", first)
	if out := w.do("get resources --type terraform_data", "beta", "terraform_data.node[0]", "terraform_data.node[1]"); strings.Contains(out, "alpha") {
		t.Errorf("other types are listed:\n%s", out)
	}

	fleet.bring(keeps("alpha", "a=changed c=three"))
	second := w.record("alpha").Applied.Run
	if out := w.do("get resources --cluster alpha"); !strings.Contains(line(out, `local_file.node["a"]`), second) ||
		!strings.Contains(line(out, `local_file.node["c"]`), second) || strings.Contains(out, `local_file.node["b"]`) {
		t.Errorf("after %s the inventory is\n%s", second, out)
	}
	fleet.bring(keeps("alpha", "a=changed c=three d=four"))
	third := w.record("alpha").Applied.Run
	if out := w.do("get resources --cluster alpha"); !strings.Contains(line(out, `local_file.node["c"]`), second) ||
		!strings.Contains(line(out, `local_file.node["d"]`), third) {
		t.Errorf("after %s, which followed %s, the inventory is\n%s", third, second, out)
	}
	w.do("get resources --address node[1]", "beta")
}

// cloudTemplate is a template for two clouds, of which one throttles.
func cloudTemplate(open string) files {
	return files{
		"templates/box/template.yaml": `apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: box}
spec:
  providers:
    stormy:
      modules:
        - {name: box, source: ./modules/stormy}
    calm:
      modules:
        - {name: box, source: ./modules/calm}
`,
		"templates/box/modules/stormy/main.tf": `resource "terraform_data" "box" {
  provisioner "local-exec" {
    command = "test -e ` + open + ` || { echo 'ThrottlingException: Rate exceeded' >&2; exit 1; }"
  }
}
`,
		"templates/box/modules/calm/main.tf": `resource "terraform_data" "box" {}` + "\n",
	}
}

// A cloud that throttles is given a break: its runs wait and say so, those of another
// cloud continue.
func TestThrottledCloudIsGivenABreak(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.retryDelay": "1h", "runs.break": "1h"}) // none ends while this looks
	w.start()
	fleet := w.fleet()
	boxes := func(provider string, names ...string) files {
		var all []files
		for _, name := range names {
			all = append(all, document(name, "template: {path: ../templates/box}", "provider: "+provider))
		}
		return join(all...)
	}
	fleet.commit(cloudTemplate(w.path("open")))
	storm := fleet.open(boxes("stormy", "s1", "s2", "s3"))
	storm.untilPlanned("3 to create")
	later := fleet.open(join(boxes("stormy", "s4"), boxes("calm", "c1")))
	later.untilPlanned("2 to create")

	storm.merge()
	storm.untilComment("(`Throttled`)")
	w.untilLogged("pausing runs of provider")
	later.merge()
	w.untilWaiting("s4", "ProviderThrottled")
	w.do("describe cluster s4", "ProviderThrottled", "stormy")
	later.untilComment("runs of stormy wait until")
	if status, body := w.get(w.api + "/metrics"); status != 200 || !strings.Contains(body, `provider="stormy"`) {
		t.Errorf("metrics do not tell of the break: %d", status)
	}
	if run := w.runs("s4")[0]; run.Status != holdfast.RunQueued {
		t.Errorf("the apply of s4 is %s", run.Status)
	}
	w.untilPhase("c1", holdfast.PhaseActive)
}
