package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
	"github.com/holdfast-dev/holdfast/templates/document"
)

const (
	fleetPushes = 9                // of one document each; the median counts
	fleetLists  = 9                // of each list
	fleetWait   = 10 * time.Minute // bounds what grows with the fleet
	quietFor    = 300 * time.Millisecond
)

// fleets measures servers that keep fleets of several sizes, with nothing to
// execute: what a start, a push and a list cost, and how much memory there is
// to it.
func (b *bench) fleets(s *stage) {
	for _, n := range b.fleetSizes {
		began := time.Now()
		s.fleetOf(n)
		fmt.Fprintf(b.log, "a fleet of %d took %s\n", n, time.Since(began).Round(time.Second))
	}
}

func (s *stage) fleetOf(n int) {
	w := &fleetWorld{
		world:   s.newWorldIn(s.bench.repositories, "agent: {off: true}\nengines: {download: false}\n", "clusters/**/*.yaml", ""),
		members: fleet(n),
	}
	w.wait, w.decisions = fleetWait, watchDecisions(w.log)
	for h, members := range w.shares() {
		h.git.Commit("main", "A fleet", fleetFiles(members))
	}

	add := func(name string, value float64, unit string, floor ...float64) {
		f := figure{Name: fleetPrefix + name, N: n, Value: value, Unit: unit}
		if len(floor) > 0 {
			f = f.against(floor[0])
		}
		s.add(f)
		fmt.Fprintln(w.bench.log, strings.Join(f.cells(), "  "))
	}
	parsed := w.floorOfReading()
	first := w.start()
	w.stop()
	add("first start to ready", first.Seconds(), "s", (w.floorOfCloning() + parsed).Seconds())
	w.rest()
	again, settled := w.startAll()
	add("start to ready", again.Seconds(), "s", (w.floorOfRecords("clusters") + parsed).Seconds())
	add("start to every decision made", settled.Seconds(), "s")
	resident, proportional := w.resident(w.cmd.Process.Pid)
	add("memory at rest, resident", resident, "MiB")
	add("memory at rest, proportional", proportional, "MiB")

	push, beyond, floor, peak := w.pushes(fleetPushes)
	add("push of one document to decision", inMS(push), "ms", inMS(floor))
	add("the same beyond the fetch", inMS(beyond), "ms")
	add("memory while pushes come, peak", peak, "MiB")
	for _, list := range []struct{ name, query, where string }{
		{"get clusters", "", ""},
		{"get clusters of a project", "project=project-000", "WHERE project = 'project-000'"},
		{"get clusters with a label", "label=" + fleetLabel + "=gold", "WHERE labels LIKE '%\"" + fleetLabel + "\":\"gold\"%'"},
		{"get clusters in a phase", "phase=Active", "WHERE phase = 'Active'"},
	} {
		add(list.name, inMS(w.list(list.query)), "ms", inMS(w.floorOfRecords("summaries "+list.where)))
	}
	add("get clusters by the command", inMS(w.command("get", "clusters")), "ms", inMS(w.command("version")))
	w.stop()
}

func inMS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// fleetWorld is a world with a fleet in its repositories, and no agent.
type fleetWorld struct {
	*world
	members   []member
	decisions *decisions
	edits     int
}

// repository is the one that defines a cluster.
func (w *fleetWorld) repository(m member) *hosted {
	all := w.repositories()
	return all[m.number%len(all)]
}

// shares are the clusters of each repository.
func (w *fleetWorld) shares() map[*hosted][]member {
	shares := make(map[*hosted][]member)
	for _, m := range w.members {
		h := w.repository(m)
		shares[h] = append(shares[h], m)
	}
	return shares
}

// startAll starts the server and waits until a decision about every cluster was
// made. It returns how long both took.
func (w *fleetWorld) startAll() (ready, settled time.Duration) {
	w.decisions.reset()
	began := time.Now()
	ready = w.start()
	w.within(fleetWait, "every cluster is decided about", func() bool { return w.decisions.distinct() >= len(w.members) })
	settled = w.decisions.last().Sub(began)
	w.quiet()
	return ready, settled
}

// quiet waits until the server decides nothing more.
func (w *fleetWorld) quiet() {
	w.within(fleetWait, "the server is at rest", func() bool { return time.Since(w.decisions.last()) > quietFor })
}

// pushes measures some pushes of one document each: from the delivery to the
// decision, the same less what a fetch alone takes, what Git and the parser
// alone take, and the memory at its peak.
func (w *fleetWorld) pushes(rounds int) (push, beyond, floor time.Duration, peak float64) {
	ctx := context.Background()
	options := gitsource.Options{Dir: w.path("alone")}
	for _, h := range w.repositories() {
		options.Repositories = append(options.Repositories, gitsource.Repository{
			Name: h.name, URL: h.git.URL, Branch: "main", Auth: gitsource.Auth{
				Basic: func(context.Context) (string, string, error) { return "x-access-token", githubserver.Token, nil },
			},
		})
	}
	alone, err := gitsource.New(options)
	w.check(err)
	mirrors := make(map[*hosted]string)
	for i, h := range w.repositories() {
		_, err = alone.Fetch(ctx, h.name)
		w.check(err)
		mirrors[h] = w.path(fmt.Sprintf("floor-%d.git", i))
		w.check(os.RemoveAll(mirrors[h]))
		w.run("git", "clone", "--quiet", "--mirror", w.url(h), mirrors[h])
	}

	w.forgetPeak()
	var all, without, bare []time.Duration
	for range rounds {
		took, changed := w.push()
		w.quiet()
		h := w.repository(changed)
		began := time.Now()
		_, err = alone.Fetch(ctx, h.name)
		w.check(err)
		fetch := time.Since(began)
		began = time.Now()
		w.run("git", "-C", mirrors[h], "fetch", "--quiet")
		data := w.run("git", "-C", mirrors[h], "show", "main:"+changed.path())
		if docs, faults := document.ParseClusters(changed.path(), data); len(docs) != 1 || len(faults) > 0 {
			w.Fatalf("parse %s: %v", changed.path(), faults)
		}
		all, without, bare = append(all, took), append(without, max(0, took-fetch)), append(bare, time.Since(began))
	}
	return median(all), median(without), median(bare), w.peak()
}

