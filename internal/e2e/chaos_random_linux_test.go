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
	v1 "github.com/holdfast-dev/holdfast/api/v1"
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
	w := newWorld(t, settings{"runs.lease": "4s", "runs.retryDelay": "100ms", "runs.lockTimeout": "0s"})
	m := newMonkey(w, w.useRedis(), newStateStore(w))
	w.start()
	// People open a few pull requests in an hour, not three hundred.
	w.hub.SetQuota(1_000_000, 1_000_000, time.Now().Add(24*time.Hour))
	c := &chaos{m: m, w: w, began: time.Now(), turns: make(map[string]int), delta: delta{went: make(map[string]int)}, commands: make(map[string]int), serials: make(map[string]int64)}
	for end := c.began.Add(chaosTime(t)); time.Now().Before(end); {
		c.round()
	}
	c.judge()
	t.Logf("%d rounds, %d applies in %s; delta: %v; faults: %v; a person said: %v",
		c.rounds, c.applies, time.Since(c.began).Round(time.Second), c.turns, m.made, c.commands)
}

// chaos is a fleet of clusters that change while things fail. The state of gamma is
// in a store of somebody else's, beta depends on alpha, and delta comes, takes
// another name and goes.
type chaos struct {
	m        *monkey
	w        *world
	began    time.Time
	rounds   int
	applies  int
	turns    map[string]int // what became of delta, by word
	delta    delta
	commands map[string]int   // what a person had to say, by word
	serials  map[string]int64 // of states, by cluster
	asked    map[string]bool  // what was said already, by cluster and run
}

// round changes some clusters by a pull request, from its planning to the end of its
// applies, and lets things fail at each step.
func (c *chaos) round() {
	c.w.t.Helper()
	c.rounds++
	c.asked = make(map[string]bool)
	generation := strconv.Itoa(c.rounds)
	names := []string{"alpha", "beta", "gamma"}
	c.m.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:1+c.m.rng.IntN(len(names))]
	slices.Sort(names)
	turn := c.turn(generation)
	c.w.t.Logf("round %s: %s, delta %s", generation, names, turn.word)

	change := turn.change
	for _, name := range names {
		change = join(change, c.cluster(name, generation))
	}
	pr := c.w.fleet().open(change)
	c.strikes()
	c.untilPlanned(pr, slices.Concat(names, turn.names))
	[]func(){pr.merge, pr.squash, pr.rebase}[c.m.rng.IntN(3)]()
	c.strikes()
	for _, name := range names {
		c.untilApplied(pr, name, generation)
	}
	turn.await(pr)
	pr.untilApplied()
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
	case name == "gamma":
		f["clusters/gamma.yaml"] += "  " + c.m.store.backend(name) + "\n"
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
		c.free(names) // first: a plan that is under way may hold the lock itself
		for _, name := range names {
			run := c.w.newest(name, holdfast.RunPlan)
			if run.PullRequest.Number == pr.number && run.Status.Done() && !run.Status.Good() {
				c.say(pr, name, run, "/holdfast plan")
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

// help does what a person does about what a cluster waits for, and says what that is.
func (c *chaos) help(pr *pull, name string, rec v1.Cluster) string {
	c.w.t.Helper()
	last := c.w.newestOnBranch(name)
	c.free([]string{name})
	switch rec.Waiting {
	case "ApplyFailed", "PlanChanged", "MayExist", "Replanned", "Unreviewed":
		if last.Status == holdfast.RunPlanned && !last.PostedAt.IsZero() {
			c.say(pr, name, last, "/holdfast apply "+name)
		} else if last.Status == holdfast.RunErrored {
			c.command(last, "replan", name)
		}
	case "PlanFailed":
		c.command(last, "replan", name)
	default: // no person is needed
	}
	return fmt.Sprintf("%s, waits for %q; last: %s %s %s; replies: %q", rec.Phase, rec.Waiting, last.ID, last.Status, last.Reason, pr.replies())
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

// free takes the locks from engines that were killed: those of somebody else's store
// end with nobody else. A person asks whose lock it is, and does what the answer says.
func (c *chaos) free(names []string) {
	c.w.t.Helper()
	for _, name := range names {
		for _, run := range c.w.runs(name) {
			if run.Status == holdfast.RunRunning {
				break // it may be free by itself
			}
			if run.Failure == nil || run.Failure.Cause != "StateLocked" {
				continue
			}
			said := c.command(run, "unlock", name)
			if _, way, ok := strings.Cut(said, "holdfast unlock "+name+" --lock "); ok {
				// Of this kind of store the engine does not print who holds the lock. That
				// no run is under way is known here, and its agents are the store's only users.
				c.command(run, "unlock", name, "--lock", strings.Fields(way)[0], "--force")
			}
			break
		}
	}
}

// say says something to the pull request, once for each run, and again when that was
// refused: a code host whose clock was put back dates it before what it is about.
func (c *chaos) say(pr *pull, name string, run v1.Run, words string) {
	c.w.t.Helper()
	if key := fmt.Sprint(name, run.ID, words, len(pr.replies())); !c.asked[key] {
		c.asked[key] = true
		c.commands[words[:strings.LastIndexByte(words+" ", ' ')]]++
		c.w.t.Logf("%s is held by %s (%s): %s", name, run.ID, run.Reason, words)
		pr.say(dev, words)
	}
}

// command runs a command of holdfast, once for each attempt, and returns what it prints.
func (c *chaos) command(run v1.Run, args ...string) string {
	c.w.t.Helper()
	key := fmt.Sprint(run.ID, run.Attempt, args)
	if run.ID == "" || c.asked[key] {
		return ""
	}
	c.asked[key] = true
	c.commands[args[0]]++
	out, errs, code := c.w.cli(args...)
	c.w.t.Logf("holdfast %s after %s (%s): %d %s%s", strings.Join(args, " "), run.ID, run.Reason, code, out, errs)
	return out
}

// judge says what must be so in the end, whatever has failed.
func (c *chaos) judge() {
	c.w.t.Helper()
	c.w.untilIdle()
	for _, name := range slices.Sorted(maps.Keys(c.serials)) {
		if rec := c.w.record(name); rec.Waiting != "" || rec.Phase != holdfast.PhaseActive {
			c.w.t.Errorf("%s waits for %q and is %s in the end", name, rec.Waiting, rec.Phase)
		}
	}
	for _, name := range []string{"alpha", "beta", "gamma", "delta", deltaRenamed} {
		if said := c.w.said(name); strings.Contains(said, "overlap") {
			c.w.t.Errorf("%s was applied twice at once: %s", name, said)
		}
		c.judgeResumed(name)
		c.judgeDestroyed(name)
		applied := make(map[holdfast.Revision]string)
		for _, run := range c.w.applies(name) {
			if !run.Status.Done() {
				c.w.t.Errorf("%s is %s in the end", run.ID, run.Status)
			}
			if run.Status == holdfast.RunApplied && !run.Counts.Zero() {
				c.applies++
				if other := applied[run.Revision]; other != "" {
					c.w.t.Errorf("%s and %s have both applied %s of %s", other, run.ID, run.Revision.Short(), name)
				}
				applied[run.Revision] = run.ID
			}
		}
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
