package e2e_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// fewNodes denies plans with more than so many nodes, and warns of secrets by their values.
func fewNodes(most string) files {
	return files{"rules/nodes.rego": `# METADATA
# title: Few nodes
# custom:
#   id: few-nodes
package nodes

deny contains {"msg": msg, "address": rc.address} if {
	some rc in input.holdfast.by_type.terraform_data
	rc.change.after.input >= ` + most + `
	msg := sprintf("one node too many for %s of %s", [input.holdfast.cluster.name, input.holdfast.pull_request.author])
}

info contains sprintf("it changes %s", [concat(" and ", input.holdfast.pull_request.files)]) if true
`, "rules/nodes_test.rego": "package nodes_test\n"}
}

// A plan that a policy denies is not applied, whoever asks for it. One that it lets pass is.
func TestPolicies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.max": 4})
	policies := w.addRepo("acme/policies", nil)
	policies.commit(fewNodes("2"))
	w.set(settings{"policies.sets": []any{map[string]any{"name": "platform", "repository": "acme/policies", "path": "rules"}}})
	w.start()

	pr := w.fleet().open(cluster("alpha", "nodes: 3"))
	pr.untilPlanned("policy denies")
	pr.untilComment("| ❌ | **policy** | denied by few-nodes",
		"| ❌ deny | `few-nodes` | `terraform_data.node[2]` | one node too many for alpha of dev |",
		"| ℹ️ info | `few-nodes/info` |  | it changes clusters/alpha.yaml and infra/alpha/main.tf |")
	pr.merge()
	w.untilWaiting("alpha", holdfast.ReasonPolicyDenied)
	said := pr.say(lead, "/holdfast apply")
	pr.untilReacted(said, holdfast.ReactionRefused)
	if n := w.countCalls("apply alpha"); n != 0 {
		t.Fatalf("the engine has applied %d times, want never", n)
	}

	better := w.fleet().open(cluster("alpha", "nodes: 2"))
	better.untilPlanned("2 to create")
	better.untilComment("| ✅ | **policy** | 2 policies deny nothing |")
	better.merge()
	better.untilApplied("2 created")
	var found bool
	for _, run := range w.runs("alpha") {
		found = found || run.Kind == holdfast.RunApply && run.Policies != nil && !run.Policies.Denied
	}
	if !found {
		t.Error("no apply has evaluated the policies")
	}
	out, _, _ := w.cli("describe", "run", w.record("alpha").Applied.Run)
	if !strings.Contains(out, "few-nodes/info") {
		t.Errorf("describe run says nothing of policies:\n%s", out)
	}
}

// Policies that change have open pull requests planned again; an apply that they have come to
// deny since its plan was reviewed is not made.
func TestPoliciesChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.max": 4})
	policies := w.addRepo("acme/policies", nil)
	policies.commit(fewNodes("9"))
	w.set(settings{"policies.sets": []any{map[string]any{"name": "platform", "repository": "acme/policies", "path": "rules"}}})
	w.start()

	pr := w.fleet().open(cluster("alpha", "nodes: 3", "apply: {onMerge: false}"))
	pr.untilPlanned("3 to create")
	policies.push(fewNodes("2"))
	pr.untilPlanned("policy denies")
	policies.push(fewNodes("3"))
	pr.untilPlanned("1 cluster: 3 to create")
	pr.untilComment("| ✅ | **policy** | 2 policies deny nothing |")
	pr.merge()
	w.untilWaiting("alpha", holdfast.ReasonManual)

	policies.push(fewNodes("1"))
	pr.say(dev, "/holdfast apply")
	w.untilWaiting("alpha", holdfast.ReasonPolicyDenied)
	pr.untilComment("PolicyDenied", "| ❌ deny | `few-nodes` | `terraform_data.node[1]` |")
	again := pr.say(dev, "/holdfast apply")
	pr.untilReacted(again, holdfast.ReactionRefused)
	if n := w.countCalls("apply alpha"); n != 0 {
		t.Fatalf("the engine has applied %d times, want never", n)
	}
}

