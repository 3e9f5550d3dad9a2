package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

// module is a kind of root module that pull requests bring.
type module struct {
	name      string
	providers bool
	code      string
}

var plainModule = module{name: "terraform_data", code: `variable "nodes" {
  type    = number
  default = 3
}

resource "terraform_data" "node" {
  count = var.nodes
  input = "node-${count.index}"
}
`}

var providerModule = module{name: "two providers", providers: true, code: `terraform {
  required_providers {
    local = { source = "hashicorp/local" }
    time  = { source = "hashicorp/time" }
  }
}

variable "nodes" {
  type    = number
  default = 3
}

resource "time_static" "created" {}

resource "local_file" "node" {
  count    = var.nodes
  filename = "${path.module}/node-${count.index}"
  content  = "node-${count.index}"
}
`}

// pullRequests measures pull requests that bring n clusters each: the first one
// that a server ever sees, a later one, and the merge of that.
func (b *bench) pullRequests(s *stage, m module) []figure {
	config := ""
	if m.providers {
		config = s.providers()
	}
	var figures []figure
	for _, n := range b.sizes {
		var planFloor, applyFloor, cold, warm, applied []time.Duration
		var planCPU, applyCPU []usage
		for round := 0; b.again(round); round++ {
			planFloor = append(planFloor, s.floor(m, n, config, planScript))
			applyFloor = append(applyFloor, s.floor(m, n, config, applyScript))
			w := s.newWorld(config)
			w.start()
			first, took := w.pullRequest(m, n, "first")
			w.hub.Close(first)
			cold = append(cold, took)
			before := w.usage()
			later, took := w.pullRequest(m, n, "later")
			warm = append(warm, took)
			planned := w.usage()
			planCPU = append(planCPU, planned.since(before))
			applied = append(applied, w.merge(later, "later"))
			applyCPU = append(applyCPU, w.usage().since(planned))
			w.stop()
			fmt.Fprintf(b.log, "%s, %d clusters: floor %s, first %s, later %s; floor of the apply %s, apply %s\n", m.name, n,
				ms(planFloor[round]), ms(cold[round]), ms(warm[round]), ms(applyFloor[round]), ms(applied[round]))
		}
		seconds := func(name string, value, floor []time.Duration) {
			f := figure{Name: name, N: n, Unit: "s", Value: median(value).Seconds()}
			figures = append(figures, f.against(median(floor).Seconds()))
		}
		seconds("pull request, "+m.name+", first", cold, planFloor)
		seconds("pull request, "+m.name, warm, planFloor)
		seconds("apply, "+m.name, applied, applyFloor)
		figures = append(figures, perCluster("plan, "+m.name, n, planCPU)...)
		figures = append(figures, perCluster("apply, "+m.name, n, applyCPU)...)
	}
	return figures
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// What the bare engine does for a plan, and for an apply of what a plan has shown.
const (
	planScript = `cd "$0" && "$ENGINE" init -input=false >/dev/null &&
"$ENGINE" plan -input=false -out=plan.bin >/dev/null && "$ENGINE" show -json plan.bin >plan.json`
	applyScript = planScript + ` && "$ENGINE" apply -input=false plan.bin >/dev/null`
)

// floor makes n root modules and returns how long the bare engine takes over
// them, as many at once as Holdfast executes.
func (s *stage) floor(m module, n int, cliConfig, script string) time.Duration {
	dir := s.TempDir()
	var list bytes.Buffer
	for i := range n {
		root := filepath.Join(dir, fmt.Sprintf("floor-%d", i))
		s.write(filepath.Join(root, "main.tf"), m.code, 0o644)
		fmt.Fprintln(&list, root)
	}
	cmd := exec.Command("xargs", "-P", fmt.Sprint(s.bench.parallel), "-n", "1", "sh", "-c", script)
	cmd.Stdin = &list
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "ENGINE=" + s.engine(),
		"TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE=" + cliConfig,
	}
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	if err != nil {
		s.Fatalf("run the bare engine: %v: %s", err, out)
	}
	s.check(os.RemoveAll(dir))
	return took
}

// engine is the one that Holdfast chooses, too: terraform if there is one.
func (s *stage) engine() string {
	for _, name := range []string{"terraform", "tofu"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	s.Fatal("neither terraform nor tofu is installed")
	return ""
}

// pullRequest opens a pull request that brings n clusters, and returns how long
// it took from its delivery until the plan's status is a success and the
// comment shows all plans.
func (w *world) pullRequest(m module, n int, prefix string) (number int, took time.Duration) {
	p := w.propose(m, n, prefix)
	began := time.Now()
	w.open(p)
	w.planned(p)
	return p.number, time.Since(began)
}

// proposed is a pull request whose commits are in Git.
type proposed struct {
	number             int
	branch, base, head string
}

// propose makes the commits of a pull request that brings n clusters.
func (w *world) propose(m module, n int, prefix string) proposed {
	files := make(map[string]string)
	for i := range n {
		name := fmt.Sprintf("%s-%d", prefix, i)
		files["infra/"+name+"/main.tf"] = m.code
		files["clusters/"+name+".yaml"] = clusterFile(name)
	}
	w.proposals++
	p := proposed{number: w.proposals, branch: prefix, base: w.git.Rev("main")}
	p.head = w.git.CommitOn(prefix, p.base, "Add clusters", files)
	w.git.SetPullRequest(p.number, p.head, w.git.MergeCommit("main", prefix))
	return p
}

// open has the code host deliver that a pull request was opened.
func (w *world) open(p proposed) {
	opened := w.hub.OpenPullRequest(githubserver.PullRequest{Branch: p.branch, Head: p.head, BaseSHA: p.base})
	if opened != p.number {
		w.Fatalf("pull request %d was opened as %d", p.number, opened)
	}
}

// planned waits until a pull request shows that all is planned.
func (w *world) planned(p proposed) {
	w.within(fleetWait, "the pull request is planned", func() bool {
		status, _ := w.hub.LatestStatus(p.head, holdfast.ContextPlan)
		if status.State == "failure" || status.State == "error" {
			w.Fatalf("the plan failed: %s\n%s", status.Description, w.log)
		}
		return status.State == "success" && w.shows(p.number, p.head)
	})
}

// merge merges a pull request, and returns how long it took from the delivery until
// the apply's status is a success and the comment says so.
func (w *world) merge(number int, branch string) time.Duration {
	before := w.git.Rev("main")
	commit := w.git.Merge("main", branch)
	began := time.Now()
	w.hub.Merge(number, commit)
	w.hub.Push("refs/heads/main", before, commit)
	w.until("the merge is applied", func() bool {
		status, _ := w.hub.LatestStatus(commit, holdfast.ContextApply)
		if status.State == "failure" || status.State == "error" {
			w.Fatalf("the apply failed: %s\n%s", status.Description, w.log)
		}
		return status.State == "success"
	})
	return time.Since(began)
}

// shows reports whether the comment on a pull request shows all plans of head.
func (w *world) shows(number int, head string) bool {
	plan, final := "Plan for `"+holdfast.Revision(head).Short()+"`", "**Next:** merge to apply"
	return slices.ContainsFunc(w.hub.Comments(number), func(c githubserver.Comment) bool {
		return c.Author == githubserver.TokenLogin && strings.Contains(c.Body, plan) && strings.Contains(c.Body, final)
	})
}

func clusterFile(name string) string {
	return "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata:\n  name: " + name +
		"\nspec:\n  project: shop\n  environment: production\n  module: {path: infra/" + name + "}\n"
}
