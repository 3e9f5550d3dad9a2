package e2e_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// A version whose tag was moved is refused for whom it was, and for whom it would
// be: clusters keep what they have, nobody is upgraded to it, and everybody is told.
func TestMovedTagIsRefused(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, nil)
	blueprints.commit(oneFive.files())
	first := blueprints.release("1.5.0")
	infra.commit(upgrading("behind", "1.4.2", "~> 1.4", "node_count: 1"))
	w.start()
	w.untilWaiting("behind", "Unreviewed")
	up := infra.untilProposed(1, "open", "Upgrade kubernetes to 1.5.0 for behind")
	up.untilPlanned("1 cluster")
	ahead := infra.bring(on("ahead", "1.5.0", "node_count: 1"))
	ahead.untilComment("kubernetes 1.5.0")

	other := oneFive
	other.nodes = "something else under the same name"
	second := blueprints.push(other.files())
	blueprints.moves("1.5.0", second)
	w.untilWaiting("ahead", "Invalid")
	w.do("describe cluster ahead", "kubernetes/v1.5.0", "moved")
	late := infra.open(on("late", "1.5.0", "node_count: 1"))
	infra.untilStatus(late.head, holdfast.ContextPlan, holdfast.StatusFailure, "clusters/late.yaml:8")
	late.untilComment("clusters/late.yaml:8", "kubernetes/v1.5.0", "moved", holdfast.Revision(first).Short())
	w.do("get templates kubernetes", "refused: its tag was moved to "+holdfast.Revision(second).Short())
	infra.untilProposed(1, "closed")
	applied := w.record("ahead").Applied
	if n := w.kinds("ahead")[holdfast.RunApply]; n != 1 || !strings.Contains(applied.Template, holdfast.Revision(first).Short()) {
		t.Errorf("ahead was applied %d times, last with %s", n, applied.Template)
	}

	// It is back where it was.
	blueprints.moves("1.5.0", first)
	w.untilWaiting("ahead", "")
	late.untilPlanned("3 to create")
	w.do("template upgrade behind") // who is in a hurry
	infra.untilProposed(2, "open", "Upgrade kubernetes to 1.5.0 for behind")
}

// A repository of templates that cannot be read, seen by a server that has just
// been started: what is recorded of its tags is used. What is not is an error that
// names the repository, until it is back.
func TestTemplateRepositoryIsAway(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, nil)
	infra.config["poll"], blueprints.config["poll"] = "2s", "2s"
	w.start()
	infra.bring(on("alpha", "1.4.2", "node_count: 1"))
	blueprints.commit(oneFive.files())
	blueprints.release("1.5.0")

	away := blueprints.git.Path + ".away"
	if err := os.Rename(blueprints.git.Path, away); err != nil {
		t.Fatal(err)
	}
	w.stop()
	w.launch()
	w.until("the server is ready", func() (bool, string) {
		code, body := w.get(w.api + "/readyz")
		return code == http.StatusOK, body
	})
	recorded := infra.open(on("alpha", "1.4.2", "node_count: 2"))
	recorded.untilPlanned("1 cluster")
	other := infra.open(on("beta", "1.5.0", "node_count: 1"))
	infra.untilStatus(other.head, holdfast.ContextPlan, holdfast.StatusFailure, "clusters/beta.yaml:8")
	other.untilComment("clusters/beta.yaml:8", "template repository acme/templates cannot be read")

	if err := os.Rename(away, blueprints.git.Path); err != nil {
		t.Fatal(err)
	}
	other.untilPlanned("1 cluster")
	recorded.merge()
	recorded.untilApplied("1 cluster")
}

