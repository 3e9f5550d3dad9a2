package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// A pull request that removes a cluster shows what would be destroyed, and its
// merge destroys that.
func TestRemovedClusterIsDestroyed(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	fleet.bring(join(w.keeper("alpha", "a=one b=two"), w.keeper("beta", "c=three")))

	pr := fleet.open(join(gone("alpha"), files{"infra/alpha": deleted}))
	pr.untilPlanned("1 to be destroyed", "2 to destroy")
	pr.untilComment("**destroys alpha**: 2 resources", `local_file.node["a"]`, `local_file.node["b"]`, "merge to destroy")
	if got := w.things("alpha"); got != "a=one b=two" {
		t.Errorf("a plan has left %q", got)
	}
	pr.merge()
	pr.untilApplied("2 destroyed")
	pr.untilComment("is destroyed")
	rec := w.untilPhase("alpha", holdfast.PhaseDeleted)
	if rec.Deletion == nil || rec.Deletion.Reason != "Destroyed" || rec.Deletion.Run != w.newest("alpha", holdfast.RunDestroy).ID {
		t.Errorf("alpha has ended so: %+v", rec.Deletion)
	}
	if got := w.things("alpha") + w.things("beta"); got != "c=three" {
		t.Errorf("it has left %q", got)
	}
	w.do("get resources --cluster alpha", "no resources")
	w.do("describe cluster alpha", "Deleted", "Destroyed", "Deleting → Deleted")
	if out := w.do("get clusters", "beta"); strings.Contains(out, "alpha") {
		t.Errorf("what is gone is listed:\n%s", out)
	}
	w.do("get clusters --all", "alpha", "Deleted")

	// The name can live again, with nothing of the old one.
	fleet.bring(w.keeper("alpha", "a=again"))
	w.untilPhase("alpha", holdfast.PhaseActive)
	if got := w.things("alpha"); got != "a=again" {
		t.Errorf("alpha keeps %q", got)
	}
}

// What was applied as protected is not destroyed, whatever a later document says,
// until one that does not protect it is applied.
func TestProtectedClusterStays(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	fleet.bring(join(w.keeper("alpha", "a=one", "deletion: {protected: true}"), w.keeper("beta", "b=two")))

	pr := fleet.open(gone("alpha"))
	fleet.untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure, "Protected", "alpha")
	pr.untilComment("**Protected** `alpha`", "deletion.protected: false")
	pr.merge()
	w.untilWaiting("alpha", "Protected")
	fleet.untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusFailure, "Protected")
	w.do("describe cluster alpha", "Deleting", "Protected")
	if out, stderr, code := w.cli("apply", "alpha"); code == 0 || !strings.Contains(out+stderr, "protected") {
		t.Errorf("apply: code %d: %s%s", code, out, stderr)
	}
	w.untilIdle()
	if got := w.things("alpha"); got != "a=one" {
		t.Fatalf("alpha keeps %q", got)
	}

	fleet.bring(keeps("alpha", "a=one", "deletion: {protected: true}"))
	w.untilPhase("alpha", holdfast.PhaseActive)
	free := fleet.open(keeps("alpha", "a=one", "deletion: {protected: false}"))
	fleet.untilStatus(free.head, holdfast.ContextPlan, holdfast.StatusSuccess)
	free.merge()
	w.until("alpha is not protected any more", func() (bool, string) {
		rec := w.record("alpha")
		return !rec.Applied.Document.Deletion.Protected && rec.Waiting == "", string(rec.Waiting)
	})
	again := fleet.open(gone("alpha"))
	again.untilPlanned("1 to destroy")
	again.merge()
	again.untilApplied("1 destroyed")
	w.untilPhase("alpha", holdfast.PhaseDeleted)
}

// A document that is taken off the branch without a pull request takes nothing
// with it, until a person has seen the plan.
func TestRemovalByDirectPushWaits(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	fleet.bring(join(w.keeper("alpha", "a=one"), w.keeper("beta", "b=two")))
	sha := fleet.push(gone("alpha"))
	w.untilWaiting("alpha", "Unreviewed")
	fleet.untilStatus(sha, holdfast.ContextApply, holdfast.StatusPending, "Unreviewed", "alpha")
	w.do("describe cluster alpha", "Deleting", "the document was removed", "Unreviewed")
	if got := w.things("alpha"); got != "a=one" {
		t.Fatalf("alpha keeps %q", got)
	}
	w.do("apply alpha")
	w.untilPhase("alpha", holdfast.PhaseDeleted)
	fleet.untilStatus(sha, holdfast.ContextApply, holdfast.StatusSuccess, "1 destroyed")
	if got := w.things("alpha"); got != "" {
		t.Errorf("it has left %q", got)
	}
}

