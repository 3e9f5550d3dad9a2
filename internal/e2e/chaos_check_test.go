package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

const (
	silence   = time.Minute     // how long a cluster may be behind without a reason: nothing fails meanwhile
	inEarnest = 2 * time.Minute // how long a wait may last after the command that is offered for it was accepted
)

// waitCheck judges what clusters wait for: each wait has a reason that Holdfast has, and ends
// either automatically or by the command that the reason offers.
type waitCheck struct {
	now   func() time.Time
	wrong func(text string) // is called once for each wait that must not be

	silent   map[string]time.Time // by cluster: since when it has been behind without a reason
	present  map[string]wait      // by cluster: what it waited for when it was seen last
	accepted map[wait]time.Time   // when the command that is offered for a wait was first accepted
	reported map[wait]bool
}

// wait is what a cluster waits for. Another run, and another reason, is another wait.
type wait struct {
	cluster string
	reason  holdfast.Reason // empty: none is given
	run     string
	attempt int
}

func newWaitCheck(wrong func(text string)) *waitCheck {
	return &waitCheck{
		now: time.Now, wrong: wrong, silent: make(map[string]time.Time), present: make(map[string]wait),
		accepted: make(map[wait]time.Time), reported: make(map[wait]bool),
	}
}

// see judges a cluster that is not as it should be, by its runs, the last of which on the
// branch is last. It returns the command line by which a person ends what it waits for,
// if it does not end automatically.
func (k *waitCheck) see(name string, rec v1.Cluster, runs []v1.Run, last v1.Run) (line string) {
	idle := !slices.ContainsFunc(runs, func(run v1.Run) bool { return !run.Status.Done() })
	w := wait{name, rec.Waiting, last.ID, last.Attempt}
	k.present[name] = w
	if w.reason == "" {
		k.mayBeSilent(w, rec, idle)
		return ""
	}
	delete(k.silent, name)
	line = w.reason.Command(name)
	since, given := k.accepted[w]
	switch {
	case !w.reason.Known():
		k.report(w, "which is not a reason that Holdfast has")
		return ""
	case w.reason.Info().Effect == holdfast.Passes:
		return ""
	case line == "":
		k.report(w, "which does not end automatically, and no command is offered for it")
	case given && idle && k.now().Sub(since) > inEarnest:
		k.report(w, fmt.Sprintf("%q is offered for that and was accepted %s ago, and nothing runs for it", line, inEarnest))
	}
	return line
}

// accept notes that the server has accepted a command line for a cluster.
func (k *waitCheck) accept(name, line string) {
	w := k.present[name]
	if _, given := k.accepted[w]; !given && line == w.reason.Command(name) {
		k.accepted[w] = k.now()
	}
}

// mayBeSilent judges a cluster that gives no reason: it must not be behind for long while
// nothing runs for it.
func (k *waitCheck) mayBeSilent(w wait, rec v1.Cluster, idle bool) {
	behind := rec.Name != "" && rec.Phase != holdfast.PhaseDeleted && !rec.UpToDate
	since, was := k.silent[w.cluster]
	switch {
	case !behind || !idle:
		delete(k.silent, w.cluster)
	case !was:
		k.silent[w.cluster] = k.now()
	case k.now().Sub(since) > silence:
		k.report(w, fmt.Sprintf("it is %s, not as Git says, nothing runs for it, and no reason is given", rec.Phase))
	}
}

func (k *waitCheck) report(w wait, what string) {
	if k.reported[w] {
		return
	}
	k.reported[w] = true
	k.wrong(fmt.Sprintf("%s waits for %q: %s", w.cluster, w.reason, what))
}

// What a cluster waits for without a reason, without a command, or after a command that does not
// help is found, and nothing else is.
func TestWaitsAreChecked(t *testing.T) {
	t.Parallel()
	behind := v1.Cluster{Name: "alpha", Phase: holdfast.PhaseActive, Desired: v1.Desired{SourceDigest: "new"}}
	behind.Applied.SourceDigest = "old"
	asGit := behind
	asGit.Applied.SourceDigest, asGit.UpToDate = "new", true
	removed := asGit
	removed.Desired.Removed, removed.UpToDate = true, false
	gone := removed
	gone.Phase = holdfast.PhaseDeleted
	for name, tc := range map[string]struct {
		rec     v1.Cluster
		waiting holdfast.Reason
		running bool
		accepts string        // the command line that the server accepts
		lasts   time.Duration // longer than that it must not
		wrong   string        // empty: it may last
	}{
		"no reason":                     {rec: behind, lasts: silence, wrong: "no reason is given"},
		"no reason for a removal":       {rec: removed, lasts: silence, wrong: "no reason is given"},
		"no reason, but a run":          {rec: behind, running: true},
		"as Git says":                   {rec: asGit},
		"it is gone":                    {rec: gone},
		"not a reason":                  {rec: behind, waiting: "Whatever", wrong: "not a reason that Holdfast has"},
		"no command":                    {rec: behind, waiting: holdfast.ReasonNotMerged, wrong: "no command is offered"},
		"it passes":                     {rec: behind, waiting: holdfast.ReasonBackingOff},
		"a command that does not help":  {rec: behind, waiting: holdfast.ReasonMayExist, accepts: "holdfast apply alpha", lasts: inEarnest, wrong: "nothing runs for it"},
		"a command that is carried out": {rec: behind, waiting: holdfast.ReasonMayExist, accepts: "holdfast apply alpha", running: true},
		"another command":               {rec: behind, waiting: holdfast.ReasonMayExist, accepts: "holdfast unlock alpha"},
		"nobody has given it":           {rec: behind, waiting: holdfast.ReasonMayExist},
	} {
		now, wrong := time.Now(), []string(nil)
		check := newWaitCheck(func(text string) { wrong = append(wrong, text) })
		check.now = func() time.Time { return now }
		tc.rec.Waiting = tc.waiting
		last := v1.Run{ID: "plan-1"}
		last.Status = holdfast.RunPlanned
		runs := []v1.Run{last}
		if tc.running {
			runs[0].Status = holdfast.RunRunning
		}
		see := func() {
			check.see("alpha", tc.rec, runs, last)
			check.accept("alpha", tc.accepts)
		}
		see()
		now = now.Add(tc.lasts)
		see()
		if tc.lasts > 0 && len(wrong) > 0 {
			t.Errorf("%s: %q after %s", name, wrong, tc.lasts)
		}
		for range 3 {
			now = now.Add(time.Hour)
			see()
		}
		if len(wrong) != min(len(tc.wrong), 1) || len(wrong) > 0 && !strings.Contains(wrong[0], tc.wrong) {
			t.Errorf("%s: found %q, want %q once", name, wrong, tc.wrong)
		}
	}
}

// A wait for the same that begins again with another run is another wait.
func TestAnotherWaitIsCheckedAgain(t *testing.T) {
	t.Parallel()
	now, wrong := time.Now(), 0
	check := newWaitCheck(func(string) { wrong++ })
	check.now = func() time.Time { return now }
	rec := v1.Cluster{Name: "alpha"}
	rec.Waiting = holdfast.ReasonMayExist
	for _, run := range []string{"apply-1", "apply-2", "apply-3"} {
		last := v1.Run{ID: run}
		last.Status = holdfast.RunErrored
		if line := check.see("alpha", rec, []v1.Run{last}, last); line != "holdfast apply alpha" {
			t.Fatalf("a person is offered %q", line)
		}
		check.accept("alpha", "holdfast apply alpha")
		now = now.Add(inEarnest)
	}
	if wrong != 0 {
		t.Errorf("%d waits must not be, of three that have ended", wrong)
	}
}
