package decision_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// began is the time of the turns of these tests.
var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func laneOf(priority, pr int, project string, age time.Duration) holdfast.Lane {
	lane := holdfast.Lane{Priority: priority, Project: project, Provider: "aws", Kind: holdfast.RunPlan, Since: began.Add(-age)}
	if pr > 0 {
		lane.PullRequest = holdfast.PullRequestRef{Repo: "fleet", Number: pr}
	}
	return lane
}

func many(lane holdfast.Lane) holdfast.Lane {
	lane.More = true
	return lane
}

func TestTurns(t *testing.T) {
	t.Parallel()
	second, minute := time.Second, time.Minute
	served := func(lane holdfast.Lane, ago time.Duration) holdfast.Lane {
		lane.Since = began.Add(-ago)
		return lane
	}
	for name, test := range map[string]struct {
		lanes           []holdfast.Lane
		running, lately []holdfast.Lane
		want            int
	}{
		"what writes goes first": {
			lanes: []holdfast.Lane{laneOf(4, 0, "a", 5*minute), laneOf(1, 1, "a", minute), laneOf(0, 2, "a", second)}, want: 2,
		},
		"the pull request without a running run": {
			lanes:   []holdfast.Lane{laneOf(1, 1, "a", minute), laneOf(1, 2, "a", second)},
			running: []holdfast.Lane{laneOf(1, 1, "a", 0)}, want: 1,
		},
		"the one that had no turn yet": {
			lanes:  []holdfast.Lane{laneOf(1, 1, "a", minute), laneOf(1, 2, "a", second)},
			lately: []holdfast.Lane{served(laneOf(1, 1, "a", 0), minute)}, want: 1,
		},
		"the one whose turn is the longest ago": {
			lanes:  []holdfast.Lane{laneOf(1, 1, "a", minute), laneOf(1, 2, "a", second)},
			lately: []holdfast.Lane{served(laneOf(1, 1, "a", 0), 9*second), served(laneOf(1, 2, "a", 0), 3*second)}, want: 0,
		},
		"the oldest of those that had none": {
			lanes: []holdfast.Lane{laneOf(1, 2, "a", second), laneOf(1, 1, "a", minute)}, want: 1,
		},
		"the project that has fewer running": {
			lanes:   []holdfast.Lane{laneOf(1, 1, "a", minute), laneOf(1, 2, "b", second)},
			running: []holdfast.Lane{laneOf(1, 3, "a", 0)}, want: 1,
		},
		"the project whose turn is the longest ago": {
			lanes:  []holdfast.Lane{laneOf(1, 1, "a", minute), laneOf(1, 2, "b", second)},
			lately: []holdfast.Lane{served(laneOf(1, 3, "a", 0), second), served(laneOf(1, 4, "b", 0), minute)}, want: 1,
		},
		"a single one before one of many": {
			lanes: []holdfast.Lane{many(laneOf(1, 1, "a", minute)), laneOf(1, 2, "a", second)}, want: 1,
		},
		"outside of pull requests it is the project": {
			lanes:  []holdfast.Lane{laneOf(3, 0, "a", minute), laneOf(3, 0, "b", second)},
			lately: []holdfast.Lane{served(laneOf(3, 0, "a", 0), second)}, want: 1,
		},
		"a pull request that has waited for too long": {
			lanes:   []holdfast.Lane{laneOf(1, 1, "a", second), laneOf(1, 2, "a", 30*minute)},
			running: []holdfast.Lane{laneOf(1, 2, "a", 0)}, lately: []holdfast.Lane{served(laneOf(1, 2, "a", 0), 11*minute)}, want: 1,
		},
		"it had a turn meanwhile": {
			lanes:   []holdfast.Lane{laneOf(1, 1, "a", second), laneOf(1, 2, "a", 30*minute)},
			running: []holdfast.Lane{laneOf(1, 2, "a", 0)}, lately: []holdfast.Lane{served(laneOf(1, 2, "a", 0), 9*minute)}, want: 0,
		},
		"a priority that has waited for too long": {
			lanes: []holdfast.Lane{laneOf(0, 1, "a", second), laneOf(1, 2, "a", second), laneOf(4, 0, "b", 11*minute)}, want: 2,
		},
		"the first of those that have": {
			lanes: []holdfast.Lane{laneOf(4, 0, "b", time.Hour), laneOf(0, 1, "a", 11*minute)}, want: 1,
		},
	} {
		if got := decision.NewTurns(began, test.running, test.lately).Next(test.lanes); got != test.want {
			t.Errorf("%s: %+v is next", name, test.lanes[got])
		}
	}
}