// So many at once may be a mistake: a person confirms them.
func TestManyRemovalsWaitForAPerson(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	var all []files
	var names []string
	for i := range 7 {
		names = append(names, fmt.Sprintf("c%d", i))
		all = append(all, cluster(names[i], "nodes: 1"))
	}
	fleet.bring(join(all...))
	applies := w.countCalls("apply")

	pr := fleet.open(gone(names[:6]...))
	pr.untilPlanned("6 to be destroyed")
	pr.untilComment("MassDeletion")
	pr.merge()
	for _, name := range names[:6] {
		w.untilWaiting(name, "MassDeletion")
	}
	pr.untilComment("**MassDeletion**", "/holdfast apply")
	w.untilIdle()
	if n := w.countCalls("apply"); n != applies {
		t.Fatalf("the engine has applied %d times more, want never", n-applies)
	}
	command := pr.say(dev, "/holdfast apply")
	pr.untilReacted(command, holdfast.ReactionDone)
	pr.untilApplied("6 destroyed")
	for _, name := range names[:6] {
		w.untilPhase(name, holdfast.PhaseDeleted)
	}
	if rec := w.record("c6"); rec.Phase != holdfast.PhaseActive {
		t.Errorf("c6 is %s", rec.Phase)
	}
}

// A destroy needs nothing but what was last applied: the template's repository,
// the folder with the code and another engine's version play no part.
func TestDestroyOfWhatWasLastApplied(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	blueprints := w.addRepo("acme/blueprints", settings{"templates": map[string]string{"box": "box"}})
	blueprints.git.Tag("box/v1.0.0", blueprints.commit(templateFiles("box", "one")))
	w.start()
	fleet := w.fleet()
	fleet.bring(join(w.keeper("alpha", "a=one"), boxed("beta", "{name: box, version: 1.0.0}", "2"), cluster("gamma", "nodes: 1")))
	engine, version := w.record("beta").Applied.EngineName, w.record("beta").Applied.EngineVersion

	// A newer engine is installed, and the template is gone with its branch.
	w.stop()
	w.write("newer/"+engine, "#!/bin/sh\necho '{\"terraform_version\": \"1.99.0\"}'\ntest \"$1\" = version\n", 0o755)
	w.set(settings{"engines.dirs": []string{w.path("newer"), w.path("engine")}})
	blueprints.git.DeleteBranch("main")
	blueprints.git.DeleteRef("refs/tags/box/v1.0.0")
	w.start()

	pr := fleet.open(join(gone("alpha", "beta"), files{"infra/alpha": deleted}))
	pr.untilPlanned("2 to be destroyed", "3 to destroy")
	pr.merge()
	w.untilWaiting("beta", "MassDeletion") // two of three
	pr.untilComment("**MassDeletion**")
	pr.say(dev, "/holdfast apply")
	pr.untilApplied("3 destroyed")
	for _, name := range []string{"alpha", "beta"} {
		w.untilPhase(name, holdfast.PhaseDeleted)
		if run := w.newest(name, holdfast.RunDestroy); run.EngineVersion != version {
			t.Errorf("%s was destroyed with version %q of the engine, want %q", name, run.EngineVersion, version)
		}
	}
	if got := w.things("alpha"); got != "" {
		t.Errorf("it has left %q", got)
	}
}

// What cannot be read, and a branch that is empty now, prove nothing.
func TestNothingIsDestroyedWithoutProof(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	both := join(w.keeper("alpha", "a=one"), w.keeper("beta", "b=two"))
	fleet.bring(both)

	broken := files{"clusters/alpha.yaml": "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: [name: alpha\n"}
	pr := fleet.open(broken)
	fleet.untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure, "clusters/alpha.yaml")
	fleet.push(broken)
	w.untilWaiting("alpha", "Missing")
	w.do("describe cluster alpha", "Missing", "it may be in a file that cannot be read")
	if out, stderr, code := w.cli("apply", "alpha"); code == 0 {
		t.Errorf("apply: %s%s", out, stderr)
	}
	fleet.push(both)
	w.untilWaiting("alpha", "")

	nothing := fleet.open(gone("alpha", "beta"))
	fleet.untilStatus(nothing.head, holdfast.ContextPlan, holdfast.StatusFailure, "Missing")
	nothing.untilComment("would no longer define any of 2 clusters", "keep one")
	nothing.close()
	fleet.push(gone("alpha", "beta"))
	for _, name := range []string{"alpha", "beta"} {
		w.untilWaiting(name, "Missing")
		w.do("describe cluster "+name, "no longer defines any of 2 clusters")
	}
	fleet.push(both)
	for _, name := range []string{"alpha", "beta"} {
		w.untilWaiting(name, "")
		w.untilPhase(name, holdfast.PhaseActive)
	}

	// One wrong letter in a file of both, merged past the red status.
	alpha, beta := both["clusters/alpha.yaml"], both["clusters/beta.yaml"]
	fleet.push(join(gone("beta"), files{"clusters/alpha.yaml": alpha + "---\n" + beta}))
	w.untilIdle()
	letter := fleet.open(files{"clusters/alpha.yaml": strings.Replace(alpha, "kind:", "kinnd:", 1) + "---\n" + beta})
	fleet.untilStatus(letter.head, holdfast.ContextPlan, holdfast.StatusFailure, "clusters/alpha.yaml:2:1")
	letter.untilComment("clusters/alpha.yaml:2:1", "kinnd", "did you mean")
	letter.merge()
	w.untilWaiting("alpha", "Invalid")
	w.untilWaiting("beta", "")
	w.untilIdle()
	if run := w.newest("alpha", holdfast.RunDestroy); run.ID != "" {
		t.Errorf("run %s destroys", run.ID)
	}
	if got := w.things("alpha") + w.things("beta"); got != "a=oneb=two" {
		t.Errorf("what is left is %q", got)
	}
}