// A policy that takes all memory and one that never ends let nothing pass, and stop nobody.
func TestHostilePolicies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.max": 4})
	policies := w.addRepo("acme/policies", nil)
	bad := func(body string) files {
		return files{"rules/bad.rego": "package bad\n\ndeny contains \"x\" if " + body + "\n"}
	}
	policies.commit(bad(`bits.lsh(1, 20000000000) == 0`))
	w.set(settings{"policies.sets": []any{map[string]any{"name": "platform", "repository": "acme/policies", "path": "rules"}}})
	w.start()

	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("policy denies")
	pr.untilComment("| ❌ | **policy** | could not be evaluated: bad.deny", "| ❌ deny | `bad.deny` |  | could not be evaluated: it ")

	policies.push(bad(`{ some i in numbers.range(1, 100000); some j in numbers.range(1, 100000); i * j == -1 }`))
	pr.untilComment("`bad.deny` |  | could not be evaluated: platform/bad.rego:3: it took longer than 5s")

	policies.push(files{"rules/bad.rego": deleted, "rules/good.rego": "package good\n\nwarn contains \"look\" if true\n"})
	pr.untilComment("| ✅ | **policy** | 1 policy denies nothing |", "| ⚠️ warn | `good.warn` |  | look |")
	pr.merge()
	pr.untilApplied("1 created")
}

// An owner of a policy waives it for what a pull request shows, nobody else does, and it is for this
// head only.
func TestWaiver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.max": 4})
	policies := w.addRepo("acme/policies", nil)
	owned := func(rule string) string {
		return "# METADATA\n# custom:\n#   id: " + rule + "\n#   owners: [\"@lead\", \"@acme/security\"]\npackage " + strings.ReplaceAll(rule, "-", "_") +
			"\n\ndeny contains {\"msg\": \"too many\", \"address\": rc.address} if {\n\tsome rc in input.holdfast.by_type.terraform_data\n\trc.change.after.input >= 2\n}\n"
	}
	policies.commit(files{"rules/few.rego": owned("few-nodes")})
	w.set(settings{"policies.status": true, "policies.sets": []any{map[string]any{"name": "platform", "repository": "acme/policies", "path": "rules"}}})
	w.start()

	pr := w.fleet().open(cluster("alpha", "nodes: 3"))
	pr.untilPlanned("policy denies")
	untilPolicy := func(state holdfast.StatusState, says string) {
		w.until("holdfast/policy is a "+string(state), func() (bool, string) {
			status, _ := pr.r.hub.LatestStatus(pr.head, holdfast.ContextPolicy)
			return status.State == string(state) && strings.Contains(status.Description, says), status.State + ": " + status.Description
		})
	}
	untilPolicy(holdfast.StatusFailure, "alpha: denied by few-nodes")
	pr.untilReacted(pr.say(dev, "/holdfast waive few-nodes --reason mine"), holdfast.ReactionRefused)
	pr.untilReply("you cannot waive a policy for your own pull request")
	pr.untilReacted(pr.say(lead, "/holdfast waive many-nodes --reason agreed"), holdfast.ReactionRefused)
	pr.untilReply("it has no policy `many-nodes`")
	pr.say(lead, "/holdfast waive few-nodes --reason agreed until the migration is over")
	pr.untilComment("| ✅ | **policy** | lead waived few-nodes: agreed until the migration is over |")
	pr.untilPlanned("3 to create")
	untilPolicy(holdfast.StatusSuccess, "policies let the plans of 1 cluster pass")

	pr.push(cluster("alpha", "nodes: 4"))
	pr.untilPlanned("policy denies")
	pr.say(lead, "/holdfast waive few-nodes --reason agreed again")
	pr.untilPlanned("4 to create")
	pr.merge()
	pr.untilApplied("4 created")

	more := w.fleet().open(cluster("beta", "nodes: 3"))
	more.untilPlanned("policy denies")
	policies.push(files{"rules/waivers/migration.yaml": "apiVersion: holdfast.dev/v1\nkind: Waiver\nmetadata: {name: migration}\nspec:\n" +
		"  policy: few-nodes\n  reason: migration\n  by: alice\n  until: 2099-12-31\n  scope: {clusters: [be*]}\n"})
	more.untilComment("| ✅ | **policy** | alice waived few-nodes: migration until 2099-12-31 (platform/waivers/migration.yaml:")
	more.merge()
	more.untilApplied("3 created")
}