// world is slots that execute runs of one length: what waits, what runs, what was
// served.
type world struct {
	now     time.Time
	lanes   map[holdfast.Lane][]time.Time // by lane without Since: when each waiting run was created
	running []holdfast.Lane
	lately  map[holdfast.Lane]time.Time
}

// turn hands out one run; it is false if none waits.
func (w *world) turn() (holdfast.Lane, bool) {
	var keys, lanes, lately []holdfast.Lane
	for key, created := range w.lanes {
		if len(created) > 0 {
			lane := key
			lane.Since, lane.More = created[0], len(created) > 1
			keys, lanes = append(keys, key), append(lanes, lane)
		}
	}
	for lane, at := range w.lately {
		lane.Since = at
		lately = append(lately, lane)
	}
	if len(lanes) == 0 {
		return holdfast.Lane{}, false
	}
	key := keys[decision.NewTurns(w.now, w.running, lately).Next(lanes)]
	w.lanes[key] = w.lanes[key][1:]
	w.running, w.lately[key] = append(w.running, key), w.now
	return key, true
}

func key(priority, pr int, project string) holdfast.Lane {
	lane := laneOf(priority, pr, project, 0)
	lane.Since = time.Time{}
	return lane
}

// TestASmallPullRequestIsServedAtOnce beside big ones: it waits for a slot, and not for
// its turn after the others, whichever projects they are of.
func TestASmallPullRequestIsServedAtOnce(t *testing.T) {
	t.Parallel()
	for _, projects := range []int{1, 2, 5} {
		for slots := 1; slots <= 4; slots++ {
			for before := range 40 {
				w := &world{now: began, lanes: map[holdfast.Lane][]time.Time{}, lately: map[holdfast.Lane]time.Time{}}
				for pr := 1; pr <= 5; pr++ {
					for range 100 {
						big := key(1, pr, fmt.Sprint("p", pr%projects))
						w.lanes[big] = append(w.lanes[big], began)
					}
				}
				small, waited := key(1, 9, "p0"), 0
				for n := 0; ; n++ {
					w.now = w.now.Add(time.Second)
					if n == before {
						w.lanes[small] = []time.Time{w.now}
					}
					if n >= slots {
						w.running = w.running[1:] // the oldest ends
					}
					if n > before {
						waited++
					}
					if lane, _ := w.turn(); lane == small {
						break
					}
				}
				// One run is as many turns as there are slots.
				if waited > slots {
					t.Errorf("%d projects, %d slots, after %d turns: the small pull request waits for %d more", projects, slots, before, waited)
				}
			}
		}
	}
}

// TestNothingStarves while there is always more than can be done of what goes first.
func TestNothingStarves(t *testing.T) {
	t.Parallel()
	w := &world{now: began, lanes: map[holdfast.Lane][]time.Time{}, lately: map[holdfast.Lane]time.Time{}}
	lanes := []holdfast.Lane{
		key(0, 1, "a"), key(0, 2, "a"), key(1, 3, "a"), key(1, 4, "b"), key(2, 5, "b"), key(3, 0, "a"), key(3, 0, "b"), key(4, 0, "a"),
	}
	last, longest := map[holdfast.Lane]time.Time{}, map[holdfast.Lane]time.Duration{}
	for range 6 * 60 {
		w.now = w.now.Add(time.Minute)
		for _, lane := range lanes {
			w.lanes[lane] = append(w.lanes[lane], w.now)
			if last[lane].IsZero() {
				last[lane] = w.now
			}
			longest[lane] = max(longest[lane], w.now.Sub(last[lane]))
		}
		if len(w.running) == 2 {
			w.running = w.running[1:]
		}
		lane, _ := w.turn()
		last[lane] = w.now
	}
	for _, lane := range lanes {
		// Each priority within ten minutes, and there are at most two of each.
		if longest[lane] > 2*decision.LongestTurn+10*time.Minute {
			t.Errorf("%+v waits for %s", lane, longest[lane])
		}
		if lane.Priority > 0 && longest[lane] < decision.LongestTurn {
			t.Errorf("%+v goes before what has priority: it waits for %s at most", lane, longest[lane])
		}
	}
}
