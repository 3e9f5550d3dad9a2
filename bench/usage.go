package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Of the figures of processor time for each cluster.
const (
	planTime  = "processor time of a plan: "
	applyTime = "processor time of an apply: "
	bothOf    = "server and agents"

	// Of how soon the code host shows what has come of a pull request.
	planShown  = "last plan of a pull request, from its end to comment and status"
	applyShown = "last apply of its merge, from its end to the status"

	// usageClusters is of how many clusters processor time is measured at least: that of
	// sandboxes is counted in hundredths of a second.
	usageClusters = 30
)

// processor measures the processor time for each cluster of a pull request and of its merge,
// in small pull requests and in a big one. The floor of the big one are the small ones. And how
// long after the last run the code host shows it, at worst.
func (b *bench) processor(s *stage) {
	w := s.newWorld("")
	w.start()
	first, _ := w.pullRequest(plainModule, 1, "first") // asks for versions, and prepares what is shared
	w.hub.Close(first)
	for _, n := range b.cpuSizes {
		w.processorOf(n)
	}
	w.stop()
}

// processorOf measures pull requests of n clusters each, and their merges. Figures of plans
// count also if the part is cut before the applies have ended.
func (w *world) processorOf(n int) {
	var plan, apply spent
	defer func() {
		w.add(plan.figures(planTime, planShown, n, w.figures)...)
		w.add(apply.figures(applyTime, applyShown, n, w.figures)...)
	}()
	for i := range max(1, usageClusters/n) {
		p := w.propose(plainModule, n, fmt.Sprintf("cpu-%d-%d", n, i))
		before := w.rested()
		w.open(p)
		w.planned(p)
		shown := sinceLastEnd(w.log.String(), time.Now())
		planned := w.rested()
		plan.add(n, planned.since(before), shown)
		w.merge(p.number, p.branch)
		shown = sinceLastEnd(w.log.String(), time.Now())
		apply.add(n, w.rested().since(planned), shown)
		w.Logf("a pull request of %d clusters: plan %s, apply %s", n, plan.used.by(plan.clusters), apply.used.by(apply.clusters))
	}
}

// spent is what plans, or applies, have taken so far.
type spent struct {
	clusters int
	used     usage
	shown    time.Duration // after the last run, at worst
}

func (t *spent) add(clusters int, used usage, shown time.Duration) {
	t.clusters, t.used, t.shown = t.clusters+clusters, t.used.plus(used), max(t.shown, shown)
}

// figures are those of each cluster, and of how soon all of them were shown.
func (t spent) figures(of, soon string, n int, before []figure) []figure {
	if t.clusters == 0 {
		return nil
	}
	return append(perCluster(of, n, t.used.by(t.clusters), before), figure{Name: soon, N: n, Value: t.shown.Seconds(), Unit: "s"})
}

var attemptEnded = regexp.MustCompile(`(?m)^time=(\S+) .*msg="attempt has ended"`)

// sinceLastEnd is how long before a time the last attempt has ended, by the log of a server.
func sinceLastEnd(log string, now time.Time) time.Duration {
	ends := attemptEnded.FindAllStringSubmatch(log, -1)
	if len(ends) == 0 {
		return 0
	}
	last, err := time.Parse(time.RFC3339, ends[len(ends)-1][1])
	if err != nil {
		return 0
	}
	return now.Sub(last)
}

// usage is the processor time of a server and its agents until now. What agents start,
// sandboxes and engines, is apart.
type usage struct{ server, agents, started time.Duration }

func (u usage) since(before usage) usage {
	return usage{u.server - before.server, u.agents - before.agents, u.started - before.started}
}

func (u usage) plus(more usage) usage {
	return usage{u.server + more.server, u.agents + more.agents, u.started + more.started}
}

func (u usage) by(n int) usage {
	d := time.Duration(n)
	return usage{u.server / d, u.agents / d, u.started / d}
}

// String is for the log.
func (u usage) String() string {
	return fmt.Sprintf("%s of the server, %s of agents, %s of sandboxes and engines", ms(u.server), ms(u.agents), ms(u.started))
}

// perCluster are the figures of what one of n clusters took. Those before, of another size,
// are their floor.
func perCluster(of string, n int, u usage, before []figure) []figure {
	figures := []figure{
		{Name: of + bothOf, Value: inMS(u.server + u.agents)},
		{Name: of + "server", Value: inMS(u.server)},
		{Name: of + "agents", Value: inMS(u.agents)},
		{Name: of + "sandboxes and engines", Value: inMS(u.started)},
	}
	for i := range figures {
		f := &figures[i]
		f.N, f.Unit = n, "ms"
		for _, g := range before {
			if g.Name == f.Name {
				*f = f.against(g.Value)
				break
			}
		}
	}
	return figures
}

// usage reads the processor time of the server and its local agents.
func (w *world) usage() usage {
	var u usage
	u.server, _ = w.processorTime(w.cmd.Process.Pid)
	for _, pid := range w.agents() {
		own, children := w.processorTime(pid)
		u.agents, u.started = u.agents+own, u.started+children
	}
	return u
}

// rested reads the processor time once the server and its agents have done what was left to
// do.
func (w *world) rested() (u usage) {
	w.within(fleetWait, "server and agents are at rest", func() bool {
		before := w.usage()
		time.Sleep(quietFor)
		u = w.usage()
		d := u.since(before)
		return d.server+d.agents+d.started <= quietFor/10
	})
	return u
}

// agents returns the processes of the local agents, by the locks on their folders.
func (w *world) agents() []int {
	locks, err := filepath.Glob(w.path("data", "agent*", "agent.lock"))
	w.check(err)
	var pids []int
	for _, lock := range locks {
		data, err := os.ReadFile(lock)
		w.check(err)
		pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
		w.check(err)
		pids = append(pids, pid)
	}
	return pids
}

// processorTime returns what a process, and its children that have ended, took. That of
// children counts in hundredths of a second.
func (s *stage) processorTime(pid int) (own, children time.Duration) {
	own, err := ownTime(pid)
	s.check(err)
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	s.check(err)
	p, err := parseProcess(string(data))
	s.check(err)
	return own, ticks(p.children)
}