// stubborn is a module whose destruction fails in its middle, until a file is
// there.
func (w *world) stubborn(name, letsGo string) files {
	w.t.Helper()
	return w.fileModule(name, `
resource "terraform_data" "stubborn" {
  input = "`+letsGo+`"

  provisioner "local-exec" {
    when    = destroy
    command = "test -e ${self.input} || { echo it does not let go >&2; exit 3; }"
  }
}

resource "local_file" "last" {
  filename   = "`+w.thing(name, "last")+`"
  content    = "last"
  depends_on = [terraform_data.stubborn]
}
`)
}

// A destroy that fails is tried three times more. Then a person is told what is
// left, and decides.
func TestDestroyFails(t *testing.T) {
	t.Parallel()
	w := newFleet(t, settings{"runs.retryDelay": "50ms"})
	w.start()
	fleet := w.fleet()
	fleet.bring(join(keeps("alpha", "a=one"), w.stubborn("alpha", w.path("let-go")), cluster("beta", "nodes: 1")))
	pr := fleet.open(gone("alpha"))
	pr.untilPlanned("3 to destroy")
	pr.merge()
	w.untilWaiting("alpha", "DestroyFailed")
	fleet.untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusFailure, "DestroyFailed", "alpha")
	pr.untilComment("**DestroyFailed** `alpha`", "Left in the state: `terraform_data.stubborn`", "it does not let go", "/holdfast apply -c alpha")
	w.do("describe cluster alpha", "Deleting", "DestroyFailed", "left in the state: terraform_data.stubborn")
	tries := 0
	for _, run := range w.runs("alpha") {
		if run.Kind == holdfast.RunDestroy {
			tries++
		}
	}
	if tries != 4 {
		t.Errorf("there were %d destroys, want one and three more", tries)
	}
	w.do("get resources --cluster alpha", "terraform_data.stubborn")
	if got := w.things("alpha"); got != "" {
		t.Errorf("it has left %q", got)
	}

	w.write("let-go", "", 0o644)
	w.untilShown("alpha")
	pr.say(dev, "/holdfast apply")
	pr.untilApplied("destroyed")
	w.untilPhase("alpha", holdfast.PhaseDeleted)
}

// A new name continues with state and history of the old one: what there is stays
// untouched.
func TestRenamedClusterKeepsItsState(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	fleet.bring(w.keeper("alpha", "a=one"))
	before, err := os.Stat(w.thing("alpha", "a"))
	if err != nil {
		t.Fatal(err)
	}
	text := keeps("alpha", "a=one")["clusters/alpha.yaml"]
	pr := fleet.open(join(gone("alpha"), files{
		"clusters/gamma.yaml": strings.Replace(text, "name: alpha\n", "name: gamma\n  renamedFrom: alpha\n", 1),
	}))
	fleet.untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusSuccess, "no changes")
	pr.untilComment("renamed from `alpha`: state and history continue")
	pr.merge()
	w.untilPhase("gamma", holdfast.PhaseActive)
	w.untilPhase("alpha", holdfast.PhaseDeleted)
	fleet.untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusSuccess)
	w.untilWaiting("gamma", "")
	w.do("describe cluster gamma", "Renamed from:  alpha", "alpha → gamma")
	w.do("describe cluster alpha", "it is gamma now")
	w.do("get resources --cluster gamma", `local_file.node["a"]`)
	after, err := os.Stat(w.thing("alpha", "a"))
	if err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the file was written again at %v (%v), it is of %v", after.ModTime(), err, before.ModTime())
	}

	// It lives on, and can go.
	last := fleet.open(join(gone("gamma"), cluster("beta", "nodes: 1")))
	last.untilPlanned("1 to be destroyed")
	last.merge()
	last.untilApplied("1 destroyed")
	if got := w.things("alpha"); got != "" {
		t.Errorf("it has left %q", got)
	}
}

