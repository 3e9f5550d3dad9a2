package e2e_test

import (
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/redisserver"
)

// monkey makes things fail at random points, always the same things for a seed.
type monkey struct {
	w     *world
	rng   *rand.Rand
	redis *redisserver.Server
	store *stateStore
	made  map[string]int // faults, by name

	smallDisk bool // the data folder has a disk of its own, which can be filled
}

// newMonkey takes its seed from HOLDFAST_E2E_SEED, or makes one and says it.
func newMonkey(w *world, redis *redisserver.Server, store *stateStore) *monkey {
	w.t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("HOLDFAST_E2E_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	w.t.Logf("HOLDFAST_E2E_SEED=%d makes the same choices again", seed)
	m := &monkey{w: w, redis: redis, store: store, made: make(map[string]int)}
	m.rng = rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // not a secret
	if os.Getuid() == 0 {
		w.mountSmallDisk(1 << 30)
		m.smallDisk = true
	}
	return m
}

// A fault begins, and is over when the function that it returns, if any, was called.
type fault struct {
	name  string
	begin func(m *monkey) (over func())
}

var faults = []fault{ //nolint:gochecknoglobals // a constant table
	{"the server is killed", func(m *monkey) func() { m.w.crash(); return m.w.start }},
	{"the server is told to end", func(m *monkey) func() { m.w.stop(); m.w.exited = nil; return m.w.start }},
	{"an agent is killed", func(m *monkey) func() { m.signal(m.w.agentPIDs(), syscall.SIGKILL); return nil }},
	{"an agent is stopped", func(m *monkey) func() { m.signal(m.w.agentPIDs(), syscall.SIGSTOP); return nil }},
	{"an engine is killed", func(m *monkey) func() { m.signal(m.w.engines(), syscall.SIGKILL); return nil }},
	{"an engine is killed in an apply", func(m *monkey) func() { m.killApply(); return nil }},
	{"server and agents are killed", func(m *monkey) func() {
		m.w.crash()
		for _, agent := range m.w.agentPIDs() {
			m.signal([]int{agent}, syscall.SIGKILL)
		}
		return m.w.start
	}},
	{"Redis forgets", func(m *monkey) func() { m.redis.Restart(); return nil }},
	{"Redis hangs", func(m *monkey) func() { m.redis.Pause(); return m.redis.Resume }},
	{"the state store is away", func(m *monkey) func() {
		m.store.setAway(true)
		return func() { m.store.setAway(false) }
	}},
	{"the Git host fails", func(m *monkey) func() {
		m.w.git.Intercept(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "away", http.StatusBadGateway) })
		return func() { m.w.git.Intercept(nil) }
	}},
	{"the code host fails", func(m *monkey) func() {
		lost := githubserver.BadGateway
		lost.After = true
		all := []githubserver.Fault{githubserver.BadGateway, lost, githubserver.HTML, githubserver.Garbage, githubserver.SecondaryLimit(time.Second)}
		m.w.hub.Fail(1+m.rng.IntN(5), "", all[m.rng.IntN(len(all))])
		// Posts are tried again after pauses that double, each at the cost of one fault.
		return m.w.hub.Recover
	}},
	{"the disk is full", func(m *monkey) func() {
		if !m.smallDisk {
			return nil
		}
		m.w.fillDisk()
		return m.w.freeDisk
	}},
	{"the code host's clock differs", func(m *monkey) func() {
		off := time.Duration(m.rng.IntN(60)-30) * time.Second
		m.w.hub.SetNow(func() time.Time { return time.Now().Add(off) })
		return nil
	}},
}

// strike lets something fail after a random while, and for a random while.
func (m *monkey) strike() {
	m.w.t.Helper()
	f := faults[m.rng.IntN(len(faults))]
	m.made[f.name]++
	m.wait(1500)
	m.w.t.Logf("%s", f.name)
	if over := f.begin(m); over != nil {
		m.wait(2500)
		over()
	}
}

// killApply kills an engine that applies, after a part of what that does. If none
// begins within a few seconds, nothing fails.
func (m *monkey) killApply() {
	m.w.t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		applying := slices.DeleteFunc(m.w.engines(), func(pid int) bool {
			line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
			return !strings.Contains(string(line), "\x00apply\x00")
		})
		if len(applying) > 0 {
			m.wait(800) // most of an apply
			m.signal(applying, syscall.SIGKILL)
			return
		}
	}
}

// wait lasts up to so many milliseconds: the very point is to hit anywhere.
func (m *monkey) wait(most int) { time.Sleep(time.Duration(m.rng.IntN(most)) * time.Millisecond) }

// signal sends a signal to one of the processes, if there is one just now.
func (m *monkey) signal(pids []int, sig syscall.Signal) {
	if len(pids) > 0 {
		_ = syscall.Kill(pids[m.rng.IntN(len(pids))], sig) // it may be gone
	}
}
