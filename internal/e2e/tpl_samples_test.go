package e2e_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

// samples are a cluster's runs that were plans of a template's pull request, newest
// first.
func (w *world) samples(cluster string) []v1.Run {
	w.t.Helper()
	var out []v1.Run
	for _, run := range w.runs(cluster) {
		if run.Sample {
			out = append(out, run)
		}
	}
	return out
}

// untilSample waits until a cluster's newest sample is in that state.
func (w *world) untilSample(cluster string, count int, status holdfast.RunStatus) {
	w.t.Helper()
	w.until(fmt.Sprintf("sample %d of %s is %s", count, cluster, status), func() (bool, string) {
		samples := w.samples(cluster)
		if len(samples) == 0 {
			return false, "there is none"
		}
		return len(samples) == count && samples[0].Status == status, fmt.Sprintf("%d, %s %s", len(samples), samples[0].Status, samples[0].Reason)
	})
}

// What shows a template's change are plans like any: they outlive the server, they
// fail visibly, and they end with what they were made for. They are never applied.
func TestSamples(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, nil)
	infra.commit(join(on("alpha", "1.4.2", "node_count: 1"), on("beta", "1.4.2", "node_count: 1")))
	w.start()
	w.untilWaiting("alpha", "Unreviewed")
	w.untilWaiting("beta", "Unreviewed")

	// A plan that fails is the pull request's failure.
	w.fail("plan", "alpha", "Error: the cloud has no such thing")
	change := blueprints.open(oneFive.files())
	blueprints.untilStatus(change.head, holdfast.ContextPlan, holdfast.StatusFailure, "alpha")
	change.untilComment("the cloud has no such thing", "**1: plan failed**", "❔ <b>1</b> not planned")
	w.succeed("plan", "alpha")
	change.say(dev, "/holdfast plan")
	change.untilPlanned("1 cluster would change, 1 not planned")

	// The server is killed while one is made; what was pushed meanwhile is planned
	// instead, and closing the pull request ends it.
	w.hold("plan", "alpha")
	next := oneFive
	next.nodes = "third"
	change.push(next.files())
	w.untilSample("alpha", 3, holdfast.RunRunning)
	w.untilHeld("plan", "alpha")
	w.crash()
	w.start()
	next.nodes = "fourth"
	change.push(next.files())
	w.untilSample("alpha", 4, holdfast.RunRunning)
	if status := w.samples("alpha")[1].Status; status != holdfast.RunCanceled {
		t.Errorf("the plan of what is no longer the head is %s", status)
	}
	change.close()
	w.untilSample("alpha", 4, holdfast.RunCanceled)
	w.release("plan", "alpha")
	change.reopen()
	change.untilPlanned("1 not planned")
	w.untilSample("alpha", 5, holdfast.RunPlanned)

	// They are not a review: whoever asks for an apply there is refused.
	for command, why := range map[string]string{
		"/holdfast apply": "the merge applies nothing", "/holdfast apply -c alpha": "the merge does not change cluster \"alpha\"",
		"/holdfast approve -c alpha": "its plan only shows the effect", "/holdfast plan -c beta": "`/holdfast plan --all` plans all",
	} {
		change.untilReacted(change.say(dev, command), holdfast.ReactionRefused)
		change.untilReply(command, why)
	}
	change.merge()
	blueprints.untilStatus(change.merged, holdfast.ContextApply, holdfast.StatusSuccess)
	w.untilIdle()
	for _, name := range []string{"alpha", "beta"} {
		if kinds := w.kinds(name); kinds[holdfast.RunApply] != 0 || w.record(name).Waiting != "Unreviewed" {
			t.Errorf("%s has the runs %v and waits for %q", name, kinds, w.record(name).Waiting)
		}
	}
	if n := len(w.samples("beta")); n != 0 {
		t.Errorf("beta was tried %d times, and alpha stands for it", n)
	}
}

// A template's pull request from a fork, or a draft, has nothing planned, whoever
// asks for it; the impact is known without a plan.
func TestSamplesAreNotForStrangers(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, nil)
	infra.commit(on("alpha", "1.4.2", "node_count: 1"))
	blueprints.commit(document("lab", "template: {path: ../kubernetes}", "provider: demo", "region: eu-1", "variables: {node_count: 1}"))
	w.start()
	w.untilWaiting("alpha", "Unreviewed")
	w.untilWaiting("lab", "Unreviewed")
	before := len(w.engineCalls())

	fork := blueprints.openAs(githubserver.PullRequest{Author: stranger, Fork: true}, oneFive.files())
	blueprints.untilStatus(fork.head, holdfast.ContextPlan, holdfast.StatusFailure, "fork")
	fork.untilComment("Nothing is planned", "used by 2 clusters", "2 not planned")
	fork.untilReacted(fork.say(dev, "/holdfast plan --all"), holdfast.ReactionRefused)
	fork.untilReply("forks")
	draft := blueprints.openAs(githubserver.PullRequest{Draft: true}, oneFive.files())
	blueprints.untilStatus(draft.head, holdfast.ContextPlan, holdfast.StatusPending, "draft")
	draft.untilReacted(draft.say(dev, "/holdfast plan --all"), holdfast.ReactionRefused)
	other := blueprints.open(files{"README.md": "Words.\n"})
	blueprints.untilStatus(other.head, holdfast.ContextPlan, holdfast.StatusSuccess, "no cluster affected")
	other.untilReacted(other.say(dev, "/holdfast plan --all"), holdfast.ReactionRefused)
	other.untilReply("changes no template")
	w.untilIdle()
	if calls := w.engineCalls()[before:]; len(calls) > 0 {
		t.Errorf("the engine has worked on what nobody may have planned: %q", calls)
	}

	// What is wrong with the template itself is told once, for the folder and for
	// the cluster that is made from it.
	broken := oneFive
	broken.moreRules = []string{"- rule: self.node_cuont > 3", "  message: it is too small"}
	faulty := blueprints.open(broken.files())
	blueprints.untilStatus(faulty.head, holdfast.ContextPlan, holdfast.StatusFailure, "1 error: kubernetes/template.yaml:")
	faulty.untilComment("1 error in the files", "did you mean \"node\\_count\"?")
}

