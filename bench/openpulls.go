package main

import (
	"fmt"
	"time"
)

const (
	openPushes = 3               // the median counts
	pushWindow = 2 * time.Second // in which everything that follows from a push is done

	pushWithOpen = "push with open pull requests, processor time"
)

// open measures the processor time of a server for a push that no open pull request has
// to do with, next to more and more of them, with nothing to execute. The floor of each is
// the first.
func (b *bench) open(s *stage) {
	for _, n := range b.openSizes {
		used := s.pushBeside(n)
		f := figure{Name: pushWithOpen, N: n, Unit: "ms", Value: inMS(used)}
		if len(s.figures) > 0 {
			f = f.against(s.figures[0].Value)
		}
		s.add(f)
		fmt.Fprintf(b.log, "a push with %d open pull requests: %s of processor time\n", n, ms(used))
	}
}

func (s *stage) pushBeside(open int) time.Duration {
	w := s.newWorldWith("agent: {off: true}\nengines: {download: false}\n", "clusters/*.yaml", "")
	w.wait = fleetWait
	files := make(map[string]string)
	for i := range open + 1 {
		name := fmt.Sprintf("c%04d", i)
		files["infra/"+name+"/main.tf"], files["clusters/"+name+".yaml"] = plainModule.code, clusterFile(name)
	}
	base := w.git.Commit("main", "A fleet", files)
	for i := 1; i <= open; i++ { // before the start, which finds them
		p := proposed{number: i, branch: fmt.Sprintf("open-%d", i), base: base}
		p.head = w.git.CommitOn(p.branch, base, "Change a cluster", map[string]string{
			fmt.Sprintf("infra/c%04d/main.tf", i): plainModule.code + "# changed\n",
		})
		w.git.SetPullRequest(i, p.head, "")
		w.open(p)
	}
	w.start()
	w.idle()
	var used, rests []time.Duration
	for i := range openPushes {
		rests = append(rests, w.during(func() {}))
		used = append(used, w.during(func() {
			before := w.git.Rev("main")
			after := w.git.Commit("main", "Elsewhere", map[string]string{"infra/c0000/main.tf": plainModule.code + fmt.Sprintf("# push %d\n", i)})
			w.hub.Push("refs/heads/main", before, after)
		}))
	}
	w.stop()
	return max(0, median(used)-median(rests))
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
