package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

func runnerFile(name string, more ...string) string {
	text := "apiVersion: holdfast.dev/v1\nkind: Runner\nmetadata: {name: " + name + "}\nspec:\n  type: remote\n"
	for _, line := range more {
		text += "  " + line + "\n"
	}
	return text
}

func ruleFile(runner string) string {
	return "apiVersion: holdfast.dev/v1\nkind: RunnerRule\nmetadata: {name: staging}\nspec: {project: shop, environment: staging, runner: " + runner + "}\n"
}

// inStaging is a cluster of another environment than document's.
func inStaging(name, variables string) files {
	f := cluster(name, variables)
	path := "clusters/" + name + ".yaml"
	f[path] = strings.Replace(f[path], "environment: production", "environment: staging", 1)
	return f
}

// TestRunnersOfTwoEnvironments: one environment is the local runner's, a rule sends another to an
// agent elsewhere whose token names that runner. A pull request that changes the rule says whom
// that bears on and moves nobody; a refresh does. A document is proposed from the command line,
// a wrong one is told at its line, and a runner that is needed stays.
func TestRunnersOfTwoEnvironments(t *testing.T) {
	t.Parallel()
	token := func(name, runner string) any {
		return map[string]any{
			"name": name, "token": map[string]any{"file": name + "-token"}, "kinds": []string{"plan", "drift", "apply", "destroy"}, "runner": runner,
		}
	}
	w := emptyWorld(t, settings{"runs.lease": "4s", "server.agents.tokens": []any{token("edge", "edge"), token("far", "far")}})
	w.addRepo("acme/fleet", settings{"allow": []any{
		map[string]any{"kinds": []string{"Cluster"}},
		map[string]any{"kinds": []string{"Runner", "RunnerRule"}, "paths": []string{"runners/**"}, "runners": []string{"edge", "far", "east"}},
	}})
	w.write("edge-token", "the token of agents at the edge", 0o600)
	w.write("far-token", "the token of agents far away", 0o600)
	w.fleet().commit(join(files{
		"runners/edge.yaml": runnerFile("edge", "maxRuns: 2"), "runners/far.yaml": runnerFile("far"), "runners/staging.yaml": ruleFile("edge"),
	}, cluster("alpha", "nodes: 1"), inStaging("beta", "nodes: 1")))
	w.start()
	w.until("both environments are pinned", func() (bool, string) {
		out, _, _ := w.cli("get", "environments")
		return strings.Contains(line(out, "shop"), "production local none") && strings.Contains(out, "staging"), out
	})
	w.until("beta waits for an agent of its runner", func() (bool, string) {
		out, _, _ := w.cli("get", "queue", "--runner", "edge")
		return strings.Contains(out, "beta") && strings.Contains(out, "NoAgent") && !strings.Contains(out, "alpha"), out
	})
	users, _ := slotUsers(t)
	w.elsewhere("far/1", "far", "far-token", users+10)
	w.elsewhere("edge/1", "edge", "edge-token", users)

	planned := func(name string) string {
		runs := w.runs(name)
		if len(runs) == 0 {
			return "none"
		}
		return fmt.Sprintf("%s by %s for %s", runs[0].Status, runs[0].Agent, runs[0].Runner)
	}
	w.until("each cluster is planned by the agents of its runner", func() (bool, string) {
		alpha, beta := planned("alpha"), planned("beta")
		return strings.HasPrefix(alpha, "planned") && !strings.Contains(alpha, "edge/1") && beta == "planned by edge/1 for edge", alpha + ", " + beta
	})

	pr := w.fleet().open(files{"runners/staging.yaml": ruleFile("far")})
	pr.untilComment("it changes 1 runner rule", "`shop/staging` from `edge` to `far`: 1 cluster, `beta`")
	pr.merge()
	w.until("the rule has changed", func() (bool, string) {
		out, _, _ := w.cli("describe", "runner", "far")
		return strings.Contains(out, "staging"), out
	})
	w.do("refresh runner shop/staging --dry-run", "would move from runner edge to far, by rule staging")
	w.do("get environments --runner edge", "staging")
	w.do("replan alpha") // the local one works on
	w.untilIdle()
	w.do("refresh runner shop/staging", "has moved from runner edge to far")
	w.do("get environments --runner far", "staging")
	w.do("replan beta")
	w.until("beta is planned by the agent of the other runner", func() (bool, string) {
		beta := planned("beta")
		return beta == "planned by far/1 for far", beta
	})

	w.do("create runner east --type remote --set maxRuns=3", "proposed: pull request acme/fleet#")
	w.until("the runner is proposed", func() (bool, string) {
		var list struct{ Items []v1.PullRequest }
		w.getJSON("pullrequests", nil, &list)
		for _, p := range list.Items {
			if p.Title == "Create runner east" {
				return true, ""
			}
		}
		return false, fmt.Sprint(list.Items)
	})
	if out, stderr, code := w.cli("create", "runner", "west", "--type", "remote"); code == 0 || !strings.Contains(stderr, "may not define runner") {
		t.Errorf("a runner that is not allowed: %d %s%s", code, out, stderr)
	}

	bad := w.fleet().open(files{"runners/far.yaml": runnerFile("far", "maxruns: 2"), "runners/edge.yaml": deleted})
	bad.untilComment("runners/far.yaml:6:3", `did you mean "maxRuns"?`)
	bad.merge()
	w.until("the last good documents are in force", func() (bool, string) {
		out, _, _ := w.cli("get", "runners")
		return strings.Contains(out, "unknown key") && !strings.Contains(out, "edge"), out // nothing needs edge now
	})
	w.fleet().push(files{"runners/far.yaml": deleted, "runners/staging.yaml": deleted})
	w.until("the runner that is needed stays", func() (bool, string) {
		out, _, _ := w.cli("describe", "runner", "far")
		return strings.Contains(out, "cannot be removed and stays in force: it has 1 environment, shop/staging"), out
	})
	if _, body := w.get(w.api + "/readyz"); !strings.Contains(body, "runners of repository acme/fleet are not all as its branch says") {
		t.Errorf("readiness: %s", body)
	}
}