// An upgrade's branch is made again when what it edits is, and not for every commit
// on the branch that it is for.
func TestUpgradeFollowsItsFiles(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, nil)
	w.useApp()
	infra.commit(upgrading("alpha", "1.4.2", "~> 1.4", "node_count: 1"))
	blueprints.commit(oneFive.files())
	blueprints.release("1.5.0")
	w.start()
	up := infra.untilProposed(1, "open", "1.5.0 for alpha")
	up.untilPlanned("1 cluster")
	first := up.head
	hurry := func() {
		t.Helper()
		after := infra.open(files{"README.md": "Words.\n"}) // who looks at it has fetched the branch
		infra.untilStatus(after.head, holdfast.ContextPlan, holdfast.StatusSuccess, "no cluster affected")
		w.do("template upgrade alpha", "acme/infra#"+itoa(up.number))
	}

	infra.push(files{"docs/fleet.md": "Other words.\n"})
	hurry()
	if up = infra.untilProposed(1, "open"); up.head != first {
		t.Errorf("the branch is at %s after a commit that is nothing to it, was at %s", up.head, first)
	}
	path := "clusters/alpha.yaml"
	text := upgrading("alpha", "1.4.2", "~> 1.4", "node_count: 2")[path]
	edited := "# Two of them.\r\n" + strings.ReplaceAll(text, "\n", "\r\n")
	infra.push(files{path: edited})
	hurry()
	w.until("the branch is made again", func() (bool, string) {
		up = infra.untilProposed(1, "open")
		return up.head != first, up.head
	})
	up.expectFile(path, strings.Replace(edited, "1.4.2", "1.5.0", 1))
	if n := infra.git.Git("rev-list", "--count", "main.."+up.head); n != "1" {
		t.Errorf("the branch has %s commits, want one", n)
	}
	up.untilPlanned("4 to create")
}

// Code in a template's pull request prints the secrets of the clusters that it is
// tried with: nobody gets to see them.
func TestSamplesLeakNoSecrets(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, nil)
	const secret = "correct-horse-battery-staple"
	w.write("db-password", secret+"\n", 0o600)
	w.set(settings{"telemetry.logLevel": "debug", "credentials": []any{map[string]any{
		"project": "shop", "secrets": map[string]any{"DB_PASSWORD": map[string]any{"file": "db-password"}},
	}}})
	guarded := oneFourTwo
	guarded.version = "1.6.0"
	guarded.schema = []string{"db_password: {type: string, writeOnly: true}"}
	blueprints.commit(guarded.files())
	blueprints.release("1.6.0")
	infra.commit(on("alpha", "1.6.0", "node_count: 1, db_password: {secret: {env: DB_PASSWORD}}"))
	w.start()
	w.untilWaiting("alpha", "Unreviewed")

	guarded.version = "1.7.0"
	thief := guarded.files()
	thief["kubernetes/template.yaml"] = strings.NewReplacer(
		`inputs: {cidr: "${var.cidr}"}`, `inputs: {cidr: "${var.cidr}", loot: "${var.db_password}"}`,
		"  outputs:\n", "  outputs:\n    loot: {value: \"${module.network.loot}\"}\n",
	).Replace(thief["kubernetes/template.yaml"])
	thief["kubernetes/modules/network/main.tf"] += `
variable "loot" {
  type = string
}

resource "terraform_data" "loot" {
  input = nonsensitive({ plain = var.loot, coded = base64encode(var.loot), name = "it is ${var.loot}" })
}

output "loot" {
  value = "the password is ${nonsensitive(var.loot)}"
}

check "loot" {
  assert {
    condition     = nonsensitive(var.loot) == ""
    error_message = "The password is ${nonsensitive(var.loot)}."
  }
}
`
	pr := blueprints.open(thief)
	pr.untilPlanned("kubernetes")
	pr.untilComment("loot", "The password is (sensitive value)")
	w.untilIdle()
	seen := w.everythingSaid()
	for _, comment := range blueprints.hub.Comments(pr.number) {
		seen[fmt.Sprint("comment ", comment.ID)] = comment.Body
	}
	for _, sha := range blueprints.hub.StatusRevisions() {
		seen["statuses of "+sha] = fmt.Sprintf("%+v", blueprints.hub.Statuses(sha))
	}
	if code := w.stop(); code != 0 {
		t.Errorf("the server ended with code %d", code)
	}
	for name, text := range w.everyFile() {
		seen["file "+name] = text
	}
	for place, text := range seen {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
			if strings.Contains(text, form) {
				t.Errorf("%s has the secret, as %s", place, form)
			}
		}
	}
}