// All that is wrong in documents is told at once, each at its place, with what is
// allowed and what was meant; no engine is started for it, and a secret that
// somebody has written there is told nowhere.
func TestFaultsOfVariablesArePointedAt(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, nil)
	secret := blueprint{
		version: "1.6.0", nodes: "first", replaces: "v1", watch: "graphs",
		schema: []string{"db_password: {type: string, writeOnly: true, default: {secret: {env: DB_PASSWORD}}}"},
	}
	blueprints.commit(secret.files())
	blueprints.release("1.6.0")
	w.start()
	const literal = "correct-horse-battery-staple"
	text := `apiVersion: holdfast.dev/v1
kind: Cluster
metadata:
  name: alpha
spec:
  project: shop
  environment: production
  template: {name: kubernetes, version: 1.6.0}
  provider: demo
  region: eu-3
  variables:
    node_count: 12
    hihg_availability: true
    tier: huge
    db_password: ` + literal + `
`
	pr := infra.open(files{"clusters/alpha.yaml": text})
	infra.untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure, "5 errors", "clusters/alpha.yaml:10:11")
	pr.untilComment(
		"clusters/alpha.yaml:10:11", "did you mean \"eu-1\"? one of eu-1, eu-2, us-1",
		"clusters/alpha.yaml:12:17", "at most 9",
		"clusters/alpha.yaml:13:5", "hihg\\_availability", "high\\_availability",
		"clusters/alpha.yaml:14:11", "one of large, medium, small",
		"clusters/alpha.yaml:15:18", "db\\_password is secret", "{secret: {env: DB\\_PASSWORD}}",
	)

	// With values that the schema takes, the rules have their say.
	text = strings.NewReplacer("eu-3", "eu-2", "12", "2", "hihg", "high", "huge", "large", literal, "{secret: {env: DB_PASSWORD}}").Replace(text)
	pr.push(files{"clusters/alpha.yaml": text})
	infra.untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure, "clusters/alpha.yaml:12:17")
	pr.untilComment("clusters/alpha.yaml:12:17", "node\\_count must be at least 3 when high\\_availability is true")
	if calls := w.engineCalls(); len(calls) > 0 {
		t.Errorf("the engine was started for documents that are wrong: %q", calls)
	}
	w.untilIdle()
	seen := w.everythingSaid()
	w.stop()
	for name, content := range w.everyFile() {
		if !strings.Contains(name, "/git/") && !strings.Contains(name, "/mirrors/") {
			seen[name] = content
		}
	}
	for place, said := range seen {
		if strings.Contains(said, literal) {
			t.Errorf("%s has the secret that was written in the document", place)
		}
	}
}

// A feature that is switched off takes its own resources away and nothing else;
// what is in its module then is nobody's business.
func TestFeaturesAreSwitched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	fleet := w.fleet()
	path := "{path: ../kubernetes}"
	alpha := func(variables string) files {
		return document("alpha", "template: "+path, "provider: demo", "region: eu-1", "variables: {"+variables+"}")
	}
	fleet.commit(oneFourTwo.files())
	w.start()
	fleet.bring(alpha("node_count: 2, enable_monitoring: true"))
	w.do("describe cluster alpha", "https://net-10.0.0.0-16.example.test:6443", "Nodes", "2")

	off := fleet.open(alpha("node_count: 2"))
	off.untilPlanned("1 to destroy")
	off.untilComment("`module.monitoring.terraform_data.monitoring`")
	off.merge()
	off.untilApplied("1 destroyed")
	if plan := w.newest("alpha", holdfast.RunApply).Counts; plan.Create+plan.Update+plan.Replace > 0 || plan.Delete != 1 {
		t.Errorf("the apply of alpha was %+v, want one resource destroyed", plan)
	}
	calls := len(w.engineCalls())
	nobody := oneFourTwo
	nobody.watch = "other graphs"
	unseen := fleet.open(nobody.files())
	fleet.untilStatus(unseen.head, holdfast.ContextPlan, holdfast.StatusSuccess, "no cluster affected")
	if more := w.engineCalls()[calls:]; len(more) > 0 {
		t.Errorf("the engine was started for a module that is off: %q", more)
	}
	more := fleet.bring(alpha("node_count: 3"))
	more.untilComment("1 created")
	w.do("describe cluster alpha", "Nodes", "3")
}
