package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// chaosTime is how long TestChaos lets things fail: HOLDFAST_CHAOS, a duration such
// as 1h, or a minute.
func chaosTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("HOLDFAST_CHAOS")
	if text == "" {
		return time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("HOLDFAST_CHAOS: %v", err)
	}
	return d
}

// Whatever fails whenever: no run is lost, nothing is applied twice, nothing stays
// stuck, every wait has a reason and a way out by command, and every pull request
// ends with a status that is true.
func TestChaos(t *testing.T) {
	t.Parallel()
	w := newFleet(t, settings{"runs.lease": chaosLease.String(), "runs.retryDelay": "100ms", "runs.lockTimeout": "0s"})
	m := newMonkey(w)
	w.start()
	// People open a few pull requests in an hour, not three hundred.
	w.hub.SetQuota(1_000_000, 1_000_000, time.Now().Add(24*time.Hour))
	c := &chaos{
		m: m, w: w, began: time.Now(), turns: make(map[string]int), delta: delta{went: make(map[string]int)},
		past: make(map[string]content), present: make(map[string]content),
		waits: make(map[holdfast.Reason]int), commands: make(map[string]int), serials: make(map[string]int64),
		foreign: map[string]func(name string) string{"gamma": m.store.state, "epsilon": m.postgres.state, "zeta": m.bucket.state},
		states:  newStateCheck(func(text string) { t.Error(text) }),
	}
	for end := c.began.Add(chaosTime(t)); time.Now().Before(end); {
		c.round()
	}
	c.judge()
	t.Logf("%d rounds, %d applies in %s; changes: %v; drift checks: %d; faults: %v, and %d that met nothing; waits: %v; a person said: %v",
		c.rounds, c.applies, time.Since(c.began).Round(time.Second), c.turns, c.checks, m.made, m.idle, c.waits, c.commands)
}

// chaos is a fleet of clusters that change while things fail. The states of gamma, epsilon and
// zeta are in stores of somebody else's: one of HTTP, a PostgreSQL and a bucket. Alpha has an
// object in a cloud, beta depends on alpha, and delta comes, takes another name and goes.
type chaos struct {
	m       *monkey
	w       *world
	began   time.Time
	rounds  int
	applies int
	turns   map[string]int // what became of delta and of changes, by word
	delta   delta

	generation    int                // the newest
	past, present map[string]content // what clusters were and are, by name

	checks   int                     // for drift
	checked  string                  // the last of them
	person   person                  // of this round
	waits    map[holdfast.Reason]int // what clusters waited for
	commands map[string]int          // what a person had to say, by word
	serials  map[string]int64        // of states, by cluster

	foreign map[string]func(name string) string // what the stores of somebody else's have, by cluster
	states  *stateCheck                         // of those
}

// content is what a pull request makes of a cluster.
type content struct {
	generation string
	files      files
}

// round changes some clusters by a pull request, from its planning to the end of its
// applies, and lets things fail at each step.
func (c *chaos) round() {
	c.w.t.Helper()
	c.rounds++
	c.person = newPerson(c.m.rng.IntN(2) == 0, func(text string) { c.w.t.Error(text) })
	names := []string{"alpha", "beta", "gamma", "epsilon", "zeta"}
	c.m.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:1+c.m.rng.IntN(3)]
	slices.Sort(names)
	turn := c.turn(c.newGeneration())

	contents, change := c.contents(names)
	c.w.t.Logf("round %d: %s, delta %s", c.rounds, names, turn.word)
	pr := c.w.fleet().open(join(turn.change, change))
	c.strikes()
	if c.m.rng.IntN(4) == 0 {
		c.turns["more is pushed"]++
		contents, change = c.contents(names)
		pr.push(change)
		c.strikes()
	}
	c.untilPlanned(pr, slices.Concat(names, turn.names))
	[]func(){pr.merge, pr.squash, pr.rebase}[c.m.rng.IntN(3)]()
	c.strikes()
	for _, name := range names {
		c.untilApplied(pr, name, contents[name].generation)
		c.past[name], c.present[name] = c.present[name], contents[name]
		c.stored(name)
	}
	turn.await(pr)
	pr.untilApplied()
	c.untilReverted(pr)
}

func (c *chaos) newGeneration() string {
	c.generation++
	return strconv.Itoa(c.generation)
}

// contents are what clusters become: something new or, now and then, what they were
// before the last change.
func (c *chaos) contents(names []string) (map[string]content, files) {
	contents, change := make(map[string]content), make(files)
	for _, name := range names {
		next := c.past[name]
		if c.m.rng.IntN(4) != 0 || next.generation == "" {
			generation := c.newGeneration()
			next = content{generation, c.cluster(name, generation)}
		} else {
			c.turns["one is reverted"]++
		}
		contents[name], change = next, join(change, next.files)
	}
	return contents, change
}

func (c *chaos) strikes() {
	c.w.t.Helper()
	for range c.m.rng.IntN(3) {
		c.m.strike()
	}
}

func (c *chaos) cluster(name, generation string) files {
	f := worker(name, generation, c.w.timed(name, "0.8"))
	switch {
	case name == "alpha":
		f["clusters/alpha.yaml"] += "  drift: {onDrift: apply}\n"
		f["infra/alpha/main.tf"] += c.w.cloudCode()
	case name == "gamma":
		f["clusters/gamma.yaml"] += "  " + c.m.store.backend(name) + "\n"
	case name == "epsilon":
		f["infra/epsilon/main.tf"] += c.m.postgres.backend(name)
	case name == "zeta":
		f["infra/zeta/main.tf"] += c.m.bucket.backend(name)
	case name == "beta" && c.serials["alpha"] > 0:
		f["clusters/beta.yaml"] += "  dependsOn: [alpha]\n"
	}
	return f
}