// A cluster goes to another repository by a word, and not otherwise; nothing of
// it is destroyed when the first one lets it go.
func TestClusterGoesToAnotherRepository(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	other := w.addRepo("acme/other", nil)
	w.start()
	fleet := w.fleet()
	fleet.bring(join(w.keeper("alpha", "a=one"), cluster("beta", "nodes: 1")))

	if _, stderr, code := w.cli("transfer", "alpha", "--to", "acme/other"); code == 0 || !strings.Contains(stderr, "merge its document there first") {
		t.Errorf("transfer: code %d: %s", code, stderr)
	}
	pr := other.open(w.keeper("alpha", "a=one"))
	other.untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure, "belongs to repository")
	pr.merge()
	w.until("the other repository was looked at", func() (bool, string) {
		out, stderr, code := w.cli("transfer", "alpha", "--to", "acme/other")
		return code == 0, out + stderr
	})
	fleet.push(join(gone("alpha"), files{"infra/alpha": deleted}))
	w.until("alpha is as the other repository says", func() (bool, string) {
		rec := w.record("alpha")
		return rec.Owner == "acme/other" && rec.Waiting == "" && rec.Phase == holdfast.PhaseActive &&
			rec.Desired.Revision == holdfast.Revision(other.git.Rev("main")), fmt.Sprintf("%+v", rec.Desired)
	})
	w.untilIdle()
	w.do("describe cluster alpha", "acme/other", "cluster.transfer")
	more := other.open(keeps("alpha", "a=one b=two"))
	more.untilPlanned("1 to create")
	more.merge()
	more.untilApplied("1 created")
	if got := w.things("alpha"); got != "a=one b=two" {
		t.Errorf("alpha keeps %q", got)
	}
	if run := w.newest("alpha", holdfast.RunDestroy); run.ID != "" {
		t.Errorf("run %s destroys", run.ID)
	}
}

// lingering is a cluster whose destruction runs a script before it lets go of
// its file.
func (w *world) lingering(name, script string) files {
	w.t.Helper()
	return join(document(name, fmt.Sprintf("variables: {files: {a: one}, script: %q}", script)), w.fileModule(name, `
variable "script" {
  type = string
}

resource "terraform_data" "work" {
  input      = var.script
  depends_on = [local_file.node]

  provisioner "local-exec" {
    when    = destroy
    command = self.input
  }
}
`))
}

// The server is killed during a destroy: that continues, and is reported once.
func TestServerIsKilledDuringDestroy(t *testing.T) {
	t.Parallel()
	w := newFleet(t, quick)
	w.start()
	fleet := w.fleet()
	fleet.bring(join(w.lingering("alpha", w.gated("work")), cluster("beta", "nodes: 1")))
	pr := fleet.open(gone("alpha"))
	pr.untilPlanned("2 to destroy")
	pr.merge()
	w.untilSaid("work", "start")

	w.crash()
	w.openGate("work")
	w.untilSaid("work", "start stop")
	w.start()
	pr.untilApplied("2 destroyed")
	w.untilPhase("alpha", holdfast.PhaseDeleted)
	pr.untilComment("is destroyed")
	if got := w.things("alpha"); got != "" {
		t.Errorf("it has left %q", got)
	}
	w.untilSaid("work", "start stop")
	if run := w.newest("alpha", holdfast.RunDestroy); run.Attempt != 1 {
		t.Errorf("the destroy took %d attempts, want one", run.Attempt)
	}
}

// The agent is killed during a destroy: what is left is destroyed by the next.
func TestAgentIsKilledDuringDestroy(t *testing.T) {
	t.Parallel()
	w := newFleet(t, quick)
	w.start()
	fleet := w.fleet()
	fleet.bring(join(w.lingering("alpha", w.gated("work")), cluster("beta", "nodes: 1")))
	pr := fleet.open(gone("alpha"))
	pr.untilPlanned("2 to destroy")
	pr.merge()
	w.untilSaid("work", "start")

	w.killAgent(holdfast.RunDestroy)
	w.untilSaid("work", "start start")
	if rec := w.record("alpha"); rec.Phase != holdfast.PhaseDeleting {
		t.Errorf("alpha is %s", rec.Phase)
	}
	w.openGate("work")
	w.untilPhase("alpha", holdfast.PhaseDeleted)
	pr.untilApplied("destroyed")
	if got := w.things("alpha"); got != "" {
		t.Errorf("it has left %q", got)
	}
}