// push edits one document and returns how long it took from the delivery to the
// decision.
func (w *fleetWorld) push() (time.Duration, member) {
	w.edits++
	m := w.members[w.edits*37%len(w.members)]
	h := w.repository(m)
	before := h.git.Rev("main")
	after := h.git.Commit("main", "Edit "+m.name, map[string]string{m.path(): m.document(w.edits)})
	decided := w.decisions.await(m.name)
	began := time.Now()
	h.hub.Push("refs/heads/main", before, after)
	select {
	case at := <-decided:
		return at.Sub(began), m
	case <-time.After(patience):
		w.Fatalf("waited in vain for the decision about %s", m.name)
		return 0, m
	}
}

// peak is the most memory that the server has held since that was last reset, in
// MiB.
func (w *fleetWorld) peak() float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.cmd.Process.Pid))
	w.check(err)
	var kb float64
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, err = fmt.Sscan(rest, &kb)
			w.check(err)
		}
	}
	return kb / 1024
}

// list asks the API for clusters and returns how long the answer took.
func (w *fleetWorld) list(query string) time.Duration {
	return w.ask("clusters?limit=10000&" + query)
}

// ask asks the API for what names the first cluster, among others, and returns
// how long the answer took.
func (w *fleetWorld) ask(what string) time.Duration {
	var took []time.Duration
	for range fleetLists {
		req, err := http.NewRequest(http.MethodGet, w.api+"/api/v1/"+what, nil)
		w.check(err)
		req.Header.Set("Authorization", "Bearer "+w.token())
		began := time.Now()
		resp, err := ownclient.Client.Do(req)
		w.check(err)
		body, err := io.ReadAll(resp.Body)
		w.check(err)
		took = append(took, time.Since(began))
		w.check(resp.Body.Close())
		if resp.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(w.members[0].name)) {
			w.Fatalf("ask for %s: %s: %.200s", what, resp.Status, body)
		}
	}
	return median(took)
}

func (w *world) token() string {
	data, err := os.ReadFile(w.path("data", "admin.token"))
	w.check(err)
	return strings.TrimSpace(string(data))
}

// command runs the client and returns how long it took.
func (w *fleetWorld) command(args ...string) time.Duration {
	var took []time.Duration
	for range w.bench.repeat {
		cmd := w.stage.command(w.bench.binary, args...)
		cmd.Env = append(os.Environ(), "HOLDFAST_SERVER="+w.api, "HOLDFAST_TOKEN="+w.token())
		began := time.Now()
		out, err := cmd.CombinedOutput()
		took = append(took, time.Since(began))
		if err != nil {
			w.Fatalf("holdfast %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	return median(took)
}

// floorOfReading is how long it takes to parse all documents.
func (w *fleetWorld) floorOfReading() time.Duration {
	began := time.Now()
	for _, m := range w.members {
		if docs, faults := document.ParseClusters(m.path(), []byte(m.document(0))); len(docs) != 1 || len(faults) > 0 {
			w.Fatalf("parse %s: %v", m.path(), faults)
		}
	}
	return time.Since(began)
}

// floorOfCloning is how long Git takes to fetch everything.
func (w *fleetWorld) floorOfCloning() time.Duration {
	dir := filepath.Join(w.TempDir(), "clone.git")
	var took time.Duration
	for _, h := range w.repositories() {
		began := time.Now()
		w.run("git", "clone", "--quiet", "--mirror", w.url(h), dir)
		took += time.Since(began)
		w.check(os.RemoveAll(dir))
	}
	return took
}

// url is that of a repository with what opens it.
func (w *fleetWorld) url(h *hosted) string {
	u, err := url.Parse(h.git.URL)
	w.check(err)
	u.User = url.UserPassword("x-access-token", githubserver.Token)
	return u.String()
}

func (s *stage) run(name string, args ...string) []byte {
	out, err := s.command(name, args...).Output()
	if err != nil {
		s.Fatalf("%s %s: %v", name, args[0], err)
	}
	return out
}

// decisions follows what a server says of its decisions.
type decisions struct {
	mu    sync.Mutex
	seen  map[string]bool
	at    time.Time
	waits map[string]chan time.Time
}

func watchDecisions(log *logBuffer) *decisions {
	d := &decisions{}
	d.reset()
	log.heard = d.hear
	return d
}

func (d *decisions) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen, d.waits, d.at = make(map[string]bool), make(map[string]chan time.Time), time.Now()
}

func (d *decisions) hear(line []byte) {
	_, rest, ok := bytes.Cut(line, []byte("msg=decided cluster="))
	if !ok {
		return
	}
	name, _, _ := strings.Cut(string(rest), " ")
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[name], d.at = true, now
	if wait := d.waits[name]; wait != nil {
		delete(d.waits, name)
		wait <- now
	}
}

// await returns a channel for the time of the next decision about a cluster.
func (d *decisions) await(cluster string) <-chan time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	wait := make(chan time.Time, 1)
	d.waits[cluster] = wait
	return wait
}

// distinct is how many clusters were decided about.
func (d *decisions) distinct() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.seen)
}

// last is when the last decision was made.
func (d *decisions) last() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at
}