// untilPlanned waits until the plan of a pull request is shown. A person asks for it
// again where a fault has lasted longer than its retries.
func (c *chaos) untilPlanned(pr *pull, names []string) {
	c.w.t.Helper()
	c.w.until(fmt.Sprintf("pull request %d is planned", pr.number), func() (bool, string) {
		status, _ := c.w.fleet().hub.LatestStatus(pr.head, holdfast.ContextPlan)
		if status.State == string(holdfast.StatusSuccess) {
			return strings.Contains(pr.comment(), "Plan for `"+holdfast.Revision(pr.head).Short()+"`"), pr.comment()
		}
		for _, name := range names {
			c.free(name, c.w.runs(name)) // first: a plan that is under way may hold the lock itself
			run := c.w.newest(name, holdfast.RunPlan)
			if run.PullRequest.Number == pr.number && run.Status.Done() && !run.Status.Good() {
				verb := holdfast.ReasonPlanFailed.Info().Next[0]
				c.ask(pr, name, run, verb, fmt.Sprintf("holdfast replan %s#%d -c %s", c.w.fleet().name, pr.number, name))
			}
		}
		return false, status.State + " " + status.Description
	})
}

// untilApplied waits until a generation is applied. A cluster that was left half
// done, or would now do something else, waits for a person: one says yes.
func (c *chaos) untilApplied(pr *pull, name, generation string) {
	c.w.t.Helper()
	c.w.until(fmt.Sprintf("generation %s of %s is applied", generation, name), func() (bool, string) {
		rec := c.w.record(name)
		if v, _ := rec.Applied.Document.Variables["generation"].(string); v == generation && rec.Waiting == "" {
			return true, ""
		}
		return false, c.help(pr, name, rec)
	})
	c.serial(name)
}

// serial holds the serial of a cluster's state against what it was.
func (c *chaos) serial(name string) {
	c.w.t.Helper()
	rec := c.w.record(name)
	if rec.StateSerial < c.serials[name] {
		c.w.t.Errorf("the state of %s has serial %d after %d", name, rec.StateSerial, c.serials[name])
	}
	c.serials[name] = rec.StateSerial
}

// stored judges what the store of somebody else's has of a cluster.
func (c *chaos) stored(name string) {
	c.w.t.Helper()
	if store, foreign := c.foreign[name]; foreign && c.present[name].generation != "" {
		c.states.see(name, store(name), c.present[name].generation)
	}
}

// judge says what must be so in the end, whatever has failed.
func (c *chaos) judge() {
	c.w.t.Helper()
	c.w.untilIdle()
	for _, name := range slices.Sorted(maps.Keys(c.serials)) {
		if rec := c.w.record(name); rec.Waiting != "" || rec.Phase != holdfast.PhaseActive || !rec.UpToDate {
			c.w.t.Errorf("%s waits for %q and is %s in the end (as Git says: %t)", name, rec.Waiting, rec.Phase, rec.UpToDate)
		}
	}
	for _, name := range []string{"alpha", "beta", "gamma", "delta", deltaRenamed, "epsilon", "zeta"} {
		if said := c.w.said(name); strings.Contains(said, "overlap") {
			c.w.t.Errorf("%s was applied twice at once: %s", name, said)
		}
		c.judgeResumed(name)
		c.judgeDestroyed(name)
		c.judgeApplied(name)
		c.stored(name)
	}
	for _, wrong := range c.m.store.faults() {
		c.w.t.Error(wrong)
	}
	for _, pr := range c.w.fleet().pulls {
		for _, where := range [][2]string{{pr.head, holdfast.ContextPlan}, {pr.merged, holdfast.ContextApply}} {
			status, _ := c.w.fleet().hub.LatestStatus(where[0], where[1])
			if status.State != string(holdfast.StatusSuccess) {
				c.w.t.Errorf("%s of pull request %d is %s in the end: %s", where[1], pr.number, status.State, status.Description)
			}
		}
		pr.untilComment("applied")
	}
}

// judgeApplied says that each change was applied once. Those that revert drift come besides.
func (c *chaos) judgeApplied(name string) {
	c.w.t.Helper()
	applied, reverts := make(map[holdfast.Revision]string), make(map[string]bool)
	for _, run := range c.w.runs(name) {
		reverts[run.ID] = run.Kind == holdfast.RunDrift
	}
	for _, run := range c.w.applies(name) {
		if !run.Status.Done() {
			c.w.t.Errorf("%s is %s in the end", run.ID, run.Status)
		}
		reverts[run.ID] = reverts[run.Shown] // also one that is shown as another had found more
		if run.Status != holdfast.RunApplied || run.Counts.Zero() || reverts[run.ID] {
			continue
		}
		c.applies++
		if other := applied[run.Revision]; other != "" {
			c.w.t.Errorf("%s and %s have both applied %s of %s", other, run.ID, run.Revision.Short(), name)
		}
		applied[run.Revision] = run.ID
	}
}

// judgeResumed says that what an engine had in progress when it was killed was created
// again by nobody but a person.
func (c *chaos) judgeResumed(name string) {
	c.w.t.Helper()
	const work = "terraform_data.work"
	unsure := false // work may exist without being in the state
	for _, run := range c.w.applies(name) {
		if unsure && run.Resume && run.Actor == "" && run.Status == holdfast.RunApplied && run.Counts.Create > 0 {
			c.w.t.Errorf("%s has created %s of %s again, and nobody had asked for that", run.ID, work, name)
		}
		if run.Failure != nil && slices.Contains(run.Failure.Unrecorded, work) {
			unsure = true
		} else if run.Status == holdfast.RunApplied {
			unsure = false
		}
	}
}
