package decision

import (
	"cmp"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// LongestTurn is how long a lane waits without a turn before it goes first: a priority
// before higher ones, a pull request before others of its priority. Then it has had its
// turn, and what goes first otherwise does so again. Nothing starves.
const LongestTurn = 10 * time.Minute

// Turns say which waiting run is handed out next: one of the lowest priority number,
// and there of the pull request that has the fewest runs running; of those, of the
// project that has the fewest; of those, of the one whose last turn is the longest ago,
// and first of all of one that has not had any, a single run before one of many. Runs outside of pull requests take the
// turns of their project. Turns implements holdfast.Turns.
type Turns struct {
	now time.Time

	priorities map[int]time.Time // when a run of each priority was last handed out
	sides      map[side]*share
	projects   map[string]*share
}

// side is who takes turns among the runs of a priority: a pull request, or a project
// with what is not of any.
type side struct {
	priority int
	pr       holdfast.PullRequestRef
	project  string // empty for a pull request
}

// share is what one has had of the slots.
type share struct {
	running int
	turn    time.Time // the last one; zero: none
}

func sideOf(lane holdfast.Lane) side {
	if lane.PullRequest.IsZero() {
		return side{priority: lane.Priority, project: lane.Project}
	}
	return side{priority: lane.Priority, pr: lane.PullRequest}
}

// NewTurns returns the turns at a time, from the lanes of the runs that are running and
// those that were served lately.
func NewTurns(now time.Time, running, lately []holdfast.Lane) *Turns {
	t := &Turns{
		now: now, priorities: make(map[int]time.Time), sides: make(map[side]*share), projects: make(map[string]*share),
	}
	for _, lane := range running {
		of, project := t.shares(lane)
		of.running++
		project.running++
	}
	for _, lane := range lately {
		t.took(lane, lane.Since)
	}
	return t
}

func (t *Turns) shares(lane holdfast.Lane) (of, project *share) {
	return shareOf(t.sides, sideOf(lane)), shareOf(t.projects, lane.Project)
}

func shareOf[K comparable](shares map[K]*share, key K) *share {
	s := shares[key]
	if s == nil {
		s = &share{}
		shares[key] = s
	}
	return s
}

func (t *Turns) took(lane holdfast.Lane, at time.Time) {
	of, project := t.shares(lane)
	of.turn, project.turn = latest(of.turn, at), latest(project.turn, at)
	t.priorities[lane.Priority] = latest(t.priorities[lane.Priority], at)
}

// Took counts a turn of a lane, as if its run was running from now on.
func (t *Turns) Took(lane holdfast.Lane) {
	t.now = t.now.Add(time.Nanosecond) // which of two turns was the later one
	t.took(lane, t.now)
	of, project := t.shares(lane)
	of.running++
	project.running++
}

// Next returns the index of the lane whose first run is handed out next.
func (t *Turns) Next(lanes []holdfast.Lane) int {
	priority := t.priority(lanes)
	several := make(map[side]bool, len(lanes))
	for _, lane := range lanes {
		of := sideOf(lane)
		_, another := several[of]
		several[of] = another || lane.More
	}
	best, first := -1, standing{}
	for i, lane := range lanes {
		if lane.Priority != priority {
			continue
		}
		if s := t.standing(lane, several[sideOf(lane)]); best < 0 || s.before(first) {
			best, first = i, s
		}
	}
	return best
}

// priority is that of the next run: the first, or the first that has waited for too
// long for its turn.
func (t *Turns) priority(lanes []holdfast.Lane) int {
	oldest := make(map[int]time.Time)
	first := lanes[0].Priority
	for _, lane := range lanes {
		first = min(first, lane.Priority)
		if at, ok := oldest[lane.Priority]; !ok || lane.Since.Before(at) {
			oldest[lane.Priority] = lane.Since
		}
	}
	starving, some := 0, false
	for priority, since := range oldest {
		if t.tooLong(latest(since, t.priorities[priority])) && (!some || priority < starving) {
			starving, some = priority, true
		}
	}
	if some {
		return starving
	}
	return first
}

func (t *Turns) tooLong(since time.Time) bool { return t.now.Sub(since) > LongestTurn }

// standing is what a lane's turn depends on.
type standing struct {
	starving            bool
	waited              time.Time // since when it has waited for its turn
	running, ofProject  int
	turn, turnOfProject time.Time
	several             bool // runs of the same side wait
	since               time.Time
}

func (t *Turns) standing(lane holdfast.Lane, several bool) standing {
	of, project := t.shares(lane)
	waited := latest(lane.Since, of.turn)
	return standing{
		starving: t.tooLong(waited), waited: waited, running: of.running, ofProject: project.running,
		turn: of.turn, turnOfProject: project.turn, since: lane.Since, several: several,
	}
}

func (s standing) before(other standing) bool {
	if s.starving != other.starving {
		return s.starving
	}
	if s.starving {
		return cmp.Or(s.waited.Compare(other.waited), s.since.Compare(other.since)) < 0
	}
	if c := cmp.Or(
		cmp.Compare(s.running, other.running), cmp.Compare(s.ofProject, other.ofProject), s.turn.Compare(other.turn),
	); c != 0 {
		return c < 0
	}
	if s.several != other.several {
		return other.several
	}
	return cmp.Or(s.turnOfProject.Compare(other.turnOfProject), s.since.Compare(other.since)) < 0
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
