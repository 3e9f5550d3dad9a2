package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	openPushes = 3               // the median counts
	pushWindow = 2 * time.Second // in which everything that follows from a push is done

	pushWithOpen = "push with open pull requests, processor time"
)

// open measures the processor time of a server for a push that no open pull request has
// to do with, next to more and more of them. The floor of each is the first. It is one server
// with one fleet, of which each pull request changes a cluster: nothing but them grows. The
// fleet is suspended and the pull requests are drafts, so that no run waits for an agent.
func (b *bench) open(s *stage) {
	w := s.newWorldWith("agent: {off: true}\nengines: {download: false}\n", "clusters/*.yaml", "")
	w.wait = fleetWait
	w.unpaced()
	files := make(map[string]string)
	for i := range slices.Max(b.openSizes) {
		name := fmt.Sprintf("c%04d", i+1)
		files["infra/"+name+"/main.tf"], files["clusters/"+name+".yaml"] = plainModule.code, clusterFile(name)
	}
	w.git.Commit("main", "A fleet", files)
	w.start()
	w.suspendAll()
	w.pushed("Another cluster", map[string]string{"infra/apart/main.tf": plainModule.code, "clusters/apart.yaml": clusterFile("apart")})
	w.idle()
	pushes := 0
	for _, n := range slices.Sorted(slices.Values(b.openSizes)) {
		w.openUpTo(n)
		w.idle()
		var used, rests []time.Duration
		for range openPushes {
			pushes++
			rests = append(rests, w.during(func() {}))
			used = append(used, w.during(func() {
				w.pushed("Elsewhere", map[string]string{"infra/apart/main.tf": plainModule.code + fmt.Sprintf("# push %d\n", pushes)})
			}))
		}
		f := figure{Name: pushWithOpen, N: n, Unit: "ms", Value: inMS(max(0, median(used)-median(rests)))}
		if len(s.figures) > 0 {
			f = f.against(s.figures[0].Value)
		}
		s.add(f)
		fmt.Fprintf(b.log, "a push with %d open pull requests: %.1f ms of processor time\n", n, f.Value)
	}
	w.stop()
}

// openUpTo opens pull requests until there are n: first the branches of all of them.
func (w *world) openUpTo(n int) {
	base := w.git.Rev("main")
	var drafts []proposed
	for w.proposals < n {
		w.proposals++
		p := proposed{number: w.proposals, branch: fmt.Sprintf("open-%d", w.proposals), base: base, draft: true}
		p.head = w.git.CommitOn(p.branch, base, "Change a cluster", map[string]string{
			fmt.Sprintf("infra/c%04d/main.tf", p.number): plainModule.code + "# changed\n",
		})
		w.git.SetPullRequest(p.number, p.head, "")
		drafts = append(drafts, p)
	}
	for _, p := range drafts {
		w.open(p)
	}
}

// pushed pushes a commit to the tracked branch.
func (w *world) pushed(message string, files map[string]string) {
	before := w.git.Rev("main")
	w.hub.Push("refs/heads/main", before, w.git.Commit("main", message, files))
}

// suspendAll has the server start no run.
func (w *world) suspendAll() {
	cmd := w.command(w.bench.binary, "suspend", "--all", "--reason", "nothing is to be executed")
	cmd.Env = append(os.Environ(), "HOLDFAST_SERVER="+w.api, "HOLDFAST_TOKEN="+w.token())
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("suspend all: %v: %s", err, out)
	}
}

// unpaced has the server send to the code host whatever it has to, at once, and the host take
// it: at github.com's pace the comments of 120 pull requests are under way for minutes, and what is measured
// meanwhile is the sending of these.
func (w *world) unpaced() {
	path := w.path("holdfast.yaml")
	config, err := os.ReadFile(path)
	w.check(err)
	const token = "token: {file: token}"
	w.write(path, strings.Replace(string(config), token, token+", writesPerMinute: 60000", 1), 0o600)
	w.host.SetWriteLimit(0, time.Minute, time.Minute)
}

// during returns the processor time of the server for something and what follows from it.
func (w *world) during(act func()) time.Duration {
	before := w.usage()
	act()
	time.Sleep(pushWindow)
	return w.usage().since(before).server
}

// idle waits until the server has taken in what there is.
func (w *world) idle() {
	w.within(fleetWait, "the server is at rest", func() bool { return w.during(func() {}) < pushWindow/50 })
}
