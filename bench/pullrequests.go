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

// pullRound is what one round has measured with pull requests of one size.
type pullRound struct{ planFloor, applyFloor, first, later, applied time.Duration }

// pullSize are the rounds of one size.
type pullSize struct {
	rounds []pullRound
	width  int           // of the floors; 0: not known yet
	took   time.Duration // the last round
}

// pullRequests measures pull requests that bring n clusters each: the first one
// that a server ever sees, a later one, and the merge of that. All sizes are
// measured once before any is measured again.
func (b *bench) pullRequests(s *stage, m module) {
	config := ""
	if m.providers {
		config = s.providers()
	}
	sizes := make([]pullSize, len(b.sizes))
	defer func() { // also when the part is cut
		for i, n := range b.sizes {
			s.add(sizes[i].figures(m, n)...)
		}
	}()
	for round := range b.repeat {
		for i, n := range b.sizes {
			if round > 0 && !s.fits(sizes[i].took, round) {
				continue
			}
			began := time.Now()
			r := s.pullRound(m, n, config, &sizes[i])
			sizes[i].rounds = append(sizes[i].rounds, r)
			sizes[i].took = time.Since(began)
			fmt.Fprintf(b.log, "%s, %d clusters: floor %s (%d at once), first %s, later %s; floor of the apply %s, apply %s\n",
				m.name, n, ms(r.planFloor), sizes[i].width, ms(r.first), ms(r.later), ms(r.applyFloor), ms(r.applied))
		}
	}
}

func (s *stage) pullRound(m module, n int, config string, size *pullSize) (r pullRound) {
	r.planFloor = s.floor(m, n, config, planScript, &size.width)
	r.applyFloor = s.bare(m, n, config, applyScript, size.width) // what is better for plans is so for applies
	w := s.newWorld(config)
	w.start()
	first, took := w.pullRequest(m, n, "first")
	w.hub.Close(first)
	r.first = took
	later, took := w.pullRequest(m, n, "later")
	r.later = took
	r.applied = w.merge(later, "later")
	w.stop()
	return r
}

// figures are the medians of the rounds, each against the median of its floor.
func (size pullSize) figures(m module, n int) []figure {
	if len(size.rounds) == 0 {
		return nil
	}
	middle := func(of func(pullRound) time.Duration) float64 {
		var all []time.Duration
		for _, r := range size.rounds {
			all = append(all, of(r))
		}
		return median(all).Seconds()
	}
	plan := middle(func(r pullRound) time.Duration { return r.planFloor })
	apply := middle(func(r pullRound) time.Duration { return r.applyFloor })
	return []figure{
		figure{Name: "pull request, " + m.name + ", first", N: n, Unit: "s", Value: middle(func(r pullRound) time.Duration { return r.first })}.against(plan),
		figure{Name: "pull request, " + m.name, N: n, Unit: "s", Value: middle(func(r pullRound) time.Duration { return r.later })}.against(plan),
		figure{Name: "apply, " + m.name, N: n, Unit: "s", Value: middle(func(r pullRound) time.Duration { return r.applied })}.against(apply),
	}
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// What the bare engine does for a plan, and for an apply of what a plan has shown.
const (
	planScript = `cd "$0" && "$ENGINE" init -input=false >/dev/null &&
"$ENGINE" plan -input=false -out=plan.bin >/dev/null && "$ENGINE" show -json plan.bin >plan.json`
	applyScript = planScript + ` && "$ENGINE" apply -input=false plan.bin >/dev/null`
)

// floor returns how long the bare engine takes over n root modules: at the better of two at
// once and as many as Holdfast executes. The first time both are measured, and width is set
// to the better one, which is measured from then on.
func (s *stage) floor(m module, n int, cliConfig, script string, width *int) time.Duration {
	widths := []int{*width}
	if *width == 0 {
		widths = s.bench.widths(n)
	}
	took, best := fastest(widths, func(width int) time.Duration { return s.bare(m, n, cliConfig, script, width) })
	*width = best
	return took
}

// widths are how many of n root modules the bare engine is tried with at once.
func (b *bench) widths(n int) []int {
	widths := []int{min(n, 2), min(n, b.parallel)}
	slices.Sort(widths)
	return slices.Compact(widths)
}

// fastest measures each width and returns the shortest time with the width that took it.
func fastest(widths []int, measure func(width int) time.Duration) (least time.Duration, best int) {
	for _, width := range widths {
		if took := measure(width); best == 0 || took < least {
			least, best = took, width
		}
	}
	return least, best
}

// bare makes n root modules and returns how long the bare engine takes over them, width at
// once.
func (s *stage) bare(m module, n int, cliConfig, script string, width int) time.Duration {
	dir := s.TempDir()
	var list bytes.Buffer
	for i := range n {
		root := filepath.Join(dir, fmt.Sprintf("floor-%d", i))
		s.write(filepath.Join(root, "main.tf"), m.code, 0o644)
		fmt.Fprintln(&list, root)
	}
	cmd := s.command("xargs", "-P", fmt.Sprint(width), "-n", "1", "sh", "-c", script)
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
	draft              bool
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
	opened := w.hub.OpenPullRequest(githubserver.PullRequest{Branch: p.branch, Head: p.head, BaseSHA: p.base, Draft: p.draft})
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
	w.within(fleetWait, "the merge is applied", func() bool {
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
